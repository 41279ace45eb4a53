"""Validation rules, one test per rule, named after it."""

import pytest

from tidemark.config import ConfigError, check, check_default_topic, check_partition_count, load
from tidemark.config.load import resolve
from tidemark.config.uri import UriOptions
from tidemark.encode.protocol import protocols_of
from tidemark.sinks.mysql.writer import Limits

KAFKA = "kafka://127.0.0.1:9092/topic?protocol=canal-json"
AVRO = "kafka://127.0.0.1:9092/topic?protocol=avro&schema-registry=http://127.0.0.1:8081"
MYSQL = "mysql://root@127.0.0.1:3306/"
STORAGE = "file:///sink?protocol=csv"


def error_keys(changefeed=None, sink_uri=None, compat="design"):
    """What TiCDC refuses too."""
    return [finding.key for finding in resolve(changefeed, sink_uri, compat)[1].errors]


def refused_keys(changefeed=None, sink_uri=None):
    """The same, and what only Tidemark refuses."""
    return [finding.key for finding in check(changefeed, sink_uri) if finding.severity == "error"]


def notes(changefeed=None, sink_uri=None):
    return [finding.key for finding in check(changefeed, sink_uri) if finding.severity == "note"]


def rule(**entry):
    return {"sink": {"dispatchers": [{"matcher": ["*.*"], **entry}]}}


def test_defaults_are_valid():
    assert check() == []
    settings = load()
    assert settings.sink_kind == "none"
    assert settings.changefeed.filter_rules == ("*.*",)


# --- active-active


def test_enable_active_active_defaults_to_false():
    assert load().changefeed.enable_active_active is False


def test_enable_active_active_needs_bdr_mode():
    assert error_keys({"enable-active-active": True}, MYSQL) == ["enable-active-active"]
    assert error_keys({"enable-active-active": True, "bdr-mode": True}, MYSQL) == []
    assert error_keys({"enable-active-active": True, "bdr-mode": False}) == ["enable-active-active"]


@pytest.mark.parametrize("uri", [KAFKA, "pulsar://h:6650/t?protocol=canal-json", STORAGE, "blackhole://"])
def test_enable_active_active_needs_a_database_sink(uri):
    assert error_keys({"enable-active-active": True, "bdr-mode": True}, uri) == ["enable-active-active"]


@pytest.mark.parametrize("uri", ["tidb://root@h:4000/", "tidb+ssl://h:1/", "mysql+ssl://h:1/", MYSQL])
def test_enable_active_active_works_with_every_database_scheme(uri):
    assert error_keys({"enable-active-active": True, "bdr-mode": True}, uri) == []


def test_commit_ts_column_is_refused_where_nothing_reads_it():
    active = {"enable-active-active": True, "bdr-mode": True}
    uri = "tidb://h:4000/?commit-ts-column=c"
    assert load(active, uri).uri.options.commit_ts_column == "c"
    assert error_keys({}, uri) == ["sink-uri?commit-ts-column"]
    assert "sink-uri?commit-ts-column" in error_keys(
        active, "kafka://h/t?protocol=canal-json&commit-ts-column=c"
    )


def test_max_txn_row_has_one_default():
    assert Limits.from_settings(load({}, "mysql://h/")) == Limits()
    assert Limits.from_settings(load({}, "mysql://h/?max-txn-row=7")).transaction_rows == 7
    assert UriOptions().max_txn_row == Limits().transaction_rows


def test_missing_files_is_fail_or_accept():
    assert not load({}, "file:///x?protocol=csv").accepts_missing_files
    assert load({}, "file:///x?protocol=csv&missing-files=accept").accepts_missing_files
    assert error_keys({}, "file:///x?protocol=csv&missing-files=maybe") == ["sink-uri?missing-files"]


def test_enable_active_active_allows_storage_with_compat_ticdc():
    assert error_keys({"enable-active-active": True}, STORAGE, "ticdc") == []
    assert error_keys({"enable-active-active": True, "bdr-mode": True}, KAFKA, "ticdc") == [
        "enable-active-active"
    ]


