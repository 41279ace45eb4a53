"""Headers in columns: the fields of each header, and one reason for each way it can be wrong."""

import pyarrow as pa
import pytest

from support import golden
from tidemark.wire.header import HEADER_SIZE, write_header
from tidemark.wire.header_columns import header_columns
from tidemark.wire.registry import EVENT_TYPES, HIGHEST_VERSION

RESOLVED = golden("wire/resolved_typical.bin").read_bytes()


def headers(*frames, lengths=None):
    lengths = lengths or [len(frame) for frame in frames]
    return header_columns(pa.array(frames, pa.binary()), pa.array(lengths, pa.int64())).to_pylist()


@pytest.mark.parametrize("event_type", sorted(EVENT_TYPES))
def test_known_types_and_versions_are_read(event_type):
    for version in range(HIGHEST_VERSION[event_type] + 1):
        frame = write_header(event_type, version, 5) + bytes(5)
        assert headers(frame) == [
            {"event_type": event_type, "version": version, "payload_length": 5, "error": None}
        ]


@pytest.mark.parametrize(
    ("reason", "frame"),
    [
        ("truncated_header", b""),
        ("truncated_header", RESOLVED[: HEADER_SIZE - 1]),
        ("bad_magic", b"\x00" + RESOLVED[1:]),
        ("unknown_event_type", write_header(13, 1, 0)),
        ("unsupported_version", write_header(3, 9, 0)),
        ("oversized_payload", write_header(3, 1, 2**64 - 1)),
        ("truncated_payload", RESOLVED[:-1]),
        ("trailing_bytes", RESOLVED + b"\x00"),
    ],
)
def test_each_way_to_be_wrong_has_its_reason(reason, frame):
    found = headers(RESOLVED, frame, RESOLVED)
    assert [row["error"] for row in found] == [None, reason, None]


def test_fields_are_null_where_there_is_no_header():
    assert headers(b"\x00" * 16)[0] == {
        "event_type": None,
        "version": None,
        "payload_length": None,
        "error": "bad_magic",
    }


def test_a_header_alone_is_enough_when_the_length_is_given():
    assert headers(RESOLVED[:HEADER_SIZE], lengths=[len(RESOLVED)])[0]["error"] is None


def test_no_frames_and_sliced_arrays():
    assert headers() == []
    array = pa.array([b"x", RESOLVED, RESOLVED], pa.binary())[1:]
    assert header_columns(array, pa.array([56, 56], pa.int64())).field("event_type").to_pylist() == [3, 3]
