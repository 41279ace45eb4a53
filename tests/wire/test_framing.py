"""Finding frames: every byte of a log belongs to exactly one piece, and a corrupt place costs nothing but itself."""

import io
import random

import pytest

from support import golden, jsonl
from tidemark.wire.errors import BadMagic, OversizedPayload, TruncatedPayload
from tidemark.wire.framing import BLOCK_SIZE, Frame, Skipped, TornTail, scan, scan_runs
from tidemark.wire.header import HEADER_SIZE, MAGIC, write_header

RESOLVED = golden("wire/resolved_typical.bin").read_bytes()
STREAM = golden("streams/orders.bin").read_bytes()
STREAM_FRAMES = [(event["offset"], event["length"]) for event in jsonl("streams/orders.events.jsonl")]


def pieces(log, **limits):
    found = list(scan(io.BytesIO(log), **limits))
    position = limits.get("start", 0)
    for piece in found:
        assert piece.offset == position, "pieces leave no gap and do not overlap"
        position += piece.length
    return found


def frames(found):
    return [(piece.offset, piece.length) for piece in found if isinstance(piece, Frame)]


@pytest.mark.parametrize("stream", ["orders", "alltypes", "evolve", "active_active", "multi_upstream_u1"])
def test_frames_are_where_the_sender_put_them(stream):
    log = golden(f"streams/{stream}.bin").read_bytes()
    assert frames(pieces(log)) == [
        (e["offset"], e["length"]) for e in jsonl(f"streams/{stream}.events.jsonl")
    ]


def test_an_empty_log_has_no_pieces():
    assert pieces(b"") == []


def test_blocks_of_small_frames_and_single_big_frames_join_up():
    big = write_header(1, 1, 3 * BLOCK_SIZE) + bytes(3 * BLOCK_SIZE)
    log = RESOLVED * 30_000 + big + RESOLVED * 30_000 + big
    expected = []
    position = 0
    for part, count in ((RESOLVED, 30_000), (big, 1), (RESOLVED, 30_000), (big, 1)):
        for _ in range(count):
            expected.append((position, len(part)))
            position += len(part)
    assert frames(pieces(log)) == expected


def test_a_scan_from_any_frame_finds_the_same_pieces():
    corrupt = bytearray(STREAM)
    corrupt[STREAM_FRAMES[20][0]] ^= 0xFF
    whole = pieces(bytes(corrupt))
    for start in [piece.offset for piece in whole if isinstance(piece, Frame)]:
        later = [piece for piece in whole if piece.offset >= start]
        assert [(p.offset, p.length) for p in pieces(bytes(corrupt), start=start)] == [
            (p.offset, p.length) for p in later
        ]


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_in_a_header_costs_only_that_frame(seed):
    chance = random.Random(seed)
    for _ in range(100):
        number = chance.randrange(len(STREAM_FRAMES))
        log = bytearray(STREAM)
        log[STREAM_FRAMES[number][0] + chance.randrange(HEADER_SIZE)] ^= 1 << chance.randrange(8)
        lost = set(STREAM_FRAMES) - set(frames(pieces(bytes(log))))
        assert lost <= {STREAM_FRAMES[number]}


def test_garbage_before_between_and_after_frames_is_skipped_with_its_reason():
    garbage = b"\x00garbage" * 9
    found = pieces(garbage + RESOLVED + garbage + RESOLVED + garbage)
    assert [type(piece) for piece in found] == [Skipped, Frame, Skipped, Frame, Skipped]
    assert all(isinstance(piece.error, BadMagic) for piece in found if isinstance(piece, Skipped))


def test_a_length_that_swallows_its_neighbours_is_found_out():
    lying = write_header(3, 1, 40 + len(RESOLVED)) + RESOLVED[HEADER_SIZE:]
    found = pieces(lying + RESOLVED + b"\x00" * 5 + RESOLVED)
    assert frames(found) == [(len(lying), len(RESOLVED)), (len(lying) + len(RESOLVED) + 5, len(RESOLVED))]
    assert isinstance(found[0].error, TruncatedPayload)


def test_an_impossible_length_is_skipped():
    found = pieces(write_header(3, 1, 2**64 - 1) + RESOLVED[HEADER_SIZE:] + RESOLVED)
    assert [type(piece) for piece in found] == [Skipped, Frame]
    assert isinstance(found[0].error, OversizedPayload)


@pytest.mark.parametrize("kept", range(1, len(RESOLVED)))
def test_a_torn_last_frame_is_left_for_later(kept):
    found = pieces(RESOLVED + RESOLVED[:kept])
    assert [type(piece) for piece in found] == [Frame, TornTail]
    assert found[1].length == kept


def test_a_torn_batch_is_not_resumed_at_a_nested_header():
    offset, length = next(
        (e["offset"], e["length"]) for e in jsonl("streams/orders.events.jsonl") if e["kind"] == "batch_dml"
    )
    batch = STREAM[offset : offset + length]
    assert batch.count(MAGIC) > 1
    for cut in range(HEADER_SIZE, length, 7):
        assert [type(piece) for piece in pieces(RESOLVED + batch[:cut])] == [Frame, TornTail]


def test_an_unknown_type_between_good_frames_stays_a_frame_of_its_own():
    unknown = write_header(99, 1, 8) + bytes(8)
    assert len(frames(pieces(RESOLVED + unknown + RESOLVED))) == 3


def test_the_log_ends_where_the_reader_was_told():
    assert frames(pieces(RESOLVED * 3, size=2 * len(RESOLVED))) == frames(pieces(RESOLVED * 2))


def test_payloads_of_big_frames_are_not_read():
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size=-1):
            data = super().read(size)
            self.taken += len(data)
            return data

    big = write_header(1, 1, 1 << 20) + bytes(1 << 20)
    log = Counting(big * 8)
    assert sum(len(run.offset) for run in scan_runs(log)) == 8
    assert log.taken < 1024
