"""The settings in force as plain values, for tools: every key with its value, given or not, and no secret."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

from tidemark.config.dispatch_rule import DispatchRule
from tidemark.config.keys import format_duration, keys_of
from tidemark.config.secrets import BLANK, is_secret_name, redact
from tidemark.config.settings import Settings


def resolved(settings: Settings) -> dict[str, Any]:
    """Changefeed, sink URI and compat switches. Keys that only tune a running TiCDC are left out."""
    uri = settings.uri
    return {
        "changefeed": _section(settings.changefeed),
        "sink-uri": {
            "uri": uri.shown,
            "kind": settings.sink_kind,
            "scheme": uri.scheme,
            "user": uri.user,
            "hosts": list(uri.hosts),
            "path": uri.path,
            "options": _section(uri.options),
        },
        "compat": {name: _plain(value) for name, value in dataclasses.asdict(settings.compat).items()},
    }


def _section(section: Any) -> dict[str, Any]:
    found = {}
    for name, (item, declared) in keys_of(type(section)).items():
        value = getattr(section, item.name)
        if declared.tuning:
            continue
        if value and (declared.secret or is_secret_name(name)):
            found[name] = BLANK
        elif declared.kind.is_list:
            found[name] = [
                _rule(entry) if isinstance(entry, DispatchRule) else _section(entry) for entry in value
            ]
        elif declared.kind.section is not None:
            found[name] = _section(value)
        else:
            found[name] = _plain(value)
    return found


def _rule(rule: DispatchRule) -> dict[str, Any]:
    """A dispatch rule as it is understood, whichever way it was written."""
    return {
        "matcher": list(rule.matcher),
        "partition": rule.kind if rule.number is None else rule.number,
        "columns": list(rule.columns),
        "index": rule.index_name,
        "topic": rule.topic,
        "target-schema": rule.target_schema,
        "target-table": rule.target_table,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return redact(value) if isinstance(value, str) else value
