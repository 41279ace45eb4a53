"""TiCDC's own answers: what it accepts, compat ticdc accepts, and the other way round."""

import pytest

from support import jsonl
from tidemark.config import load
from tidemark.config.keys import format_duration
from tidemark.config.load import resolve

# An unknown partition expression is an error in both modes, and a bad matcher is found here instead of when the sink starts.
STRICTER_HERE = {"ok_number_partition", "ok_unknown_partition", "unknown partition", "bad matcher"}
ERRORS = jsonl("dispatch/errors.jsonl")


def accepted(changefeed, sink_uri):
    return not resolve(changefeed, sink_uri, "ticdc")[1].errors


def given(table):
    return {name: value for name, value in table.items() if value not in (None, "")}


@pytest.mark.parametrize("case", jsonl("active_active/config_cases.jsonl"))
def test_active_active_config(case):
    intervals = ("active-active-progress-interval", "active-active-sync-stats-interval")
    feed = {"bdr-mode": case["bdr-mode"], "enable-active-active": case["enable-active-active"]}
    feed |= {"consistent": {"level": case["consistent.level"]}} | {
        name: case[name] for name in intervals if case[name]
    }
    assert accepted(feed, case["sink_uri"]) == case.get("ok", False)
    if case.get("ok"):
        changefeed = load(feed, case["sink_uri"], "ticdc").changefeed
        assert format_duration(changefeed.active_active_progress_interval) == case["progress_interval_after"]
        assert (
            format_duration(changefeed.active_active_sync_stats_interval) == case["sync_stats_interval_after"]
        )


@pytest.mark.parametrize(
    "case", [case for case in ERRORS if case["kind"] == "changefeed_config"], ids=lambda case: case["case"]
)
def test_changefeed_config(case):
    feed = {"sink": {"dispatchers": [given(rule) for rule in case["dispatchers"] or []]}}
    assert accepted(feed, case["sink_uri"]) == (case.get("ok", False) and case["case"] not in STRICTER_HERE)
    if case.get("dispatchers_after") and case["case"] not in STRICTER_HERE:
        rules = load(feed, case["sink_uri"], "ticdc").sink.dispatchers
        assert [rule.partition for rule in rules] == [rule["partition"] for rule in case["dispatchers_after"]]


@pytest.mark.parametrize("case", [case for case in ERRORS if case["kind"] == "csv_config"])
def test_csv_config(case):
    assert accepted({"sink": {"csv": case["csv"]}}, "file:///x?protocol=csv") == case.get("ok", False)


@pytest.mark.parametrize(
    "case",
    [case for case in ERRORS if case["kind"] == "event_router"],
    ids=lambda case: case["rule_set"]["name"],
)
def test_event_router(case):
    rules = case["rule_set"]
    feed = {
        "case-sensitive": rules["case_sensitive"],
        "sink": {"dispatchers": [given(rule) for rule in rules["rules"]]},
    }
    scheme = "pulsar" if rules["pulsar"] else "kafka"
    protocol = "avro&schema-registry=http://r:8081" if rules["avro"] else "canal-json"
    uri = f"{scheme}://h:1/{rules['default_topic']}?protocol={protocol}"
    assert accepted(feed, uri) == (case.get("ok", False) and rules["name"] not in STRICTER_HERE)
