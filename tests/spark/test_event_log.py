"""The event-log sources: planning on frame boundaries, and reading what was planned."""

import json
from itertools import pairwise

import numpy as np
import pytest

from support import golden, jsonl
from tidemark.errors import TidemarkError
from tidemark.logs import LogFile, find_logs
from tidemark.spark import event_log, log_plan
from tidemark.spark.event_log import EventLogReader
from tidemark.spark.log_plan import LogPlanReader, plan_logs, plan_segments
from tidemark.wire.header import HEADER_SIZE, write_header
from tidemark.wire.registry import EVENT_TYPES

RESOLVED = golden("wire/resolved_typical.bin").read_bytes()
STREAM = golden("streams/orders.bin").read_bytes()
EVENTS = jsonl("streams/orders.events.jsonl")
FAMILIES = {kind.family for kind in EVENT_TYPES.values()}


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "a.bin").write_bytes(STREAM)
    return folder


def plan(folder, positions=None, segment_bytes=log_plan.SEGMENT_BYTES):
    """The rows of the plan, as Spark's tasks would make them."""
    reader = LogPlanReader(
        {
            "logs": json.dumps([{"upstream_id": "7", "path": str(folder)}]),
            "positions": json.dumps(positions or {}),
            "segment_bytes": str(segment_bytes),
        }
    )
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def read(rows, **options):
    segments = [
        [1, row["upstream_id"], row["file"], row["segment_start"], row["segment_end"], row["log_size"]]
        for row in rows
    ]
    reader = EventLogReader({"segments": json.dumps(segments), **options})
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def test_every_frame_is_read_once_with_its_place(log):
    rows = read(plan(log))
    assert [(row["offset"], row["length"]) for row in rows] == [(e["offset"], e["length"]) for e in EVENTS]
    assert b"".join(row["frame"] for row in rows) == STREAM
    assert {row["upstream_id"] for row in rows} == {"7"}


@pytest.mark.parametrize("segment_bytes", [1, 1000, 20_000, 10**9])
def test_segments_start_on_frame_boundaries_and_cover_the_log(log, segment_bytes):
    rows = plan(log, segment_bytes=segment_bytes)
    starts = {event["offset"] for event in EVENTS} | {len(STREAM)}
    assert rows[0]["segment_start"] == 0
    assert rows[-1]["segment_end"] == len(STREAM)
    assert all(a["segment_end"] == b["segment_start"] for a, b in pairwise(rows))
    assert all(row["segment_end"] in starts for row in rows)
    assert sum(row["frame_count"] for row in rows) == len(EVENTS)
    assert b"".join(row["frame"] for row in read(rows)) == STREAM


def test_a_plan_says_which_families_a_segment_holds_as_far_as_they_can_be_decoded(log):
    (row,) = plan(log)
    assert row["families"] == ["control", "ddl", "dml", "handshake", "resolved", "syncpoint"]
    for segment in plan(log, segment_bytes=1):
        found = {family for family in FAMILIES if read([segment], family=family)}
        assert set(segment["families"]) == found
    unknown = write_header(9, 99, 4) + bytes(4)
    (log / "a.bin").write_bytes(RESOLVED + unknown)
    assert [row["families"] for row in plan(log)] == [["resolved"]]


def test_a_header_only_read_ships_sixteen_bytes_of_each_frame(log):
    rows = read(plan(log), payload="header")
    assert [row["frame"] for row in rows] == [STREAM[e["offset"] : e["offset"] + HEADER_SIZE] for e in EVENTS]
    assert [row["length"] for row in rows] == [e["length"] for e in EVENTS]


def test_only_the_wanted_family_leaves_the_reader(log):
    rows = read(plan(log), family="ddl")
    assert [row["offset"] for row in rows] == [e["offset"] for e in EVENTS if e["kind"] == "ddl"]
    assert all(row["frame"] == STREAM[row["offset"] : row["offset"] + row["length"]] for row in rows)


