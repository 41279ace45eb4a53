"""Tables and streams for the row tests."""

from __future__ import annotations

from dataclasses import replace

from support import golden
from tidemark.wire import types
from tidemark.wire.framing import Frame, scan
from tidemark.wire.registry import decode
from tidemark.wire.table_info import Column, TableInfo

STREAMS = (
    "orders",
    "alltypes",
    "alltypes_shanghai",
    "evolve",
    "active_active",
    "multi_upstream_u1",
    "multi_upstream_u2",
    "multi_upstream_u3",
)


def column(name: str, mysql_type: int, **more) -> Column:
    return Column(
        id=more.pop("id", 1), name=name, offset=more.pop("offset", 0), mysql_type=mysql_type, **more
    )


def text_column(name: str = "c", mysql_type: int = types.VARCHAR, **more) -> Column:
    return column(name, mysql_type, charset="utf8mb4", collate="utf8mb4_bin", **more)


def table(*columns: Column) -> TableInfo:
    numbered = [replace(item, id=position + 1, offset=position) for position, item in enumerate(columns)]
    return TableInfo.build("db", "t", 100, 1, columns=numbered)


def events(stream: str) -> list:
    """(offset, event) of every frame of a golden stream."""
    with golden(f"streams/{stream}.bin").open("rb") as log:
        found = []
        for piece in scan(log):
            assert isinstance(piece, Frame)
            log.seek(piece.offset)
            found.append((piece.offset, decode(log.read(piece.length))))
        return found
