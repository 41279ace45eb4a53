# ruff: noqa: RUF009 - key() and section() make dataclass fields
"""The changefeed file, without its `[sink]` table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemark.config.ddl_kinds import DDL_KINDS
from tidemark.config.keys import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    INTS,
    TEXT,
    TEXTS,
    integer,
    key,
    one_of,
    section,
    tables,
    tuning,
)
from tidemark.config.sink import Sink

ROW_OPS, ALL_DML, ALL_DDL = ("insert", "update", "delete"), "all dml", "all ddl"


@dataclass(frozen=True)
class EventFilter:
    matcher: tuple[str, ...] = key(TEXTS, (), "Table filter rules: the tables that this rule is for.")
    ignore_event: tuple[str, ...] = key(
        TEXTS,
        (),
        "Kinds of events to leave out: insert, update, delete, all dml, all ddl, or a kind of DDL such as drop table, add column, alter table.",
    )
    ignore_sql: tuple[str, ...] = key(TEXTS, (), "Regular expressions: DDL statements to leave out.")
    ignore_insert_value_expr: str = key(
        TEXT, "", "SQL expression: inserts to leave out. See [filter expressions](filter-expressions.md)."
    )
    ignore_update_new_value_expr: str = key(TEXT, "", "SQL expression on new values: updates to leave out.")
    ignore_update_old_value_expr: str = key(TEXT, "", "SQL expression on old values: updates to leave out.")
    ignore_delete_value_expr: str = key(TEXT, "", "SQL expression: deletes to leave out.")
    ignore_update_only_columns: tuple[str, ...] = key(
        TEXTS, (), "Updates that change these columns only are left out."
    )

    @property
    def ignored_ops(self) -> tuple[str, ...]:
        """The row changes that are left out: insert, update, delete."""
        return tuple(op for op in ROW_OPS if self._kinds & {op, ALL_DML})

    @property
    def value_expressions(self) -> dict[str, str]:
        """Key of the file -> expression on the values of a row, of those that are given."""
        given = {
            "ignore-insert-value-expr": self.ignore_insert_value_expr,
            "ignore-update-old-value-expr": self.ignore_update_old_value_expr,
            "ignore-update-new-value-expr": self.ignore_update_new_value_expr,
            "ignore-delete-value-expr": self.ignore_delete_value_expr,
        }
        return {name: expression for name, expression in given.items() if expression.strip()}

    @property
    def ignores_all_ddl(self) -> bool:
        return ALL_DDL in self._kinds

    @property
    def ignored_ddl(self) -> frozenset[int]:
        """The DDL statements that are left out by their kind: TiDB's numbers."""
        return frozenset(number for kind in self._kinds for number in DDL_KINDS.get(kind, ()))

    @property
    def _kinds(self) -> set[str]:
        return {kind.strip().lower() for kind in self.ignore_event}


@dataclass(frozen=True)
class Filter:
    rules: tuple[str, ...] = key(
        TEXTS,
        ("*.*",),
        "Table filter rules: the tables of the changefeed. The last rule that matches decides.",
    )
    ignore_txn_start_ts: tuple[int, ...] = key(
        INTS, (), "Transactions and DDL statements to leave out, by their start ts."
    )
    event_filters: tuple[EventFilter, ...] = tables(EventFilter, "Events of some tables to leave out.")


@dataclass(frozen=True)
class MemoryUsage:
    memory_quota_percentage: int | None = tuning(INT, "Share of the memory quota for the redo log.")
    event_cache_percentage: int | None = tuning(INT, "Share of the memory quota for the event cache.")


@dataclass(frozen=True)
class Consistent:
    level: str = key(
        one_of("none", "eventual", empty="none"),
        "none",
        "eventual keeps a redo log.",
        moot="Tidemark keeps no redo log, since every run can be repeated from the event logs",
    )
    storage: str = key(TEXT, "", "Where the redo log is kept.", secret=True)
    compression: str = key(one_of("none", "lz4", empty="none"), "none", "Compression of the redo log.")
    flush_interval: int | None = tuning(INT, "Milliseconds between two writes of the redo log.")
    meta_flush_interval: int | None = tuning(
        INT, "Milliseconds between two writes of the redo log's metadata."
    )
    max_log_size: int | None = tuning(INT, "MiB of a redo log file.")
    encoding_worker_num: int | None = tuning(INT, "Encoder threads.")
    flush_worker_num: int | None = tuning(INT, "Writer threads.")
    use_file_backend: bool | None = tuning(BOOL, "Write to local files first.")
    flush_concurrency: int | None = tuning(INT, "Parallel uploads of one file.")
    memory_usage: MemoryUsage = section(MemoryUsage, "Memory of the redo log.", tuning=True)


@dataclass(frozen=True)
class Integrity:
    integrity_check_level: str = key(
        one_of("none", "correctness"),
        "none",
        "correctness verifies row checksums. Kafka only. An error there, since Tidemark neither verifies nor sends them.",
    )
    corruption_handle_level: str = key(
        one_of("warn", "error"),
        "warn",
        "What happens on a wrong checksum.",
        moot="row checksums are not verified",
    )


@dataclass(frozen=True)
class Mounter:
    worker_num: int | None = tuning(INT, "Decoder threads of TiCDC.")


