"""Print every row change of a log as one JSON object per line, in the order of the log.

A row is decoded with the schema in force: the one of its dispatcher's Handshake, as changed by later DDL events. 64-bit numbers are decimal strings,
bytes are {"b64": …}, ENUM and SET {"enum": number, "name": …}, BIT {"bit": number, "hex": …}. What cannot be decoded is reported on stderr
with file and offset, and everything around it is still read. Several logs are read as one stream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from tidemark.cli.progress import Progress
from tidemark.logs import find_logs, open_log
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DMLEvent
from tidemark.wire.framing import Frame, Skipped, scan
from tidemark.wire.json_form import json_line
from tidemark.wire.registry import decode
from tidemark.wire.rows import NO_ROW, OP_NAMES, decode_batch
from tidemark.wire.text import canonical_values
from tidemark.wire.tracker import SchemaInForce, SchemaTracker

SUMMARY = "print every row change of a log as JSON"


def add_arguments(parser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file of frames, a folder of such files, or a glob"
    )


def run(args) -> int:
    write = sys.stdout.buffer.write
    tracker = SchemaTracker()
    bad = 0
    for file in (file for path in args.logs for file in find_logs(path)):
        progress = Progress(file.path)
        with open_log(file.path) as log:
            for offset, found in rows_of(log, tracker):
                progress.advance(offset, file.size)
                if isinstance(found, WireError):
                    bad += 1
                    print(f"tidemark rows: {file.path}: offset {offset}: {found}", file=sys.stderr)
                    continue
                for row in found:
                    write(json_line({"file": file.path, "offset": offset, **row}))
        progress.close()
    sys.stdout.buffer.flush()
    if bad:
        print(f"tidemark rows: {bad} pieces could not be decoded", file=sys.stderr)
    return 0


def rows_of(
    log: BinaryIO, tracker: SchemaTracker
) -> Iterator[tuple[int, Iterator[dict[str, Any]] | WireError]]:
    """Per piece of the log that has rows or is wrong: its offset, with its rows or the error."""
    for piece in scan(log):
        if isinstance(piece, Skipped):
            yield piece.offset, piece.error
        elif not isinstance(piece, Frame):
            yield (
                piece.offset,
                InvalidField(f"the last frame is not complete: {piece.length} bytes", offset=piece.offset),
            )
        else:
            log.seek(piece.offset)
            try:
                event = decode(log.read(piece.length))
                tracker.feed(event)
                if isinstance(event, BatchDMLEvent | DMLEvent):
                    yield piece.offset, _rows(event, tracker)
            except WireError as error:
                yield piece.offset, error.at(piece.offset)


def _rows(event: BatchDMLEvent | DMLEvent, tracker: SchemaTracker) -> Iterator[dict[str, Any]]:
    if isinstance(event, DMLEvent):
        if not event.row_types:
            return iter(())
        raise InvalidField(
            f"a transaction of {len(event.row_types)} rows outside of a batch: there is no chunk with their values"
        )
    if not event.transactions:
        return iter(())
    schema = tracker.in_force(event.dispatcher_id)
    if schema is None:
        rows = sum(transaction.row_count for transaction in event.transactions)
        raise InvalidField(
            f"{rows} rows of dispatcher {event.dispatcher_id.hex()}, whose schema is not known: no readable Handshake came before them",
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
