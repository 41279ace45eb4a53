"""Versions: a reader accepts its own and lower ones; a sender falls back to what the reader knows."""

from dataclasses import dataclass, replace

import pytest

from support import golden
from tidemark.wire import registry
from tidemark.wire.errors import TrailingBytes, TruncatedPayload, UnsupportedVersion
from tidemark.wire.events.base import Codec
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.drop import V1 as DROP_V1
from tidemark.wire.events.drop import DropEvent
from tidemark.wire.events.drop_v2 import DropEventV2
from tidemark.wire.header import HEADER_SIZE, read_header
from tidemark.wire.registry import EVENT_TYPES, HIGHEST_VERSION, VERSIONS, Reader, decode, encode

SAMPLES = {
    0: "dml_orders_0",
    1: "batch_dml_orders_0",
    2: "ddl_orders_create_schema",
    3: "resolved_typical",
    5: "sync_point_typical",
    6: "ready_typical",
    7: "handshake_evolve_0",
    8: "not_reusable_typical",
    9: "drop_typical",
    10: "congestion_control_v2_release",
    11: "dispatcher_heartbeat_v2_five",
    12: "dispatcher_heartbeat_response_mixed",
}


def sample(type_id):
    if type_id == BatchResolvedEvent.type_id:
        return BatchResolvedEvent((sample(3), sample(3)))
    if type_id == DropEvent.type_id:
        return DropEventV2(bytes(16), 7, 8, 9, dropped_reason="memory pressure")
    return decode(golden(f"wire/{SAMPLES[type_id]}.bin").read_bytes())


def versions_of(type_id):
    return sorted(version for known, version in VERSIONS if known == type_id)


MATRIX = [
    (type_id, writer, reader)
    for type_id in EVENT_TYPES
    for writer in versions_of(type_id)
    for reader in versions_of(type_id)
]


@pytest.mark.parametrize(("type_id", "writer", "reader"), MATRIX)
def test_reader_reads_its_own_and_lower_versions(type_id, writer, reader):
    event = sample(type_id)
    frame = encode(event, version=writer)
    assert read_header(frame).version == writer
    if writer <= reader:
        again = decode(frame, highest={type_id: reader})
        assert again.version == writer
        assert encode(again) == frame
        assert len(frame) == again.size() + HEADER_SIZE
    else:
        with pytest.raises(UnsupportedVersion) as caught:
            decode(frame, highest={type_id: reader})
        assert (caught.value.expected, caught.value.actual, caught.value.offset) == (reader, writer, 6)


@pytest.mark.parametrize("type_id", EVENT_TYPES)
def test_versions_0_and_1_are_one_layout(type_id):
    old, new = encode(sample(type_id), version=0), encode(sample(type_id), version=1)
    assert old[:6] == new[:6]
    assert old[8:] == new[8:]
    assert replace_version(decode(old), 1) == decode(new)


def replace_version(event, version):
    return replace(event, version=version)


def test_unsupported_version_names_type_version_and_highest_known():
    frame = bytearray(encode(sample(11)))
    frame[7] = 3
    with pytest.raises(UnsupportedVersion) as caught:
        decode(bytes(frame), offset=500)
    message = str(caught.value)
    assert "DispatcherHeartbeat (type 11)" in message
    assert "version 3" in message
    assert "highest version known here is 2" in message
    assert "at byte 506" in message


def test_highest_versions():
    assert {t: v for t, v in HIGHEST_VERSION.items() if v != 1} == {9: 2, 10: 2, 11: 2}


def test_sender_falls_back_to_the_version_the_reader_knows():
    event = sample(9)
    old_reader = Reader(highest={9: 1})
    with pytest.raises(UnsupportedVersion) as caught:
        old_reader.decode(encode(event))
    received = old_reader.decode(encode(event, version=caught.value.expected))
    assert received == DropEvent(event.dispatcher_id, 7, 8, 9, version=1)


