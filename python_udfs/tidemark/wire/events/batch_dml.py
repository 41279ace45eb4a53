"""Transactions of one dispatcher, with the values of all their rows in one chunk.

    batch_dml := count:u64 transaction*count chunk          (the chunk goes to the end)
    transaction := size:u64 frame                           (`size` bytes: a whole DML frame with its header)

The chunk has no schema of its own and is left as bytes: `tidemark.wire.rows` decodes it with the table info in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.wire.cursor import U64, Cursor
from tidemark.wire.errors import InvalidField, TruncatedPayload, WrongEventType
from tidemark.wire.events import dml
from tidemark.wire.events.base import Codec, Event
from tidemark.wire.header import HEADER, HEADER_SIZE, MAGIC, read_header

_MIN_TRANSACTION = 8 + HEADER_SIZE + dml.MIN_SIZE


@dataclass(frozen=True, slots=True)
class BatchDMLEvent(Event):
    type_id: ClassVar[int] = 1

    transactions: tuple[dml.DMLEvent, ...]
    chunk: bytes | memoryview
    version: int = 1

    @property
    def dispatcher_id(self) -> bytes | None:
        return self.transactions[0].dispatcher_id if self.transactions else None

    def fields(self) -> dict[str, Any]:
        return {
            "dml_event_count": len(self.transactions),
            "dml_events": [transaction.fields() for transaction in self.transactions],
            "raw_rows_length": len(self.chunk),
        }


def read_batch_dml(data, start: int, end: int, version: int = 1, reader=None) -> BatchDMLEvent:
    """The BatchDML payload `data[start:end]`. The chunk is a view into `data`."""
    if end - start < 8:
        raise TruncatedPayload(
            f"a BatchDML event takes at least 8 bytes, {end - start} are left",
            offset=start,
            expected=8,
            actual=end - start,
        )
    count = U64.unpack_from(data, start)[0]
    pos = start + 8
    if count * _MIN_TRANSACTION > end - pos:
        raise TruncatedPayload(
            f"{count} transactions do not fit into {end - pos} bytes",
            offset=start,
            expected=count * _MIN_TRANSACTION,
            actual=end - pos,
        )
    transactions = []
    known_version, read = None, None
    for _ in range(count):
        if end - pos < 8 + HEADER_SIZE:
            raise TruncatedPayload(
                "a transaction has no room for its header",
                offset=pos,
                expected=8 + HEADER_SIZE,
                actual=end - pos,
            )
        size = U64.unpack_from(data, pos)[0]
        pos += 8
        magic, event_type, dml_version, payload_length = HEADER.unpack_from(data, pos)
        if magic != MAGIC or event_type != 0 or payload_length + HEADER_SIZE != size or size > end - pos:
            _raise_bad_transaction(data, pos, end, size)
        if dml_version != known_version:
            read = _dml_reader(reader, dml_version, pos)
            known_version = dml_version
        transactions.append(read(data, pos + HEADER_SIZE, pos + size, dml_version, reader))
        pos += size
    return BatchDMLEvent(tuple(transactions), data[pos:end], version)


def _dml_reader(reader, version: int, offset: int):
    if reader is None:
        from tidemark.wire.registry import READER

        reader = READER
    return reader.codec(dml.DMLEvent.type_id, version, offset).read


def _raise_bad_transaction(data, pos: int, end: int, size: int) -> None:
    if size > end - pos:
        raise TruncatedPayload(
            f"a transaction of {size} bytes does not fit", offset=pos - 8, expected=size, actual=end - pos
        )
    header = read_header(data, pos)
    if header.event_type != dml.DMLEvent.type_id:
        raise WrongEventType(
            f"a batch holds DML events (type 0), found type {header.event_type}",
            offset=pos + 4,
            expected=0,
            actual=header.event_type,
        )
    raise InvalidField(
        f"a transaction says {size} bytes, its header {header.payload_length + HEADER_SIZE}",
        offset=pos - 8,
        expected=header.payload_length + HEADER_SIZE,
        actual=size,
    )


def parse(cursor: Cursor, version: int) -> BatchDMLEvent:
    """As `read_batch_dml`, naming the fields one by one."""
    start, end = cursor.pos, cursor.end
    for index in range(cursor.count64("transaction count", _MIN_TRANSACTION)):
        with cursor.group(f"transaction {index}"):
            cursor.u64("frame size")
            cursor.nested_event(dml.DMLEvent.type_id)
    cursor.span("row chunk", cursor.remaining, "chunk")
    return read_batch_dml(cursor.data, start, end, version, cursor.reader)


def write(event: BatchDMLEvent) -> bytes:
    from tidemark.wire.registry import encode

    parts = [U64.pack(len(event.transactions))]
    for transaction in event.transactions:
        frame = encode(transaction)
        parts += (U64.pack(len(frame)), frame)
    return b"".join((*parts, event.chunk))


def size(event: BatchDMLEvent) -> int:
    framing = 8 + HEADER_SIZE
    return 8 + sum(framing + transaction.size() for transaction in event.transactions) + len(event.chunk)


V1 = Codec(parse=parse, write=write, size=size, read=read_batch_dml)
