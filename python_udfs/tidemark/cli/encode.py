"""Print what a sink would send for a log: one JSON object per message, in stream order.

An object has kind (row, ddl or watermark), schema, table, commit_ts and topic (null for storage sinks); the message as key_text and value_text where
the bytes are UTF-8, else as key and value in base64, and null where there is none; and error where a row cannot be encoded.

A message of the open protocol holds up to max-batch-size rows of a table that follow each other, as if its topic had one partition; commit_ts is that of the first.

What the changefeed leaves out is not printed: tables, row changes and DDL statements by its filters, transactions by their start ts, and rows by bdr-mode and
enable-active-active. Rows of tables with the flags of soft delete or active-active are shown as they came, for comparison with the output of TiCDC's encoders;
with --row-policy they are what a sink sends: no hard deletes, and soft deletes as deletes.

A watermark is printed when a Resolved event moves the smallest resolved ts of all running dispatchers. What cannot be decoded is reported on
stderr with file and offset, and everything around it is still read; if no row change and no DDL statement can be decoded, the command fails.

With Avro, deletes of tables without a key say nothing: their number is told on stderr. The schema registry of the sink URI is not contacted: ids are 1, 2, 3 in the order of registration, unless --registry names one. --schemas shows
what was registered: to a file, one object with id, request_path, schema and subject per line; without a file, between the messages and with
kind = schema, each before the first message that needs it.
"""

from __future__ import annotations

import base64
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from tidemark.cli.compat_option import add_compat
from tidemark.cli.log_events import Tally, log_events, read_logs
from tidemark.config.load import load_to_send
from tidemark.config.settings import Settings
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.dispatch.router import Router
from tidemark.dispatch.routing import Routing
from tidemark.encode.avro import AvroEncoder
from tidemark.encode.avro_tables import empty_deletes
from tidemark.encode.ddl import statements
from tidemark.encode.errors import EncodeError
from tidemark.encode.open_protocol import OpenProtocolEncoder
from tidemark.encode.protocol import Encoder, Message, encoder_for, packed
from tidemark.encode.routed_ddl import routed_statement
from tidemark.registry.open import check_url, open_url
from tidemark.registry.recorded import Recorded
from tidemark.registry.sequential import SequentialIds
from tidemark.sinks.sent_rows import SentRows
from tidemark.wire.errors import InvalidField, WireError
from tidemark.wire.events.base import Event
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.json_form import json_line
from tidemark.wire.rows import DELETE, RowBatch, decode_batches
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker
from tidemark.wire.watermark import Watermark

SUMMARY = "print the messages that a sink would send"
_JOINED = 32
_BETWEEN_MESSAGES = "-"


def add_arguments(parser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file of frames, a folder of such files, or a glob"
    )
    parser.add_argument(
        "--sink-uri",
        metavar="URI",
        required=True,
        help="a URI with a protocol, such as file:///x?protocol=csv",
    )
    parser.add_argument(
        "--changefeed", metavar="FILE", help="the changefeed's TOML, JSON or YAML file (default: no rules)"
    )
    add_compat(parser)
    parser.add_argument(
        "--row-policy",
        action="store_true",
        help="treat rows of soft-delete and active-active tables as sinks do",
    )
    parser.add_argument(
        "--schemas",
        metavar="FILE",
        nargs="?",
        const=_BETWEEN_MESSAGES,
        help="Avro: show the registered schemas, in FILE or between the messages",
    )
    parser.add_argument(
        "--registry",
        metavar="URL",
        help="Avro: register schemas there, such as file:///folder or http://host:8081",
    )


def run(args) -> int:
    settings = load_to_send(args.changefeed, args.sink_uri, args.compat)
    if settings.protocol != "avro":
        if args.schemas or args.registry:
            raise EncodeError("--schemas and --registry are for protocol=avro")
        return _print(args, _Shown(settings, _encoder(settings), args.row_policy), None)
    if settings.uri.options.schema_registry:
        check_url(settings.uri.options.schema_registry)
    registry = Recorded(open_url(args.registry) if args.registry else SequentialIds())
    between = args.schemas == _BETWEEN_MESSAGES
    encoder = AvroEncoder(settings, registry=registry)
    shown = _Shown(settings, encoder, args.row_policy, registry if between else None)
    if between or args.schemas is None:
        return _print(args, shown, None)
    with open(args.schemas, "wb") as schemas:
        return _print(
            args, shown, lambda: schemas.writelines(json_line(made.document()) for made in registry.take())
        )


def _encoder(settings: Settings) -> Encoder:
    if settings.protocol == "open-protocol" and settings.compat.open_first_flags:
        return OpenProtocolEncoder(settings, keeps_first_flags=True)
    return encoder_for(settings)


def _print(args, shown: _Shown, after_step: Callable[[], None] | None) -> int:
    write = sys.stdout.buffer.write
    tally = Tally(args.command)
    for _, _, found in read_logs(args.logs, tally, _Reader(tally).steps, counts=_is_content):
        for message in shown.messages(found):
            write(json_line(message))
        if after_step is not None:
            after_step()
    sys.stdout.buffer.flush()
    for warning in shown.warnings():
        print(f"tidemark encode: {warning}", file=sys.stderr)
    return 0


def _is_content(found: RowBatch | DDLEvent | int) -> bool:
    """Watermarks alone are nothing to show for a log whose rows cannot be decoded."""
    return not isinstance(found, int)


