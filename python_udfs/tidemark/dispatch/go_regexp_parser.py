r"""The grammar of Go's regular expressions: RE2 syntax in its Perl mode.

    regexp  := branch | branch "|" regexp
    branch  := { atom [ * | + | ? | {n} | {n,} | {n,m} [?] ] }
    atom    := literal | . | ^ | $ | \A | \z | \b | \B | [class] | \d \D \s \S \w \W | \pN \p{Name}
             | \Q text \E | ( regexp ) | (?:regexp) | (?P<name>regexp) | (?<name>regexp) | (?flags) | (?flags:regexp)
    flags   := i m s U, those after - are off

What Go refuses is refused with a sentence. Greedy or not makes no difference to a yes-or-no answer, so U and the trailing ? are dropped.

A tree is one of
    ("char", ranges, fold)   ("assert", what)   ("cat", trees)   ("or", trees)   ("repeat", tree, low, high or None)
"""

from __future__ import annotations

import re

from tidemark.dispatch.rune_classes import (
    ANY,
    ANY_BUT_NEWLINE,
    MAX_RUNE,
    PERL_CLASSES,
    POSIX_CLASSES,
    Ranges,
    category,
    folded,
    inverted,
)

MAX_REPEAT = 1000
MAX_DEPTH = 200

_ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
# A count does not begin with 0; {007} is a literal.
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*|))?\}")
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]*)?([:)])")


class RegexpError(ValueError):
    """Not a regular expression that Go compiles."""


class Parser:
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
            if max(len(found[1]), len(found[3] or "")) > len(str(MAX_REPEAT)):
                raise RegexpError(f"invalid repeat count: `{found[0]}`")
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
            return [("char", ANY if "s" in self.flags else ANY_BUT_NEWLINE, False)]
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
            if found is None or found[2] == "-":
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
        if following.lower() in PERL_CLASSES and following:
            self.at += 2
            ranges = PERL_CLASSES[following.lower()]
            return self._without(ranges) if following.isupper() else ranges
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
        ranges = category(name)
        if ranges is None:
            raise RegexpError(
                f"invalid character class range: `{self.text[begin : self.at]}` (Unicode categories such as L or Lu are known, scripts are not)"
            )
        return self._without(ranges) if inverted else ranges

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
        elif char.isascii() and not char.isalnum():
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
        return self._without(ranges), False

    def _without(self, ranges) -> Ranges:
        """What is not in the ranges. Folding comes before inverting: [^a] without case takes neither a nor A."""
        return inverted(folded(ranges) if "i" in self.flags else ranges)

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
        found = POSIX_CLASSES.get(name.removeprefix("^"))
        if found is None:
            raise RegexpError(f"invalid character class range: `{self.text[self.at : end + 2]}`")
        self.at = end + 2
        return self._without(found) if name.startswith("^") else found


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
