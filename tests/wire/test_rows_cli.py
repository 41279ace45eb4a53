"""`tidemark rows`: the golden rows on stdout, what cannot be decoded on stderr."""

import json

import pytest
from tables import STREAMS, events

from support import golden, jsonl
from tidemark.cli import main
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.registry import encode


def rows(capfd, *logs) -> tuple[list[dict], str]:
    assert main(["rows", *map(str, logs)]) == 0
    out, err = capfd.readouterr()
    return [json.loads(line) for line in out.split("\n") if line], err


@pytest.mark.parametrize("stream", STREAMS)
def test_golden_rows(stream, capfd):
    got, err = rows(capfd, golden(f"streams/{stream}.bin"))
    want = jsonl(f"streams/{stream}.rows.jsonl")
    assert err == ""
    assert len(got) == len(want)
    for expected, row in zip(want, got, strict=True):
        del expected["i"], expected["event"]
        place = {"file", "offset"}
        assert {key: value for key, value in row.items() if key not in place} == expected
        assert place <= row.keys()


def test_rows_of_a_dispatcher_without_schema_are_reported_with_their_place(tmp_path, capfd):
    frames = [(offset, event) for offset, event in events("orders") if not isinstance(event, HandshakeEvent)]
    log = tmp_path / "no-handshake.bin"
    log.write_bytes(b"".join(encode(event) for _, event in frames))
    batches = sum(isinstance(event, BatchDMLEvent) for _, event in frames)
    assert main(["rows", str(log)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("schema is not known") == batches
    assert f"{log}: offset " in err
    assert err.endswith(
        f"tidemark rows: nothing could be decoded ({batches} pieces): give logs of TiCDC event frames\n"
    )


def test_a_bad_frame_costs_only_its_own_rows(tmp_path, capfd):
    parts, spoiled = [], None
    for _, event in events("orders"):
        frame = bytearray(encode(event))
        if isinstance(event, BatchDMLEvent) and spoiled is None:
            spoiled = len(b"".join(parts))
            frame[-1] ^= 0xFF
            frame[-len(event.chunk)] ^= 0xFF
        parts.append(bytes(frame))
    log = tmp_path / "bad.bin"
    log.write_bytes(b"".join(parts))
    got, err = rows(capfd, log)
    want = jsonl("streams/orders.rows.jsonl")
    first = next(row["event"] for row in want)
    assert len(got) == sum(row["event"] != first for row in want)
    assert f"{log}: offset {spoiled}:" in err
    assert err.endswith("tidemark rows: 1 piece could not be decoded\n")


def test_a_torn_tail_and_garbage_are_reported(tmp_path, capfd):
    whole = golden("streams/multi_upstream_u1.bin").read_bytes()
    log = tmp_path / "torn.bin"
    log.write_bytes(b"garbage" + whole + whole[:20])
    got, err = rows(capfd, log)
    assert len(got) == len(jsonl("streams/multi_upstream_u1.rows.jsonl"))
    assert "offset 0:" in err
    assert f"offset {len(whole) + 7}:" in err


def test_limit_and_table_choose_what_is_printed(capfd):
    every, _ = rows(capfd, golden("streams/evolve.bin"))
    assert rows(capfd, golden("streams/evolve.bin"), "--limit", 3) == (every[:3], "")
    mine = [row for row in every if row["table"] == "t1"]
    assert 0 < len(mine) < len(every)
    assert rows(capfd, golden("streams/evolve.bin"), "--table", "evo.t1") == (mine, "")
    others = rows(capfd, golden("streams/evolve.bin"), "--table", "*.*", "--table", "!evo.t1")
    assert others == ([row for row in every if row["table"] != "t1"], "")


def test_several_logs_are_one_stream(tmp_path, capfd):
    whole = golden("streams/orders.bin").read_bytes()
    cut = next(offset for offset, event in events("orders") if isinstance(event, BatchDMLEvent))
    (tmp_path / "1.bin").write_bytes(whole[:cut])
    (tmp_path / "2.bin").write_bytes(whole[cut:])
    got, err = rows(capfd, tmp_path / "1.bin", tmp_path / "2.bin")
    assert (len(got), err) == (len(jsonl("streams/orders.rows.jsonl")), "")
