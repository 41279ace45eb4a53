"""The switches between the design documents and TiCDC as shipped.

`compat: design` is the default; `compat: ticdc` makes output that can be exchanged with a running TiCDC. A mapping sets single switches over
a base: `{base: design, active_active_columns: ticdc}`. Whatever is the same in both (partition expressions, payload versions, the date
folder) is not a switch and is not here.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import TidemarkError

NAMES = ("design", "ticdc")
BASE = "base"


class CompatError(TidemarkError, ValueError):
    """A compat that does not exist: not one of the names, or a mapping with a switch or value that is unknown."""

    def __init__(self, key: str, message: str, value: Any = None):
        self.key, self.message, self.value = key, message, value
        super().__init__(f"{key}{'' if value is None else f' = {value!r}'}: {message}")


@dataclass(frozen=True)
class Compat:
    """One field per difference; every part of Tidemark that behaves in two ways reads its field here."""

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
    # Names of schemas and tables that a path cannot hold are percent-encoded in the storage tree instead of refused.
    encode_path_names: bool
    # DATETIME and TIMESTAMP have six digits of fraction in CSV, however many the column has.
    csv_six_digit_fractions: bool
    # A FLOAT column is an Avro double.
    avro_float_as_double: bool
    # The key of Avro messages is the handle key, also where that is a unique key; otherwise only a primary key is one.
    avro_handle_keys: bool
    # With DDL and watermarks as Avro messages, a delete has a value: a marker and its commit ts.
    avro_delete_markers: bool
    # `tidemark encode` shows the column flags of the open protocol as TiCDC's encoder makes them without DDL: those of a table's first row.
    open_first_flags: bool

    @staticmethod
    def named(name: str) -> Compat:
        """The switches of `design` or `ticdc`."""
        if name not in NAMES:
            raise CompatError("compat", f"allowed are {_ALLOWED}", name)
        return _BY_NAME[name]

    @staticmethod
    def of(given: Any) -> Compat:
        """The switches of a name, or of a mapping of single switches over a base."""
        if not isinstance(given, Mapping):
            return Compat.named(given)
        for switch, name in given.items():
            if switch not in (BASE, *SWITCHES):
                near = difflib.get_close_matches(str(switch).lower(), SWITCHES, n=1)
                hint = f"; did you mean {near[0]}?" if near else "."
                raise CompatError(
                    f"compat.{switch}", f"is not a known switch{hint} There are {', '.join(SWITCHES)}"
                )
            if name not in NAMES:
                raise CompatError(f"compat.{switch}", f"allowed are {' and '.join(NAMES)}", name)
        chosen = {switch: getattr(_BY_NAME[name], switch) for switch, name in given.items() if switch != BASE}
        return dataclasses.replace(_BY_NAME[given.get(BASE, "design")], **chosen)


SWITCHES = tuple(field.name for field in dataclasses.fields(Compat))
_ALLOWED = (
    f"{' and '.join(NAMES)}, or a mapping of switches over one of them such as "
    "{base: design, active_active_columns: ticdc}"
)


_BY_NAME = {
    "design": Compat(
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
        encode_path_names=True,
        csv_six_digit_fractions=True,
        avro_float_as_double=True,
        avro_handle_keys=True,
        avro_delete_markers=False,
        open_first_flags=False,
    ),
    "ticdc": Compat(
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
        encode_path_names=False,
        csv_six_digit_fractions=False,
        avro_float_as_double=False,
        avro_handle_keys=False,
        avro_delete_markers=True,
        open_first_flags=True,
    ),
}
