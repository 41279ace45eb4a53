"""Changefeed file (TOML, JSON or YAML, or the same as a dictionary) and sink URI -> settings, or every reason why not."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tidemark.compat import Compat
from tidemark.config import rules
from tidemark.config.changefeed import Changefeed
from tidemark.config.dispatch_rule import ALLOWED_EXPRESSIONS, DispatchRule, ExpressionError, parse_partition
from tidemark.config.findings import HIDDEN, ConfigError, Finding, Findings
from tidemark.config.keys import keys_of, note_effect, read_value
from tidemark.config.secrets import is_secret_name
from tidemark.config.settings import Settings
from tidemark.config.sink import DispatcherEntry
from tidemark.config.suggest import nearest, nearest_name
from tidemark.config.uri import SinkUri, UriOptions, parse_uri

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load(changefeed: Any = None, sink_uri: str | None = None, compat: Any = "design") -> Settings:
    """The settings of a changefeed file (a path, or its content as a dictionary) and a sink URI.

    Raises ConfigError with all errors at once. Without a file and a URI the defaults apply. `compat` is a name, or a mapping of switches
    over one (`tidemark.compat`).
    """
    settings, findings = resolve(changefeed, sink_uri, compat)
    if findings.errors:
        raise ConfigError(findings.errors)
    return settings


def load_to_send(changefeed: Any, sink_uri: str | None, compat: Any = "design") -> Settings:
    """The same for those that send or show messages: also a setting that Tidemark does not apply is an error."""
    settings, findings = resolve(changefeed, sink_uri, compat)
    if errors := findings.for_sending().errors:
        raise ConfigError(errors)
    return settings


def check(changefeed: Any = None, sink_uri: str | None = None, compat: Any = "design") -> list[Finding]:
    """Every error and note about a changefeed file and a sink URI, also what only a sink would refuse when it begins."""
    return checked(changefeed, sink_uri, compat)[1]


def checked(changefeed: Any, sink_uri: str | None, compat: Any) -> tuple[Settings, list[Finding]]:
    """The same, with the settings."""
    # Sinks and encoders need this package themselves.
    from tidemark.config.refusals import refusals

    settings, findings = resolve(changefeed, sink_uri, compat)
    findings = findings.for_sending()
    refusals(settings, findings)
    return settings, list(findings)


def resolve(changefeed: Any, sink_uri: str | None, compat: Any) -> tuple[Settings, Findings]:
    """Settings and findings. With errors among the findings the settings hold defaults in place of what is wrong."""
    findings = Findings()
    switches = Compat.of(compat)
    # Paths of the keys that the file gives.
    given: set[str] = set()
    document = _read_document(changefeed, findings)
    feed = _read_section(Changefeed, document, "", findings, given)
    uri, from_uri = parse_uri(sink_uri, findings) if sink_uri else (SinkUri(), {})
    uri = uri or SinkUri()
    feed, uri = _merge(feed, uri, from_uri, given, findings)
    dispatchers = _dispatch_rules(feed.sink.dispatchers, uri.sink_kind == "pulsar", findings)
    feed = _with(feed, "sink.dispatchers", dispatchers)
    settings = rules.adjust(Settings(feed, uri, switches), findings)
    rules.validate(settings, frozenset(given), findings)
    return settings, findings


def _read_document(source: Any, findings: Findings) -> Mapping[str, Any]:
    if source is None or source == "":
        return {}
    if isinstance(source, Mapping):
        return source
    path = Path(source)
    form, read = _FORMS.get(path.suffix.lower(), _TOML)
    try:
        document = read(path.read_text(encoding="utf-8"))
        if isinstance(document, Mapping):
            return document
        # An empty YAML file says nothing, as an empty TOML file does.
        if document is not None:
            findings.error(str(path), f"is {form} without keys: write the changefeed as a mapping")
    except OSError as problem:
        findings.error(str(path), f"cannot be read: {problem.strerror or problem}")
    except UnicodeDecodeError:
        findings.error(str(path), "is not UTF-8 text")
    except ValueError as problem:
        # Not only errors of the parsers: a number of more than 4300 digits is refused by Python itself.
        findings.error(str(path), f"is not {form}: {problem}")
    return {}


def _read_yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise ValueError(" ".join(str(problem).split())) from None


# File extension -> name of the form and what reads it; TOML without one of these.
_FORMS = {".json": ("JSON", json.loads), ".yaml": ("YAML", _read_yaml), ".yml": ("YAML", _read_yaml)}
_TOML = ("TOML", tomllib.loads)


def _read_section(
    cls: type, table: Any, path: str, findings: Findings, given: set[str], quiet: bool = False
) -> Any:
    """An instance of `cls` from a table. `quiet`: the section is ignored as a whole, so its keys need no note of their own."""
    if not isinstance(table, Mapping):
        findings.error(path, "is not a table", table)
        return cls()
    known = keys_of(cls)
    values = {}
    for name, value in table.items():
        at = f"{path}.{name}" if path else str(name)
        if name not in known:
            _unknown_key(str(name), value, path, known, findings)
            continue
        if value is None:
            # A YAML null in a dbt var: not given.
            continue
        item, declared = known[name]
        given.add(at)
        if declared.tuning and not quiet:
            findings.note(at, "only tunes a running TiCDC and is ignored")
        if declared.kind.section is None:
            ok, read = read_value(declared, at, value, findings)
            if ok:
                values[item.name] = read
                if read != item.default and not quiet:
                    note_effect(declared, at, findings)
        elif declared.kind.is_list:
            values[item.name] = _read_list(declared.kind.section, value, at, findings, given)
        else:
            values[item.name] = _read_section(
                declared.kind.section, value, at, findings, given, quiet or declared.tuning
            )
    return cls(**values)


def _read_list(cls: type, value: Any, path: str, findings: Findings, given: set[str]) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        findings.error(path, "is not a list of tables", value)
        return ()
    return tuple(_read_section(cls, entry, f"{path}[{i}]", findings, given) for i, entry in enumerate(value))


def _unknown_key(name: str, value: Any, path: str, known: Mapping[str, Any], findings: Findings) -> None:
    prefix = f"{path}." if path else ""
    hint = nearest(name, known, prefix=prefix) or _elsewhere(name)
    # A slip of a secret's name has a secret for a value.
    is_secret = is_secret_name(name) or is_secret_name(nearest_name(name, known))
    shown = HIDDEN if is_secret or isinstance(value, (Mapping, list)) else value
    findings.error(f"{prefix}{name}", f"is not a known key{hint}", shown)


def _elsewhere(name: str, cls: type = Changefeed, path: str = "") -> str:
    """A key of this very name in another section."""
    for known, (_, declared) in keys_of(cls).items():
        at = f"{path}.{known}" if path else known
        if known == name:
            return f"; did you mean {at}?"
        if declared.kind.section is not None and not declared.tuning:
            found = _elsewhere(name, declared.kind.section, f"{at}[]" if declared.kind.is_list else at)
            if found:
                return found
    return ""


def _merge(
    feed: Changefeed, uri: SinkUri, from_uri: dict[str, object], given: set[str], findings: Findings
) -> tuple[Changefeed, SinkUri]:
    """What file and URI may both say: the URI wins, and both places hold the value in force."""
    values = dict(from_uri)
    for name, (item, declared) in keys_of(UriOptions).items():
        if not declared.file_key:
            continue
        at = f"sink.{declared.file_key}"
        from_file = _get(feed, at)
        if item.name in values:
            if at in given and from_file != values[item.name]:
                shown = HIDDEN if declared.secret else values[item.name]
                findings.note(
                    f"sink-uri?{name}", f"is used; {at} in the changefeed file says otherwise", shown
                )
            feed = _with(feed, at, values[item.name])
        elif at in given and from_file is not None:
            values[item.name] = from_file
    return feed, dataclasses.replace(uri, options=UriOptions(**values))


def _get(section: Any, path: str) -> Any:
    for name in path.split("."):
        section = getattr(section, keys_of(type(section))[name][0].name)
    return section


def _with(section: Any, path: str, value: Any) -> Any:
    """`section` with the key at `path` set."""
    name, _, rest = path.partition(".")
    attribute = keys_of(type(section))[name][0].name
    inner = _with(getattr(section, attribute), rest, value) if rest else value
    return dataclasses.replace(section, **{attribute: inner})


def _dispatch_rules(
    entries: tuple[DispatcherEntry, ...], pulsar: bool, findings: Findings
) -> tuple[DispatchRule, ...]:
    made = []
    for index, entry in enumerate(entries):
        at = f"sink.dispatchers[{index}]"
        if entry.dispatcher and entry.partition:
            findings.error(
                f"{at}.dispatcher",
                "and partition are the same setting; give only one of them",
                entry.dispatcher,
            )
        expression = entry.partition or entry.dispatcher
        kind, columns, number = "default", (), None
        try:
            kind, columns, number = parse_partition(expression, pulsar=pulsar)
        except ExpressionError as problem:
            findings.error(
                f"{at}.{'partition' if entry.partition else 'dispatcher'}",
                str(problem),
                expression,
                ALLOWED_EXPRESSIONS,
            )
        made.append(
            DispatchRule(
                index=index,
                matcher=entry.matcher,
                partition=expression,
                kind=kind,
                columns=columns or (entry.columns if kind == "columns" else ()),
                index_name=entry.index_name if kind == "index-value" else "",
                number=number,
                topic=entry.topic,
                target_schema=entry.target_schema,
                target_table=entry.target_table,
            )
        )
    return tuple(made)
