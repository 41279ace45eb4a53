"""What a run left behind, in a few lines for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import chain
from typing import Any

from dbt.adapters.tidemark.connections import TidemarkConnectionManager, project_state_dir
from tidemark.words import counted

Rows = Callable[[str], list]
NONE = "none"
_SHOWN_WARNINGS = 5


def print_summary(results: Iterable[Any] = (), started: datetime | None = None, warnings: Iterable[str] = ()):
    """Reads the tables of the project that dbt has just run in this process.

    results: those of dbt's nodes. started: when dbt began. warnings: what it warned of.
    Nothing is said of a model that failed or was skipped, since its rows are those of an earlier run. After a
    failed run nothing is said of current rows at all.
    """
    spark = TidemarkConnectionManager.spark_session()
    project = TidemarkConnectionManager.project
    schema = project.credentials.schema

    def rows(sql: str) -> list:
        return spark.sql(sql.format(schema=schema)).collect()

    results = list(results)
    failed = [result.node.name for result in results if str(result.status) in ("error", "fail")]
    skipped = [result.node.name for result in results if str(result.status) == "skipped"]
    names = {row.tableName for row in rows("show tables in {schema}") if not row.isTemporary}
    told = names - {*failed, *skipped, *(["current_rows"] if failed or skipped else [])}
    print("\nSummary")
    if failed or skipped:
        _line(
            "failed",
            f"{', '.join(failed)}; {counted(len(skipped), 'node')} skipped: what follows is as far as the run came",
        )
    found = {model: list(lines(rows, started)) for model, lines in LINES.items() if model in told}
    for title, text in chain.from_iterable(found.values()):
        _line(title, text)
    for number, warning in enumerate(messages := list(dict.fromkeys(warnings))):
        if number < _SHOWN_WARNINGS:
            _line("warning", warning)
    if len(messages) > _SHOWN_WARNINGS:
        _line("warning", f"and {len(messages) - _SHOWN_WARNINGS} more, above")
    _line("tables", f"{len(names)} in schema {schema}, below {project_state_dir(project)}")
    wrong = [model for model in WRONG if any(text != NONE for _, text in found.get(model, ()))]
    right = [model for model in ("current_rows", "table_versions") if model in told]
    looks = [f"dbt show --select {model}" for model in [*wrong, *right]]
    _line("look next", ", ".join([*looks, "dbt docs generate"]))


def _events(rows: Rows, _started: datetime | None):
    counts = rows(
        "select event_name, sum(frame_count) as frames from {schema}.event_counts group by event_name, event_type order by event_type"
    )
    yield "events", ", ".join(f"{row.event_name} {row.frames:,}" for row in counts) or NONE


def _row_changes(rows: Rows, _started: datetime | None):
    ops = rows(
        "select op, count(*) as changes from {schema}.int_row_changes where error_reason is null group by op order by op"
    )
    yield "row changes", ", ".join(f"{row.op} {row.changes:,}" for row in ops) or NONE


def _current(rows: Rows, _started: datetime | None):
    live = rows("select count(*) as keys, count_if(is_deleted) as deleted from {schema}.current_rows")[0]
    yield "current", f"{counted(live.keys - live.deleted, 'row')}, {counted(live.deleted, 'tombstone')}"


def _checkpoints(rows: Rows, _started: datetime | None):
    found = rows(
        "select upstream_id, max(checkpoint_ts) as ts from {schema}.int_checkpoints group by upstream_id order by upstream_id"
    )
    yield "checkpoint", ", ".join(f"upstream {row.upstream_id}: {row.ts}" for row in found) or NONE


def _sinks(rows: Rows, started: datetime | None):
    """One line per sink and place. The rows and files are those of this run."""
    since = f"timestamp '{started:%Y-%m-%d %H:%M:%S.%f}+00:00'" if started else "timestamp '1970-01-01'"
    for row in rows(
        "select sink, changefeed_id, sink_uri, max(checkpoint_ts) as checkpoint_ts,"
        f" sum(row_count) filter (where written_at >= {since}) as row_count,"
        f" sum(file_count) filter (where written_at >= {since}) as file_count"
        " from {schema}.sink_checkpoints where sink <> 'progress'"
        " group by sink, changefeed_id, sink_uri order by sink, changefeed_id, sink_uri"
    ):
        sent = "nothing new" if row.row_count is None else f"{counted(row.row_count, 'row')} sent"
        files = "" if row.file_count is None else f", {counted(row.file_count, 'file')} written"
        place = f"checkpoint {row.checkpoint_ts} in {row.sink_uri} ({row.changefeed_id})"
        yield "sink", f"{row.sink}: {sent}{files}; {place}"


_LATE = {
    "no_sink": "no sink is concerned",
    "sent": "{} has sent them",
    "skipped": "{} has skipped them",
    "waiting": "{} has not sent them",
    "left_out": "{} sends none of them",
}


def _late(rows: Rows, _started: datetime | None):
    for late in rows(
        "select sink, status, count(*) as transactions, sum(row_count) as changes from {schema}.late_transactions"
        " group by sink, status order by sink, status"
    ):
        what = f"{counted(late.transactions, 'transaction')} ({counted(late.changes, 'row change')})"
        yield "late", f"{what} came when the checkpoint had passed; {_LATE[late.status].format(late.sink)}"


def _sequence_gaps(rows: Rows, _started: datetime | None):
    (found,) = rows("select count(*) as gaps from {schema}.sequence_gaps")
    if found.gaps:
        yield (
            "gaps",
            f"{counted(found.gaps, 'gap')} in the events of dispatchers: their tables wait for what is missing",
        )


def _epoch_gaps(rows: Rows, _started: datetime | None):
    (found,) = rows("select count(*) as gaps from {schema}.epoch_gaps")
    if found.gaps:
        begin = "epoch begins" if found.gaps == 1 else "epochs begin"
        yield "gaps", f"{found.gaps:,} {begin} behind what is complete: events between are not in the logs"


def _bad_frames(rows: Rows, _started: datetime | None):
    bad = rows("select reason, count(*) as frames from {schema}.quarantine group by reason order by reason")
    yield "bad frames", ", ".join(f"{row.reason} {row.frames:,}" for row in bad) or NONE


def _log(rows: Rows, _started: datetime | None):
    (row,) = rows(
        "select count(*) as files, sum(read_up_to) as bytes, sum(torn_bytes) as torn from {schema}.log_positions"
    )
    torn = f", {counted(row.torn, 'byte')} of an unfinished frame wait for the next run" if row.torn else ""
    yield "log", f"{counted(row.files, 'file')}, {counted(row.bytes or 0, 'byte')} read{torn}"


# Lines by the model that they are read from, in the order in which they are printed.
LINES = {
    "event_counts": _events,
    "int_row_changes": _row_changes,
    "current_rows": _current,
    "int_checkpoints": _checkpoints,
    "sink_checkpoints": _sinks,
    "late_transactions": _late,
    "sequence_gaps": _sequence_gaps,
    "epoch_gaps": _epoch_gaps,
    "quarantine": _bad_frames,
    "log_positions": _log,
}
# Those that list what is wrong with the logs, to be looked at first.
WRONG = ("quarantine", "sequence_gaps", "epoch_gaps", "late_transactions")


def _line(title: str, text: str) -> None:
    print(f"  {title:<11} {text}")
