"""Bytes that lie: always a typed error or a correct value, in memory that follows the size of the input."""

import struct
import tracemalloc

import pytest

from support import golden
from tidemark.wire.errors import (
    InvalidField,
    OversizedPayload,
    TrailingBytes,
    TruncatedHeader,
    TruncatedPayload,
    WireError,
    WrongEventType,
)
from tidemark.wire.events.dml import DMLEvent, pack_keys, write
from tidemark.wire.fuzz_target import check_frame
from tidemark.wire.header import HEADER_SIZE, write_header
from tidemark.wire.json_form import event_form
from tidemark.wire.json_text import MAX_DEPTH
from tidemark.wire.registry import decode, encode

# Batches of resolved events have no frame of their own in the vectors; the one of one event is a frame.
PATHS = [p for p in sorted(golden("wire").glob("*.bin")) if "batch_resolved" not in p.name or "one" in p.name]
FRAMES = {path.stem: path.read_bytes() for path in PATHS}
SMALL = [name for name, frame in FRAMES.items() if len(frame) <= 400]
ALL_ONES = (1 << 64) - 1


def answer(frame):
    """The event, or the error; the event gives its bytes back and has a JSON form (or a broken table info)."""
    try:
        event = decode(frame)
    except WireError as error:
        return within(frame, error)
    assert encode(event) == frame
    try:
        event_form(event)
    except WireError as error:
        return error
    return event


def within(frame, error):
    assert 0 <= error.offset <= len(frame), error
    return error


def framed(type_id, payload, version=1):
    return write_header(type_id, version, len(payload)) + payload


