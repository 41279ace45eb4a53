"""`tidemark check`."""

import json

import pytest

from tidemark.cli import main

GOOD = "file:///x?protocol=csv"


@pytest.fixture
def changefeed(tmp_path):
    path = tmp_path / "changefeed.toml"
    path.write_text("[sink]\nencoder-concurrency = 3\ndate-separator = 'week'\n[sink.csv]\ndelimiter = ''\n")
    return str(path)


def test_all_findings_at_once_and_exit_status_1(changefeed, capsys):
    assert main(["check", changefeed, "--sink-uri", "s3://b?protocol=csv&secret-access-key=hunter2&x=1"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[1] for line in out[:-1]] == [
        "sink.date-separator",
        "sink-uri?x",
        "sink.csv.delimiter",
        "sink.encoder-concurrency:",
    ]
    assert out[-1] == "3 errors, 1 note"
    assert "hunter2" not in "".join(out)


def test_exit_status_0_without_errors(capsys):
    assert main(["check", "--sink-uri", GOOD]) == 0
    assert capsys.readouterr().out == "0 errors, 0 notes\n"


def test_json_is_machine_readable(changefeed, capsys):
    assert main(["check", changefeed, "--sink-uri", GOOD, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ok"], answer["errors"], answer["notes"]) == (False, 2, 1)
    assert answer["findings"][1] == {
        "severity": "error",
        "key": "sink.date-separator",
        "message": "is not known",
        "value": "'week'",
        "allowed": "none, year, month, day",
    }


def test_compat_decides_on_the_rules(tmp_path):
    path = tmp_path / "changefeed.toml"
    path.write_text("enable-active-active = true\nbdr-mode = true\n")
    assert main(["check", str(path), "--sink-uri", GOOD]) == 1
    assert main(["check", str(path), "--sink-uri", GOOD, "--compat", "ticdc"]) == 0


def test_a_missing_file_is_an_error(tmp_path):
    assert main(["check", str(tmp_path / "none.toml")]) == 1


def test_nothing_to_check_is_an_error(capsys):
    assert main(["check"]) == 2
    assert capsys.readouterr().err == "tidemark check: give a changefeed file, --sink-uri URI, or both\n"


def test_a_sink_that_would_send_nothing_is_an_error(capsys):
    assert main(["check", "--sink-uri", "pulsar://h:6650/t?protocol=canal-json"]) == 1
    assert "there is no pulsar sink" in capsys.readouterr().out
