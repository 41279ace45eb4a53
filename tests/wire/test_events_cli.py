"""`tidemark events`: one JSON object per event, and nothing lost around bad bytes."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from support import golden
from tidemark.cli import main


def run(capsysbinary, *logs):
    assert main(["events", *map(str, logs)]) == 0
    captured = capsysbinary.readouterr()
    return [json.loads(line) for line in captured.out.decode().split("\n") if line], captured.err.decode()


def frame_of(name):
    return golden(f"wire/{name}.bin").read_bytes()


def test_every_event_of_a_stream_is_printed_in_order(capsysbinary):
    lines, stderr = run(capsysbinary, golden("streams/evolve.bin"))
    index = golden("streams/evolve.events.jsonl").read_text().split("\n")
    expected = [json.loads(line) for line in index if line]
    found = [(line["offset"], line["event"].replace("sync_point", "syncpoint")) for line in lines]
    assert found == [(event["offset"], event["kind"]) for event in expected]
    assert stderr == ""


def test_event_has_file_offset_header_and_fields(capsysbinary):
    path = golden("wire/drop_typical.bin")
    (line,), _ = run(capsysbinary, path)
    expected = json.loads(golden("wire/drop_typical.json").read_text())
    assert line == {
        "file": str(path),
        "offset": 0,
        "header": expected["header"],
        "event": "drop",
        "fields": expected["fields"],
    }


def test_a_frame_that_cannot_be_decoded_is_printed_in_its_place(capsysbinary, tmp_path):
    good = frame_of("drop_typical")
    newer = good[:7] + b"\x05" + good[8:]
    log = tmp_path / "log"
    log.write_bytes(good + newer + good)
    lines, stderr = run(capsysbinary, log)
    assert [line.get("event") for line in lines] == ["drop", None, "drop"]
    bad = lines[1]
    assert (bad["offset"], bad["length"], bad["error"]["reason"]) == (56, 56, "unsupported_version")
    assert bad["error"]["offset"] == 62
    assert (bad["error"]["expected"], bad["error"]["actual"]) == (2, 5)
    assert bad["header"]["version"] == 5
    assert "1 piece could not be decoded" in stderr


def test_garbage_between_frames_is_skipped_and_told(capsysbinary, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(frame_of("drop_typical") + b"\0" * 33 + frame_of("ready_typical"))
    lines, _ = run(capsysbinary, log)
    assert [line.get("event") for line in lines] == ["drop", None, "ready"]
    assert (lines[1]["offset"], lines[1]["length"], lines[1]["error"]["reason"]) == (56, 33, "bad_magic")


def test_broken_table_info_does_not_stop_the_log(capsysbinary, tmp_path):
    handshake = bytearray(frame_of("handshake_evolve_0"))
    handshake[60] ^= 0xFF
    log = tmp_path / "log"
    log.write_bytes(frame_of("drop_typical") + handshake + frame_of("ready_typical"))
    lines, _ = run(capsysbinary, log)
    assert [line.get("event") for line in lines] == ["drop", None, "ready"]
    assert lines[1]["error"]["reason"] == "invalid_field"
    assert 56 <= lines[1]["error"]["offset"] < 56 + len(handshake)


def test_torn_last_frame_is_told_on_stderr_only(capsysbinary, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(frame_of("drop_typical") + frame_of("ready_typical")[:20])
    lines, stderr = run(capsysbinary, log)
    assert [line["event"] for line in lines] == ["drop"]
    assert "the last frame is not complete: 20 bytes at offset 56" in stderr


def test_several_logs_are_read_one_after_another(capsysbinary):
    lines, _ = run(capsysbinary, golden("wire/drop_typical.bin"), golden("wire/ready_typical.bin"))
    assert [line["event"] for line in lines] == ["drop", "ready"]


@pytest.mark.parametrize("log", ["no/such/log", "no/such/*.bin", "memory://none/*.bin"])
@pytest.mark.parametrize("command", ["events", "rows", "encode", "dispatch"])
def test_missing_log_is_an_error_without_a_stack_trace(command, log, capsys):
    uri = "kafka://127.0.0.1:9092/t?protocol=canal-json&partition-num=1"
    sink = ["--sink-uri", uri] if command in ("encode", "dispatch") else []
    assert main([command, log, *sink]) == 2
    captured = capsys.readouterr()
    assert "does not exist" in captured.err
    assert "Traceback" not in captured.err


def test_reader_may_close_the_pipe():
    command = [sys.executable, "-m", "tidemark.cli", "events"] + [str(golden("streams/evolve.bin"))] * 4
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().startswith(b'{"file":')
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(timeout=60)


@pytest.mark.parametrize("command", ["events", "rows"])
def test_a_command_that_has_nothing_to_show_for_its_logs_fails(command, capsys, tmp_path):
    (tmp_path / "log[1]").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "garbage").write_bytes(b"\0" * 99)
    (tmp_path / "torn").write_bytes(frame_of("ready_typical")[:20])
    for log, words in {
        "log[1]": "is a folder without files",
        "empty": "nothing could be decoded: give logs",
        "garbage": "nothing could be decoded (1 piece)",
        "torn": "nothing could be decoded (1 piece)",
    }.items():
        assert main([command, str(tmp_path / log)]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["events", "rows"])
def test_with_strict_anything_that_cannot_be_decoded_is_a_failure(command, capfd, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(golden("streams/orders.bin").read_bytes())
    assert main([command, "--strict", str(log)]) == 0
    lines = capfd.readouterr().out
    log.write_bytes(log.read_bytes() + frame_of("ready_typical")[:20])
    assert main([command, str(log)]) == 0
    assert main([command, "--strict", str(log)]) == 2
    out, err = capfd.readouterr()
    assert out == lines * 2, "what can be decoded is printed all the same"
    assert err.endswith(f"tidemark {command}: 1 piece could not be decoded\n")


def test_limit_and_table_choose_what_is_printed(capsysbinary):
    log = golden("streams/evolve.bin")
    every, _ = run(capsysbinary, log)
    assert run(capsysbinary, log, "--limit", "3") == (every[:3], "")
    chosen, _ = run(capsysbinary, log, "--table", "evo.t1")
    kinds = {line["event"] for line in chosen}
    assert {"handshake", "batch_dml", "ddl", "resolved"} <= kinds
    offsets = [
        [line["offset"] for line in lines if line["event"] == "batch_dml"] for lines in (every, chosen)
    ]
    assert main(["rows", str(log)]) == 0
    rows = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert {row["offset"] for row in rows if row["table"] == "t1"} == set(offsets[1]) < set(offsets[0])


@pytest.mark.parametrize("command", [["events"], ["rows"], ["doctor"], ["explain"]])
def test_an_object_store_without_credentials_is_one_sentence(command, tmp_path):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    variables |= {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tidemark.cli", *command, "s3://bucket/x"],
        env=variables,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "s3://bucket/x" in done.stderr
    assert "Unable to locate credentials; check" in done.stderr


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"tidemark {version('tidemark')}\n")
