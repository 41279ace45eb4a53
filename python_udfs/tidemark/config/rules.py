"""Rules that concern more than one key, one function each. All run, so that all findings are seen at once."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from datetime import timedelta

from tidemark.config.changefeed import ALL_DDL, ALL_DML, ROW_OPS, EventFilter
from tidemark.config.ddl_kinds import DDL_KINDS
from tidemark.config.findings import HIDDEN, ConfigError, Findings
from tidemark.config.keys import format_duration
from tidemark.config.settings import Settings
from tidemark.config.sink import DEFAULT_FILE_INDEX_DIGIT
from tidemark.config.suggest import nearest
from tidemark.config.topic_rule import AVRO_ALLOWED, is_static, topic_problem
from tidemark.config.uri import DEFAULT_COMMIT_TS_COLUMN
from tidemark.dispatch.column_selectors import ColumnSelectors, column_filter
from tidemark.dispatch.errors import DroppedColumn, InvalidColumnRule
from tidemark.dispatch.go_regexp import GoRegexp
from tidemark.dispatch.go_regexp_parser import RegexpError
from tidemark.dispatch.table_filter import TableFilter, TableFilterError

APPLIED_EVENT_KINDS = (*ROW_OPS, ALL_DML, ALL_DDL, *DDL_KINDS, "none", "none dml", "none ddl")
MESSAGE_QUEUES = ("kafka", "pulsar")
MIN_FILE_SIZE, MAX_FILE_SIZE = 1024, 512 * 1024 * 1024
MIN_FLUSH_INTERVAL, MAX_FLUSH_INTERVAL = timedelta(milliseconds=100), timedelta(minutes=10)


def adjust(settings: Settings, findings: Findings) -> Settings:
    """The settings with the silent corrections that TiCDC makes; each is a note."""
    changefeed, uri = settings.changefeed, settings.uri
    sink, options = changefeed.sink, uri.options
    if not changefeed.filter.rules:
        changefeed = dataclasses.replace(
            changefeed, filter=dataclasses.replace(changefeed.filter, rules=("*.*",))
        )
    if sink.terminator == "":
        sink = dataclasses.replace(sink, terminator="\r\n")
    if not 6 <= sink.file_index_digit <= 20:
        findings.note(
            "sink.file-index-digit",
            f"is out of range; {DEFAULT_FILE_INDEX_DIGIT} is used",
            sink.file_index_digit,
            "6 to 20",
        )
        sink = dataclasses.replace(sink, file_index_digit=DEFAULT_FILE_INDEX_DIGIT)
    file_size = min(max(options.file_size, MIN_FILE_SIZE), MAX_FILE_SIZE)
    if file_size != options.file_size:
        findings.note(
            "file-size",
            f"is out of range; {file_size} is used",
            options.file_size,
            f"{MIN_FILE_SIZE} to {MAX_FILE_SIZE}",
        )
    flush_interval = min(max(options.flush_interval, MIN_FLUSH_INTERVAL), MAX_FLUSH_INTERVAL)
    if flush_interval != options.flush_interval:
        used = format_duration(flush_interval)
        findings.note(
            "flush-interval",
            f"is out of range; {used} is used",
            format_duration(options.flush_interval),
            "100ms to 10m",
        )
    options = dataclasses.replace(options, file_size=file_size, flush_interval=flush_interval)
    if options.content_compatible and sink.protocol == "canal-json":
        options = dataclasses.replace(options, only_output_updated_columns=True)
        sink = dataclasses.replace(sink, only_output_updated_columns=True)
    integrity = changefeed.integrity
    if integrity.integrity_check_level != "none" and settings.sink_kind not in ("kafka", "none"):
        findings.note(
            "integrity.integrity-check-level",
            "works with Kafka sinks only; none is used",
            integrity.integrity_check_level,
        )
        integrity = dataclasses.replace(integrity, integrity_check_level="none")
    changefeed = dataclasses.replace(changefeed, sink=sink, integrity=integrity)
    return dataclasses.replace(settings, changefeed=changefeed, uri=dataclasses.replace(uri, options=options))


def validate(settings: Settings, given: frozenset[str], findings: Findings) -> None:
    """Every rule; what it does not like becomes an error."""
    for rule in (
        _protocol_fits_sink,
        _topic_is_named,
        _atomicity_fits_sink,
        _active_active,
        _intervals,
        _sync_points,
        _filter_rules,
        _column_selectors,
        _dispatch_rules,
        _dropped_dispatch_columns,
        _csv,
        _deletes_with_handle_key_only,
        _integrity,
        _store_options,
    ):
        rule(settings, findings)
    _schema_registry(settings, given, findings)
    _large_messages(settings, given, findings)
    _pulsar_oauth2(settings, given, findings)


def check_partition_count(configured: int | None, actual: int) -> int:
    """How many partitions rows are spread over, given the configured count (None: not configured) and the topic's.

    More than the topic has is a ConfigError: rows would go to partitions that do not exist. With fewer, the surplus partitions stay empty.
    """
    findings = Findings()
    if actual < 1:
        findings.error("partition-num", "the topic has no partitions", actual)
    elif configured is not None and configured < 1:
        findings.error("partition-num", "is out of range", configured, "a whole number from 1")
    elif configured is not None and configured > actual:
        findings.error(
            "partition-num",
            f"is more than the {actual} partitions of the topic",
            configured,
            f"1 to {actual}",
        )
    if findings:
        raise ConfigError(findings)
    return actual if configured is None else configured


def check_default_topic(settings: Settings, tables: Iterable[tuple[str, str]]) -> None:
    """ConfigError when, with Avro, a topic without placeholders would carry more than one of the (schema, table) pairs.

    A subject is named after the topic (TopicNameStrategy), so a topic has one schema and can carry one table.
    """
    if settings.protocol != "avro" or settings.sink_kind not in MESSAGE_QUEUES:
        return
    case_sensitive = settings.changefeed.case_sensitive
    wanted = TableFilter(settings.changefeed.filter_rules, case_sensitive=case_sensitive)
    matchers = [
        (TableFilter(rule.matcher, case_sensitive=case_sensitive), rule.topic)
        for rule in settings.sink.dispatchers
    ]
    carried: dict[str, list[str]] = {}
    for schema, table in sorted(set(tables)):
        if not wanted.matches(schema, table):
            continue
        expression = next((topic for matcher, topic in matchers if matcher.matches(schema, table)), "")
        topic = expression or settings.default_topic
        if is_static(topic):
            carried.setdefault(topic, []).append(f"{schema}.{table}")
    findings = Findings()
    for topic, names in carried.items():
        if len(names) > 1:
            listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            findings.error(
                "topic",
                f"carries {len(names)} tables ({listed}), but with Avro a topic can carry one only; "
                "add a dispatch rule with topic = '{schema}_{table}'",
                topic,
            )
    if findings:
        raise ConfigError(findings)


def _protocol_fits_sink(settings: Settings, findings: Findings) -> None:
    kind, protocol = settings.sink_kind, settings.protocol
    if any(finding.key in ("sink.protocol", "sink-uri?protocol") for finding in findings.errors):
        return
    if kind == "mysql" and protocol:
        findings.error("protocol", f"has no place with a {settings.uri.scheme} sink", protocol, "no protocol")
    elif kind in (*MESSAGE_QUEUES, "storage") and not protocol:
        findings.error(
            "protocol",
            f"a {kind} sink needs one; add protocol=… to the sink URI",
            None,
            "csv, canal-json, avro, …",
        )
    elif (kind == "storage" and protocol not in ("csv", "canal-json")) or (
        kind != "storage" and protocol == "csv"
    ):
        findings.note(
            "protocol",
            "storage sinks of TiCDC write csv and canal-json, and csv is for storage sinks only",
            protocol,
        )
    elif kind == "pulsar" and protocol not in ("canal-json", "debezium"):
        findings.note("protocol", "Pulsar sinks of TiCDC send canal-json and debezium", protocol)
    if settings.uri.options.enable_tidb_extension and protocol not in ("canal-json", "avro", "debezium"):
        findings.note(
            "enable-tidb-extension",
            f"has no effect with protocol {protocol or 'none'}",
            True,
            "canal-json, avro, debezium",
        )


def _topic_is_named(settings: Settings, findings: Findings) -> None:
    if settings.sink_kind in MESSAGE_QUEUES and not settings.default_topic:
        findings.error(
            "sink-uri", "names no topic", settings.uri.shown, f"{settings.uri.scheme}://host:port/topic?…"
        )


def _atomicity_fits_sink(settings: Settings, findings: Findings) -> None:
    if settings.sink.transaction_atomicity == "table" and settings.sink_kind in MESSAGE_QUEUES:
        findings.error(
            "transaction-atomicity", f"is not offered by a {settings.sink_kind} sink", "table", "none"
        )
    if settings.sink.transaction_atomicity == "table" and settings.sink_kind == "mysql":
        findings.unapplied(
            "transaction-atomicity",
            "transactions are put together and split at max-txn-row rows; leave it out",
        )


def _active_active(settings: Settings, findings: Findings) -> None:
    changefeed, kind = settings.changefeed, settings.sink_kind
    column = settings.uri.options.commit_ts_column
    if column != DEFAULT_COMMIT_TS_COLUMN and not (changefeed.enable_active_active and kind == "mysql"):
        findings.error(
            "sink-uri?commit-ts-column",
            "is only read by upserts of a database sink with enable-active-active; leave it out",
            column,
        )
    if not changefeed.enable_active_active:
        return
    allowed = settings.compat.active_active_sinks
    # The shipped TiCDC asks for bdr-mode only where it writes to a database.
    if not changefeed.bdr_mode and (kind not in allowed or kind in ("mysql", "none")):
        findings.error("enable-active-active", "needs bdr-mode = true", True)
    if kind not in (*allowed, "none"):
        names = {"mysql": "a TiDB or MySQL sink", "storage": "a storage sink"}
        findings.error(
            "enable-active-active",
            f"does not work with a {kind} sink",
            True,
            " or ".join(names[allowed_kind] for allowed_kind in allowed),
        )
    if changefeed.consistent.level != "none":
        findings.error(
            "consistent.level",
            "the redo log cannot be used with enable-active-active",
            changefeed.consistent.level,
            "none",
        )


def _intervals(settings: Settings, findings: Findings) -> None:
    changefeed = settings.changefeed
    progress = changefeed.active_active_progress_interval
    if progress <= timedelta(0):
        findings.error(
            "active-active-progress-interval", "is out of range", format_duration(progress), "more than 0s"
        )
    statistics = changefeed.active_active_sync_stats_interval
    if statistics < timedelta(0):
        findings.error(
            "active-active-sync-stats-interval", "is out of range", format_duration(statistics), "0s or more"
        )
    stuck = changefeed.changefeed_error_stuck_duration
    if stuck is not None and stuck < timedelta(minutes=30):
        findings.error(
            "changefeed-error-stuck-duration", "is out of range", format_duration(stuck), "30m or more"
        )


def _sync_points(settings: Settings, findings: Findings) -> None:
    changefeed = settings.changefeed
    if not changefeed.enable_sync_point:
        return
    if settings.sink_kind not in ("mysql", "none"):
        findings.error(
            "enable-sync-point",
            f"does not work with a {settings.sink_kind} sink",
            True,
            "a TiDB or MySQL sink",
        )
    if settings.sink_kind == "mysql":
        findings.unapplied(
            "enable-sync-point", "no sync points are written; the model sync_points lists those of the logs"
        )
    if changefeed.sync_point_interval < timedelta(seconds=30):
        shown = format_duration(changefeed.sync_point_interval)
        findings.error("sync-point-interval", "is out of range", shown, "30s or more")
    if changefeed.sync_point_retention < timedelta(hours=1):
        shown = format_duration(changefeed.sync_point_retention)
        findings.error("sync-point-retention", "is out of range", shown, "1h or more")


def _filter_rules(settings: Settings, findings: Findings) -> None:
    changefeed = settings.changefeed
    _matcher("filter.rules", changefeed.filter.rules, findings)
    for index, event_filter in enumerate(changefeed.filter.event_filters):
        at = f"filter.event-filters[{index}]"
        _matcher(f"{at}.matcher", event_filter.matcher, findings)
        for kind in event_filter.ignore_event:
            if kind.strip().lower() not in APPLIED_EVENT_KINDS:
                hint = nearest(kind.strip(), APPLIED_EVENT_KINDS)
                findings.unapplied(f"{at}.ignore-event", f"it knows no kind of events {kind!r}{hint}")
        for pattern in event_filter.ignore_sql:
            try:
                GoRegexp(pattern)
            except RegexpError as problem:
                findings.error(f"{at}.ignore-sql", f"is no regular expression: {problem}", pattern)
        _value_expressions(at, event_filter, findings)


def _value_expressions(at: str, event_filter: EventFilter, findings: Findings) -> None:
    if not event_filter.value_expressions:
        return
    # Loading the parser takes a tenth of a second, which only expressions are worth.
    from tidemark.filter_expressions import ExpressionError, check

    for name, expression in event_filter.value_expressions.items():
        try:
            check(expression)
        except ExpressionError as problem:
            findings.error(f"{at}.{name}", str(problem), expression)


def _column_selectors(settings: Settings, findings: Findings) -> None:
    for index, selector in enumerate(settings.sink.column_selectors):
        at = f"sink.column-selectors[{index}]"
        _matcher(f"{at}.matcher", selector.matcher, findings)
        _column_rules(f"{at}.columns", selector.columns, findings)
    if settings.sink.column_selectors and settings.sink_kind == "mysql":
        findings.moot("sink.column-selectors", "a TiDB or MySQL sink writes all columns, as TiCDC's does")


def _matcher(key: str, rules: tuple[str, ...], findings: Findings) -> None:
    for rule in rules:
        try:
            TableFilter([rule])
        except TableFilterError as problem:
            findings.error(
                key,
                str(problem).removeprefix("at <cmdline>:1: "),
                rule,
                "table filter rules such as 'shop.*' or '!shop.tmp_*'",
            )


def _column_rules(key: str, rules: tuple[str, ...], findings: Findings) -> None:
    for rule in rules:
        try:
            column_filter((rule,))
        except (TableFilterError, InvalidColumnRule) as problem:
            reason = str(problem).removeprefix("at <cmdline>:1: ").removeprefix("column-selectors: ")
            findings.error(key, reason, rule, "column rules such as 'name', 'a*' or '!secret'")


# Literal text and the placeholders, nothing else in braces.
_TARGET = re.compile(r"(?:[^{}]|\{schema\}|\{table\})*", re.DOTALL)


def _dispatch_rules(settings: Settings, findings: Findings) -> None:
    for rule in settings.sink.dispatchers:
        at = f"sink.dispatchers[{rule.index}]"
        _matcher(f"{at}.matcher", rule.matcher, findings)
        if not any(text.strip(" \t") for text in rule.matcher):
            findings.note(f"{at}.matcher", "is empty: the rule takes no table", list(rule.matcher))
        if rule.kind == "columns" and not rule.columns:
            where = (
                "every row goes to partition 0"
                if settings.compat.dispatch_skips_missing_columns
                else "rows are hashed by their table"
            )
            findings.note(f"{at}.columns", f"is empty: {where}")
        count = settings.uri.options.partition_num
        if rule.number is not None and count is not None and rule.number >= count:
            findings.error(
                f"{at}.partition",
                f"is not one of the {count} partitions",
                rule.partition,
                f"0 to {count - 1}",
            )
        for name, target in (("target-schema", rule.target_schema), ("target-table", rule.target_table)):
            if not _TARGET.fullmatch(target):
                findings.error(
                    f"{at}.{name}", "has an unknown placeholder", target, "literal text, {schema}, {table}"
                )
        if settings.sink_kind in MESSAGE_QUEUES:
            _topic(f"{at}.topic", rule.topic, settings, findings)


def _topic(key: str, expression: str, settings: Settings, findings: Findings) -> None:
    problem = topic_problem(expression, settings.sink_kind, settings.protocol)
    if (
        problem is None
        and settings.protocol == "avro"
        and is_static(expression)
        and not settings.compat.avro_static_topics
    ):
        problem = "a topic rule for Avro must contain {schema} and {table}", AVRO_ALLOWED.partition(",")[0]
    if problem is not None:
        findings.error(key, problem[0], expression, problem[1])


_PLAIN_TABLE = re.compile(r"([A-Za-z0-9_$]+)\.([A-Za-z0-9_$]+)")


def _dropped_dispatch_columns(settings: Settings, findings: Findings) -> None:
    """For tables that a matcher names. The columns of other tables, and keys, are looked at when they are known."""
    sink, case_sensitive = settings.sink, settings.changefeed.case_sensitive
    if not sink.column_selectors or settings.sink_kind == "mysql" or findings.errors:
        return
    rules = [(rule, TableFilter(rule.matcher, case_sensitive=case_sensitive)) for rule in sink.dispatchers]
    matchers = [text for entry in (*sink.dispatchers, *sink.column_selectors) for text in entry.matcher]
    selectors = ColumnSelectors(settings)
    for schema, table in sorted({found.groups() for found in map(_PLAIN_TABLE.fullmatch, matchers) if found}):
        rule = next((rule for rule, matcher in rules if matcher.matches(schema, table)), None)
        if rule is None:
            continue
        try:
            selectors.check(schema, table, rule.columns, f"sink.dispatchers[{rule.index}] dispatches by")
        except DroppedColumn as problem:
            findings.error("sink.column-selectors", str(problem))


def _csv(settings: Settings, findings: Findings) -> None:
    if settings.sink_kind != "storage" and settings.protocol != "csv":
        return
    csv = settings.sink.csv
    if len(csv.quote.encode()) > 1:
        findings.error(
            "sink.csv.quote", "has more than one character", csv.quote, "one ASCII character or nothing"
        )
    elif csv.quote in ("\r", "\n"):
        findings.error("sink.csv.quote", "is a line break", csv.quote, "one ASCII character or nothing")
    allowed = "1 to 3 bytes without a line break; TOML reads escapes such as \\t in double quotes only"
    if not csv.delimiter:
        findings.error("sink.csv.delimiter", "is empty", csv.delimiter, allowed)
    elif len(csv.delimiter.encode()) > 3:
        findings.error("sink.csv.delimiter", "has more than three characters", csv.delimiter, allowed)
    elif "\r" in csv.delimiter or "\n" in csv.delimiter:
        findings.error("sink.csv.delimiter", "has a line break", csv.delimiter, allowed)
    if set(csv.quote) & set(csv.delimiter):
        findings.error(
            "sink.csv.delimiter", f"shares a character with sink.csv.quote = {csv.quote!r}", csv.delimiter
        )


def _deletes_with_handle_key_only(settings: Settings, findings: Findings) -> None:
    replicates_all = settings.changefeed.force_replicate and settings.sink_kind in (
        *MESSAGE_QUEUES,
        "storage",
    )
    if settings.sink.delete_only_output_handle_key_columns:
        name = "sink.delete-only-output-handle-key-columns"
        if settings.protocol == "csv":
            findings.error(name, "CSV always has all columns of a delete", True, "false")
        if replicates_all:
            findings.error(
                name, "needs handle keys, which force-replicate = true does not ask for", True, "false"
            )
    if replicates_all and settings.protocol == "avro":
        findings.error("force-replicate", "does not work with Avro", True, "false")


def _integrity(settings: Settings, findings: Findings) -> None:
    if settings.changefeed.integrity.integrity_check_level == "none":
        return
    if settings.sink_kind == "kafka":
        findings.unapplied(
            "integrity.integrity-check-level", "row checksums are neither verified nor sent; leave it out"
        )
    else:
        findings.moot("integrity.integrity-check-level", "nothing is sent to Kafka")
    if settings.sink.column_selectors:
        findings.error(
            "sink.column-selectors",
            "cannot be used together with integrity.integrity-check-level = correctness",
        )
    options = settings.uri.options
    strings = (options.avro_decimal_handling_mode, options.avro_bigint_unsigned_handling_mode)
    if settings.protocol == "avro" and not (
        options.enable_tidb_extension and strings == ("string", "string")
    ):
        findings.error(
            "integrity.integrity-check-level",
            "with Avro needs enable-tidb-extension=true, avro-decimal-handling-mode=string and avro-bigint-unsigned-handling-mode=string",
            "correctness",
        )


def _store_options(settings: Settings, findings: Findings) -> None:
    """Options that only some object stores are given."""
    scheme, options = settings.uri.scheme, settings.uri.options
    if options.encryption_key:
        findings.error(
            "sink-uri?encryption-key",
            "Tidemark would write files that are not encrypted with it; leave it out, and set the encryption of the container instead",
            HIDDEN,
        )
    if scheme in ("azblob", "azure") and options.endpoint and not options.account_name:
        findings.error("sink-uri?endpoint", "with Azure needs account-name", options.endpoint)
    if scheme in ("gcs", "gs") and options.storage_class:
        findings.unapplied(
            "sink-uri?storage-class", "files would have the class that the bucket is set to; set it there"
        )


def _schema_registry(settings: Settings, given: frozenset[str], findings: Findings) -> None:
    has_registry = bool(settings.uri.options.schema_registry)
    has_glue = "sink.kafka-config.glue-schema-registry-config" in given
    if settings.sink_kind == "mysql":
        return
    if has_registry and has_glue:
        findings.error(
            "schema-registry",
            "cannot be used together with sink.kafka-config.glue-schema-registry-config; keep one of them",
        )
    if settings.protocol == "avro" and settings.sink_kind == "kafka" and not (has_registry or has_glue):
        findings.error(
            "schema-registry", "Avro needs a schema registry; add schema-registry=http://… to the sink URI"
        )
    if has_glue:
        glue, at = (
            settings.sink.kafka.glue_schema_registry_config,
            "sink.kafka-config.glue-schema-registry-config",
        )
        for name, value in (("registry-name", glue.registry_name), ("region", glue.region)):
            if not value:
                findings.error(f"{at}.{name}", "is empty", value, "a text")
        if glue.access_key and not glue.secret_access_key:
            findings.error(f"{at}.secret-access-key", "must be given together with access-key")


def _large_messages(settings: Settings, given: frozenset[str], findings: Findings) -> None:
    section = "sink.kafka-config.large-message-handle"
    large = settings.sink.kafka.large_message_handle
    option = large.large_message_handle_option
    if section not in given or option == "none" or settings.sink_kind == "mysql":
        return
    at = f"{section}.large-message-handle-option"
    protocol = settings.protocol
    if protocol == "canal-json" and not settings.uri.options.enable_tidb_extension:
        findings.error(at, "with canal-json needs enable-tidb-extension=true", option)
    elif protocol not in ("canal-json", "open-protocol", "simple"):
        findings.error(
            at,
            f"does not work with protocol {protocol or 'none'}",
            option,
            "canal-json, open-protocol, simple",
        )
    if option == "claim-check":
        if not large.claim_check_storage_uri:
            findings.error(f"{section}.claim-check-storage-uri", "claim-check needs a storage URI")
        if large.claim_check_raw_value and protocol == "open-protocol":
            findings.error(
                f"{section}.claim-check-raw-value", "does not work with the open protocol", True, "false"
            )


def _pulsar_oauth2(settings: Settings, given: frozenset[str], findings: Findings) -> None:
    section = "sink.pulsar-config.oauth2"
    if section not in given or settings.sink_kind == "mysql":
        return
    oauth2 = settings.sink.pulsar.oauth2
    for name in ("oauth2_issuer_url", "oauth2_client_id", "oauth2_private_key", "oauth2_audience"):
        if not getattr(oauth2, name):
            findings.error(f"{section}.{name.replace('_', '-')}", "must be given")
