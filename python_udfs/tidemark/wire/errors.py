"""Typed errors of the wire format: one class for each way in which bytes can be wrong.

Every error carries `offset` (where in the buffer, or in the file once a reader knows it), `expected` and `actual`, so that a
quarantine row can be filled without parsing the message. `reason` is a stable word for SQL to group by.
"""

from __future__ import annotations

from typing import Any

from tidemark.errors import TidemarkError


class WireError(TidemarkError, ValueError):
    reason = "wire_error"

    def __init__(self, message: str, *, offset: int = 0, expected: Any = None, actual: Any = None):
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.expected = expected
        self.actual = actual

    def at(self, base: int) -> WireError:
        """The same error with its offset counted from `base` bytes earlier."""
        self.offset += base
        return self

    def __str__(self) -> str:
        return f"{self.message} (at byte {self.offset})"


class TruncatedHeader(WireError):
    """Fewer than 16 bytes are left."""

    reason = "truncated_header"


class BadMagic(WireError):
    """The four magic bytes are not there."""

    reason = "bad_magic"


class UnknownEventType(WireError):
    """The header names an event type that no version of the protocol defines."""

    reason = "unknown_event_type"


class WrongEventType(WireError):
    """A decoder for one event type was given another."""

    reason = "wrong_event_type"


class UnsupportedVersion(WireError):
    """The payload version is newer than the newest one known here."""

    reason = "unsupported_version"


class OversizedPayload(WireError):
    """The announced payload is larger than any reader can hold."""

    reason = "oversized_payload"


class TruncatedPayload(WireError):
    """A length or a count points past the bytes that are there."""

    reason = "truncated_payload"


class TrailingBytes(WireError):
    """The payload is longer than its content."""

    reason = "trailing_bytes"


class InvalidField(WireError):
    """The bytes are there but cannot be a value of the field."""

    reason = "invalid_field"
