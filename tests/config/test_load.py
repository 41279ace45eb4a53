"""Reading a changefeed file and a sink URI."""

from datetime import timedelta

import pytest

from tidemark.compat import CompatError
from tidemark.config import ConfigError, check, load
from tidemark.config.keys import KindError, format_duration, parse_duration
from tidemark.sinks.storage.layout import StorageLayout

EVERYTHING = """
case-sensitive = true
bdr-mode = true
memory-quota = 1073741824
force-replicate = false
ignore-ineligible-table = true
enable-sync-point = false
sync-point-interval = "5m"
sync-point-retention = 3600000000000
changefeed-error-stuck-duration = "30m"
sql-mode = "ANSI"
[mounter]
worker-num = 16
[filter]
ignore-txn-start-ts = [1, 2]
rules = ['*.*', '!test.*']
[[filter.event-filters]]
matcher = ["test.worker"]
ignore-event = ["insert"]
ignore-sql = ["^drop"]
ignore-update-new-value-expr = "age < 18"
[scheduler]
enable-table-across-nodes = false
region-threshold = 10000
write-key-threshold = 30000
[sink]
protocol = "canal-json"
dispatchers = [
    {matcher = ['test1.*', 'test2.*'], topic = "a_{schema}", partition = "index-value", index = "i"},
    {matcher = ['test6.*'], partition = "columns", columns = ['a', 'b']},
]
column-selectors = [ {matcher = ['test.t1'], columns = ['a', '!b']} ]
encoder-concurrency = 32
enable-kafka-sink-v2 = false
only-output-updated-columns = true
terminator = "\\n"
date-separator = 'month'
enable-partition-separator = false
send-bootstrap-interval-in-sec = 120
[sink.csv]
delimiter = ';'
[sink.kafka-config]
partition-num = 5
sasl-mechanism = "OAUTHBEARER"
sasl-oauth-client-secret = "cHJv"
sasl-oauth-scopes = ["a", "b"]
[sink.kafka-config.codec-config]
enable-tidb-extension = true
[sink.pulsar-config]
authentication-token = "t0ken"
oauth2.oauth2-issuer-url = "https://x"
oauth2.oauth2-audience = "y"
oauth2.oauth2-private-key = "/k"
oauth2.oauth2-client-id = "c"
[sink.cloud-storage-config]
worker-count = 16
flush-interval = "2s"
file-size = 67108864
output-column-id = true
[sink.open]
output-old-value = false
[consistent]
level = "none"
flush-interval = 2000
compression = ""
[integrity]
integrity-check-level = "none"
corruption-handle-level = "warn"
[synced-status]
synced-check-interval = 300
checkpoint-interval = 15
"""


@pytest.fixture
def everything(tmp_path):
    path = tmp_path / "changefeed.toml"
    path.write_text(EVERYTHING)
    return path


def test_a_full_changefeed_file_is_taken_as_it_is(everything):
    settings = load(everything, "kafka+ssl://h1:9092,h2:9093/topic?protocol=canal-json")
    assert settings.changefeed.case_sensitive is True
    assert settings.changefeed.sync_point_interval == timedelta(minutes=5)
    assert settings.changefeed.sync_point_retention == timedelta(hours=1)
    assert settings.changefeed.filter_rules == ("*.*", "!test.*")
    assert settings.changefeed.filter.event_filters[0].ignore_event == ("insert",)
    assert settings.sink.terminator == "\n"
    assert settings.sink.csv.delimiter == ";"
    assert settings.sink.cloud_storage.output_column_id is True
    assert settings.sink.open_protocol.output_old_value is False
    assert settings.sink.column_selectors[0].columns == ("a", "!b")
    first, second = settings.sink.dispatchers
    assert (first.index, first.matcher, first.topic, first.index_name) == (
        0,
        ("test1.*", "test2.*"),
        "a_{schema}",
        "i",
    )
    assert (second.index, second.kind, second.columns) == (1, "columns", ("a", "b"))
    assert settings.uri.hosts == ("h1:9092", "h2:9093")
    assert (settings.uri.host, settings.uri.port, settings.default_topic) == ("h1", 9092, "topic")


def test_values_of_the_file_stand_in_for_uri_options(everything):
    options = load(everything, "kafka://h:1/t").uri.options
    assert (options.protocol, options.partition_num, options.enable_tidb_extension) == ("canal-json", 5, True)
    assert (options.only_output_updated_columns, options.flush_interval) == (True, timedelta(seconds=2))


def test_the_uri_wins_over_the_file_and_says_so(everything):
    uri = "kafka://h:1/t?protocol=open-protocol&partition-num=7&flush-interval=3s"
    settings = load(everything, uri)
    assert (settings.protocol, settings.sink.protocol, settings.uri.options.protocol) == (
        "open-protocol",
    ) * 3
    assert settings.sink.kafka.partition_num == settings.uri.options.partition_num == 7
    assert settings.sink.cloud_storage.flush_interval == timedelta(seconds=3)
    keys = [finding.key for finding in check(everything, uri)]
    assert {"sink-uri?protocol", "sink-uri?partition-num", "sink-uri?flush-interval"} <= set(keys)