@dataclass(frozen=True)
class Scheduler:
    enable_table_across_nodes: bool = key(
        BOOL,
        False,
        "A table may be split over nodes: files of the storage sink then carry their dispatcher in their name.",
    )
    region_threshold: int | None = tuning(INT, "Regions from which a table is split.")
    region_count_per_span: int | None = tuning(INT, "Regions of one part.")
    region_count_refresh_interval: timedelta | None = tuning(DURATION, "How often regions are counted.")
    region_per_span: int | None = tuning(INT, "Regions of one part (older name).")
    write_key_threshold: int | None = tuning(INT, "Written keys from which a table is split.")
    scheduling_task_count_per_node: int | None = tuning(INT, "Tasks of one node.")
    scheduling_task_per_node: int | None = tuning(INT, "Tasks of one node (older name).")
    enable_splittable_check: bool | None = tuning(BOOL, "Split only tables that are safe to split.")
    force_split: bool | None = tuning(BOOL, "Split also tables that are not safe to split.")
    balance_score_threshold: int | None = tuning(INT, "When traffic is balanced.")
    min_traffic_percentage: float | None = tuning(FLOAT, "When traffic is balanced.")
    max_traffic_percentage: float | None = tuning(FLOAT, "When traffic is balanced.")


@dataclass(frozen=True)
class SyncedStatus:
    synced_check_interval: int | None = tuning(
        INT, "Seconds without changes after which a changefeed counts as synced."
    )
    checkpoint_interval: int | None = tuning(INT, "Seconds a checkpoint may lag.")


@dataclass(frozen=True)
class Cyclic:
    enable: bool = key(
        BOOL,
        False,
        "Cyclic replication of old versions.",
        unapplied="rows of other replicas would be sent; use bdr-mode instead",
    )
    replica_id: int | None = tuning(INT, "Cyclic replication of old versions.")
    filter_replica_ids: tuple[int, ...] | None = tuning(INTS, "Cyclic replication of old versions.")
    id_buckets: int | None = tuning(INT, "Cyclic replication of old versions.")
    sync_ddl: bool | None = tuning(BOOL, "Cyclic replication of old versions.")


@dataclass(frozen=True)
class Changefeed:
    """The top level of a changefeed file."""

    case_sensitive: bool = key(BOOL, False, "Whether table filter rules mind the case of names.")
    bdr_mode: bool = key(
        BOOL, False, "Bidirectional replication: rows that came from another cluster are not sent again."
    )
    enable_active_active: bool = key(
        BOOL,
        False,
        "Active-active tables: last write wins. Needs bdr-mode, a TiDB or MySQL sink, no redo log.",
    )
    active_active_progress_interval: timedelta = key(
        DURATION, timedelta(minutes=30), "How often the progress table is written."
    )
    active_active_sync_stats_interval: timedelta = key(
        DURATION,
        timedelta(minutes=1),
        "How often conflict statistics are read; 0 never.",
        moot="the model conflict_counts has the statistics of every run",
    )
    enable_sync_point: bool = key(
        BOOL,
        False,
        "Write sync points. TiDB and MySQL only. An error there: Tidemark writes none, the model sync_points lists those of the logs.",
    )
    sync_point_interval: timedelta = key(
        DURATION, timedelta(minutes=10), "Time between two sync points, at least 30s."
    )
    sync_point_retention: timedelta = key(
        DURATION, timedelta(hours=24), "How long sync points are kept, at least 1h."
    )
    force_replicate: bool = key(
        BOOL,
        False,
        "Also tables without a primary key or a unique key without NULL.",
        moot="tables without such a key are always replicated",
    )
    ignore_ineligible_table: bool = key(
        BOOL,
        False,
        "Leave out tables that cannot be replicated instead of failing.",
        unapplied="no table is left out because of its keys; name such tables in filter.rules instead",
    )
    filter: Filter = section(Filter, "Which tables and events are replicated.")
    consistent: Consistent = section(Consistent, "Redo log.")
    integrity: Integrity = section(Integrity, "Row checksums.")
    sink: Sink = section(Sink, "Where changes go and in which form.")
    changefeed_error_stuck_duration: timedelta | None = tuning(
        DURATION, "How long TiCDC retries before a changefeed fails."
    )
    memory_quota: int | None = tuning(integer(0), "Memory of the changefeed in TiCDC.")
    performance_mode: str | None = tuning(
        one_of("throughput", "low-latency", empty="throughput"), "What TiCDC optimises for."
    )
    check_gc_safe_point: bool | None = tuning(
        BOOL, "Check TiDB's garbage collection when a changefeed is created."
    )
    enable_table_monitor: bool | None = tuning(BOOL, "Metrics per table.")
    enable_old_value: bool | None = tuning(BOOL, "Old values; always on since TiCDC 7.1.")
    sql_mode: str | None = tuning(TEXT, "SQL mode for parsing DDL.")
    event_collector_batch_count: int | None = tuning(integer(0, 8192), "Events of a batch inside TiCDC.")
    event_collector_batch_bytes: int | None = tuning(integer(0), "Bytes of a batch inside TiCDC.")
    mounter: Mounter = section(Mounter, "Row decoding in TiCDC.", tuning=True)
    scheduler: Scheduler = section(Scheduler, "Spreading tables over nodes.")
    synced_status: SyncedStatus = section(SyncedStatus, "When a changefeed counts as synced.", tuning=True)
    cyclic_replication: Cyclic = section(Cyclic, "Cyclic replication of old versions.")

    @property
    def filter_rules(self) -> tuple[str, ...]:
        """The table filter rules of the changefeed."""
        return self.filter.rules
