"""Patterns of LIKE and REGEXP, as Spark reads them."""

from __future__ import annotations

import re

from tidemark.filter_expressions.parse import ExpressionError

# What the regular expressions of TiDB (Go) and of Spark (Java) read alike. Java's classes may be nested and intersected, Go's may not; \s differs in one character.
_CLASS = r"\[\^?(?:[^\\\[\]&^]|\\[dDwW]|\\[^\sA-Za-z0-9])+\]"
_REGEXP = re.compile(
    rf"(?:{_CLASS}|\((?!\?)|\)|\||\^|\$|\.|[*+?](?:\?|(?![*+]))|\{{\d+(?:,\d*)?\}}\??(?![*+?])|\\[dDwW]|\\[^\sA-Za-z0-9]|[^\\\[\](){{}}*+?|^$.])*"
)
_TOKEN = re.compile(rf"{_CLASS}|\\.|.", re.DOTALL)


def like_pattern(pattern: str) -> str:
    r"""The pattern with \ only before %, _ and \, which is all that Spark takes."""
    made, rest = [], iter(pattern)
    for character in rest:
        if character == "\\":
            character = next(rest, "\\")
            made.append("\\" + character if character in "%_\\" else character)
        else:
            made.append(character)
    return "".join(made)


def regexp_pattern(pattern: str) -> str:
    """The pattern for Java: the end is the end of the text, and only a line feed ends a line."""
    if not pattern:
        raise ExpressionError("REGEXP: the pattern is empty")
    if not _REGEXP.fullmatch(pattern):
        raise ExpressionError(
            f"REGEXP {pattern!r} is more than characters, . ^ $ | ( ) [ ] * + ? {{n,m}} and \\d \\w, which TiDB and Spark read alike"
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise ExpressionError(f"REGEXP {pattern!r}: {error}") from None
    return "(?d)" + "".join(r"\z" if token == "$" else token for token in _TOKEN.findall(pattern))
