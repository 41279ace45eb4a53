"""DDL events as the statements that sinks see: one per table.

Two kinds of DDL events hold several statements, one per table: CREATE TABLES and RENAME TABLES. Their query is a list of statements that
end with `;`, in the order of the event's tables. Every other event is one statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.config.ddl_kinds import DDL_KINDS
from tidemark.encode.errors import EncodeError
from tidemark.wire.table_info import TableInfo

if TYPE_CHECKING:
    from tidemark.wire.events.ddl import DDLEvent

CREATE_TABLE, CREATE_TABLES = DDL_KINDS["create table"]
RENAME_TABLE, RENAME_TABLES = DDL_KINDS["rename table"]
_SINGLE = {CREATE_TABLES: CREATE_TABLE, RENAME_TABLES: RENAME_TABLE}

# A statement: quoted texts, names and comments may hold a semicolon. One that is not closed goes to the end, so nothing is read twice. A doubled
# quote is the end of a text and the start of the next one.
_STATEMENT = re.compile(
    r"""(?: '(?:[^'\\]|\\.?)*'? | "(?:[^"\\]|\\.?)*"? | `[^`]*`? | /\*.*?(?:\*/|\Z) | --\s[^\n]* | \#[^\n]* | [^;] )+ ;?""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class DdlStatement:
    type: int
    schema: str
    table: str
    query: str
    finished_ts: int
    table_info: TableInfo | None
    # The old name, for a rename.
    old_schema: str = ""
    old_table: str = ""
    start_ts: int = 0


def statements(event: DDLEvent) -> list[DdlStatement]:
    """The statements of a DDL event, in order."""
    if event.ddl_type not in _SINGLE:
        return [
            DdlStatement(
                event.ddl_type,
                event.schema_name,
                event.table_name,
                event.query,
                event.finished_ts,
                event.table(),
                event.extra_schema_name,
                event.extra_table_name,
                event.start_ts,
            )
        ]
    tables = event.extra_tables()
    queries = split_queries(event.query)
    if len(queries) != len(tables):
        raise EncodeError(
            f"a DDL event of {len(tables)} tables has {len(queries)} statements (finished ts {event.finished_ts}): {event.query!r:.200}"
        )
    change = event.document.get("table_name_change") or {}
    old_names = (change.get("DropName") or []) if event.ddl_type == RENAME_TABLES else []
    return [
        DdlStatement(
            _SINGLE[event.ddl_type],
            table.schema,
            table.table,
            query,
            event.finished_ts,
            table,
            old_names[position]["SchemaName"] if position < len(old_names) else "",
            old_names[position]["TableName"] if position < len(old_names) else "",
            event.start_ts,
        )
        for position, (table, query) in enumerate(zip(tables, queries, strict=True))
    ]


def split_queries(query: str) -> list[str]:
    """`a; b` -> [`a;`, `b;`]"""
    found = (match.group().strip() for match in _STATEMENT.finditer(query))
    return [text if text.endswith(";") else f"{text};" for text in found if text not in ("", ";")]