@pytest.mark.parametrize("compat", ["design", "ticdc"])
def test_enable_active_active_needs_consistency_log_off(compat):
    feed = {"enable-active-active": True, "bdr-mode": True, "consistent": {"level": "eventual"}}
    assert error_keys(feed, MYSQL, compat) == ["consistent.level"]


@pytest.mark.parametrize("interval", ["0s", "-1s"])
def test_active_active_progress_interval_is_positive(interval):
    assert error_keys({"active-active-progress-interval": interval}, MYSQL) == [
        "active-active-progress-interval"
    ]


# --- protocols


def test_flat_avro_is_an_alias_of_avro():
    uri = AVRO.replace("protocol=avro", "protocol=flat-avro")
    assert load(None, uri).protocol == "avro"
    assert load({"sink": {"protocol": "FLAT-AVRO"}}, AVRO.replace("protocol=avro&", "")).protocol == "avro"


def test_default_is_an_alias_of_open_protocol():
    assert load(None, "kafka://h:1/t?protocol=default").uri.options.protocol == "open-protocol"


@pytest.mark.parametrize("uri", ["kafka://h:1/t", "pulsar://h:1/t", "file:///x", "kafka://h:1/t?protocol="])
def test_message_and_storage_sinks_need_a_protocol(uri):
    assert error_keys(None, uri) == ["protocol"]


def test_database_sinks_have_no_protocol():
    assert error_keys({"sink": {"protocol": "csv"}}, MYSQL) == ["protocol"]


def test_unknown_protocol_is_one_error():
    assert error_keys(None, "kafka://h:1/t?protocol=xyz") == ["sink-uri?protocol"]


def test_message_sinks_need_a_topic():
    assert error_keys(None, "kafka://h:1/?protocol=canal-json") == ["sink-uri"]


def test_avro_needs_a_schema_registry():
    assert error_keys(None, "kafka://h:1/t?protocol=avro") == ["schema-registry"]
    glue = {"sink": {"kafka-config": {"glue-schema-registry-config": {"registry-name": "r", "region": "eu"}}}}
    assert error_keys(glue, "kafka://h:1/t?protocol=avro") == []
    assert error_keys(glue, AVRO) == ["schema-registry"]


def test_glue_needs_name_region_and_both_keys():
    glue = {"sink": {"kafka-config": {"glue-schema-registry-config": {"access-key": "a"}}}}
    at = "sink.kafka-config.glue-schema-registry-config"
    assert error_keys(glue, KAFKA) == [f"{at}.registry-name", f"{at}.region", f"{at}.secret-access-key"]


@pytest.mark.parametrize("topic", ["{schema}", "{table}", "{table}_{schema}", "{schema}/{table}"])
def test_avro_topic_rules_contain_schema_and_table(topic):
    assert error_keys(rule(topic=topic), AVRO) == ["sink.dispatchers[0].topic"]
    assert error_keys(rule(topic="a.{schema}_{table}-b"), AVRO) == []


def test_avro_topic_without_placeholders_only_with_compat_ticdc():
    assert error_keys(rule(topic="static"), AVRO) == ["sink.dispatchers[0].topic"]
    assert error_keys(rule(topic="static"), AVRO, "ticdc") == []


def test_avro_default_topic_carries_one_table_only():
    settings = load(None, AVRO)
    check_default_topic(settings, [("shop", "orders"), ("shop", "orders")])
    with pytest.raises(ConfigError, match=r"'topic': carries 2 tables \(shop.items, shop.orders\)"):
        check_default_topic(settings, [("shop", "orders"), ("shop", "items")])


def test_avro_default_topic_counts_only_tables_that_go_there():
    feed = rule(topic="{schema}_{table}") | {"filter": {"rules": ["shop.*"]}}
    check_default_topic(load(feed, AVRO), [("shop", "a"), ("shop", "b")])
    one = {"filter": {"rules": ["shop.a"]}}
    check_default_topic(load(one, AVRO), [("shop", "a"), ("shop", "b")])
    check_default_topic(load(None, KAFKA), [("shop", "a"), ("shop", "b")])


def test_avro_static_topic_carries_one_table_only_with_compat_ticdc():
    with pytest.raises(ConfigError, match="carries 2 tables"):
        check_default_topic(load(rule(topic="static"), AVRO, "ticdc"), [("a", "b"), ("a", "c")])


