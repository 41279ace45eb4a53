"""Events in columns: what the staging tables hold of each event family, one struct per frame.

Every struct ends with `error_reason` and `error_message`, set where the frame cannot be decoded. Ids are 32 hex digits. A ts is a signed 64-bit
number here, as SQL has no other; one that does not fit is an error, not a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.wire.columns.cells import plain_bytes
from tidemark.wire.errors import InvalidField, WireError, WrongEventType
from tidemark.wire.events.base import Event
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.dml import DMLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.events.sync_point import SyncPointEvent
from tidemark.wire.framing import MAGIC_WORD, headers_at
from tidemark.wire.header import HEADER_SIZE, MAGIC, read_header
from tidemark.wire.header_columns import is_known
from tidemark.wire.json_form import json_line
from tidemark.wire.registry import EVENT_TYPES, HIGHEST_VERSION, decode, event_type
from tidemark.wire.table_columns import TABLE, table_row
from tidemark.wire.transactions import Transactions, read_transactions

ERROR_FIELDS = [pa.field("error_reason", pa.string()), pa.field("error_message", pa.string())]


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()] + ERROR_FIELDS)


_PLACE = {"dispatcher_id": pa.string(), "epoch": pa.int64(), "seq": pa.int64()}

RESOLVED = _struct(resolved=pa.list_(pa.struct({**_PLACE, "resolved_ts": pa.int64()})))
DML = _struct(
    transactions=pa.list_(
        pa.struct(
            {
                **_PLACE,
                "physical_table_id": pa.int64(),
                "start_ts": pa.int64(),
                "commit_ts": pa.int64(),
                "row_count": pa.int32(),
            }
        )
    )
)
DDL = _struct(
    **_PLACE,
    ddl_type=pa.int32(),
    schema_name=pa.string(),
    table_name=pa.string(),
    old_schema_name=pa.string(),
    old_table_name=pa.string(),
    query=pa.string(),
    start_ts=pa.int64(),
    finished_ts=pa.int64(),
    is_not_synced=pa.bool_(),
    dropped_table_ids=pa.list_(pa.int64()),
    dropped_schema_id=pa.int64(),
    tables=pa.list_(TABLE),
    body=pa.string(),
)
HANDSHAKE = _struct(**_PLACE, resolved_ts=pa.int64(), table=TABLE)
SYNC_POINT = _struct(**_PLACE, commit_ts=pa.int64())
CONTROL = _struct(event_name=pa.string(), dispatcher_id=pa.string(), fields=pa.string())

_RESOLVED_DTYPE = np.dtype(
    [
        ("magic", "V4"),
        ("event_type", ">u2"),
        ("version", ">u2"),
        ("length", ">u8"),
        ("resolved_ts", ">u8"),
        ("epoch", ">u8"),
        ("seq", ">u8"),
        ("dispatcher_id", "V16"),
    ]
)
_RESOLVED_TYPE, _BATCH_RESOLVED_TYPE = 3, 4
# The InfluenceType of a DDL that concerns all tables of a schema.
_WHOLE_SCHEMA = 1
_LARGEST = (1 << 63) - 1
_CONTROL_EVENTS = tuple(kind.event for kind in EVENT_TYPES.values() if kind.family == "control")
# What Arrow raises for a value that does not fit its type.
_DOES_NOT_FIT = (pa.ArrowException, TypeError, OverflowError)


def ddl_columns(frames: pa.Array) -> pa.StructArray:
    return _one_by_one(frames, DDL, _ddl_row, (DDLEvent,))


def handshake_columns(frames: pa.Array) -> pa.StructArray:
    return _one_by_one(frames, HANDSHAKE, _handshake_row, (HandshakeEvent,))


def sync_point_columns(frames: pa.Array) -> pa.StructArray:
    return _one_by_one(frames, SYNC_POINT, _sync_point_row, (SyncPointEvent,))


def control_columns(frames: pa.Array) -> pa.StructArray:
    return _one_by_one(frames, CONTROL, _control_row, _CONTROL_EVENTS)


def dml_columns(frames: pa.Array) -> pa.StructArray:
    """The transactions of DML and BatchDML frames. The row chunk may be cut off: it is not looked at.

    A batch may be one transaction of one row, so sound batches, which nearly all are, are read all at once.
    """
    found = _batched_transactions(frames)
    if found is None:
        return _one_by_one(frames, DML, lambda rows: {"transactions": rows}, read=_transactions)
    heads, per_batch = found.heads, found.per_batch
    columns = [pa.array(heads[name].astype(np.int64)) for name in _TRANSACTION_NUMBERS]
    row_counts = pa.array(heads["row_count"].astype(np.int32))
    return _listed(DML, np.cumsum(per_batch), [_hex_ids(heads["dispatcher_id"]), *columns, row_counts])


_TRANSACTION_NUMBERS = ("epoch", "seq", "physical_table_id", "start_ts", "commit_ts")


def _batched_transactions(frames: pa.Array) -> Transactions | None:
    """The transactions of BatchDML frames; None where something else is among them, or anything is wrong."""
    if not len(frames) or frames.null_count:
        return None
    offsets, data = plain_bytes(frames)
    if (np.diff(offsets) < HEADER_SIZE).any():
        return None
    headers = headers_at(data, offsets[:-1])
    is_sound = (headers["magic"] == MAGIC_WORD) & (headers["type"] == BatchDMLEvent.type_id)
    if not (is_sound & is_known(headers["type"], headers["version"])).all():
        return None
    view = memoryview(data)
    payloads = [view[start + HEADER_SIZE : end] for start, end in pairwise(offsets.tolist())]
    try:
        found = read_transactions(payloads)[0]
    except WireError:
        return None
    heads = found.heads
    fits = all((heads[name] <= _LARGEST).all() for name in ("epoch", "seq", "start_ts", "commit_ts"))
    return found if fits else None


def resolved_columns(frames: pa.Array) -> pa.StructArray:
    """Resolved and BatchResolved frames. There can be millions, so the ones in order are read all at once."""
    views = frames.to_numpy(zero_copy_only=False)
    lengths = np.fromiter((len(view) for view in views), dtype=np.int64, count=len(views))
    # A batch is a header and whole frames behind it, a single event is its own and only frame.
    is_batch = np.fromiter(
        (len(view) >= 6 and view[5] == _BATCH_RESOLVED_TYPE and view[4] == 0 for view in views),
        dtype=bool,
        count=len(views),
    )
    inner = lengths - np.where(is_batch, HEADER_SIZE, 0)
    size = _RESOLVED_DTYPE.itemsize
    regular = (inner % size == 0) & (is_batch | (inner == size))
    counts = np.where(regular, inner // size, 0)
    data = b"".join(
        view[HEADER_SIZE:] if batch else view
        for view, batch, use in zip(views, is_batch, regular, strict=True)
        if use
    )
    events = np.frombuffer(data, dtype=_RESOLVED_DTYPE)
    sound = (
        (events["magic"] == np.void(MAGIC))
        & (events["event_type"] == _RESOLVED_TYPE)
        & (events["version"] <= HIGHEST_VERSION[_RESOLVED_TYPE])
        & (events["length"] == size - HEADER_SIZE)
    )
    for name in ("resolved_ts", "epoch", "seq"):
        sound &= events[name] <= _LARGEST
    ends = np.cumsum(counts)
    bad_before = np.concatenate([[0], np.cumsum(~sound)])
    good = regular & (bad_before[ends] == bad_before[ends - counts])
    for place in np.flatnonzero(is_batch & good):
        good[place] = _batch_header_is_sound(views[place])
    if good.all():
        columns = [pa.array(events[name].astype(np.int64)) for name in ("epoch", "seq", "resolved_ts")]
        return _listed(RESOLVED, ends, [_hex_ids(events["dispatcher_id"]), *columns])
    return _one_by_one(
        frames,
        RESOLVED,
        lambda event: {"resolved": _resolved_rows(event)},
        (ResolvedEvent, BatchResolvedEvent),
    )


def _listed(kind: pa.StructType, ends: np.ndarray, columns: list[pa.Array]) -> pa.StructArray:
    """One struct per frame with the list of what the frame holds, which ends at `ends`, and no error."""
    items = pa.StructArray.from_arrays(columns, fields=list(kind.field(0).type.value_type))
    lists = pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]).astype(np.int32)), items)
    no_error = pa.nulls(len(ends), pa.string())
    return pa.StructArray.from_arrays([lists, no_error, no_error], fields=list(kind))


def _hex_ids(ids: np.ndarray) -> pa.StringArray:
    """Ids of 16 bytes as 32 hex digits each."""
    digits = ids.tobytes().hex().encode()
    offsets = np.arange(0, 32 * (len(ids) + 1), 32, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(digits))


def _batch_header_is_sound(frame: bytes) -> bool:
    try:
        header = read_header(frame)
    except WireError:
        return False
    return (
        header.version <= HIGHEST_VERSION[_BATCH_RESOLVED_TYPE]
        and header.payload_length == len(frame) - HEADER_SIZE
    )


def _one_by_one(
    frames: pa.Array,
    kind: pa.StructType,
    row_of: Callable[[Any], dict[str, Any]],
    family: tuple[type[Event], ...] = (),
    read: Callable[[bytes], Any] = decode,
) -> pa.StructArray:
    """One struct per frame, for families in which a frame stands for much more than itself or is rare."""
    rows: list[dict[str, Any]] = []
    for frame in frames.to_pylist():
        try:
            event = read(frame)
            if family and not isinstance(event, family):
                expected = ", ".join(EVENT_TYPES[member.type_id].type_name for member in family)
                raise WrongEventType(f"expected {expected}, found {event_type(event).type_name}", offset=4)
            rows.append(row_of(event))
        except WireError as error:
            rows.append({"error_reason": error.reason, "error_message": str(error)})
    try:
        return pa.array(rows, type=kind)
    except _DOES_NOT_FIT:
        # JSON inside an event can hold anything, also a list where a name belongs.
        return pa.array([_checked(row, kind) for row in rows], type=kind)


def _checked(row: dict[str, Any], kind: pa.StructType) -> dict[str, Any]:
    try:
        pa.array([row], type=kind)
    except _DOES_NOT_FIT as error:
        return {"error_reason": InvalidField.reason, "error_message": f"a value of the wrong type: {error}"}
    return row


def _transactions(frame: bytes) -> list[dict[str, Any]]:
    header = read_header(frame)
    if header.event_type == DMLEvent.type_id:
        event = decode(frame, expect=DMLEvent)
        return [_transaction_row(event)]
    if header.event_type != BatchDMLEvent.type_id or header.version > HIGHEST_VERSION[BatchDMLEvent.type_id]:
        decode(frame, expect=BatchDMLEvent)  # raises what is wrong
    heads = read_transactions([memoryview(frame)[HEADER_SIZE:]])[0].heads
    names = (*_TRANSACTION_NUMBERS, "row_count")
    columns = {name: heads[name].tolist() for name in names}
    ids = [value.hex() for value in heads["dispatcher_id"].tolist()]
    if len(heads) and max(heads[name].max() for name in ("epoch", "seq", "start_ts", "commit_ts")) > _LARGEST:
        raise InvalidField(f"a ts, epoch or seq of the batch is above {_LARGEST}", expected=_LARGEST)
    return [
        dict(zip(("dispatcher_id", *names), row, strict=True))
        for row in zip(ids, *columns.values(), strict=True)
    ]


def _transaction_row(event: DMLEvent) -> dict[str, Any]:
    return {
        **_place(event),
        "physical_table_id": event.physical_table_id,
        "start_ts": _ts(event.start_ts, "start_ts"),
        "commit_ts": _ts(event.commit_ts, "commit_ts"),
        "row_count": event.row_count,
    }


def _resolved_rows(event: Any) -> list[dict[str, Any]]:
    events = getattr(event, "events", (event,))
    return [{**_place(one), "resolved_ts": _ts(one.resolved_ts, "resolved_ts")} for one in events]


def _ddl_row(event: DDLEvent) -> dict[str, Any]:
    dropped = event.document.get("need_dropped_tables") or {}
    tables = [table for table in (event.table(), *event.extra_tables()) if table is not None]
    return {
        **_place(event),
        "ddl_type": event.ddl_type,
        "schema_name": event.schema_name,
        "table_name": event.table_name,
        "old_schema_name": event.extra_schema_name,
        "old_table_name": event.extra_table_name,
        "query": event.query,
        "start_ts": _ts(event.start_ts, "start_ts"),
        "finished_ts": _ts(event.finished_ts, "finished_ts"),
        "is_not_synced": event.not_sync,
        "dropped_table_ids": _numbers(dropped.get("TableIDs") or [], "TableIDs"),
        "dropped_schema_id": dropped.get("SchemaID")
        if dropped.get("InfluenceType") == _WHOLE_SCHEMA
        else None,
        "tables": [table_row(table) for table in tables],
        "body": event.body.decode(),
    }


def _numbers(values: Any, name: str) -> list[int]:
    """Arrow would cut the fraction off a float without a word."""
    if not isinstance(values, list) or any(type(value) is not int for value in values):
        raise InvalidField(
            f"{name} of the dropped tables cannot be {values!r:.60}", expected="a list of integers"
        )
    return values


def _sync_point_row(event: SyncPointEvent) -> dict[str, Any]:
    return {**_place(event), "commit_ts": _ts(event.commit_ts, "commit_ts")}


def _handshake_row(event: HandshakeEvent) -> dict[str, Any]:
    return {
        **_place(event),
        "resolved_ts": _ts(event.resolved_ts, "resolved_ts"),
        "table": table_row(event.table()),
    }


def _control_row(event: Event) -> dict[str, Any]:
    dispatcher_id = getattr(event, "dispatcher_id", None)
    return {
        "event_name": event_type(event).name,
        "dispatcher_id": dispatcher_id.hex() if dispatcher_id is not None else None,
        "fields": json_line(event.fields()).rstrip(),
    }


def _place(event: Any) -> dict[str, Any]:
    return {
        "dispatcher_id": event.dispatcher_id.hex(),
        "epoch": _ts(event.epoch, "epoch"),
        "seq": _ts(event.seq, "seq"),
    }


def _ts(value: int, name: str) -> int:
    if value > _LARGEST:
        raise InvalidField(f"{name} {value} is above {_LARGEST}", expected=_LARGEST, actual=value)
    return value
