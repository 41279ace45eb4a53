"""Every byte of a frame has a name."""

import json

import pytest

from support import golden
from tidemark.cli import main
from tidemark.wire.errors import TruncatedPayload, UnsupportedVersion
from tidemark.wire.explain import UNDECODED, explain_frame
from tidemark.wire.header import write_header
from tidemark.wire.registry import decode

VECTORS = sorted(path.stem for path in golden("wire").glob("*.bin") if path.stat().st_size)


def frame_of(name):
    return golden(f"wire/{name}.bin").read_bytes()


def assert_covers(spans, frame):
    position = 0
    for span in spans:
        assert span.start == position
        position += span.size
    assert position == len(frame)


def handshake_table(name):
    return decode(frame_of(name)).table()


@pytest.mark.parametrize("name", [name for name in VECTORS if not name.startswith("batch_resolved")])
def test_spans_cover_a_frame_exactly_once(name):
    frame = frame_of(name)
    explanation = explain_frame(frame)
    assert explanation.error is None
    assert_covers(explanation.spans, frame)
    assert not any(span.kind == UNDECODED for span in explanation.spans)


def tables():
    """Every table version of the vectors, by id, version and name."""
    events = [decode(frame_of(name)) for name in VECTORS if name.startswith(("handshake", "ddl"))]
    return {
        (table.table_id, table.version, table.table): table for event in events if (table := event.table())
    }


TABLES = tables()


def table_of(name):
    schema = json.loads(golden(f"wire/{name}.json").read_text())["fields"]["table_schema"]
    return TABLES.get((int(schema["table_id"]), int(schema["table_version"]), schema["table"]))


@pytest.mark.parametrize(
    "name", [name for name in VECTORS if name.startswith("batch_dml") and table_of(name)]
)
def test_spans_cover_the_columns_of_a_chunk(name):
    frame, table = frame_of(name), table_of(name)
    explanation = explain_frame(frame, table)
    assert explanation.error is None
    assert_covers(explanation.spans, frame)
    counted = [
        span for span in explanation.spans if span.path[:1] == ("row chunk",) and span.name == "row count"
    ]
    assert len(counted) == len(table.columns)


@pytest.mark.parametrize("size", [0, 3, 15, 16, 17, 40, 100, 234])
def test_spans_cover_a_frame_that_is_cut(size):
    frame = frame_of("batch_dml_active_active_0")[:size]
    explanation = explain_frame(frame)
    assert_covers(explanation.spans, frame)
    assert explanation.error is not None


def test_what_lies_behind_an_error_is_named_not_decoded():
    frame = frame_of("dml_orders_2")
    cut = frame[:8] + (50).to_bytes(8, "big") + frame[16:66]
    explanation = explain_frame(cut)
    assert isinstance(explanation.error, TruncatedPayload)
    assert [span.name for span in explanation.spans[-2:]] == ["seq", "not decoded"]


def test_newer_version_shows_the_header():
    explanation = explain_frame(write_header(9, 7, 3) + b"abc")
    assert isinstance(explanation.error, UnsupportedVersion)
    assert [span.name for span in explanation.spans] == [
        "magic",
        "event type",
        "version",
        "payload length",
        "not decoded",
    ]


def test_chunk_of_another_table_is_an_error_not_a_crash():
    table = handshake_table("handshake_alltypes_0")
    frame = frame_of("batch_dml_orders_0")
    explanation = explain_frame(frame, table)
    assert explanation.error is not None
    assert_covers(explanation.spans, frame)


def test_names_of_a_ddl_event():
    spans = explain_frame(frame_of("ddl_evolve_rename_tables")).spans
    names = [" / ".join((*span.path, span.name)) for span in spans[4:]]
    assert names == [
        "body",
        "dispatcher_id",
        "dispatcher id size",
        "table_info / table",
        "table_info / columns",
        "table_info / size of columns",
        "table_info size",
        "extra table 0 / table_info / table",
        "extra table 0 / table_info / columns",
        "extra table 0 / table_info / size of columns",
        "extra table 0 / table_info size",
        "extra table 1 / table_info / table",
        "extra table 1 / table_info / columns",
        "extra table 1 / table_info / size of columns",
        "extra table 1 / table_info size",
        "extra table count",
    ]


def explained(capsys, *argv):
    assert main(["explain", *map(str, argv)]) == 0
    return capsys.readouterr().out


def dumped_bytes(output):
    """The bytes that stand in the hex columns of a dump."""
    lines = [line for line in output.split("\n") if line[:8].strip() and line[8:10] == "  "]
    return b"".join(bytes.fromhex(line[10:57].strip()) for line in lines)


def test_dump_holds_every_byte(capsys):
    stream = golden("streams/orders.bin")
    event = next(e for e in events_of("orders") if e["kind"] == "batch_dml")
    output = explained(capsys, stream, "--all", "--offset", event["offset"])
    assert dumped_bytes(output) == stream.read_bytes()[event["offset"] :][: event["length"]]


def events_of(stream):
    lines = golden(f"streams/{stream}.events.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines if line]


def test_dump_uses_the_table_of_the_handshake(capsys):
    event = next(e for e in events_of("orders") if e["kind"] == "batch_dml")
    output = explained(capsys, golden("streams/orders.bin"), "--offset", event["offset"] + 20)
    assert f"version {event['table_version']}" in output
    assert "row chunk / id int(11) / row count = " in output


def test_dump_uses_the_table_of_the_last_ddl(capsys):
    batches = [e for e in events_of("evolve") if e["kind"] == "batch_dml"]
    for event in batches:
        output = explained(capsys, golden("streams/evolve.bin"), "--offset", event["offset"])
        assert "error" not in output
        assert f"version {event['table_version']}" in output


def test_dump_without_a_handshake_says_so(capsys):
    output = explained(capsys, golden("wire/batch_dml_orders_0.bin"))
    assert "the row chunk stays unnamed: no handshake of dispatcher" in output


def test_dump_shows_the_wall_clock_of_timestamps(capsys):
    output = explained(capsys, golden("wire/resolved_typical.bin"))
    assert "resolved_ts = 433305438660591626 (2022-05-19T" in output


def test_dump_of_skipped_bytes(capsys, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"garbage here" + frame_of("drop_typical"))
    assert "skipped" in explained(capsys, log, "--offset", 5)
    assert "DropEvent" in explained(capsys, log, "--offset", 12)


def test_dump_of_a_torn_tail(capsys, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(frame_of("drop_typical") + frame_of("drop_typical")[:30])
    output = explained(capsys, log, "--offset", 60)
    assert "not complete" in output
    assert dumped_bytes(output) == frame_of("drop_typical")[:30]


def test_offset_behind_the_end_is_told(capsys):
    assert main(["explain", str(golden("wire/drop_typical.bin")), "--offset", "56"]) == 2
    assert "the log has 56 bytes" in capsys.readouterr().err