def test_force_replicate_does_not_work_with_avro():
    assert error_keys({"force-replicate": True}, AVRO) == ["force-replicate"]


def test_transaction_atomicity_table_is_not_for_message_queues():
    assert error_keys({"sink": {"transaction-atomicity": "table"}}, KAFKA) == ["transaction-atomicity"]
    assert error_keys(None, KAFKA + "&transaction-atomicity=table") == ["transaction-atomicity"]
    assert error_keys({"sink": {"transaction-atomicity": "table"}}, MYSQL) == []
    assert error_keys({"sink": {"transaction-atomicity": "db"}}, MYSQL) == ["sink.transaction-atomicity"]


# --- dispatch rules


def test_partition_number_is_below_the_partition_count():
    assert error_keys(rule(partition="3"), KAFKA + "&partition-num=3") == ["sink.dispatchers[0].partition"]
    assert error_keys(rule(partition="2"), KAFKA + "&partition-num=3") == []
    assert error_keys(rule(partition="7"), KAFKA) == []


@pytest.mark.parametrize("expression", ["-3", "+1", "whatever", "[a,,b]", "[]", "1.5", "rowid x", "9" * 5000])
@pytest.mark.parametrize("compat", ["design", "ticdc"])
def test_invalid_partition_expression_fails(expression, compat):
    assert error_keys(rule(partition=expression), KAFKA, compat) == ["sink.dispatchers[0].partition"]
    assert error_keys(rule(dispatcher=expression), KAFKA, compat) == ["sink.dispatchers[0].dispatcher"]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("", "default"),
        ("default", "default"),
        ("table", "table"),
        ("ts", "ts"),
        ("TS", "ts"),
        ("rowid", "index-value"),
        ("pk", "index-value"),
        ("Index-Value", "index-value"),
        ("index", "index-value"),
        ("columns", "columns"),
        ("[a, B]", "columns"),
        ("2", "number"),
    ],
)
def test_partition_expressions(expression, kind):
    (made,) = load(rule(partition=expression, columns=["x"], index="i"), KAFKA).sink.dispatchers
    assert made.kind == kind
    assert made.partition == expression
    assert made.columns == {"columns": ("x",), "[a, B]": ("a", "B")}.get(expression, ())
    assert made.index_name == ("i" if kind == "index-value" else "")
    assert made.number == (2 if kind == "number" else None)


def test_partition_expression_may_be_a_number_or_list_in_a_dbt_var():
    assert load(rule(partition=2), KAFKA).sink.dispatchers[0].number == 2
    assert load(rule(partition=["a", "b"]), KAFKA).sink.dispatchers[0].columns == ("a", "b")


def test_any_other_partition_expression_is_a_key_with_pulsar():
    (made,) = load(rule(partition="my-fixed-key"), "pulsar://h:1/t?protocol=canal-json").sink.dispatchers
    assert (made.kind, made.partition) == ("key", "my-fixed-key")


def test_dispatcher_is_an_alias_of_partition():
    (made,) = load(rule(dispatcher="ts"), KAFKA).sink.dispatchers
    assert (made.kind, made.partition) == ("ts", "ts")


def test_dispatcher_and_partition_both_given_is_an_error():
    assert error_keys(rule(dispatcher="ts", partition="ts"), KAFKA) == ["sink.dispatchers[0].dispatcher"]


def test_bad_matcher_is_an_error():
    assert error_keys(rule(matcher=["no_dot", "a.b"]), KAFKA) == ["sink.dispatchers[0].matcher"]
    assert error_keys({"filter": {"rules": ["a.b.c", "/(/.x"]}}) == ["filter.rules", "filter.rules"]


def test_rule_without_matcher_is_a_note():
    assert notes({"sink": {"dispatchers": [{"partition": "ts"}]}}, KAFKA) == ["sink.dispatchers[0].matcher"]


@pytest.mark.parametrize("topic", ["bad topic", "{foo}", "{table}_{schema}", "{schema}_{schema}", "x{"])
def test_bad_topic_expression_is_an_error(topic):
    assert error_keys(rule(topic=topic), KAFKA) == ["sink.dispatchers[0].topic"]
    assert error_keys(rule(topic=topic), MYSQL) == []


