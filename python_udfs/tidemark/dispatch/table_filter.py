r"""TiDB's table filter.

    rule     := [!] pattern . pattern          ! : tables that match are refused
              | # comment | empty
              | @ file                         the rules of a file, one per line; no @ inside
    pattern  := { letter | digit | _ | $ | non-ASCII | * | ? | [a-z] | [!a-z] | \ punctuation }
              | "text with "" for a quote" | `text with `` for a backquote` | /regular expression of Go/

The last rule that matches a table decides; a table that no rule matches is refused. Without case sensitivity both sides are lower-cased.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.dispatch.go_regexp import GoRegexp
from tidemark.dispatch.go_regexp_parser import RegexpError
from tidemark.dispatch.rune_classes import lower
from tidemark.errors import TidemarkError


class TableFilterError(TidemarkError, ValueError):
    """A rule that cannot be read: where it stands and why."""


class TableFilter:
    """Which tables a list of rules takes."""

    def __init__(self, rules: Iterable[str] | None, *, case_sensitive: bool = True):
        self.rules = tuple(rules or ())
        self.case_sensitive = case_sensitive
        parsed: list[_Rule] = []
        for text in self.rules:
            parsed.extend(_parse_line(text, _Place("<cmdline>", 1), case_sensitive, may_import=True))
        self._from_last = tuple(reversed(parsed))
        self._answers: dict[tuple[str, str], bool] = {}

    def __repr__(self) -> str:
        return f"TableFilter({list(self.rules)!r}, case_sensitive={self.case_sensitive})"

    def matches(self, schema: str, table: str) -> bool:
        """Whether the table is taken. Answers are kept: the same tables are asked about again and again."""
        answer = self._answers.get((schema, table))
        if answer is None:
            answer = self._answers[schema, table] = self._decide(schema, table)
        return answer

    def _decide(self, schema: str, table: str) -> bool:
        if not self.case_sensitive:
            schema, table = lower(schema), lower(table)
        for rule in self._from_last:
            if rule.schema.matches(schema) and rule.table.matches(table):
                return rule.positive
        return False

    def matches_schema(self, schema: str) -> bool:
        """Whether some table of the schema may be taken."""
        if not self.case_sensitive:
            schema = lower(schema)
        for rule in self._from_last:
            if rule.schema.matches(schema) and (rule.positive or rule.table.takes_all):
                return rule.positive
        return False


class _Everything:
    takes_all = True

    def matches(self, name: str) -> bool:
        return True


@dataclass(frozen=True)
class _Name:
    name: str
    takes_all = False

    def matches(self, name: str) -> bool:
        return name == self.name


@dataclass(frozen=True)
class _Pattern:
    regexp: GoRegexp
    takes_all = False

    def matches(self, name: str) -> bool:
        return self.regexp.search(name)


@dataclass(frozen=True)
class _Rule:
    schema: _Everything | _Name | _Pattern
    table: _Everything | _Name | _Pattern
    positive: bool


@dataclass(frozen=True)
class _Place:
    file: str
    line: int

    def error(self, message: str) -> TableFilterError:
        return TableFilterError(f"at {self.file}:{self.line}: {message}")


def _parse_line(text: str, place: _Place, case_sensitive: bool, may_import: bool) -> list[_Rule]:
    text = text.strip(" \t")
    if text == "" or text.startswith("#"):
        return []
    if text.startswith("@"):
        if not may_import:
            raise place.error("importing filter files recursively is not allowed")
        return _parse_file(text[1:], place, case_sensitive)
    positive = not text.startswith("!")
    schema, rest = _parse_pattern(text if positive else text[1:], place, case_sensitive)
    if rest == "":
        raise place.error("wrong table pattern")
    if not rest.startswith("."):
        raise place.error("syntax error: missing '.' between schema and table patterns")
    table, rest = _parse_pattern(rest[1:], place, case_sensitive)
    if rest:
        raise place.error("syntax error: stray characters after table pattern")
    return [_Rule(schema, table, positive)]


def _parse_file(name: str, place: _Place, case_sensitive: bool) -> list[_Rule]:
    try:
        with open(name, encoding="utf-8", newline="") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise place.error(f"cannot open filter file: open {name}: {reason}") from None
    rules = []
    for number, line in enumerate(lines, 1):
        rules.extend(
            _parse_line(line.removesuffix("\r"), _Place(name, number), case_sensitive, may_import=False)
        )
    return rules


_QUOTED = {'"': re.compile(r'"((?:""|[^"])+)"'), "`": re.compile(r"`((?:``|[^`])+)`")}
_RANGE = re.compile(r"\[!?(?:\\[^0-9a-zA-Z]|[^\\\]])+\]")


def _parse_pattern(text: str, place: _Place, case_sensitive: bool):
    """The matcher at the beginning of `text`, and what follows it."""
    if text == "":
        raise place.error("syntax error: missing pattern")
    if text[0] == "/":
        end = _regexp_end(text)
        if end is None:
            raise place.error("syntax error: incomplete regexp")
        return _compiled(text[1:end], place, case_sensitive), text[end + 1 :]
    if text[0] in _QUOTED:
        found = _QUOTED[text[0]].match(text)
        if found is None:
            raise place.error("syntax error: incomplete quoted identifier")
        name = found[1].replace(text[0] * 2, text[0])
        return _Name(name if case_sensitive else lower(name)), text[found.end() :]
    return _parse_wildcard(text, place, case_sensitive)


def _regexp_end(text: str) -> int | None:
    r"""Where the / is that ends the expression: the first that no \ escapes, else the last that one does."""
    escaped = None
    at = 1
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] != "\n":
            if text[at + 1] == "/":
                escaped = at + 1
            at += 2
        elif text[at] == "/":
            return at if at > 1 else None
        else:
            at += 1
    return escaped


def _compiled(pattern: str, place: _Place, case_sensitive: bool) -> _Everything | _Pattern:
    if pattern == "(?s)^.*$":
        return _Everything()
    try:
        return _Pattern(GoRegexp(pattern, ignore_case=not case_sensitive))
    except RegexpError as problem:
        raise place.error(f"invalid pattern: error parsing regexp: {problem}") from None


def _parse_wildcard(text: str, place: _Place, case_sensitive: bool):
    literal: list[str] = []
    pattern: list[str] = []
    is_literal = True
    at = 0
    while at < len(text) and text[at] != ".":
        char = text[at]
        if char == "\\":
            if at == len(text) - 1:
                raise place.error(r"syntax error: cannot place \ at end of line")
            char = text[at + 1]
            if char.isascii() and char.isalnum():
                raise place.error(
                    rf"cannot escape a letter or number (\{char}), it is reserved for future extension"
                )
            literal.append(char)
            pattern.append(_quoted(char))
            at += 2
        elif char in "*?":
            is_literal = False
            pattern.append(".*" if char == "*" else ".")
            at += 1
        elif char == "[":
            is_literal = False
            found = _RANGE.match(text, at)
            if found is None:
                raise place.error("syntax error: failed to parse character class")
            body = found[0]
            # [! inverts; ^ means itself.
            pattern.append(
                "[^" + body[2:] if body[1] == "!" else r"[\^" + body[2:] if body[1] == "^" else body
            )
            at = found.end()
        elif char in "$_" or char.isalnum() or not char.isascii():
            literal.append(char)
            pattern.append(_quoted(char))
            at += 1
        else:
            raise place.error(f"unexpected special character '{char}'")
    rest = text[at:]
    if is_literal:
        name = "".join(literal)
        return _Name(name if case_sensitive else lower(name)), rest
    return _compiled(f"(?s)^{''.join(pattern)}$", place, case_sensitive), rest


def _quoted(char: str) -> str:
    return f"\\{char}" if char.isascii() and not char.isalnum() and char != "_" else char