def u32(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def u64(*numbers):
    return struct.pack(f">{len(numbers)}Q", *numbers)


@pytest.mark.parametrize("name", FRAMES)
def test_every_truncation_is_an_error(name):
    frame = FRAMES[name]
    step = max(1, len(frame) // 600)
    for size in (*range(0, len(frame), step), len(frame) - 1):
        error = answer(frame[:size])
        assert isinstance(error, TruncatedHeader if size < HEADER_SIZE else WireError)


@pytest.mark.parametrize("name", FRAMES)
def test_every_truncation_with_a_header_that_fits_is_answered(name):
    frame = FRAMES[name]
    step = max(1, len(frame) // 300)
    for size in range(HEADER_SIZE, len(frame), step):
        answer(frame[:8] + u64(size - HEADER_SIZE) + frame[HEADER_SIZE:size])


@pytest.mark.parametrize("name", SMALL)
def test_every_flipped_bit_is_answered(name):
    frame = bytearray(FRAMES[name])
    for place in range(len(frame)):
        for bit in range(8):
            frame[place] ^= 1 << bit
            answer(bytes(frame))
            frame[place] ^= 1 << bit


@pytest.mark.parametrize("name", [name for name in FRAMES if name not in SMALL])
def test_flipped_bits_of_big_events_are_answered(name):
    frame = bytearray(FRAMES[name])
    for index, place in enumerate(range(0, len(frame), max(1, len(frame) // 80))):
        frame[place] ^= 1 << index % 8
        answer(bytes(frame))
        frame[place] ^= 1 << index % 8


@pytest.mark.parametrize(
    "name", ["batch_dml_orders_0", "ddl_orders_create_schema", "congestion_control_v2_release"]
)
def test_every_number_replaced_by_an_edge_is_answered(name):
    frame = FRAMES[name]
    for edge in (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 63, ALL_ONES):
        for place in range(HEADER_SIZE, len(frame) - 8):
            answer(frame[:place] + u64(edge) + frame[place + 8 :])
            answer(frame[:place] + u32(edge & 0xFFFFFFFF) + frame[place + 4 :])


def ddl_with_names(change):
    return framed(2, b'{"table_name_change":' + change + b"}" + bytes(16) + u64(16, 0, 0))


HOSTILE = {
    "payload length of 2^64-1": (write_header(3, 1, ALL_ONES) + bytes(40), OversizedPayload),
    "batch of 2^64-1 transactions": (framed(1, u64(ALL_ONES) + bytes(200)), TruncatedPayload),
    # 8 x 2^61 is 0 in 64 bits
    "count x width that overflows": (framed(1, u64(1 << 61) + bytes(200)), TruncatedPayload),
    "heartbeat of 2^32-1 dispatchers": (framed(11, u64(1) + u32(0xFFFFFFFF) + bytes(100)), TruncatedPayload),
    "heartbeat v2 of 2^32-1 dispatchers": (
        framed(11, u64(1) + u32(0xFFFFFFFF) + bytes(100), 2),
        TruncatedPayload,
    ),
    "response of 2^32-1 dispatchers": (framed(12, u64(1) + u32(0xFFFFFFFF) + bytes(100)), TruncatedPayload),
    "2^32-1 changefeeds": (framed(10, u64(1) + u32(0xFFFFFFFF) + bytes(100)), TruncatedPayload),
    "2^32-1 dispatchers of a changefeed": (
        framed(10, u64(1) + u32(1) + bytes(16) + u64(5) + u32(0xFFFFFFFF) + bytes(48)),
        TruncatedPayload,
    ),
    "2^32-1 releases": (framed(10, u64(1) + u32(0, 0xFFFFFFFF) + bytes(40), 2), TruncatedPayload),
    "reason of 2^32-1 bytes": (framed(9, bytes(40) + u32(0xFFFFFFFF) + b"abc", 2), TruncatedPayload),
    "reason that is not UTF-8": (framed(9, bytes(40) + u32(2) + b"\xc3(", 2), InvalidField),
    "2^32-1 row types": (framed(0, bytes(72) + u32(0xFFFFFFFF) + bytes(50)), TruncatedPayload),
    "2^32-1 row keys": (framed(0, bytes(72) + u32(0, 0xFFFFFFFF) + bytes(50)), TruncatedPayload),
    "row key of 2^32-1 bytes": (framed(0, bytes(72) + u32(0, 1, 0xFFFFFFFF)), TruncatedPayload),
    "row type 3": (framed(0, bytes(72) + u32(1) + b"\3" + u32(0)), InvalidField),
    "negative row count": (framed(0, bytes(56) + u32(1 << 31) + bytes(20)), InvalidField),
    "dispatcher state 2": (framed(12, u64(1) + u32(1) + bytes(16) + b"\2"), InvalidField),
    "progress version 2": (framed(11, u64(1) + u32(1) + b"\2" + bytes(32), 2), InvalidField),
    "ddl of 2^64-1 tables": (framed(2, b"{}" + bytes(16) + u64(16, 0, ALL_ONES)), TruncatedPayload),
    "ddl table info before the start": (framed(2, b"{}" + bytes(16) + u64(16, 1000, 0)), TruncatedPayload),
    "ddl table info of 2^64-1 bytes": (framed(2, b"{}" + bytes(16) + u64(16, ALL_ONES, 0)), TruncatedPayload),
    "ddl extra table before the start": (framed(2, b"{}" + bytes(16) + u64(16, 0, 999, 1)), TruncatedPayload),
    "ddl id of 8 bytes": (framed(2, b"{}" + bytes(8) + u64(8, 0, 0)), InvalidField),
    "ddl id before the start": (framed(2, u64(16, 0, 0)), TruncatedPayload),
    "ddl without a body": (framed(2, bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl body that is a list": (framed(2, b"[]" + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl body that is not UTF-8": (framed(2, b'{"query":"\xff"}' + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl body in UTF-16": (
        framed(2, '{"seq":1}'.encode("utf-16-le") + bytes(16) + u64(16, 0, 0)),
        InvalidField,
    ),
    "ddl body with NaN": (framed(2, b'{"new":NaN}' + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl commit ts of 2^64": (
        framed(2, b'{"finished_ts":18446744073709551616}' + bytes(16) + u64(16, 0, 0)),
        InvalidField,
    ),
    "ddl negative seq": (framed(2, b'{"seq":-1}' + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl seq that is text": (framed(2, b'{"seq":"1"}' + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl type 256": (framed(2, b'{"type":256}' + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl new name that is a number": (ddl_with_names(b'{"AddName":[1]}'), InvalidField),
    "ddl old names that are a number": (ddl_with_names(b'{"DropName":5}'), InvalidField),
    "ddl old name without its parts": (ddl_with_names(b'{"DropName":[{}]}'), InvalidField),
    "ddl old name with a number for a schema": (
        ddl_with_names(b'{"DropName":[{"SchemaName":5,"TableName":"t"}]}'),
        InvalidField,
    ),
    "ddl old name without a table": (
        ddl_with_names(b'{"DropName":[{"SchemaName":"s","TableName":null}]}'),
        InvalidField,
    ),
    "ddl number of 5000 digits": (
        framed(2, b'{"new":' + b"9" * 5000 + b"}" + bytes(16) + u64(16, 0, 0)),
        InvalidField,
    ),
    "ddl depth bomb of lists": (framed(2, b"[" * 200_000 + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl depth bomb of objects": (framed(2, b'{"a":' * 200_000 + bytes(16) + u64(16, 0, 0)), InvalidField),
    "ddl unclosed string of quotes": (
        framed(2, b'{"' + b'\\"' * 100_000 + b"[" * 100 + bytes(16) + u64(16, 0, 0)),
        InvalidField,
    ),
    "batch resolved with half a header": (framed(4, bytes(7)), TruncatedHeader),
    "batch resolved with a frame that is too long": (
        framed(4, write_header(3, 1, 41) + bytes(40)),
        TruncatedPayload,
    ),
    "batch resolved with a resolved of 41 bytes": (framed(4, framed(3, bytes(41))), TrailingBytes),
    "batch resolved inside batch resolved": (framed(4, framed(4, b"")), WrongEventType),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frame_is_refused_without_using_memory(name):
    frame, expected = HOSTILE[name]
    tracemalloc.start()
    try:
        with pytest.raises(expected) as caught:
            decode(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert type(caught.value) is expected
    assert peak < 20 * len(frame) + 200_000


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frame_can_be_explained(name):
    check_frame(HOSTILE[name][0])


def transaction(**changes):
    fields = {
        "dispatcher_id": bytes(16),
        "physical_table_id": 1,
        "start_ts": 2,
        "commit_ts": 3,
        "seq": 4,
        "epoch": 5,
        "row_count": 1,
        "approximate_size": 10,
        "previous_total_offset": 0,
        "row_types": b"\1",
        "key_count": 1,
        "keys": pack_keys([b"key"]),
    }
    return encode(DMLEvent(**{**fields, **changes}))


NESTED_LIES = {
    "size below the header": (lambda f: u64(1) + u64(8) + f, InvalidField),
    "size one less": (lambda f: u64(1) + u64(len(f) - 1) + f, InvalidField),
    "size one more, into the chunk": (lambda f: u64(1) + u64(len(f) + 1) + f + b"chunk", InvalidField),
    "size behind the end": (lambda f: u64(1) + u64(len(f) + 6) + f + b"chunk", TruncatedPayload),
    "size of 2^64-1": (lambda f: u64(1) + u64(ALL_ONES) + f, TruncatedPayload),
    "another event inside": (lambda f: u64(1) + u64(len(f)) + f[:5] + b"\3" + f[6:], WrongEventType),
    "second transaction missing": (lambda f: u64(2) + u64(len(f)) + f + bytes(104), WireError),
    "header inside agrees, payload does not": (
        lambda f: (
            u64(1) + u64(len(f) + 3) + write_header(0, 1, len(f) - HEADER_SIZE + 3) + f[HEADER_SIZE:] + b"abc"
        ),
        TrailingBytes,
    ),
}


@pytest.mark.parametrize("name", NESTED_LIES)
def test_nested_length_that_lies_is_refused(name):
    build, expected = NESTED_LIES[name]
    frame = framed(1, build(transaction()))
    with pytest.raises(expected):
        decode(frame)
    check_frame(frame)


def test_keys_that_end_early_have_trailing_bytes():
    keys = pack_keys([b"key"] * 20)
    payload = write(decode(transaction(key_count=20, keys=keys)))
    with pytest.raises(TrailingBytes) as caught:
        decode(framed(0, payload + b"x"))
    assert caught.value.offset == HEADER_SIZE + len(payload)


def test_uniform_looking_keys_with_one_other_length_are_walked():
    keys = pack_keys([b"abc"] * 9 + [b"abcdefgh"] + [b""] * 1)
    frame = framed(0, write(decode(transaction(key_count=11, keys=keys))))
    assert decode(frame).row_keys()[9:] == [b"abcdefgh", b""]
    lying = frame[:-4] + u32(1)
    with pytest.raises(TruncatedPayload):
        decode(lying)


@pytest.mark.parametrize("change", [b"null", b"{}", b'{"AddName":null,"DropName":[]}'])
def test_a_ddl_may_change_no_names(change):
    assert decode(ddl_with_names(change)).document.keys() == {"table_name_change"}


def test_depth_up_to_the_limit_is_read():
    deep = b'{"new":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    assert decode(framed(2, deep + bytes(16) + u64(16, 0, 0))).body == deep


def test_brackets_inside_text_do_not_count_as_depth():
    body = b'{"query":"' + b"[{" * 5000 + b'\\"[[","seq":7}'
    assert decode(framed(2, body + bytes(16) + u64(16, 0, 0))).seq == 7


def test_broken_table_info_is_an_error_with_its_place():
    frame = bytearray(FRAMES["handshake_evolve_0"])
    frame[HEADER_SIZE + 40] = ord("!")
    event = decode(bytes(frame))
    with pytest.raises(WireError) as caught:
        event.table()
    assert caught.value.offset == HEADER_SIZE + 40