@pytest.mark.parametrize("other_bytes", [0, 20, 500])
def test_frames_of_a_family_share_a_batch_whatever_stands_between_them(log, other_bytes):
    between = write_header(9, 2, 44 + other_bytes) + bytes(40) + other_bytes.to_bytes(4, "big")
    between += b"x" * other_bytes
    (log / "a.bin").write_bytes((RESOLVED + between + RESOLVED + RESOLVED) * 20)
    row = plan(log)[0]
    segments = [[1, "7", row["file"], 0, row["segment_end"], row["log_size"]]]
    reader = EventLogReader({"segments": json.dumps(segments), "family": "resolved"})
    (batch,) = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert batch.column("frame").to_pylist() == [RESOLVED] * 60
    cycle = 3 * len(RESOLVED) + len(between)
    places = (0, len(RESOLVED) + len(between), 2 * len(RESOLVED) + len(between))
    assert batch.column("offset").to_pylist() == [n * cycle + place for n in range(20) for place in places]


def test_a_torn_tail_waits_for_the_next_plan(log):
    file = log / "a.bin"
    file.write_bytes(STREAM + RESOLVED[:30])
    first = plan(log)
    assert (first[-1]["segment_end"], first[-1]["torn_bytes"]) == (len(STREAM), 30)
    position = {str(file): [first[-1]["segment_end"], first[-1]["log_size"]]}
    assert plan(log, position) == [], "nothing was added"
    file.write_bytes(STREAM + RESOLVED)
    second = plan(log, position)
    assert [row["frame"] for row in read(second)] == [RESOLVED]


def test_corrupt_bytes_come_with_place_reason_and_a_bounded_copy(log, monkeypatch):
    monkeypatch.setattr(event_log, "QUARANTINE_BYTES", 64)
    cut = EVENTS[10]["offset"]
    (log / "a.bin").write_bytes(STREAM[:cut] + b"\x00" * 500 + STREAM[cut:])
    rows = plan(log)
    assert rows[0]["skipped_bytes"] == 500
    bad = [row for row in read(rows) if row["skip_reason"]]
    assert [(row["offset"], row["length"], row["skip_reason"], row["frame"]) for row in bad] == [
        (cut, 500, "bad_magic", b"\x00" * 64)
    ]
    assert len([row for row in read(rows) if not row["skip_reason"]]) == len(EVENTS)


def test_a_frame_of_an_unknown_type_keeps_its_bytes_in_a_header_only_read(log):
    unknown = RESOLVED[:4] + (99).to_bytes(2, "big") + RESOLVED[6:]
    (log / "a.bin").write_bytes(RESOLVED + unknown + RESOLVED)
    rows = read(plan(log), payload="header")
    assert [row["frame"] for row in rows] == [RESOLVED[:16], unknown, RESOLVED[:16]]


def test_batches_are_bounded_in_bytes(log, monkeypatch):
    monkeypatch.setattr(event_log, "BATCH_BYTES", 10_000)
    rows = plan(log)
    reader = EventLogReader(
        {"segments": json.dumps([[1, "7", rows[0]["file"], 0, len(STREAM), len(STREAM)]])}
    )
    sizes = [
        [len(frame) for frame in batch.column("frame").to_pylist()]
        for part in reader.partitions()
        for batch in reader.read(part)
    ]
    assert len(sizes) > 5
    assert all(sum(batch) <= 10_000 or len(batch) == 1 for batch in sizes)


def test_small_segments_share_a_task_and_big_ones_do_not(monkeypatch):
    monkeypatch.setattr(event_log, "PARTITION_BYTES", 100)
    segments = [[1, "1", f"f{n}", 0, size, size] for n, size in enumerate([40, 40, 40, 500, 10])]
    reader = EventLogReader({"segments": json.dumps(segments)})
    assert [[s.file for s in part.segments] for part in reader.partitions()] == [
        ["f0", "f1"],
        ["f2"],
        ["f3"],
        ["f4"],
    ]


def test_thousands_of_small_files_are_spread_over_tasks_and_come_in_few_record_batches(tmp_path):
    for number in range(1000):
        (tmp_path / f"{number:04d}.bin").write_bytes(RESOLVED)
    segments = [
        [1, "1", str(file), 0, len(RESOLVED), len(RESOLVED)] for file in sorted(tmp_path.glob("*.bin"))
    ]
    reader = EventLogReader({"segments": json.dumps(segments)})
    parts = reader.partitions()
    assert 2 <= len(parts) <= 10
    batches = [batch for part in parts for batch in reader.read(part)]
    assert len(batches) == len(parts)
    assert [row for batch in batches for row in batch.column("file").to_pylist()] == [s[2] for s in segments]


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, 8),
        ({"family": "dml"}, 8),
        ({"family": "dml", "payload": "transactions"}, 1),
        ({"family": "resolved"}, 1),
        ({"payload": "header"}, 1),
    ],
)
def test_a_task_takes_more_of_the_log_when_row_chunks_stay_in_it(monkeypatch, options, tasks):
    monkeypatch.setattr(event_log, "PARTITION_BYTES", 100)
    segments = [[1, "1", f"f{n}", 0, 100, 100] for n in range(8)]
    assert len(EventLogReader({"segments": json.dumps(segments), **options}).partitions()) == tasks


