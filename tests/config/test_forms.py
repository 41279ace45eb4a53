"""The changefeed file as TOML, JSON and YAML, and what `tidemark check --json` shows of it."""

import json

import pytest
import yaml

from tidemark.cli import main
from tidemark.config import check, load

TOML = """
case-sensitive = true
sync-point-interval = "5m"
[filter]
rules = ["shop.*"]
[[sink.dispatchers]]
matcher = ["shop.orders"]
dispatcher = "[id]"
[sink.csv]
delimiter = "|"
[sink.kafka-config]
sasl-password = "hunter2"
"""
CONTENT = {
    "case-sensitive": True,
    "sync-point-interval": "5m",
    "filter": {"rules": ["shop.*"]},
    "sink": {
        "dispatchers": [{"matcher": ["shop.orders"], "dispatcher": "[id]"}],
        "csv": {"delimiter": "|"},
        "kafka-config": {"sasl-password": "hunter2"},
    },
}
URI = "file:///x?protocol=csv"


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_all_forms_say_the_same(file):
    expected = load(file("changefeed.toml", TOML), URI)
    assert expected.changefeed.filter_rules == ("shop.*",)
    for name, text in (
        ("changefeed.json", json.dumps(CONTENT)),
        ("changefeed.yaml", yaml.safe_dump(CONTENT)),
        ("changefeed.YML", yaml.safe_dump(CONTENT)),
        ("changefeed.conf", TOML),
    ):
        assert load(file(name, text), URI) == expected, name


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{", "is not JSON: "),
        ("x.yaml", "a: [", "is not YAML: "),
        ("x.toml", "a = ", "is not TOML: "),
        ("x.json", "[1]", "is JSON without keys"),
        ("x.yml", "text", "is YAML without keys"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_an_error(file, name, text, said):
    path = file(name, text)
    (finding,) = check(path)
    assert (finding.severity, finding.key) == ("error", path)
    assert finding.message.startswith(said)
    assert "\n" not in finding.message


def test_an_empty_file_is_an_empty_changefeed(file):
    assert check(file("x.yaml", "")) == []
    assert check(file("x.toml", "")) == []


def test_check_shows_the_settings_in_force_without_secrets(file, capsys):
    uri = "kafka://u:geheim@h:9092/t?protocol=canal-json&max-message-bytes=1000&schema-registry=http://h:8081"
    command = ["check", file("changefeed.yaml", yaml.safe_dump(CONTENT)), "--sink-uri", uri, "--json"]
    assert main([*command, "--compat", "{progress_table: ticdc}"]) == 0
    text = capsys.readouterr().out
    assert "hunter2" not in text
    assert "geheim" not in text
    resolved = json.loads(text)["resolved"]
    feed, shown, compat = resolved["changefeed"], resolved["sink-uri"], resolved["compat"]
    assert (feed["case-sensitive"], feed["bdr-mode"], feed["sync-point-interval"]) == (True, False, "5m0s")
    assert feed["filter"]["rules"] == ["shop.*"]
    (rule,) = feed["sink"]["dispatchers"]
    assert (rule["matcher"], rule["partition"], rule["columns"]) == (["shop.orders"], "columns", ["id"])
    assert feed["sink"]["kafka-config"]["sasl-password"] == "xxxxx"
    assert feed["sink"]["protocol"] == shown["options"]["protocol"] == "canal-json"
    assert (shown["kind"], shown["hosts"], shown["options"]["max-message-bytes"]) == (
        "kafka",
        ["h:9092"],
        1000,
    )
    assert compat["progress_table"] == "tidb_cdc.ticdc_progress_table"
    assert compat["progress_upstream_column"] == "upstreamID"
