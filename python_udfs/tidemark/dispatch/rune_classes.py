"""Sets of runes as Go's regular expressions know them: Perl, POSIX and Unicode classes, inverting and case folding."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MAX_RUNE = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
PERL_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
POSIX_CLASSES: dict[str, Ranges] = {
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
ANY: Ranges = ((0, MAX_RUNE),)
ANY_BUT_NEWLINE: Ranges = ((0, 9), (11, MAX_RUNE))


def lower(text: str) -> str:
    """Go's strings.ToLower: rune by rune, whatever stands around."""
    return (
        "".join(one if len(one := char.lower()) == 1 else one[0] for char in text)
        if not text.isascii()
        else text.lower()
    )


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
def orbit(char: int) -> frozenset[int]:
    """The runes that are the same when case does not count."""
    one = chr(char)
    # Turkish i is not part of simple folding.
    if one in "\u0130\u0131":
        return frozenset((char,))
    folded = one.casefold() if len(one.casefold()) == 1 else one.lower()
    found = {
        one,
        folded,
        one.lower(),
        one.upper(),
        folded.upper(),
        folded.title(),
        _FOLDS_TO.get(folded, one),
    }
    return frozenset(ord(each) for each in found if len(each) == 1)


def inverted(ranges) -> Ranges:
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


def folded(ranges) -> list[tuple[int, int]]:
    more = {
        one for low, high in ranges for char in range(low, min(high, _LAST_CASED) + 1) for one in orbit(char)
    }
    return [*ranges, *((one, one) for one in more)]


@lru_cache(maxsize=64)
def category(name: str) -> Ranges | None:
    """The runes of a Unicode general category (Lu) or group of categories (L)."""
    if name == "Any":
        return ANY
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
