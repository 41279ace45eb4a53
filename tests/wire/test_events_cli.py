"""`tidemark events`: one JSON object per event, and nothing lost around bad bytes."""

import json
import subprocess
import sys

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


def test_a_folder_without_files_is_an_empty_log(capsysbinary, tmp_path):
    (tmp_path / "log[1]").mkdir()
    assert run(capsysbinary, tmp_path / "log[1]") == ([], "")
