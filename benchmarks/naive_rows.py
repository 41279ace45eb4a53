"""The decoder one writes first: row by row, cell by cell, with `struct`. The benchmark's yardstick, and a second opinion on every value."""

from __future__ import annotations

import struct
from decimal import Decimal

from tidemark.wire.events.batch_dml import read_batch_dml
from tidemark.wire.events.dml import DELETE, UPDATE
from tidemark.wire.table_info import Column, TableInfo
from tidemark.wire.types import FIXED_WIDTH, Kind, fsp


def decode_rows(payload: bytes, table: TableInfo) -> list[tuple]:
    """(op, commit_ts, key, pre, post) per row change; pre and post are lists of values."""
    event = read_batch_dml(memoryview(payload), 0, len(payload))
    columns = _columns(bytes(event.chunk), table)
    changes = []
    for transaction in event.transactions:
        keys, row = transaction.row_keys(), 0
        while row < len(transaction.row_types):
            op, key = transaction.row_types[row], keys[row]
            values = _row(columns, transaction.previous_total_offset + row)
            if op == UPDATE:
                row += 1
                after = _row(columns, transaction.previous_total_offset + row)
                changes.append((op, transaction.commit_ts, key, values, after))
            elif op == DELETE:
                changes.append((op, transaction.commit_ts, key, values, None))
            else:
                changes.append((op, transaction.commit_ts, key, None, values))
            row += 1
    return changes


def _columns(chunk: bytes, table: TableInfo) -> list[tuple]:
    found, position = [], 0
    for column in table.columns:
        rows, nulls = struct.unpack_from("<II", chunk, position)
        position += 8
        bitmap = chunk[position : position + (rows + 7) // 8] if nulls else None
        position += len(bitmap or b"")
        width = FIXED_WIDTH.get(column.kind, 0)
        offsets = None
        if not width:
            offsets = struct.unpack_from(f"<{rows + 1}q", chunk, position)
            position += 8 * (rows + 1)
        size = offsets[-1] if offsets else rows * width
        found.append((column, bitmap, offsets, width, chunk[position : position + size]))
        position += size
    return found


def _row(columns: list[tuple], row: int) -> list:
    values = []
    for column, bitmap, offsets, width, data in columns:
        if bitmap is not None and not bitmap[row // 8] >> row % 8 & 1:
            values.append(None)
        else:
            start, end = (offsets[row], offsets[row + 1]) if offsets else (row * width, (row + 1) * width)
            values.append(_value(column, data[start:end]))
    return values


def _value(column: Column, cell: bytes):
    kind = column.kind
    if kind is Kind.INTEGER:
        return int.from_bytes(cell, "little", signed=not column.is_unsigned)
    if kind is Kind.DOUBLE:
        return struct.unpack("<d", cell)[0]
    if kind is Kind.FLOAT:
        return struct.unpack("<f", cell)[0]
    if kind is Kind.STRING:
        return cell.decode() if column.charset != "binary" else cell
    if kind in (Kind.ENUM, Kind.SET):
        return int.from_bytes(cell[:8], "little")
    if kind is Kind.DATETIME:
        return _datetime(int.from_bytes(cell, "little"), fsp(column))
    if kind is Kind.DECIMAL:
        return _decimal(cell, column.decimal)
    raise NotImplementedError(kind)


def _datetime(value: int, digits: int) -> str:
    text = (
        f"{value >> 50:04d}-{value >> 46 & 15:02d}-{value >> 41 & 31:02d} "
        f"{value >> 36 & 31:02d}:{value >> 30 & 63:02d}:{value >> 24 & 63:02d}"
    )
    return f"{text}.{value >> 4 & 0xFFFFF:06d}"[: 20 + digits] if digits else text


def _decimal(cell: bytes, scale: int) -> Decimal:
    before, after, _, negative, *words = struct.unpack("<4B9i", cell)
    point = -(-before // 9)
    digits = "".join(f"{word:09d}" for word in words[:point]) or "0"
    fraction = "".join(f"{word:09d}" for word in words[point : point - (-after // 9)])[:scale]
    return Decimal(f"{'-' if negative else ''}{digits}.{fraction.ljust(scale, '0')}")