def test_target_names_know_schema_and_table_only():
    assert error_keys(rule(**{"target-schema": "{schema}_{x}"}), MYSQL) == [
        "sink.dispatchers[0].target-schema"
    ]
    assert error_keys(rule(**{"target-table": "{schema}_{table}"}), MYSQL) == []


# --- column selectors


def selector(*columns):
    return {"sink": {"column-selectors": [{"matcher": ["a.b"], "columns": list(columns)}]}}


@pytest.mark.parametrize("columns", ["[", "a.b", "@file"])
def test_bad_column_rule_is_an_error(columns):
    assert error_keys(selector("id", columns), KAFKA) == ["sink.column-selectors[0].columns"]


@pytest.mark.parametrize("uri", [KAFKA, AVRO, STORAGE])
def test_column_selectors_are_applied_to_messages_and_files(uri):
    assert check(selector("*", "!secret"), uri) == []


def test_column_selectors_are_not_applied_to_a_database():
    assert notes(selector("*", "!secret"), MYSQL) == ["sink.column-selectors"]


# --- partition count


def test_more_partitions_configured_than_the_topic_has_fails():
    with pytest.raises(ConfigError, match="partition-num = 4: is more than the 3 partitions of the topic"):
        check_partition_count(4, 3)


def test_as_many_or_fewer_partitions_than_the_topic_has_work():
    assert check_partition_count(3, 3) == 3
    assert check_partition_count(2, 3) == 2
    assert check_partition_count(None, 3) == 3


@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", "9" * 5000])
def test_partition_num_is_a_positive_number(value):
    assert error_keys(None, f"{KAFKA}&partition-num={value}") == ["sink-uri?partition-num"]


# --- storage


@pytest.mark.parametrize("separator", ["none", "year", "month", "day", "Day"])
def test_date_separator_is_none_year_month_or_day(separator):
    assert load({"sink": {"date-separator": separator}}, STORAGE).sink.date_separator == separator.lower()
    assert error_keys({"sink": {"date-separator": separator + "s"}}, STORAGE) == ["sink.date-separator"]


def test_file_index_digit_out_of_range_means_20():
    assert load({"sink": {"file-index-digit": 6}}, STORAGE).sink.file_index_digit == 6
    assert load({"sink": {"file-index-digit": 5}}, STORAGE).sink.file_index_digit == 20
    assert notes({"sink": {"file-index-digit": 21}}, STORAGE) == ["sink.file-index-digit"]


def test_file_size_and_flush_interval_are_kept_within_bounds():
    options = load(None, STORAGE + "&file-size=1&flush-interval=1h").uri.options
    assert (options.file_size, options.flush_interval.total_seconds()) == (1024, 600)


@pytest.mark.parametrize(
    ("csv", "key"),
    [
        ({"delimiter": ""}, "delimiter"),
        ({"delimiter": "abcd"}, "delimiter"),
        ({"delimiter": "表表"}, "delimiter"),
        ({"delimiter": "|\n"}, "delimiter"),
        ({"quote": '""'}, "quote"),
        ({"quote": "\r"}, "quote"),
        ({"delimiter": '|"'}, "delimiter"),
        ({"binary-encoding-method": "octal"}, "binary-encoding-method"),
        ({"null": 1}, "null"),
    ],
)
def test_csv_options(csv, key):
    assert error_keys({"sink": {"csv": csv}}, STORAGE) == [f"sink.csv.{key}"]


def test_csv_options_do_not_matter_to_other_sinks():
    assert error_keys({"sink": {"csv": {"delimiter": ""}}}, KAFKA) == []


def test_delete_with_handle_key_only_is_not_for_csv():
    feed = {"sink": {"delete-only-output-handle-key-columns": True}}
    assert error_keys(feed, STORAGE) == ["sink.delete-only-output-handle-key-columns"]
    assert error_keys(feed, KAFKA) == []
    assert error_keys(feed | {"force-replicate": True}, KAFKA) == [
        "sink.delete-only-output-handle-key-columns"
    ]


