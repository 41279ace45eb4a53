"""A DDL statement, and the tables as they are after it.

    ddl := body id id_size:u64 tail{table_info} tail{extra_table}*count count:u64
    tail{x} := x x_size:u64                                 (size 0: there is none)

Lengths follow what they measure, so the payload is read from its end backwards; what is left in front is the body, a JSON object. The body
is kept as it was sent: writing the event gives the same bytes back, unknown keys included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.wire.cursor import U64, Cursor
from tidemark.wire.errors import InvalidField
from tidemark.wire.events.base import Codec, Event, read_table
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.ids import ID_SIZE
from tidemark.wire.json_form import id_form
from tidemark.wire.json_text import read_object

if TYPE_CHECKING:
    from tidemark.wire.table_info import TableInfo

_U64 = range(1 << 64)
_I64 = range(-(1 << 63), 1 << 63)
# What the body must hold if it has the key at all: a range of integers, or a type.
BODY_FIELDS: dict[str, range | type] = {
    "version": _I64,
    "type": range(256),
    "schema_id": _I64,
    "schema_name": str,
    "table_name": str,
    "extra_schema_name": str,
    "extra_table_name": str,
    "query": str,
    "start_ts": _U64,
    "finished_ts": _U64,
    "seq": _U64,
    "epoch": _U64,
    "blocked_tables": dict,
    "blocked_table_names": list,
    "need_dropped_tables": dict,
    "need_added_tables": list,
    "updated_schemas": list,
    "table_name_change": dict,
    "tidb_only": bool,
    "bdr_mode": str,
    "err": str,
    "not_sync": bool,
    "NotSync": bool,
    "index_ids": list,
}
# The keys of `table_name_change` that hold names of tables.
NAME_LISTS = ("AddName", "DropName")


@dataclass(frozen=True, slots=True)
class DDLEvent(Event):
    type_id: ClassVar[int] = 2

    body: bytes
    dispatcher_id: bytes
    table_info: bytes = b""
    extra_table_infos: tuple[bytes, ...] = ()
    version: int = 1
    document: dict[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", _read_body(self.body))

    @classmethod
    def build(
        cls,
        document: dict[str, Any],
        dispatcher_id: bytes,
        table_info: bytes = b"",
        extra_table_infos: tuple[bytes, ...] = (),
        version: int = 1,
    ) -> DDLEvent:
        from tidemark.wire.table_json import go_json

        return cls(go_json(document), dispatcher_id, table_info, extra_table_infos, version)

    @property
    def ddl_type(self) -> int:
        """TiDB's number of the kind of statement."""
        return self._get("type", 0)

    @property
    def schema_name(self) -> str:
        return self._get("schema_name", "")

    @property
    def table_name(self) -> str:
        return self._get("table_name", "")

    @property
    def extra_schema_name(self) -> str:
        """The old schema name, for a rename."""
        return self._get("extra_schema_name", "")

    @property
    def extra_table_name(self) -> str:
        """The old table name, for a rename."""
        return self._get("extra_table_name", "")

    @property
    def query(self) -> str:
        return self._get("query", "")

    @property
    def start_ts(self) -> int:
        return self._get("start_ts", 0)

    @property
    def finished_ts(self) -> int:
        return self._get("finished_ts", 0)

    @property
    def seq(self) -> int:
        return self._get("seq", 0)

    @property
    def epoch(self) -> int:
        return self._get("epoch", 0)

    @property
    def not_sync(self) -> bool:
        """Whether the statement is only for the receiver's own schema, not for the downstream."""
        return self._get("not_sync", self._get("NotSync", False))

    def _get(self, key: str, default: Any) -> Any:
        value = self.document.get(key)
        return default if value is None else value

    def table(self) -> TableInfo | None:
        return read_table(self.table_info, self._tables_at) if self.table_info else None

    def extra_tables(self) -> tuple[TableInfo, ...]:
        position, tables = self._tables_at + len(self.table_info) + 8, []
        for raw in self.extra_table_infos:
            tables.append(read_table(raw, position))
            position += len(raw) + 8
        return tuple(tables)

    @property
    def _tables_at(self) -> int:
        """Where in the frame the first table info stands."""
        return HEADER_SIZE + len(self.body) + ID_SIZE + 8

    def fields(self) -> dict[str, Any]:
        from tidemark.wire.table_form import table_form

        table = self.table()
        return {
            "dispatcher_id": id_form(self.dispatcher_id),
            "seq": str(self.seq),
            "epoch": str(self.epoch),
            "start_ts": str(self.start_ts),
            "finished_ts": str(self.finished_ts),
            "json_body": self.document,
            "table_info": table_form(table) if table else None,
            "multiple_table_infos": [table_form(extra) for extra in self.extra_tables()] or None,
        }


