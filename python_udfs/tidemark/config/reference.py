"""The reference of every key, docs/configuration.md, made from the declarations.

python -m tidemark.config.reference > docs/configuration.md
"""

from __future__ import annotations

from dataclasses import MISSING
from datetime import timedelta
from typing import Any

from tidemark.config.changefeed import Changefeed
from tidemark.config.keys import Key, format_duration, keys_of
from tidemark.config.uri import KIND_OF_SCHEME, UriOptions

HEAD = """\
# Configuration

Tidemark takes the changefeed file and the sink URI of a TiCDC changefeed as they are. The file is TOML; one that ends in `.json`, `.yaml` or `.yml` is JSON or YAML with the
same keys. The content of the file can also be given as the dbt var `changefeed`. `tidemark check changefeed.toml --sink-uri URI` prints everything that is wrong with the two at
once. With `--json` it prints one object for tools: the findings, and below `resolved` the value of every setting in force, without secrets.

What is accepted is applied. A setting that would change what is sent, and that Tidemark does not implement, is an error of `tidemark check` and of every dbt
command. Only settings that cannot change the output are ignored, with a note: those that tune a running TiCDC, and those marked "changes nothing" below. Commands that send nothing
(`tidemark dispatch`, `dispatch-report`) take changefeeds and URIs with such settings.

A key that does not exist is an error that names the nearest one. What the file and the URI both say is taken from the URI. Durations are written as in Go: `30m`, `1h30m`, `500ms`.

The var `compat` of dbt and the option `--compat` of the commands choose between the design documents (`design`) and TiCDC as shipped (`ticdc`), or set single
switches over one of the two: `{base: design, active_active_columns: ticdc}`. The switches are listed in [architecture](architecture.md#compat-design-or-ticdc).

Values of keys marked *secret* are never printed. A special character in the user or password of a URI is percent-encoded: `p%40ss` for `p@ss`.

This page is made from the code: `python -m tidemark.config.reference > docs/configuration.md`.
"""


def reference() -> str:
    """The text of docs/configuration.md."""
    parts = [
        HEAD,
        "## Changefeed file",
        *_sections(Changefeed, "", ""),
        "## Sink URI",
        _uri_head(),
        *_tables(UriOptions),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _uri_head() -> str:
    by_kind: dict[str, list[str]] = {}
    for scheme, kind in KIND_OF_SCHEME.items():
        by_kind.setdefault(kind, []).append(f"`{scheme}`")
    lines = [f"| {kind} | {', '.join(schemes)} |" for kind, schemes in by_kind.items()]
    return "\n".join(
        [
            "`scheme://user:password@host:port/path?option=value&…`",
            "",
            "| sink | schemes |",
            "|---|---|",
            *lines,
        ]
    )


def _sections(cls: type, path: str, doc: str) -> list[str]:
    """The keys of a section, then its sections, depth first."""
    inner = []
    for name, (_, declared) in keys_of(cls).items():
        if declared.kind.section is not None:
            at = f"{path}.{name}" if path else name
            title = f"[[{at}]]" if declared.kind.is_list else f"[{at}]"
            if declared.tuning:
                known = ", ".join(f"`{key}`" for key in _all_keys(declared.kind.section))
                inner += [f"### `{title}`", f"{declared.doc} Accepted and ignored: {known}."]
            else:
                inner += [f"### `{title}`", *_sections(declared.kind.section, at, _meaning(declared))]
    return [part for part in (doc, *_tables(cls)) if part] + inner


def _all_keys(cls: type, prefix: str = "") -> list[str]:
    found = []
    for name, (_, declared) in keys_of(cls).items():
        inner = declared.kind.section
        found += [f"{prefix}{name}"] if inner is None else _all_keys(inner, f"{prefix}{name}.")
    return found


def _tables(cls: type) -> list[str]:
    used, ignored = [], []
    for name, (item, declared) in keys_of(cls).items():
        if declared.kind.section is not None:
            continue
        if declared.tuning:
            ignored.append(f"`{name}`")
        else:
            default = None if item.default is MISSING else item.default
            used.append(
                f"| `{name}` | {_cell(declared.kind.allowed)} | {_default(default)} | {_meaning(declared)} |"
            )
    parts = []
    if used:
        parts.append("\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *used]))
    if ignored:
        parts.append(f"Accepted and ignored, because they only tune a running TiCDC: {', '.join(ignored)}.")
    return parts


def _meaning(declared: Key) -> str:
    effect = (
        f" An error, since Tidemark does not apply it: {declared.unapplied}." if declared.unapplied else ""
    )
    effect += f" Changes nothing: {declared.moot}." if declared.moot else ""
    return _cell(declared.doc + effect + (" *Secret.*" if declared.secret else ""))


def _default(value: Any) -> str:
    if value in (None, (), ""):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, tuple):
        return _cell(f"`{list(value)!r}`")
    return _cell(f"`{value!r}`" if isinstance(value, str) and not value.isalnum() else f"`{value}`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
