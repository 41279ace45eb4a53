"""What the rows of a relation depend on, from the written catalog alone: no statement is run, and Java is not asked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence, Set
from typing import Any
from urllib.parse import unquote, urlparse

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation

from tidemark.spark.session import catalog_entry

# Functions and literals whose value is another one each time. Words of comments are no calls.
_UNSTEADY = re.compile(
    r"\b(?:now|curdate|rand|randn|random|randstr|uniform|uuid|shuffle|current_user|session_user|user)\s*\("
    r"|\bunix_timestamp\s*\(\s*\)"
    r"|\b(?:current_timestamp|current_date|current_time|localtimestamp)\b"
    r"|'(?:now|today|yesterday|tomorrow)'",
    re.IGNORECASE,
)


class StateMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    @available
    def relation_state(self, relation: BaseRelation, growing: Sequence[BaseRelation] = ()) -> str | None:
        """A text that stays while the rows of a table or view stay as they are. None where that is not known: someone else wrote it, or it asks for the time.

        growing: tables that grow by batches; rows that were added to them do not count.
        """
        return _state(_name(relation), {_name(table) for table in growing})

    @available
    def is_steady(self, sql: str) -> bool:
        """Whether a query gives the same rows as long as what it reads has the same."""
        return not _UNSTEADY.search(sql)


Name = tuple[str, str]


def _name(relation: BaseRelation) -> Name:
    return str(relation.schema).lower(), str(relation.identifier).lower()


def _state(name: Name, growing: Set[Name]) -> str | None:
    entry = catalog_entry(*name)
    if entry is None:
        return None
    properties = entry["properties"]
    if "tidemark.kept" in properties:
        kept = json.loads(properties["tidemark.kept"])
        changes = "grows" if name in growing else kept["changes"]
        return _text(name, entry["columns"], kept["built"], changes)
    if "tidemark.built" in properties:  # one statement replaces all rows of such a table
        return _text(name, properties["tidemark.built"])
    if "tidemark.version" in properties:
        files = _files(catalog_entry(f"{name[0]}_store", properties["tidemark.version"]))
        return None if files is None else _text(name, properties["tidemark.version"], files)
    if "tidemark.reads" not in properties or _UNSTEADY.search(entry.get("text") or ""):
        return None
    states = [
        _state((schema.lower(), table.lower()), growing)
        for schema, table in json.loads(properties["tidemark.reads"])
    ]
    return None if None in states else _text(name, properties["tidemark.made_from"], states)


def _files(table: dict[str, Any] | None) -> list[str] | None:
    """The names of the files that hold the rows of a table, which Spark never uses twice."""
    location = urlparse(table["location"]) if table else None
    if location is None or location.scheme not in ("", "file"):
        return None
    return sorted(
        os.path.join(folder, file) for folder, _, files in os.walk(unquote(location.path)) for file in files
    )


def _text(*parts: Any) -> str:
    return json.dumps(parts)