def test_drop_v2_adds_the_reason():
    event = sample(9)
    assert event.size() == sample_v1_size() + 4 + len("memory pressure")
    assert decode(encode(event)).dropped_reason == "memory pressure"
    assert decode(encode(event)).fields()["dropped_reason"] == "memory pressure"


def test_a_drop_event_of_version_1_may_carry_the_reason():
    """By the length of its payload: the protocol's document shows this layout as version 1, too."""
    frame = bytearray(encode(sample(9)))
    frame[6:8] = (1).to_bytes(2, "big")
    event = decode(bytes(frame))
    assert (event.version, event.dropped_epoch, event.dropped_reason) == (1, 9, "memory pressure")
    assert event.fields()["dropped_reason"] == "memory pressure"
    assert encode(event) == bytes(frame)
    assert event.size() + HEADER_SIZE == len(frame)
    empty = bytes(frame[: -len("memory pressure") - 4]) + bytes(4)
    empty = empty[:8] + (len(empty) - HEADER_SIZE).to_bytes(8, "big") + empty[HEADER_SIZE:]
    assert encode(decode(empty)) == empty


def test_a_reason_of_version_1_that_is_cut_off_is_an_error():
    frame = bytearray(encode(sample(9)))[:-1]
    frame[6:8] = (1).to_bytes(2, "big")
    frame[8:16] = (len(frame) - HEADER_SIZE).to_bytes(8, "big")
    with pytest.raises(TruncatedPayload, match="reason"):
        decode(bytes(frame))


def test_a_drop_event_of_version_0_has_no_reason():
    frame = bytearray(encode(sample(9)))
    frame[6:8] = (0).to_bytes(2, "big")
    with pytest.raises(TrailingBytes):
        decode(bytes(frame))


def sample_v1_size():
    return decode(golden("wire/drop_typical.bin").read_bytes()).size()


def test_heartbeat_v1_written_as_v2_has_epoch_0():
    event = decode(golden("wire/dispatcher_heartbeat_v1_five.bin").read_bytes())
    upgraded = decode(encode(event, version=2))
    assert [progress.epoch for progress in upgraded.progresses] == [0] * 5
    assert encode(upgraded, version=1) == encode(event)


def test_congestion_control_v1_has_neither_ratio_nor_releases():
    event = sample(10)
    assert event.releases
    older = decode(encode(event, version=1))
    assert older.releases is None
    assert {changefeed.usage_ratio for changefeed in older.changefeeds} == {0.0}


def test_old_reader_refuses_new_events_inside_a_batch():
    batch = sample(1)
    frame = bytearray(encode(batch))
    frame[HEADER_SIZE + 8 + 8 + 7] = 2  # version of the first nested DML event
    with pytest.raises(UnsupportedVersion) as caught:
        decode(bytes(frame))
    assert caught.value.offset == HEADER_SIZE + 16 + 6
    ok = encode(replace(batch, transactions=batch.transactions[:1]))
    with pytest.raises(UnsupportedVersion):
        decode(ok, highest={0: 0})


def test_batch_keeps_the_version_of_each_transaction():
    batch = sample(1)
    mixed = tuple(replace(event, version=i % 2) for i, event in enumerate(batch.transactions))
    again = decode(encode(BatchDMLEvent(mixed, batch.chunk)))
    assert [event.version for event in again.transactions] == [0, 1]


def test_a_new_version_is_one_codec_and_one_line(monkeypatch):
    @dataclass(frozen=True, slots=True)
    class DropEventV3(DropEventV2):
        colour: int = 0
        version: int = 3

    def parse(cursor, version):
        old = DROP_V1.parse(cursor, version)
        return DropEventV3(old.dispatcher_id, 1, 2, 3, colour=cursor.u8("colour"))

    v3 = Codec(parse, lambda event: DROP_V1.write(event) + bytes([event.colour]), lambda event: 41)
    monkeypatch.setitem(VERSIONS, (9, 3), v3)
    monkeypatch.setattr(registry, "READER", Reader(highest={9: 3}))
    event = DropEventV3(bytes(16), 1, 2, 3, colour=5)
    assert decode(encode(event)) == event
