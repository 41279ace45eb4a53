"""Print where every row change of a log goes: one JSON object per row change, in stream order.

An object has the keys schema, table, commit_ts, op, rule, topic and partition, as the sink would send it. rule is the position of the dispatch rule
that takes the table, from 0, or null where none does. Where a rule has a target-schema or a target-table, target_schema and target_table follow: under which name
the table is sent. What the changefeed leaves out is not printed: tables and row changes by its filters, transactions by
their start ts, and rows by bdr-mode and enable-active-active. Rows of tables with the flags of soft delete or active-active are shown as they came.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.cli.compat_option import add_compat
from tidemark.cli.row_batches import row_batches
from tidemark.config import load
from tidemark.dispatch.router import Router
from tidemark.dispatch.routing import routing_rules
from tidemark.sinks.sent_rows import SentRows
from tidemark.wire.rows import RowBatch, op_names

SUMMARY = "print the topic and partition of every row change"


def add_arguments(parser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file of frames, a folder of such files, or a glob"
    )
    parser.add_argument(
        "--changefeed", metavar="FILE", help="the changefeed's TOML, JSON or YAML file (default: no rules)"
    )
    parser.add_argument(
        "--sink-uri", metavar="URI", required=True, help="a kafka:// or pulsar:// URI with partition-num"
    )
    add_compat(parser)


def run(args) -> int:
    settings = load(args.changefeed, args.sink_uri, args.compat)
    router, is_routed = Router(settings), bool(routing_rules(settings))
    sent = SentRows(settings, table_flags=False)
    warned: set[str] = set()
    for batch in filter(None, map(sent.of, row_batches(args.logs, args.command))):
        for warning in router.warnings(batch.table):
            if warning not in warned:
                warned.add(warning)
                print(f"tidemark dispatch: {warning}", file=sys.stderr)
        sys.stdout.buffer.write(lines(batch, router, is_routed))
    sys.stdout.buffer.flush()
    return 0


def lines(batch: RowBatch, router: Router, is_routed: bool) -> memoryview:
    """The JSON lines of a batch. Only three values differ from row to row, so whole columns of text are joined."""
    table, changes = batch.table, batch.changes
    route = router.route(table.schema, table.table)
    names = json.dumps(
        {"schema": table.schema, "table": table.table}, ensure_ascii=False, separators=(",", ":")
    )
    place = json.dumps({"rule": route.rule, "topic": route.topic}, ensure_ascii=False, separators=(",", ":"))
    target = ""
    if is_routed:
        there = {"target_schema": table.target_schema, "target_table": table.target_table}
        target = "," + json.dumps(there, ensure_ascii=False, separators=(",", ":"))[1:-1]
    text = pc.binary_join_element_wise(
        f'{names[:-1]},"commit_ts":"',
        pc.cast(pa.array(changes.commit_ts), pa.string()),
        '","op":"',
        op_names().take(pa.array(changes.op)),
        f'",{place[1:-1]},"partition":',
        pc.cast(pa.array(router.partitions(batch)), pa.string()),
        f"{target}}}\n",
        "",
    )
    _, offsets, data = text.buffers()
    return memoryview(data)[: np.frombuffer(offsets, np.int32)[len(text)]]
