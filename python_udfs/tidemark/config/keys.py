"""How a key is declared, and how a value of each kind is read.

Every key of the changefeed file and of the sink URI is one dataclass field declared with `key(…)`: its kind (which reads the value
and says what is allowed), its default, one line of documentation, and whether it only tunes a running TiCDC. Parsing, checking,
suggestions and the reference in docs/ all walk these fields; there is no second list.

A value comes from TOML, from a dbt var (both typed) or from a URI (text). Durations are Go's: `1h30m`, `-1.5s`, `0`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tidemark.config.findings import HIDDEN, Findings
from tidemark.config.secrets import is_secret_name


class KindError(ValueError):
    """The value is not one that the kind reads."""


@dataclass(frozen=True)
class Kind:
    """`read` turns a typed value or URI text into the setting or raises KindError; `allowed` says what it takes."""

    allowed: str
    read: Callable[[Any], Any]
    # A table or a list of tables: the dataclass of its keys.
    section: type | None = None
    is_list: bool = False


@dataclass(frozen=True)
class Key:
    kind: Kind
    doc: str
    name: str
    tuning: bool = False
    secret: bool = False
    # Any other value than the default would change what is sent, and Tidemark does not apply it: what it does instead. An error.
    unapplied: str = ""
    # No value can change what is sent: why, as a note.
    moot: str = ""
    # For a URI option: the key of the changefeed file that says the same. The URI wins.
    file_key: str = ""


def key(
    kind: Kind,
    default: Any,
    doc: str,
    *,
    name: str = "",
    tuning: bool = False,
    secret: bool = False,
    unapplied: str = "",
    moot: str = "",
    file_key: str = "",
) -> Any:
    """A dataclass field that is a key. Without `name`, the field's name with - for _ is the key's name."""
    declared = Key(kind, doc, name, tuning, secret, unapplied, moot, file_key)
    return field(default=default, repr=not secret, metadata={"key": declared})


def tuning(kind: Kind, doc: str, **options: Any) -> Any:
    """A key that only tunes a running TiCDC: accepted, checked for its type, and ignored with a note."""
    return key(kind, None, doc, tuning=True, **options)


def section(cls: type, doc: str, *, name: str = "", tuning: bool = False) -> Any:
    """A table of keys. A tuning section is ignored as a whole; its keys are still known."""
    declared = Key(Kind("a table", _unread, cls), doc, name, tuning)
    return field(default_factory=cls, metadata={"key": declared})


def tables(cls: type, doc: str, *, name: str = "") -> Any:
    """A list of tables."""
    declared = Key(Kind("a list of tables", _unread, cls, is_list=True), doc, name)
    return field(default=(), metadata={"key": declared})


def keys_of(cls: type) -> dict[str, tuple[dataclasses.Field, Key]]:
    """Key name -> field and declaration, in declaration order."""
    found = {}
    for item in dataclasses.fields(cls):
        declared = item.metadata.get("key")
        if declared is not None:
            found[declared.name or item.name.replace("_", "-")] = (item, declared)
    return found


def read_value(declared: Key, path: str, value: Any, findings: Findings) -> tuple[bool, Any]:
    """Whether the value could be read, and what it is. A value that cannot be read becomes an error."""
    secret = declared.secret or is_secret_name(path.rsplit(".", 1)[-1])
    try:
        return True, declared.kind.read(value)
    except KindError as problem:
        findings.error(path, str(problem), HIDDEN if secret else value, declared.kind.allowed)
        return False, None


def note_effect(declared: Key, path: str, findings: Findings) -> None:
    """What is to be said of a key that was given another value than its default."""
    if declared.unapplied:
        findings.unapplied(path, declared.unapplied)
    if declared.moot:
        findings.moot(path, declared.moot)


def _unread(value: Any) -> Any:
    raise AssertionError("a section is walked, not read")


# --- kinds ---------------------------------------------------------------------------------------------------------------------

# What Go's strconv.ParseBool takes.
_BOOL_TEXT = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
_BOOL_TEXT |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)
# 20 digits hold every 64-bit number.
_INT_TEXT = re.compile(r"[+-]?[0-9]{1,20}")
_INT64 = (-(1 << 63), (1 << 64) - 1)


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _BOOL_TEXT:
        return _BOOL_TEXT[value]
    raise KindError("is not a boolean")


def _read_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise KindError("is not a text")


def _read_int(value: Any) -> int:
    if isinstance(value, str) and _INT_TEXT.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise KindError("is not a whole number")
    if not _INT64[0] <= value <= _INT64[1]:
        raise KindError("does not fit 64 bits")
    return value


def _read_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise KindError("is not a number")
    return float(_read_int(value) if isinstance(value, int) else value)


_DURATION_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION_PART = re.compile(
    r"(?P<whole>[0-9]{0,20})(?:\.(?P<fraction>[0-9]{0,20}))?(?P<unit>ns|us|µs|μs|ms|s|m|h)"
)
# Go counts nanoseconds in 64 bits.
_TOO_LONG = 1 << 63
_DURATION_ALLOWED = 'a duration such as "30m", "1h30m" or "500ms"'


def parse_duration(text: str) -> timedelta:
    """Go's time.ParseDuration, in steps of a microsecond."""
    sign = -1 if text[:1] == "-" else 1
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return timedelta(0)
    nanoseconds, at = 0, 0
    while at < len(body):
        part = _DURATION_PART.match(body, at)
        if part is None or not (part["whole"] or part["fraction"]):
            raise KindError("is not a duration")
        unit = _DURATION_UNITS[part["unit"]]
        fraction = part["fraction"] or ""
        nanoseconds += int(part["whole"] or 0) * unit + (
            int(fraction) * unit // 10 ** len(fraction) if fraction else 0
        )
        at = part.end()
    if not body:
        raise KindError("is not a duration")
    if nanoseconds >= _TOO_LONG:
        raise KindError("is longer than 292 years")
    return timedelta(microseconds=sign * (nanoseconds // 1_000))


def format_duration(duration: timedelta) -> str:
    """The way Go prints a duration: `30m0s`, `1h0m0s`, `1.5s`, `100ms`, `0s`."""
    micros = duration // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros == 0:
        return "0s"
    if micros < 1_000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_trimmed(micros, 1_000)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_trimmed(rest, 1_000_000)}s"


def _trimmed(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    fraction = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def _read_duration(value: Any) -> timedelta:
    # A bare number is what Go's TOML reader makes of a duration: nanoseconds.
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= _TOO_LONG:
            raise KindError("is longer than 292 years")
        return timedelta(microseconds=value // 1_000)
    if isinstance(value, str):
        return parse_duration(value)
    raise KindError("is not a duration")


def _read_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise KindError("is not a list of texts")


def _read_ints(value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(_read_int(item) if not isinstance(item, str) else _read_int(None) for item in value)
    raise KindError("is not a list of whole numbers")


def _read_text_map(value: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return tuple((str(name), item) for name, item in value.items())
    raise KindError("is not a table of texts")


def _read_expression(value: Any) -> str:
    # A dbt var may hold a number or a YAML list where TOML needs a text.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_read_texts(value))}]"
    return _read_text(value)


BOOL = Kind("true or false", _read_bool)
TEXT = Kind("a text", _read_text)
FLOAT = Kind("a number", _read_float)
DURATION = Kind(_DURATION_ALLOWED, _read_duration)
TEXTS = Kind("a list of texts", _read_texts)
INTS = Kind("a list of whole numbers", _read_ints)
TEXT_MAP = Kind("a table of texts", _read_text_map)
PARTITION_EXPRESSION = Kind("a partition expression", _read_expression)


def integer(low: int | None = None, high: int | None = None) -> Kind:
    """A whole number within bounds."""
    bounds = {
        (False, False): "a whole number",
        (True, False): f"a whole number from {low}",
        (False, True): f"a whole number up to {high}",
        (True, True): f"a whole number from {low} to {high}",
    }[(low is not None, high is not None)]

    def read(value: Any) -> int:
        number = _read_int(value)
        if (low is not None and number < low) or (high is not None and number > high):
            raise KindError("is out of range")
        return number

    return Kind(bounds, read)


INT = integer()


def one_of(
    *values: str, fold: bool = False, aliases: dict[str, str] | None = None, empty: str | None = None
) -> Kind:
    """One of some words. `fold` ignores case; an alias stands for a value; `empty` is what "" stands for."""
    renamed = {value: value for value in values} | (aliases or {})

    def read(value: Any) -> str:
        text = _read_text(value)
        if text == "" and empty is not None:
            return empty
        word = text.lower() if fold else text
        if word not in renamed:
            raise KindError("is not known")
        return renamed[word]

    return Kind(", ".join(values), read)
