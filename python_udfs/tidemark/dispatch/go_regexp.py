r"""Go's regular expressions, for the yes-or-no question that a table filter asks.

Python's `re` reads another language (look-around, back references, `\d` in Unicode, `$` before a final line break) and may take exponential
time. Here the tree of the parser becomes an automaton that walks over the text: time is text length x pattern size at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.dispatch.go_regexp_parser import Parser, RegexpError
from tidemark.dispatch.rune_classes import Ranges, orbit

MAX_STATES = 50_000


class GoRegexp:
    """A compiled expression. `search(text)` says whether it matches anywhere in the text, as Go's MatchString does."""

    def __init__(self, pattern: str, *, ignore_case: bool = False):
        self.pattern = pattern
        tree = Parser(pattern, ignore_case).parse()
        self._program = _Program()
        self._start = self._program.add(tree, self._program.accept)

    def search(self, text: str) -> bool:
        program = self._program
        states: set[int] = set()
        for at in range(len(text) + 1):
            before = text[at - 1] if at else ""
            after = text[at] if at < len(text) else ""
            # The expression may begin at every place.
            if program.enter(self._start, states, before, after):
                return True
            if not after:
                return False
            reached: set[int] = set()
            char = ord(after)
            following = text[at + 1] if at + 1 < len(text) else ""
            for state in states:
                step = program.steps[state]
                if (
                    isinstance(step, _Char)
                    and step.takes(char)
                    and program.enter(step.then, reached, after, following)
                ):
                    return True
            states = reached
        return False


@dataclass(frozen=True)
class _Char:
    ranges: Ranges
    fold: bool
    then: int

    def takes(self, char: int) -> bool:
        if self.fold:
            return any(low <= one <= high for one in orbit(char) for low, high in self.ranges)
        return any(low <= char <= high for low, high in self.ranges)


@dataclass
class _Split:
    ways: list[int]


@dataclass(frozen=True)
class _Assert:
    what: str
    then: int


class _Program:
    """States by number. Built from the end: `add(tree, then)` gives the state at which the tree begins."""

    accept = 0

    def __init__(self) -> None:
        self.steps: list[_Char | _Split | _Assert] = [_Split([])]

    def _new(self, step: _Char | _Split | _Assert) -> int:
        if len(self.steps) >= MAX_STATES:
            raise RegexpError("expression is too large")
        self.steps.append(step)
        return len(self.steps) - 1

    def add(self, tree: tuple, then: int) -> int:
        kind = tree[0]
        if kind == "char":
            return self._new(_Char(tree[1], tree[2], then))
        if kind == "assert":
            return self._new(_Assert(tree[1], then))
        if kind == "cat":
            for part in reversed(tree[1]):
                then = self.add(part, then)
            return then
        if kind == "or":
            return self._new(_Split([self.add(part, then) for part in tree[1]]))
        return self._repeat(tree, then)

    def _repeat(self, tree: tuple, then: int) -> int:
        _, part, low, high = tree
        if high is None:
            loop = _Split([then])
            state = self._new(loop)
            loop.ways.append(self.add(part, state))
            then = state
        else:
            for _ in range(high - low):
                then = self._new(_Split([then, self.add(part, then)]))
        for _ in range(low):
            then = self.add(part, then)
        return then

    def enter(self, state: int, states: set[int], before: str, after: str) -> bool:
        """Add what can be reached from `state` without a character; True when that is the end."""
        waiting = [state]
        while waiting:
            state = waiting.pop()
            if state == self.accept:
                return True
            if state in states:
                continue
            states.add(state)
            step = self.steps[state]
            if isinstance(step, _Split):
                waiting.extend(step.ways)
            elif isinstance(step, _Assert) and _holds(step.what, before, after):
                waiting.append(step.then)
        return False


def _holds(what: str, before: str, after: str) -> bool:
    if what == "text start":
        return before == ""
    if what == "text end":
        return after == ""
    if what == "line start":
        return before in ("", "\n")
    if what == "line end":
        return after in ("", "\n")
    boundary = _is_word(before) != _is_word(after)
    return boundary if what == "word boundary" else not boundary


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