# --- the rest


def test_sync_points_need_a_database_and_sane_times():
    assert error_keys({"enable-sync-point": True}, KAFKA) == ["enable-sync-point"]
    feed = {"enable-sync-point": True, "sync-point-interval": "29s", "sync-point-retention": "59m"}
    assert error_keys(feed, MYSQL) == ["sync-point-interval", "sync-point-retention"]
    assert error_keys(feed | {"enable-sync-point": False}, MYSQL) == []


def test_changefeed_error_stuck_duration_is_at_least_30m():
    assert error_keys({"changefeed-error-stuck-duration": "29m59s"}) == ["changefeed-error-stuck-duration"]


def test_integrity_is_for_kafka_only():
    feed = {"integrity": {"integrity-check-level": "correctness"}}
    assert load(feed, STORAGE).changefeed.integrity.integrity_check_level == "none"
    assert load(feed, KAFKA).changefeed.integrity.integrity_check_level == "correctness"


def test_integrity_excludes_column_selectors():
    feed = {
        "integrity": {"integrity-check-level": "correctness"},
        "sink": {"column-selectors": [{"matcher": ["a.b"], "columns": ["c"]}]},
    }
    assert error_keys(feed, KAFKA) == ["sink.column-selectors"]


def test_integrity_with_avro_needs_text_modes_and_the_extension():
    feed = {"integrity": {"integrity-check-level": "correctness"}}
    assert error_keys(feed, AVRO) == ["integrity.integrity-check-level"]
    modes = (
        "&enable-tidb-extension=1&avro-decimal-handling-mode=string&avro-bigint-unsigned-handling-mode=string"
    )
    assert error_keys(feed, AVRO + modes) == []


def test_large_messages_need_a_protocol_that_can():
    at = "sink.kafka-config.large-message-handle"
    feed = {
        "sink": {"kafka-config": {"large-message-handle": {"large-message-handle-option": "claim-check"}}}
    }
    assert error_keys(feed, KAFKA) == [f"{at}.large-message-handle-option", f"{at}.claim-check-storage-uri"]
    feed["sink"]["kafka-config"]["large-message-handle"]["claim-check-storage-uri"] = "file:///claims"
    assert error_keys(feed, KAFKA + "&enable-tidb-extension=true") == []
    assert error_keys(feed, AVRO) == [f"{at}.large-message-handle-option"]


def test_content_compatible_outputs_updated_columns_only():
    settings = load(None, KAFKA + "&content-compatible=true")
    assert settings.uri.options.only_output_updated_columns is True
    assert settings.sink.only_output_updated_columns is True


def test_pulsar_oauth2_is_given_completely():
    feed = {"sink": {"pulsar-config": {"oauth2": {"oauth2-issuer-url": "https://x"}}}}
    at = "sink.pulsar-config.oauth2.oauth2"
    uri = "pulsar://h:1/t?protocol=canal-json"
    assert error_keys(feed, uri) == [f"{at}-client-id", f"{at}-private-key", f"{at}-audience"]


# --- what sinks refuse when they begin


def check_errors(changefeed=None, sink_uri=None):
    return [str(finding) for finding in check(changefeed, sink_uri) if finding.severity == "error"]


@pytest.mark.parametrize("protocol", ["simple", "debezium", "canal", "maxwell", "craft"])
@pytest.mark.parametrize("uri", ["kafka://h:1/t", "file:///x"])
def test_a_protocol_without_an_encoder_is_an_error(uri, protocol):
    kind = uri.partition(":")[0].replace("file", "storage")
    [error] = check_errors(None, f"{uri}?protocol={protocol}")
    assert error == (
        f"protocol = {protocol!r}: has no encoder: a {kind} sink would send nothing; "
        f"allowed: {', '.join(protocols_of(kind))}"
    )
    # A changefeed without a sink sends nothing, and dispatch rules need no encoder.
    assert refused_keys({"sink": {"protocol": protocol}}) == []
    assert load(None, f"{uri}?protocol={protocol}").protocol == protocol


def test_a_protocol_that_the_sink_cannot_send_is_an_error():
    [error] = check_errors(None, "kafka://h:1/t?protocol=csv")
    assert error.startswith("protocol = 'csv': cannot be sent to it: a kafka sink would send nothing")


