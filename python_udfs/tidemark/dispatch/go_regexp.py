r"""Go's regular expressions (RE2 syntax), for the yes-or-no question that a table filter asks.

Python's `re` reads another language (look-around, back references, `\d` in Unicode, `$` before a final line break) and may take exponential
time. This module parses what Go's regexp/syntax takes in its Perl mode, refuses the rest with a sentence, and walks an automaton over the
text: time is text length x pattern size at most.

    regexp  := branch | branch "|" regexp
    branch  := { atom [ * | + | ? | {n} | {n,} | {n,m} [?] ] }
    atom    := literal | . | ^ | $ | \A | \z | \b | \B | [class] | \d \D \s \S \w \W | \pN \p{Name}
             | \Q text \E | ( regexp ) | (?:regexp) | (?P<name>regexp) | (?<name>regexp) | (?flags) | (?flags:regexp)
    flags   := i m s U, those after - are off

Greedy or not makes no difference to a yes-or-no answer, so U and the trailing ? are read and dropped.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

MAX_REPEAT = 1000
MAX_DEPTH = 200
MAX_STATES = 50_000
MAX_RUNE = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_PERL_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX_CLASSES: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ANY: Ranges = ((0, MAX_RUNE),)
_ANY_BUT_NEWLINE: Ranges = ((0, 9), (11, MAX_RUNE))


class RegexpError(ValueError):
    """Not a regular expression that Go compiles."""


def lower(text: str) -> str:
    """Go's strings.ToLower: rune by rune, whatever stands around."""
    return (
        "".join(one if len(one := char.lower()) == 1 else one[0] for char in text)
        if not text.isascii()
        else text.lower()
    )


class GoRegexp:
    """A compiled expression. `search(text)` says whether it matches anywhere in the text, as Go's MatchString does."""

    def __init__(self, pattern: str, *, ignore_case: bool = False):
        self.pattern = pattern
        tree = _Parser(pattern, ignore_case).parse()
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


# --- the automaton -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Char:
    ranges: Ranges
    fold: bool
    then: int

    def takes(self, char: int) -> bool:
        if self.fold:
            return any(low <= one <= high for one in _orbit(char) for low, high in self.ranges)
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


# Runes that fold to a letter but that neither upper() nor lower() of the letter reaches.
_FOLDS_TO = {
    "k": "\u212a",
    "s": "\u017f",
    "\u00e5": "\u212b",
    "\u03c9": "\u2126",
    "\u03bc": "\u00b5",
    "\u03c3": "\u03c2",
    "\u00df": "\u1e9e",
}


@lru_cache(maxsize=4096)
def _orbit(char: int) -> frozenset[int]:
    """The runes that are the same when case does not count."""
    one = chr(char)
    # Turkish i is not part of simple folding.
    if one in "\u0130\u0131":
        return frozenset((char,))
    folded = one.casefold() if len(one.casefold()) == 1 else one.lower()
    found = {one, folded, one.lower(), one.upper(), folded.upper(), _FOLDS_TO.get(folded, one)}
    return frozenset(ord(each) for each in found if len(each) == 1)


# --- the parser ----------------------------------------------------------------------------------------------------------------

_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]*)?([:)])")
_UNICODE_NAME = re.compile(r"\^?([A-Za-z_]+)")