def test_tuning_keys_are_accepted_and_noted(everything):
    noted = {
        finding.key
        for finding in check(everything, "kafka://h:1/t")
        if "tunes a running TiCDC" in finding.message
    }
    assert {
        "memory-quota",
        "mounter",
        "scheduler.region-threshold",
        "sink.encoder-concurrency",
        "sink.kafka-config.sasl-oauth-client-secret",
    } <= noted
    assert "mounter.worker-num" not in noted
    assert "scheduler.enable-table-across-nodes" not in noted
    assert "sink.pulsar-config.oauth2.oauth2-issuer-url" not in noted


@pytest.mark.parametrize("across", [True, False])
def test_enable_table_across_nodes_reaches_the_storage_sink(across):
    document = {"scheduler": {"enable-table-across-nodes": across}}
    settings = load(document, "file:///tmp/out?protocol=csv")
    assert settings.changefeed.scheduler.enable_table_across_nodes is across
    assert StorageLayout(settings).across_nodes is across
    assert not [
        finding for finding in check(document, "file:///tmp/out?protocol=csv") if "scheduler" in finding.key
    ]


def test_enable_table_across_nodes_is_off_unless_set():
    assert load({}, "file:///tmp/out?protocol=csv").changefeed.scheduler.enable_table_across_nodes is False


def test_tuning_keys_are_still_checked_for_their_type():
    (error,) = [
        finding for finding in check({"mounter": {"worker-num": "many"}}) if finding.severity == "error"
    ]
    assert str(error) == "mounter.worker-num = 'many': is not a whole number; allowed: a whole number"


def event_filter(**keys):
    return {"filter": {"event-filters": [{"matcher": ["*.*"], **keys}]}}


def test_events_to_leave_out_by_a_kind_that_does_not_exist_are_an_error():
    (found,) = check(event_filter(**{"ignore-event": ["drop tables"]}))
    assert (found.severity, found.key) == ("error", "filter.event-filters[0].ignore-event")
    assert "no kind of events 'drop tables'; did you mean drop table?" in found.message
    assert check(event_filter(**{"ignore-event": ["delete", "all ddl", "Drop Table"]})) == []
    assert check({"filter": {"ignore-txn-start-ts": [1]}}) == []


def test_switches_that_change_nothing_are_noted_when_they_are_on():
    def feed(on):
        raw = {"output-raw-change-event": on}
        return {
            "force-replicate": on,
            "active-active-sync-stats-interval": "2m" if on else "1m",
            "consistent": {"level": "eventual" if on else "none"},
            "integrity": {"corruption-handle-level": "error" if on else "warn"},
            "sink": {
                "safe-mode": on,
                "cloud-storage-config": raw,
                "kafka-config": raw,
                "pulsar-config": raw,
            },
        }

    uri = "kafka://h:1/t?protocol=canal-json"
    assert {finding.severity for finding in check(feed(True), uri)} == {"note"}
    assert [finding.key for finding in check(feed(True), uri)] == [
        "force-replicate",
        "active-active-sync-stats-interval",
        "consistent.level",
        "integrity.corruption-handle-level",
        "sink.safe-mode",
        "sink.cloud-storage-config.output-raw-change-event",
        "sink.kafka-config.output-raw-change-event",
        "sink.pulsar-config.output-raw-change-event",
    ]
    assert check(feed(False), uri) == []


def test_a_section_that_is_ignored_is_noted_once():
    feed = {"sink": {"iceberg-config": {"kafka-config": {"output-raw-change-event": True}}}}
    assert [finding.key for finding in check(feed)] == ["sink.iceberg-config"]


def test_a_pattern_of_statements_that_is_no_regular_expression_is_an_error():
    found = check(event_filter(**{"ignore-sql": ["^drop", "("]}))
    assert [(f.severity, f.key) for f in found] == [("error", "filter.event-filters[0].ignore-sql")]


def test_a_dictionary_may_stand_in_for_the_file():
    settings = load({"case-sensitive": True, "sink": {"csv": {"null": ""}, "terminator": None}})
    assert settings.changefeed.case_sensitive is True
    assert (settings.sink.csv.null, settings.sink.terminator) == ("", "\r\n")


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        ({"case-sensitve": True}, "case-sensitve = True: is not a known key; did you mean case-sensitive?"),
        ({"case_sensitive": True}, "case_sensitive = True: is not a known key; did you mean case-sensitive?"),
        (
            {"sink": {"csv": {"delimeter": ","}}},
            "sink.csv.delimeter = ',': is not a known key; did you mean sink.csv.delimiter?",
        ),
        ({"protocol": "csv"}, "protocol = 'csv': is not a known key; did you mean sink.protocol?"),
        (
            {"sink": {"csv": {"terminator": "x"}}},
            "sink.csv.terminator = 'x': is not a known key; did you mean sink.terminator?",
        ),
        (
            {"sink": {"dispatchers": [{"matchers": ["a"]}]}},
            "sink.dispatchers[0].matchers = xxxxx: is not a known key; did you mean sink.dispatchers[0].matcher?",
        ),
        ({"zzzz": 1}, "zzzz = 1: is not a known key"),
    ],
)
def test_unknown_keys_suggest_the_nearest(feed, text):
    assert text in [str(finding) for finding in check(feed)]