class _Reader:
    """Row batches, DDL events and watermarks of logs, in order. Consecutive batches of a table version are joined: that is faster."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._tracker = SchemaTracker()
        self._watermark = Watermark()
        self._waiting: list[tuple[int, BatchDMLEvent]] = []
        self._source: tuple[bytes, TableInfo] | None = None

    def steps(self, log: BinaryIO) -> Iterator[tuple[int, RowBatch | DDLEvent | int | WireError]]:
        for offset, event in log_events(log, self._tracker, self._tally):
            if isinstance(event, WireError):
                yield offset, event
                continue
            try:
                yield from self._step(offset, event)
            except WireError as error:
                yield offset, error.at(offset)
        yield from self._joined()

    def _step(self, offset: int, event: Event) -> Iterator[tuple[int, RowBatch | DDLEvent | int | WireError]]:
        ts = self._watermark.feed(event, self._tracker)
        if isinstance(event, BatchDMLEvent) and event.transactions:
            schema = self._tracker.in_force(event.dispatcher_id)
            if schema is None:
                raise InvalidField(
                    f"rows of dispatcher {event.dispatcher_id.hex()}, before whose rows no readable Handshake came"
                )
            source = (event.dispatcher_id, schema.table)
            if source != self._source or len(self._waiting) == _JOINED:
                yield from self._joined()
            self._source = source
            self._waiting.append((offset, event))
        elif isinstance(event, DDLEvent):
            yield from self._joined()
            yield offset, event
        if ts is not None:
            yield from self._joined()
            yield offset, ts

    def _joined(self) -> Iterator[tuple[int, RowBatch | WireError]]:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        batch, errors = decode_batches(waiting, self._source[1])
        if batch is not None:
            yield waiting[-1][0], batch
        yield from errors


class _Shown:
    """Messages as JSON objects."""

    def __init__(
        self, settings: Settings, encoder: Encoder, row_policy: bool, registry: Recorded | None = None
    ):
        self._encoder = encoder
        self._registry = registry
        self._router = Router.for_topics(settings)
        self._filter = ChangefeedFilter(settings.changefeed)
        self._sent = SentRows(settings, table_flags=row_policy)
        self._routing = Routing.of(settings)
        self._seen_ddl: set[tuple[int, int, str]] = set()
        self._settings = settings
        # (schema, table) -> deletes whose messages say nothing
        self._empty_deletes: Counter[tuple[str, str]] = Counter()

    def messages(self, found: RowBatch | DDLEvent | int) -> Iterator[dict[str, Any]]:
        if isinstance(found, RowBatch):
            return self._rows(found)
        return self._ddl(found) if isinstance(found, DDLEvent) else self._watermark(found)

    def _rows(self, batch: RowBatch) -> Iterator[dict[str, Any]]:
        batch = self._sent.of(batch)
        if batch is None:
            return
        table, topic = batch.table, None
        if self._router:
            self._router.check(table)
            topic = self._router.route(table.schema, table.table).topic
        encoded = packed(self._encoder, self._encoder.encode_rows(batch))
        if isinstance(self._encoder, AvroEncoder) and not self._encoder.has_key(table):
            self._empty_deletes[table.schema, table.table] += int((batch.changes.op == DELETE).sum())
        for made in self._registry.take() if self._registry else ():
            yield {"kind": "schema", **made.document()}
        commit_ts = batch.changes.commit_ts[encoded.change].tolist()
        for ts, key, value, error in zip(
            commit_ts,
            encoded.key.to_pylist(),
            encoded.value.to_pylist(),
            encoded.error.to_pylist(),
            strict=True,
        ):
            shown = _shown("row", table.target_schema, table.target_table, ts, topic, Message(key, value))
            yield shown if error is None else {**shown, "error": error}

    def warnings(self) -> list[str]:
        """What is to be said of the messages when all are shown."""
        return [
            empty_deletes(self._settings, *name, count)
            for name, count in self._empty_deletes.items()
            if count
        ]

    def _ddl(self, event: DDLEvent) -> Iterator[dict[str, Any]]:
        """Every dispatcher of a table receives the event; the sink sees it once."""
        identity = (event.finished_ts, event.ddl_type, event.query)
        if event.not_sync or identity in self._seen_ddl:
            return
        self._seen_ddl.add(identity)
        for ddl in statements(event):
            sent = routed_statement(ddl, self._routing) if self._filter.takes_ddl(ddl) else None
            message = self._encoder.encode_ddl(sent) if sent else None
            if message is not None:
                topic = (
                    self._router.ddl_topic(ddl.schema, ddl.table, ddl.old_schema, ddl.old_table)
                    if self._router
                    else None
                )
                yield _shown("ddl", sent.schema, sent.table, ddl.finished_ts, topic, message)

    def _watermark(self, ts: int) -> Iterator[dict[str, Any]]:
        message = self._encoder.encode_watermark(ts)
        if message is not None:
            topic = self._router.ddl_topic("", "") if self._router else None
            yield _shown("watermark", "", "", ts, topic, message)


def _shown(
    kind: str, schema: str, table: str, ts: int, topic: str | None, message: Message
) -> dict[str, Any]:
    head = {"kind": kind, "schema": schema, "table": table, "commit_ts": str(ts), "topic": topic}
    return head | _bytes("key", message.key) | _bytes("value", message.value)


def _bytes(name: str, raw: bytes | None) -> dict[str, str | None]:
    if raw is None:
        return {name: None}
    try:
        return {f"{name}_text": raw.decode()}
    except UnicodeDecodeError:
        return {name: base64.b64encode(raw).decode()}