class _Parser:
    def __init__(self, pattern: str, ignore_case: bool):
        self.text = pattern
        self.at = 0
        self.depth = 0
        self.flags = frozenset("i" if ignore_case else "")
        self.names: set[str] = set()

    def parse(self) -> tuple:
        tree = self._alternatives()
        if self.at < len(self.text):
            raise RegexpError(f"unexpected ): {self.text}")
        _check_repeats(tree, 1)
        return tree

    def _alternatives(self) -> tuple:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RegexpError("expression nests too deeply")
        ways = [self._branch()]
        while self._peek() == "|":
            self.at += 1
            ways.append(self._branch())
        self.depth -= 1
        return ways[0] if len(ways) == 1 else ("or", ways)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _branch(self) -> tuple:
        parts: list[tuple] = []
        repeated = ""
        while self.at < len(self.text) and self._peek() not in "|)":
            begin = self.at
            bounds = self._repetition()
            if bounds is None:
                repeated = ""
                parts.extend(self._atom())
                continue
            operator = self.text[begin : self.at]
            if repeated:
                raise RegexpError(f"invalid nested repetition operator: `{repeated}{operator}`")
            if not parts:
                raise RegexpError(f"missing argument to repetition operator: `{operator}`")
            repeated = operator
            parts.append(("repeat", parts.pop(), *bounds))
        return ("cat", parts)

    def _repetition(self) -> tuple[int, int | None] | None:
        """Bounds of the repetition operator that stands here, or None. A { that begins no operator is a literal."""
        char = self._peek()
        if char in "*+?" and char:
            self.at += 1
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        else:
            found = _REPEAT.match(self.text, self.at)
            if found is None:
                return None
            low = int(found[1])
            high = low if found[2] is None else int(found[3]) if found[3] else None
            if low > MAX_REPEAT or (high is not None and (high > MAX_REPEAT or high < low)):
                raise RegexpError(f"invalid repeat count: `{found[0]}`")
            self.at = found.end()
            bounds = (low, high)
        if self._peek() == "?":
            self.at += 1
        return bounds

    def _atom(self) -> list[tuple]:
        char = self._peek()
        if char == "(":
            return self._group()
        if char == "[":
            return [("char", *self._class())]
        if char == "\\":
            return self._escape()
        self.at += 1
        if char == ".":
            return [("char", _ANY if "s" in self.flags else _ANY_BUT_NEWLINE, False)]
        if char == "^":
            return [("assert", "line start" if "m" in self.flags else "text start")]
        if char == "$":
            return [("assert", "line end" if "m" in self.flags else "text end")]
        return [self._literal(ord(char))]

    def _literal(self, rune: int) -> tuple:
        return ("char", ((rune, rune),), "i" in self.flags)

    def _group(self) -> list[tuple]:
        outer = self.flags
        if not self.text.startswith("(?", self.at):
            self.at += 1
        elif name := _GROUP_NAME.match(self.text, self.at):
            if not re.fullmatch(r"\w+", name[1], re.ASCII):
                raise RegexpError(f"invalid named capture: `{name[0]}`")
            if name[1] in self.names:
                raise RegexpError(f"duplicate capture group name: `{name[1]}`")
            self.names.add(name[1])
            self.at = name.end()
        else:
            found = _FLAGS.match(self.text, self.at)
            if found is None or found[2] == "-" or (found[3] == ")" and not (found[1] or found[2])):
                raise RegexpError(f"invalid or unsupported Perl syntax: `{self.text[self.at : self.at + 3]}`")
            self.at = found.end()
            self.flags = (outer | set(found[1])) - set(found[2] or "")
            if found[3] == ")":
                # Flags without a group hold to the end of the group around them.
                return []
        tree = self._alternatives()
        if self._peek() != ")":
            raise RegexpError(f"missing closing ): `{self.text}`")
        self.at += 1
        self.flags = outer
        return [tree]

    def _escape(self) -> list[tuple]:
        following = self.text[self.at + 1 : self.at + 2]
        if following in "AzbB" and following:
            self.at += 2
            names = {"A": "text start", "z": "text end", "b": "word boundary", "B": "no word boundary"}
            return [("assert", names[following])]
        if following == "Q":
            end = self.text.find("\\E", self.at + 2)
            quoted = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
            self.at = end + 2 if end >= 0 else len(self.text)
            return [self._literal(ord(char)) for char in quoted]
        ranges = self._class_escape()
        if ranges is not None:
            return [("char", ranges, "i" in self.flags)]
        return [self._literal(self._rune_escape())]

    def _class_escape(self) -> Ranges | None:
        r"""The ranges of \d, \pL and the like when one stands here."""
        following = self.text[self.at + 1 : self.at + 2]
        if following.lower() in _PERL_CLASSES and following:
            self.at += 2
            ranges = _PERL_CLASSES[following.lower()]
            return _inverted(ranges) if following.isupper() else ranges
        if following in "pP" and following:
            return self._unicode_class(following == "P")
        return None

    def _unicode_class(self, inverted: bool) -> Ranges:
        begin = self.at
        self.at += 2
        if self._peek() == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                raise RegexpError(f"invalid character class range: `{self.text[begin:]}`")
            name = self.text[self.at + 1 : end]
            self.at = end + 1
        else:
            name = self._peek()
            self.at += 1
        if name.startswith("^"):
            inverted, name = not inverted, name[1:]
        ranges = _category(name)
        if ranges is None:
            raise RegexpError(
                f"invalid character class range: `{self.text[begin : self.at]}` (Unicode categories such as L or Lu are known, scripts are not)"
            )
        return _inverted(ranges) if inverted else ranges

    def _rune_escape(self) -> int:
        r"""The rune of \n, \x41, \101, \. and the like."""
        begin = self.at
        char = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not char:
            raise RegexpError("trailing backslash at end of expression: ``")
        if char in _ESCAPES:
            return _ESCAPES[char]
        octal = re.compile(r"[0-7]{1,3}").match(self.text, begin + 1)
        # A single digit other than 0 would be a back reference.
        if octal is not None and (char == "0" or len(octal[0]) > 1):
            self.at = octal.end()
            return int(octal[0], 8)
        if char == "x":
            code = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))").match(self.text, begin + 1)
            if code is not None and int(code[1] or code[2], 16) <= MAX_RUNE:
                self.at = code.end()
                return int(code[1] or code[2], 16)
        elif char.isascii() and not char.isalnum() and char != "_":
            return ord(char)
        raise RegexpError(f"invalid escape sequence: `{self.text[begin : begin + 2]}`")

    def _class(self) -> tuple[Ranges, bool]:
        begin = self.at
        self.at += 1
        inverted = self._peek() == "^"
        self.at += inverted
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            if self.at >= len(self.text):
                raise RegexpError(f"missing closing ]: `{self.text[begin:]}`")
            # Perl mode: - may stand first or last, not between.
            if self._peek() == "-" and not first and self.text[self.at + 1 : self.at + 2] != "]":
                raise RegexpError(f"invalid character class range: `{self.text[self.at : self.at + 2]}`")
            first = False
            posix = self._posix_class()
            if posix is not None:
                ranges.extend(posix)
                continue
            if self._peek() == "\\" and (escaped := self._class_escape()) is not None:
                ranges.extend(escaped)
                continue
            low_at = self.at
            low = high = self._class_rune(begin)
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._class_rune(begin)
            if high < low:
                raise RegexpError(f"invalid character class range: `{self.text[low_at : self.at]}`")
            ranges.append((low, high))
        self.at += 1
        fold = "i" in self.flags
        if not inverted:
            return tuple(ranges), fold
        # Folding comes before inverting: [^a] without case takes neither a nor A.
        if fold:
            ranges = _folded(ranges)
        return _inverted(ranges), False

    def _class_rune(self, begin: int) -> int:
        char = self._peek()
        if not char:
            raise RegexpError(f"missing closing ]: `{self.text[begin:]}`")
        if char == "\\":
            return self._rune_escape()
        self.at += 1
        return ord(char)

    def _posix_class(self) -> Ranges | None:
        if not self.text.startswith("[:", self.at):
            return None
        end = self.text.find(":]", self.at + 2)
        if end < 0:
            return None
        name = self.text[self.at + 2 : end]
        found = _POSIX_CLASSES.get(name.removeprefix("^"))
        if found is None:
            raise RegexpError(f"invalid character class range: `{self.text[self.at : end + 2]}`")
        self.at = end + 2
        return _inverted(found) if name.startswith("^") else found


