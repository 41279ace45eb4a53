"""Reading a JSON object out of a payload: nesting is limited before parsing, numbers stay integers, text is UTF-8."""

from __future__ import annotations

import json
import re
from typing import Any

from tidemark.wire.errors import InvalidField

# What TiCDC writes nests five levels deep.
MAX_DEPTH = 64

# What TiCDC writes is seen to be shallow in so many passes, of two levels each.
_PASSES = 8
_NO_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_TOKEN = re.compile(rb'"[^"]*(?:"|\Z)|[\[{]+|[\]}]+')


def read_object(data: bytes, what: str, offset: int) -> dict[str, Any]:
    """The JSON object in `data`; `offset` is where it starts, for errors."""
    _check_depth(data, what, offset)
    try:
        document = json.loads(data.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise InvalidField(f"{what} is not UTF-8", offset=offset + error.start) from None
    except ValueError as error:
        raise InvalidField(f"{what} is not JSON: {error}", offset=offset + getattr(error, "pos", 0)) from None
    if not isinstance(document, dict):
        raise InvalidField(f"{what} is not a JSON object", offset=offset, expected="object")
    if b"\\ud" in data or b"\\uD" in data:
        document = _without_lone_surrogates(document)
    return document


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON value")


def _check_depth(data: bytes, what: str, offset: int) -> None:
    """Stops at the first bracket that is too deep, so that a bomb costs neither memory nor time."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH or _is_plain_and_shallow(data):
        return
    depth = 0
    # Without escapes a string ends at its next quote.
    for token in _TOKEN.finditer(data.replace(b"\\\\", b"").replace(b'\\"', b"")):
        run = token[0]
        if run[0] in b"[{":
            depth += len(run)
            if depth > MAX_DEPTH:
                raise InvalidField(
                    f"{what} nests more than {MAX_DEPTH} levels deep",
                    offset=offset,
                    expected=MAX_DEPTH,
                    actual=depth,
                )
        elif run[0] != ord('"'):
            depth -= len(run)


def _is_plain_and_shallow(data: bytes) -> bool:
    """Whether nothing nests too deep, as far as a few passes over the brackets can tell: of texts without brackets and backslashes."""
    if b"\\" in data:
        return False
    # Without brackets in them, strings leave pairs of quotes.
    brackets = data.translate(None, _NO_STRUCTURE).replace(b'""', b"")
    if b'"' in brackets:
        return False
    for _ in range(_PASSES):
        if not brackets:
            return True
        # Takes away two levels at most.
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return False


def _without_lone_surrogates(document: dict[str, Any]) -> dict[str, Any]:
    """Half of a surrogate pair is no character; it becomes U+FFFD, as in Go."""
    text = json.dumps(document, ensure_ascii=False)
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
