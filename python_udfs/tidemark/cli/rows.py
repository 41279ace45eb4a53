"""Print every row change of a log as one JSON object per line, in the order of the log.

A row is decoded with the schema in force: the one of its dispatcher's Handshake, as changed by later DDL events. 64-bit numbers are decimal strings,
bytes are {"b64": …}, ENUM and SET {"enum": number, "name": …}, BIT {"bit": number, "hex": …}. What cannot be decoded is reported on stderr
with file and offset, and everything around it is still read; if nothing can be decoded, the command fails.
Several logs are read as one stream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from tidemark.cli.log_events import Tally, add_log_arguments, log_events, read_logs
from tidemark.dispatch.table_filter import TableFilter
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DMLEvent
from tidemark.wire.json_form import json_line
from tidemark.wire.rows import NO_ROW, OP_NAMES, decode_batch
from tidemark.wire.text import canonical_values
from tidemark.wire.tracker import SchemaInForce, SchemaTracker
from tidemark.words import counted

SUMMARY = "print every row change of a log as JSON"


def add_arguments(parser) -> None:
    add_log_arguments(parser)


def run(args) -> int:
    write = sys.stdout.buffer.write
    for row in islice(rows_of_logs(args), args.limit):
        write(json_line(row))
    sys.stdout.buffer.flush()
    return 0


def rows_of_logs(args) -> Iterator[dict[str, Any]]:
    tally, tracker, tables = (
        Tally(args.command, args.strict),
        SchemaTracker(),
        TableFilter(args.table or ["*.*"]),
    )
    for path, offset, rows in read_logs(args.logs, tally, lambda log: rows_of(log, tracker, tally, tables)):
        for row in rows:
            yield {"file": path, "offset": offset, **row}


def rows_of(
    log: BinaryIO, tracker: SchemaTracker, tally: Tally, tables: TableFilter
) -> Iterator[tuple[int, Iterator[dict[str, Any]] | WireError]]:
    """Per piece of the log that has rows of these tables or is wrong: its offset, with its rows or the error."""
    for offset, event in log_events(log, tracker, tally):
        if isinstance(event, WireError):
            yield offset, event
        elif isinstance(event, BatchDMLEvent | DMLEvent):
            schema = tracker.in_force(event.dispatcher_id)
            if schema is not None and not tables.matches(schema.table.schema, schema.table.table):
                tally.found += 1
                continue
            try:
                rows = _rows(event, tracker)
            except WireError as error:
                yield offset, error.at(offset)
            else:
                yield offset, rows


def _rows(event: BatchDMLEvent | DMLEvent, tracker: SchemaTracker) -> Iterator[dict[str, Any]]:
    if isinstance(event, DMLEvent):
        if not event.row_types:
            return iter(())
        raise InvalidField(
            f"a transaction of {counted(len(event.row_types), 'row')} outside of a batch: there is no chunk with their values"
        )
    if not event.transactions:
        return iter(())
    schema = tracker.in_force(event.dispatcher_id)
    if schema is None:
        rows = sum(transaction.row_count for transaction in event.transactions)
        raise InvalidField(
            f"{counted(rows, 'row')} of dispatcher {event.dispatcher_id.hex()}, whose schema is not known: no readable Handshake came before them",
            expected="a Handshake of the dispatcher",
        )
    return _row_objects(decode_batch(event, schema.table), schema)


def _row_objects(batch, schema: SchemaInForce) -> Iterator[dict[str, Any]]:
    table, changes = schema.table, batch.changes
    names = [column.name for column in table.columns]
    values = [
        canonical_values(array, column)
        for array, column in zip(batch.columns.columns, table.columns, strict=True)
    ]
    images = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    # The row before the first one stands for no row: NO_ROW is -1.
    images.append(None)
    head = {
        "dispatcher": batch.dispatcher_id.hex(),
        "schema": table.schema,
        "table": table.table,
        "table_id": str(table.table_id),
    }
    version = {"table_version": str(table.version), "table_info_version": str(schema.table_info_version)}
    key = list(table.handle_key) or None
    assert images[NO_ROW] is None
    for op, pre, post, start_ts, commit_ts, seq, physical, row_key in zip(
        changes.op.tolist(),
        changes.pre.tolist(),
        changes.post.tolist(),
        changes.start_ts.tolist(),
        changes.commit_ts.tolist(),
        changes.seq.tolist(),
        changes.physical_table_id.tolist(),
        changes.row_key.to_pylist(),
        strict=True,
    ):
        yield {
            **head,
            "physical_table_id": str(physical),
            **version,
            "seq": str(seq),
            "start_ts": str(start_ts),
            "commit_ts": str(commit_ts),
            "op": OP_NAMES[op],
            "handle_key": key,
            "row_key_hex": row_key.hex() if row_key is not None else "",
            "pre": images[pre],
            "post": images[post],
        }