def _read_body(body: bytes, offset: int = 0) -> dict[str, Any]:
    document = read_object(body, "the body of a DDL event", offset)
    for key, allowed in BODY_FIELDS.items():
        value = document.get(key)
        if value is not None and not _is_allowed(value, allowed):
            raise InvalidField(
                f"the body of a DDL event has {key!r} = {value!r:.60}",
                offset=offset,
                expected=allowed.__name__ if isinstance(allowed, type) else f"{allowed[0]} to {allowed[-1]}",
                actual=f"{value!r:.60}",
            )
    change = document.get("table_name_change") or {}
    for key in NAME_LISTS:
        names = change.get(key)
        if names is not None and not _are_names(names):
            raise InvalidField(
                f"the body of a DDL event has {key!r} = {names!r:.60} in 'table_name_change'",
                offset=offset,
                expected="a list of objects with the texts SchemaName and TableName",
                actual=f"{names!r:.60}",
            )
    return document


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and all(
        isinstance(name, dict)
        and isinstance(name.get("SchemaName"), str)
        and isinstance(name.get("TableName"), str)
        for name in names
    )


def _is_allowed(value: Any, allowed: range | type) -> bool:
    if isinstance(allowed, range):
        return type(value) is int and value in allowed
    return isinstance(value, allowed)


def parse(cursor: Cursor, version: int) -> DDLEvent:
    start = cursor.pos
    count = cursor.u64_back("extra table count")
    if count * 8 > cursor.remaining:
        raise cursor.truncated(f"the length fields of {count} extra tables", count * 8, cursor.remaining)
    extra = []
    for index in reversed(range(count)):
        with cursor.group(f"extra table {index}"):
            extra.append(_tail(cursor, "table_info", "table info"))
    table_info = _tail(cursor, "table_info", "table info")
    id_size = cursor.u64_back("dispatcher id size")
    if id_size != ID_SIZE:
        raise cursor.invalid(
            f"a dispatcher id has {ID_SIZE} bytes, not {id_size}",
            start=cursor.end,
            expected=ID_SIZE,
            actual=id_size,
        )
    dispatcher_id = cursor.raw_back("dispatcher_id", ID_SIZE, "id")
    body = cursor.raw("body", cursor.remaining, "json")
    try:
        return DDLEvent(body, dispatcher_id, table_info, tuple(reversed(extra)), version)
    except InvalidField as error:
        raise error.at(start) from None


def _tail(cursor: Cursor, name: str, kind: str) -> bytes:
    return cursor.raw_back(name, cursor.u64_back(f"{name} size"), kind)


def write(event: DDLEvent) -> bytes:
    parts = [event.body, event.dispatcher_id, U64.pack(ID_SIZE)]
    for raw in (event.table_info, *event.extra_table_infos):
        parts += (raw, U64.pack(len(raw)))
    return b"".join((*parts, U64.pack(len(event.extra_table_infos))))


def size(event: DDLEvent) -> int:
    tables = (event.table_info, *event.extra_table_infos)
    return len(event.body) + ID_SIZE + 8 + sum(len(raw) + 8 for raw in tables) + 8


V1 = Codec(parse=parse, write=write, size=size)
