"""What the rows of a relation depend on, from the catalog alone: no statement is run, and where the catalog is our own, Java is not asked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence, Set
from typing import Any
from urllib.parse import unquote, urlparse

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation

from tidemark.spark.session import catalog_entry, keeps_catalog

# Functions and literals whose value is another one each time. Words of comments are no calls.
_UNSTEADY = re.compile(
    r"\b(?:now|curdate|rand|randn|random|randstr|uniform|uuid|shuffle|current_user|session_user|user)\s*\("
    r"|\bunix_timestamp\s*\(\s*\)"
    r"|\b(?:current_timestamp|current_date|current_time|localtimestamp)\b"
    r"|'(?:now|today|yesterday|tomorrow)'",
    re.IGNORECASE,
)


Name = tuple[str, str]


class StateMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    Relation: Any
    _catalog: Any
    _identifier: Any

    @available
    def relation_state(self, relation: BaseRelation, growing: Sequence[BaseRelation] = ()) -> str | None:
        """A text that stays while the rows of a table or view stay as they are. None where that is not known: someone else wrote it, or it asks for the time.

        growing: tables that grow by batches; rows that were added to them do not count.
        """
        return self._state(_name(relation), {_name(table) for table in growing})

    @available
    def is_steady(self, sql: str) -> bool:
        """Whether a query gives the same rows as long as what it reads has the same."""
        return not _UNSTEADY.search(sql)

    def _state(self, name: Name, growing: Set[Name]) -> str | None:
        entry = self._entry(*name)
        if entry is None:
            return None
        properties = entry["properties"]
        if "tidemark.kept" in properties:
            kept = json.loads(properties["tidemark.kept"])
            # `clean` gives rows that stay the batch 0, so that they are no new ones.
            grown = ["grows", kept.get("cleaned"), kept.get("cleaning")]
            return _text(name, entry["columns"], kept["built"], grown if name in growing else kept["changes"])
        if "tidemark.built" in properties:  # one statement replaces all rows of such a table
            return _text(name, properties["tidemark.built"])
        if "tidemark.version" in properties:
            files = _files(self._entry(f"{name[0]}_store", properties["tidemark.version"]))
            return None if files is None else _text(name, properties["tidemark.version"], files)
        if "tidemark.reads" not in properties or _UNSTEADY.search(entry.get("text") or ""):
            return None
        states = [
            self._state((schema.lower(), table.lower()), growing)
            for schema, table in json.loads(properties["tidemark.reads"])
        ]
        return None if None in states else _text(name, properties["tidemark.made_from"], states)

    def _entry(self, schema: str, name: str) -> dict[str, Any] | None:
        """What the catalog holds of a table or view; None if it is not there. A metastore is asked."""
        if keeps_catalog():
            return catalog_entry(schema, name)
        identifier = self._identifier(self.Relation.create(schema=schema, identifier=name))
        if not self._catalog().tableExists(identifier):
            return None
        found = self._catalog().getTableMetadata(identifier)
        values = {key: found.properties().get(key) for key in _PROPERTIES}
        location, text = found.storage().locationUri(), found.viewText()
        return {
            "columns": found.schema().json(),
            "properties": {key: value.get() for key, value in values.items() if value.isDefined()},
            "location": location.get().toString() if location.isDefined() else None,
            "text": text.get() if text.isDefined() else None,
        }


# What is known of a relation that this adapter has made.
_PROPERTIES = (
    *("tidemark.kept", "tidemark.built", "tidemark.version"),
    *("tidemark.reads", "tidemark.made_from"),
)


def _name(relation: BaseRelation) -> Name:
    return str(relation.schema).lower(), str(relation.identifier).lower()


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