def test_unknown_uri_option_suggests_the_nearest():
    (finding,) = check(None, "kafka://h:1/t?protocol=csv-&partiton-num=1")[1:]
    assert (
        str(finding)
        == "sink-uri?partiton-num = '1': is not an option of a sink URI; did you mean partition-num?"
    )


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        ({"case-sensitive": "yes"}, "case-sensitive = 'yes': is not a boolean; allowed: true or false"),
        ({"sink": []}, "sink = []: is not a table"),
        (
            {"sink": {"dispatchers": {"matcher": []}}},
            "sink.dispatchers = {'matcher': []}: is not a list of tables",
        ),
        (
            {"filter": {"rules": "a.b"}},
            "filter.rules = 'a.b': is not a list of texts; allowed: a list of texts",
        ),
        (
            {"sink": {"file-index-digit": True}},
            "sink.file-index-digit = True: is not a whole number; allowed: a whole number",
        ),
        (
            {"sink": {"date-separator": "week"}},
            "sink.date-separator = 'week': is not known; allowed: none, year, month, day",
        ),
        (
            {"active-active-progress-interval": "1x"},
            "active-active-progress-interval = '1x': is not a duration; "
            'allowed: a duration such as "30m", "1h30m" or "500ms"',
        ),
    ],
)
def test_an_invalid_value_names_key_value_and_what_is_allowed(feed, text):
    assert [str(finding) for finding in check(feed)] == [text]


def test_all_errors_are_raised_at_once():
    with pytest.raises(ConfigError) as caught:
        load({"bogus": 1, "sink": {"date-separator": "week"}}, "kafka://h:1/t?protocol=xyz&partition-num=0")
    assert [finding.key for finding in caught.value.findings] == [
        "bogus",
        "sink.date-separator",
        "sink-uri?protocol",
        "sink-uri?partition-num",
    ]
    assert str(caught.value).startswith("the configuration has 4 errors\n")


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path):
    (tmp_path / "broken.toml").write_text("a = = 1")
    (tmp_path / "digits.toml").write_text("memory-quota = " + "9" * 5000)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    for name, text in (
        ("missing.toml", "No such file"),
        ("broken.toml", "is not TOML"),
        ("digits.toml", "is not TOML"),
        ("binary.toml", "is not UTF-8"),
    ):
        (finding,) = check(tmp_path / name)
        assert finding.severity == "error"
        assert text in finding.message


def test_unknown_compat_is_an_error():
    with pytest.raises(CompatError, match="'other': allowed are design and ticdc"):
        load(compat="other")


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        load().changefeed.bdr_mode = True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("30m", "30m0s"),
        ("1h30m", "1h30m0s"),
        ("1.5h", "1h30m0s"),
        ("90s", "1m30s"),
        ("100ms", "100ms"),
        ("1.5s", "1.5s"),
        ("2us", "2µs"),
        ("2µs", "2µs"),
        ("-1s", "-1s"),
        ("+3m", "3m0s"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("0", "0s"),
        ("24h", "24h0m0s"),
        ("1h15m30.918s", "1h15m30.918s"),
    ],
)
def test_durations_are_those_of_go(text, shown):
    assert format_duration(parse_duration(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "30", "1d", "m", ".s", "1h 30m", "1e3s", "-", "3000000h", "9" * 5000 + "s", "١s"]
)
def test_what_go_does_not_take_as_a_duration(text):
    with pytest.raises(KindError):
        parse_duration(text)


@pytest.mark.parametrize("number", [10**40, -(10**40), 1 << 63])
def test_a_number_that_is_too_long_for_a_duration_is_an_error(number):
    findings = check(
        {
            "sync-point-interval": number,
            "sink": {"cloud-storage-config": {"flush-interval": number}},
        }
    )
    assert [finding.key for finding in findings] == [
        "sync-point-interval",
        "sink.cloud-storage-config.flush-interval",
    ]
    assert {finding.message for finding in findings} == {"is longer than 292 years"}


def test_a_whole_number_for_a_fraction_has_64_bits():
    assert load({"scheduler": {"min-traffic-percentage": 3}}).changefeed.scheduler.min_traffic_percentage == 3
    (finding,) = [
        finding
        for finding in check({"scheduler": {"min-traffic-percentage": 10**400}})
        if finding.severity == "error"
    ]
    assert finding.message == "does not fit 64 bits"