def test_a_log_that_became_shorter_is_an_error(log):
    with pytest.raises(TidemarkError, match="were already read: it was cut or replaced"):
        plan(log, {str(log / "a.bin"): [len(STREAM) + 1, len(STREAM) + 1]})


def test_a_plan_made_at_once_is_that_of_the_tasks(log):
    (log / "b.bin").write_bytes(RESOLVED * 3 + RESOLVED[:5])
    (log / "c.bin").write_bytes(RESOLVED)
    positions = {str(log / "a.bin"): [EVENTS[3]["offset"], 0], str(log / "c.bin"): [len(RESOLVED)] * 2}
    found = plan_logs([{"upstream_id": "7", "path": str(log)}], positions).to_pylist()
    assert [(row["file"], row["segment_start"], row["torn_bytes"]) for row in found] == [
        (str(log / "a.bin"), EVENTS[3]["offset"], 0),
        (str(log / "b.bin"), 0, 5),
    ]
    assert found == plan(log, positions)


def test_a_path_that_does_not_exist_is_an_error_and_an_empty_folder_is_not(tmp_path):
    with pytest.raises(TidemarkError, match="does not exist"):
        plan(tmp_path / "nowhere")
    assert plan(tmp_path) == []


def test_logs_are_found_by_file_folder_glob_and_url(tmp_path):
    for name in ("b.bin", "a.bin", "sub/c.bin", ".hidden", ".git/d.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(RESOLVED)

    def names(path):
        return [file.path.split(str(tmp_path) + "/")[1] for file in find_logs(path)]

    assert names(str(tmp_path)) == ["a.bin", "b.bin", "sub/c.bin"]
    assert names(str(tmp_path / "a.bin")) == ["a.bin"]
    assert names(str(tmp_path / "*.bin")) == ["a.bin", "b.bin"]
    assert names(f"file://{tmp_path}/*.bin") == ["a.bin", "b.bin"]


def test_a_log_in_an_object_store_is_planned_and_read(log):
    import fsspec

    with fsspec.open("memory://bucket/log/a.bin", "wb") as out:
        out.write(STREAM)
    rows = plan("memory://bucket/log")
    assert b"".join(row["frame"] for row in read(rows)) == STREAM


def test_memory_of_a_plan_does_not_grow_with_the_number_of_frames(tmp_path):
    import tracemalloc

    def peak(frames):
        file = tmp_path / f"{frames}.bin"
        file.write_bytes(RESOLVED * frames)
        tracemalloc.start()
        plan_segments(LogFile(str(file), file.stat().st_size), 0, 1 << 25)
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return taken

    peak(1000)
    assert peak(400_000) < 1.5 * peak(100_000)


def test_spark_reads_the_sources_and_the_header_function(spark, log):
    spark.sql(
        f"""create or replace temporary view a_plan using tidemark_log_plan
        options (logs '[{{"upstream_id": "7", "path": "{log}"}}]')"""
    )
    rows = [row.asDict() for row in spark.sql("select * from a_plan").collect()]
    segments = json.dumps(
        [[1, r["upstream_id"], r["file"], r["segment_start"], r["segment_end"], r["log_size"]] for r in rows]
    )
    spark.sql(
        f"create or replace temporary view frames using tidemark_events options (segments '{segments}')"
    )
    found = spark.sql(
        "select header.*, `offset` from (select *, tidemark_header(frame, length) as header from frames) order by `offset`"
    ).collect()
    numbers = {"ready": 6, "ddl": 2, "handshake": 7, "batch_dml": 1, "resolved": 3, "syncpoint": 5}
    assert [row.event_type for row in found] == [numbers[e["kind"]] for e in EVENTS]
    assert {row.error for row in found} == {None}
    assert np.array_equal([row.payload_length + 16 for row in found], [e["length"] for e in EVENTS])
