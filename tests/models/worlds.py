"""One history, delivered in every way at once: each way has a schema and upstreams of its own in the same runs."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from deliveries import DELIVERIES
from histories import COMMIT_TS, Table, Transaction
from streams import interleaved, table_frames

WAYS = [way.__name__ for way in DELIVERIES]


def upstream_id(way: str, upstream: str) -> str:
    return f"{way}-{upstream}"


def run_all_ways(
    models, folder: Path, seed: int, tables: list[Table], history: dict[str, list[Transaction]], runs: int
) -> None:
    """Writes the logs piece by piece, with a run after each."""
    plans = {}
    for delivery in DELIVERIES:
        for upstream, transactions in history.items():
            # Each way has its own dispatchers and epochs, and its own interleaving of tables.
            dice = random.Random(f"{seed} {delivery.__name__} {upstream}")
            streams = [
                table_frames(
                    dice,
                    table.info(delivery.__name__, 100 * int(upstream) + place),
                    [transaction for transaction in transactions if transaction.table is table],
                )
                for place, table in enumerate(tables)
            ]
            log = folder / upstream_id(delivery.__name__, upstream)
            log.mkdir()
            plans[log] = delivery(dice, interleaved(dice, streams), runs)
    models.vars["event_logs"] = [{"upstream_id": log.name, "path": str(log)} for log in plans]
    for run in range(runs):
        for log, plan in plans.items():
            for name, piece in plan[run]:
                with (log / name).open("ab") as file:
                    file.write(piece)
        models.ok("run", "--select", "+current_rows", "+quarantine", "+sequence_gaps")


@dataclass(frozen=True)
class CurrentRow:
    values: dict[str, str | None]
    origin_ts: int
    is_deleted: bool


def current_rows(models, tables: list[Table], way: str) -> dict[tuple, CurrentRow]:
    """(table, key …) -> the row; _tidb_commit_ts is no value of a row downstream."""
    keys = {table.name: list(table.key) for table in tables}
    found = {}
    for row in models.rows(f"select * from {{schema}}.current_rows where schema_name = '{way}'"):
        values = {name: value for name, value in json.loads(row["values"]).items() if name != COMMIT_TS}
        identity = (row["table_name"], *(values[name] for name in keys[row["table_name"]]))
        assert identity not in found, "a key is there twice"
        assert json.loads(row["key"]) == list(identity[1:])
        found[identity] = CurrentRow(values, row["origin_ts"], row["is_deleted"])
    return found


def change_counts(models) -> dict[tuple[str, str], int]:
    rows = models.rows(
        "select schema_name, upstream_id, count(*) as n from {schema}.int_row_changes where error_reason is null group by all"
    )
    return {(row["schema_name"], row["upstream_id"]): row["n"] for row in rows}
