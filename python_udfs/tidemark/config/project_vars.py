"""The vars of the dbt project: which there are, what they may be, and all that is wrong with the ones given."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from tidemark.compat import Compat, CompatError
from tidemark.config.findings import Finding, Findings
from tidemark.config.load import check
from tidemark.config.secrets import (
    MissingVariable,
    expand_environment,
    has_plain_secret,
    plain_secrets,
    redact_unparsed,
)
from tidemark.config.suggest import nearest
from tidemark.config.uri import is_uri
from tidemark.time_zones import is_known

ON_BAD_FRAME = ("quarantine", "fail")
LATE_ROWS = ("fail", "send", "skip")
TABLE_FORMATS = ("parquet", "delta", "iceberg")
CURRENT_ROWS_AS = ("view", "table")
DELTA = "io.delta.sql.DeltaSparkSessionExtension"
SYNC_POINT = "sync_point"
KEEP_ALL = "all"


def check_project_vars(
    project: Mapping[str, Any], given: Mapping[str, Any], spark_settings: Mapping[str, Any]
) -> list[Finding]:
    """All findings on the vars in force: those of dbt_project.yml, with those of the command line over them.

    A var that only the command line has may belong to another package, so it is an error only where it looks like a slip of one of ours.
    """
    findings = Findings()
    values = {**project, **given}
    for name in given:
        suggestion = nearest(name, VARS) if name not in VARS and name not in project else ""
        if suggestion:
            findings.error(name, f"is not a known var{suggestion}")
    for name, check_var in VARS.items():
        if values.get(name) is not None:
            check_var(name, values[name], findings)
    _check_format(values, spark_settings, findings)
    uri = values.get("sink_uri")
    if isinstance(uri, str):
        if has_plain_secret(uri):
            findings.error(
                "sink_uri",
                f"holds a secret ({', '.join(plain_secrets(uri))}), and dbt writes vars into its logs and artifacts",
                allowed="${NAME} in place of the secret, and the secret in the environment variable NAME",
            )
        try:
            values["sink_uri"] = expand_environment(uri, os.environ)
            if uri and not is_uri(values["sink_uri"]):
                # What environment variables hold is not shown.
                findings.error(
                    "sink_uri", "is not a URI", redact_unparsed(uri), "scheme://host/path?option=value"
                )
                values["sink_uri"] = None
        except MissingVariable as error:
            findings.error("sink_uri", str(error))
    switches = values.get("compat") or "design"
    if _is_compat(switches) and isinstance(values.get("sink_uri") or "", str):
        findings.extend(check(values.get("changefeed"), values.get("sink_uri"), switches))
    return findings


def _check_format(values: Mapping[str, Any], spark_settings: Mapping[str, Any], findings: Findings) -> None:
    """A table format that Spark does not know without the settings of the profile."""
    table_format, missing = values.get("table_format"), ""
    if table_format == "delta" and DELTA not in str(spark_settings.get("spark.sql.extensions")):
        missing = f"spark.sql.extensions: {DELTA}"
    if (
        table_format == "iceberg"
        and f"spark.sql.catalog.{values.get('iceberg_catalog')}" not in spark_settings
    ):
        missing = f"spark.sql.catalog.{values.get('iceberg_catalog')} (the var iceberg_catalog names it)"
    if table_format == "iceberg" and values.get("iceberg_catalog") == "spark_catalog":
        findings.error(
            "iceberg_catalog",
            "is the catalog of the views, which have the names of the tables",
            "spark_catalog",
            "the name of a catalog beside it, such as lake",
        )
    elif missing:
        findings.error(
            "table_format",
            f"the `spark_settings` of the profile lack {missing}",
            table_format,
            f"parquet, or {table_format} with the settings that docs/table-formats.md shows",
        )


def _event_logs(name: str, value: Any, findings: Findings) -> None:
    shapes = "{upstream_id, path, time_zone} or {upstream_id, tree, changefeed, time_zone}"
    if not isinstance(value, list):
        findings.error(name, "is not a list", value, f"a list of {shapes}")
        return
    zones: dict[str, Any] = {}
    for number, log in enumerate(value):
        where = f"{name}[{number}]"
        if not isinstance(log, Mapping):
            findings.error(where, "is not a mapping", log, shapes)
            continue
        is_tree = log.get("tree") not in (None, "")
        for key in ("upstream_id",) if is_tree else ("upstream_id", "path"):
            if log.get(key) in (None, ""):
                findings.error(f"{where}.{key}", "is missing", allowed=shapes)
        known = {"upstream_id", "time_zone"} | ({"tree", "changefeed"} if is_tree else {"path"})
        for key in log.keys() - known:
            findings.error(f"{where}.{key}", "no such key", log[key], ", ".join(sorted(known)))
        if is_tree and log.get("changefeed") and "://" not in str(log["tree"]):
            findings.error(
                f"{where}.changefeed",
                "counts only with the sink URI of the tree, and `tree` is a path",
                log["tree"],
                "tree: file:///folder?protocol=csv",
            )
        zone = log.get("time_zone")
        if zone is not None and not (isinstance(zone, str) and is_known(zone)):
            findings.error(
                f"{where}.time_zone",
                "no such time zone on this machine",
                zone,
                "a name such as Asia/Shanghai, as the tz of the TiCDC server",
            )
        if zones.setdefault(str(log.get("upstream_id")), zone) != zone:
            findings.error(
                f"{where}.time_zone",
                "is another one than that of the same upstream before",
                zone,
                zones[str(log.get("upstream_id"))],
            )


def _one_of(*allowed: str):
    def check_var(name: str, value: Any, findings: Findings) -> None:
        if value not in allowed:
            findings.error(name, "is not one of the values allowed", value, ", ".join(allowed))

    return check_var


def _text(name: str, value: Any, findings: Findings) -> None:
    if not isinstance(value, str):
        findings.error(name, "is not a text", value, "a text")


def _name(name: str, value: Any, findings: Findings) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_]\w*", value):
        findings.error(name, "is not a name", value, "letters, digits and underscores")


def _text_or_mapping(name: str, value: Any, findings: Findings) -> None:
    if not isinstance(value, (str, Mapping)):
        findings.error(
            name, "is neither a path nor a mapping", value, "the path of a changefeed file, or its content"
        )


def _compat(name: str, value: Any, findings: Findings) -> None:
    try:
        Compat.of(value)
    except CompatError as problem:
        findings.error(problem.key, problem.message, problem.value)


def _is_compat(value: Any) -> bool:
    findings = Findings()
    _compat("compat", value, findings)
    return not findings


def _snapshot(name: str, value: Any, findings: Findings) -> None:
    if value != SYNC_POINT and (not str(value).isdigit() or int(value) >= 1 << 63):
        allowed = f"a TSO (a whole number below 2^63), or {SYNC_POINT} for the last complete sync point"
        findings.error(name, "is not a ts", value, allowed)


def _seconds(name: str, value: Any, findings: Findings) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        findings.error(name, "is not a number of seconds", value, "a number from 0")


def _duration(name: str, value: Any, findings: Findings) -> None:
    if value != KEEP_ALL and not re.fullmatch(r"[0-9]+[smhdw]", str(value)):
        allowed = f"{KEEP_ALL}, or a whole number with s, m, h, d or w, such as 30d"
        findings.error(name, "is not a time to keep something", value, allowed)


def _texts(name: str, value: Any, findings: Findings) -> None:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        findings.error(name, "is not a list of texts", value, "a list of texts")


def _flag(name: str, value: Any, findings: Findings) -> None:
    if not isinstance(value, bool):
        findings.error(name, "is neither true nor false", value, "true, false")


VARS = {
    "event_logs": _event_logs,
    "changefeed": _text_or_mapping,
    "sink_uri": _text,
    "compat": _compat,
    "on_bad_frame": _one_of(*ON_BAD_FRAME),
    "late_rows": _one_of(*LATE_ROWS),
    "table_format": _one_of(*TABLE_FORMATS),
    "iceberg_catalog": _name,
    "current_rows_as": _one_of(*CURRENT_ROWS_AS),
    "keep_row_changes": _duration,
    "keep_events": _duration,
    "retired_sinks": _texts,
    "as_of_ts": _snapshot,
    "replication_lag_seconds": _seconds,
    "state_dir": _text,
    "rebuild_from_logs": _flag,
    "run_all_tests": _flag,
    "changefeed_id": _text,
}
