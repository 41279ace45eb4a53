"""The switches between the design documents and TiCDC as shipped.

`compat: design` is the default; `compat: ticdc` makes output that can be exchanged with a running TiCDC. Whatever is the same in both
(partition expressions, payload versions, the date folder) is not a switch and is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.errors import TidemarkError

NAMES = ("design", "ticdc")


class CompatError(TidemarkError, ValueError):
    """A compat name that does not exist."""


@dataclass(frozen=True)
class Compat:
    """One field per difference; every part of Tidemark that behaves in two ways reads its field here."""

    name: str
    # A soft delete is the transition of _tidb_softdelete_time from NULL to a value; from zero to a value too when set.
    soft_delete_from_zero: bool
    # Columns that the schema of an active-active table must have.
    active_active_columns: tuple[str, ...]
    # The LWW statement evaluates its condition once (`@cond :=`) instead of repeating it for every column.
    lww_condition_variable: bool
    # A row that is sent on although its _tidb_origin_ts is set keeps it; otherwise it gets its commit ts, as every row does.
    lww_keeps_origin_ts: bool
    # The progress table: name, column of the upstream's id, length of its VARCHAR columns.
    progress_table: str
    progress_upstream_column: str
    progress_varchar_length: int
    # Its columns have comments.
    progress_column_comments: bool
    # A write with an older checkpoint leaves the newer one.
    progress_never_back: bool
    # Sink kinds that may be used together with enable-active-active.
    active_active_sinks: tuple[str, ...]
    # An Avro topic rule may be a plain name, without {schema} and {table}.
    avro_static_topics: bool
    # Column dispatch with a missing column uses the columns that exist (none: partition 0) instead of failing.
    dispatch_skips_missing_columns: bool
    # Schema files carry the fields and value forms of the design document instead of those of the shipped TiCDC.
    schema_file_design_fields: bool

    @staticmethod
    def named(name: str) -> Compat:
        """The switches of `design` or `ticdc`."""
        if name not in _BY_NAME:
            raise CompatError(f"compat = {name!r}: allowed are {' and '.join(NAMES)}")
        return _BY_NAME[name]


_BY_NAME = {
    "design": Compat(
        name="design",
        soft_delete_from_zero=True,
        active_active_columns=("_tidb_origin_ts", "_tidb_softdelete_time", "_tidb_commit_ts"),
        lww_condition_variable=True,
        lww_keeps_origin_ts=True,
        progress_table="tidb_cdc.ticdcProgressTable",
        progress_upstream_column="upstreamID",
        progress_varchar_length=255,
        progress_column_comments=False,
        progress_never_back=True,
        active_active_sinks=("mysql",),
        avro_static_topics=False,
        dispatch_skips_missing_columns=True,
        schema_file_design_fields=True,
    ),
    "ticdc": Compat(
        name="ticdc",
        soft_delete_from_zero=False,
        active_active_columns=("_tidb_origin_ts", "_tidb_softdelete_time"),
        lww_condition_variable=False,
        lww_keeps_origin_ts=False,
        progress_table="tidb_cdc.ticdc_progress_table",
        progress_upstream_column="cluster_id",
        progress_varchar_length=128,
        progress_column_comments=True,
        progress_never_back=False,
        active_active_sinks=("mysql", "storage"),
        avro_static_topics=True,
        dispatch_skips_missing_columns=False,
        schema_file_design_fields=False,
    ),
}
