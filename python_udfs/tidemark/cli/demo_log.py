"""Write demo event logs: a shop in one or several TiDB clusters, as TiCDC would stream it.

DIR/upstream-1/000001.bin … get the events of the first cluster, DIR/upstream-2 those of the second, and so on. The tables are shop.orders (a plain table),
shop.customers (soft-delete), shop.inventory (active-active: every upstream writes the same keys, and replicates) and, with more than
three tables, shop.orders_2, shop.orders_3 …

There are inserts (80 %), updates (15 %) and deletes (5 %), an ALTER TABLE half way, sync points, a dispatcher that is re-created and sends some rows
again, and every other event type; DML events occur only inside of batches, as in real streams. The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tidemark.demo.shop import BATCH_ROWS, FILE_BYTES, MAX_BATCH_ROWS, write_demo_logs
from tidemark.words import counted

SUMMARY = "write demo event logs"

__all__ = ["SUMMARY", "add_arguments", "run", "write_demo_logs"]

_UNITS = {"": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="folder to write; must not exist or be empty"
    )
    parser.add_argument(
        "--tables", type=_from(1), default=3, metavar="N", help="tables per upstream (%(default)s)"
    )
    parser.add_argument(
        "--rows",
        type=_from(0),
        default=50_000,
        metavar="N",
        help="row changes over all upstreams and tables (%(default)s)",
    )
    parser.add_argument(
        "--upstreams", type=_from(1), default=2, metavar="N", help="TiDB clusters (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="another seed gives other rows (%(default)s)"
    )
    parser.add_argument(
        "--batch-rows",
        type=_from(1),
        default=BATCH_ROWS,
        metavar="N",
        help=f"row changes per BatchDML event, at most {MAX_BATCH_ROWS} (%(default)s)",
    )
    parser.add_argument(
        "--file-bytes",
        type=_size,
        default=FILE_BYTES,
        metavar="SIZE",
        help="start a new file before this size is exceeded: a number, KiB, MiB or GiB (64MiB)",
    )


def _from(least: int):
    def count(text: str) -> int:
        if (number := int(text)) < least:
            raise argparse.ArgumentTypeError(f"{number} is less than {least}")
        return number

    return count


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text)
    if not match or match[2].upper() not in _UNITS or not int(match[1]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size: give a number of bytes, or one with KiB, MiB or GiB"
        )
    return int(match[1]) * _UNITS[match[2].upper()]


def run(args: argparse.Namespace) -> int:
    log = write_demo_logs(
        args.out,
        tables=args.tables,
        rows=args.rows,
        upstreams=args.upstreams,
        seed=args.seed,
        batch_rows=args.batch_rows,
        file_bytes=args.file_bytes,
    )
    print(f"{log.path}: {counted(log.files, 'file')}, {counted(log.bytes, 'byte')}")
    print(
        f"{counted(log.rows, 'row change')} of {counted(log.tables, 'table')} in {counted(log.upstreams, 'upstream')}; "
        f"{log.repeated_rows:,} of them sent twice"
    )
    return 0