def _check_repeats(tree: tuple, times: int) -> None:
    """Nested counts may not multiply to more than MAX_REPEAT."""
    if tree[0] in ("cat", "or"):
        for part in tree[1]:
            _check_repeats(part, times)
    elif tree[0] == "repeat":
        _, part, low, high = tree
        times *= max(low, high or 0) or 1
        if times > MAX_REPEAT:
            raise RegexpError("invalid repeat count: nested counts are too large")
        _check_repeats(part, times)


def _inverted(ranges) -> Ranges:
    result, following = [], 0
    for low, high in sorted(ranges):
        if low > following:
            result.append((following, low - 1))
        following = max(following, high + 1)
    if following <= MAX_RUNE:
        result.append((following, MAX_RUNE))
    return tuple(result)


# Past the last letter with case (Adlam).
_LAST_CASED = 0x1E943


def _folded(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    more = {
        one for low, high in ranges for char in range(low, min(high, _LAST_CASED) + 1) for one in _orbit(char)
    }
    return [*ranges, *((one, one) for one in more)]


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges | None:
    """The runes of a Unicode general category (Lu) or group of categories (L)."""
    if name == "Any":
        return _ANY
    if not re.fullmatch(r"[CLMNPSZ][a-z]?", name):
        return None
    ranges: list[tuple[int, int]] = []
    for rune in range(MAX_RUNE + 1):
        if unicodedata.category(chr(rune)).startswith(name):
            if ranges and ranges[-1][1] == rune - 1:
                ranges[-1] = (ranges[-1][0], rune)
            else:
                ranges.append((rune, rune))
    return tuple(ranges) or None
