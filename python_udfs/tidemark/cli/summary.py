"""What a run left behind, in a few lines for a person."""

from __future__ import annotations

from dbt.adapters.tidemark.connections import TidemarkConnectionManager, project_state_dir


def print_summary() -> None:
    """Reads the tables of the project that dbt has just run in this process."""
    spark = TidemarkConnectionManager.spark_session()
    project = TidemarkConnectionManager.project
    schema = project.credentials.schema
    state_dir = project_state_dir(project)

    def rows(sql: str) -> list:
        return spark.sql(sql.format(schema=schema)).collect()

    names = {row.tableName for row in rows("show tables in {schema}") if not row.isTemporary}
    print("\nSummary")
    if "event_counts" in names:
        counts = rows(
            "select event_name, sum(frame_count) as frames from {schema}.event_counts group by event_name, event_type order by event_type"
        )
        _line("events", ", ".join(f"{row.event_name} {row.frames:,}" for row in counts) or "none")
    if "int_row_changes" in names:
        ops = rows(
            "select op, count(*) as changes from {schema}.int_row_changes where error_reason is null group by op order by op"
        )
        _line("row changes", ", ".join(f"{row.op} {row.changes:,}" for row in ops) or "none")
    if "current_rows" in names:
        live = rows("select count(*) as keys, count_if(is_deleted) as deleted from {schema}.current_rows")[0]
        _line("current", f"{live.keys - live.deleted:,} rows, {live.deleted:,} tombstones")
    if "int_checkpoints" in names:
        checkpoints = rows(
            "select upstream_id, max(checkpoint_ts) as ts from {schema}.int_checkpoints group by upstream_id order by upstream_id"
        )
        _line(
            "checkpoint", ", ".join(f"upstream {row.upstream_id}: {row.ts}" for row in checkpoints) or "none"
        )
    if "quarantine" in names:
        bad = rows(
            "select reason, count(*) as frames from {schema}.quarantine group by reason order by reason"
        )
        _line("bad frames", ", ".join(f"{row.reason} {row.frames:,}" for row in bad) or "none")
    if "log_positions" in names:
        for row in rows(
            "select count(*) as files, sum(read_up_to) as bytes, sum(torn_bytes) as torn from {schema}.log_positions"
        ):
            torn = f", {row.torn:,} bytes of an unfinished frame wait for the next run" if row.torn else ""
            _line("log", f"{row.files:,} files, {row.bytes or 0:,} bytes read{torn}")
    _line("tables", f"{len(names)} in schema {schema}, below {state_dir}")
    _line("look next", "dbt show --select current_rows, dbt show --select table_versions, dbt docs generate")


def _line(title: str, text: str) -> None:
    print(f"  {title:<11} {text}")