@pytest.mark.parametrize("protocol", ["canal-json", "debezium"])
def test_a_sink_that_is_not_there_is_an_error(protocol):
    uri = f"pulsar://h:1/t?protocol={protocol}"
    [error] = check_errors(None, uri)
    assert error.startswith(
        f"sink-uri = '{uri}': there is no pulsar sink, nothing would be sent; allowed: storage (csv"
    )
    assert error.endswith("TiDB, MySQL, blackhole")
    assert load(None, uri).sink_kind == "pulsar"


@pytest.mark.parametrize("uri", ["blackhole://", "noop:///x?protocol=csv"])
def test_a_sink_that_keeps_nothing_says_so(uri):
    [finding] = check(None, uri)
    assert (finding.severity, finding.message) == (
        "note",
        "takes every row and keeps none: nothing is written",
    )


@pytest.mark.parametrize(
    ("feed", "uri"),
    [
        ({"ignore-ineligible-table": True}, None),
        ({"integrity": {"integrity-check-level": "correctness"}}, KAFKA),
        ({"enable-sync-point": True}, MYSQL),
        ({"cyclic-replication": {"enable": True}}, None),
        ({"filter": {"event-filters": [{"matcher": ["*.*"], "ignore-event": ["drop tables"]}]}}, None),
        ({"sink": {"transaction-atomicity": "table"}}, MYSQL),
        ({"sink": {"cloud-storage-config": {"file-expiration-days": 3}}}, STORAGE),
        (
            {"sink": {"kafka-config": {"large-message-handle": {"large-message-handle-compression": "lz4"}}}},
            KAFKA,
        ),
        (None, MYSQL + "?dry-run=true"),
        (None, KAFKA + "&sasl-mechanism=GSSAPI&sasl-user=u"),
    ],
)
def test_what_tidemark_does_not_apply_is_an_error_of_check_and_known_to_commands_that_send_nothing(feed, uri):
    assert len(check_errors(feed, uri)) == 1
    load(feed, uri)


def test_a_glue_registry_is_an_error():
    glue = {"registry-name": "r", "region": "eu"}
    feed = {"sink": {"kafka-config": {"glue-schema-registry-config": glue}}}
    at = "sink.kafka-config.glue-schema-registry-config"
    assert refused_keys(feed, "kafka://h:1/t?protocol=avro") == [at]
    assert refused_keys(feed, KAFKA) == []


@pytest.mark.parametrize("url", ["h:8081", "ftp://x", "http://", "http://h:port", "file://x/y"])
def test_a_schema_registry_that_is_no_url_is_an_error(url):
    assert refused_keys(None, f"kafka://h:1/t?protocol=avro&schema-registry={url}") == ["schema-registry"]
    assert refused_keys({"sink": {"schema-registry": url}}, "kafka://h:1/t?protocol=avro") == [
        "schema-registry"
    ]
    assert refused_keys(None, "kafka://h:1/t?protocol=avro&schema-registry=http://u:p@h:8081") == []


@pytest.mark.parametrize("zone", ["Foo/Bar", "%2B08:00"])
def test_a_time_zone_that_the_storage_sink_does_not_know_is_an_error(zone):
    assert refused_keys(None, f"{STORAGE}&time-zone={zone}") == ["sink-uri"]
    assert refused_keys(None, f"{STORAGE}&time-zone=Asia/Shanghai") == []
    assert refused_keys(None, f"{MYSQL}?time-zone={zone}") == []


def test_a_certificate_of_a_database_needs_its_key():
    (finding,) = check(None, "mysql://h/?ssl-cert=x")
    assert str(finding) == (
        "sink-uri = 'mysql://h/?ssl-cert=x': ssl-cert and ssl-key are only of use together; give both"
    )
    assert refused_keys(None, "mysql://h/?ssl-key=x") == ["sink-uri"]
    assert refused_keys(None, "mysql://h/?ssl-cert=x&ssl-key=y") == []


def test_a_check_does_not_need_the_password():
    assert check(None, "mysql://u@h/?password-env=NOT_SET_HERE") == []
