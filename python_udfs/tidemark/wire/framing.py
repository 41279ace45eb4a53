"""Finding frames in a log: hop from header to header, resynchronise where a header is corrupt, leave a torn tail alone.

    log   := frame*  torn?
    frame := header[16] payload[header.payload_length]

A log is cut into pieces that together cover it exactly: frames, a `Skipped` range (corrupt bytes up to the next believable header), or a
`TornTail` (the last frame is not completely written yet). Payloads are not looked into, except around a corrupt place.

What is believable. A frame is taken when its header is sound and another header, or the end of the log, follows it. Otherwise one of the two
headers is corrupt, and a header inside the frame decides: if there is one, the length of the frame lies. Batches carry nested DML and
Resolved frames, so a nested header counts only where the chain of frames goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from tidemark.wire.errors import BadMagic, OversizedPayload, TruncatedHeader, TruncatedPayload, WireError
from tidemark.wire.event_types import TYPE_NAMES
from tidemark.wire.header import HEADER_SIZE, MAGIC, MAX_PAYLOAD_LENGTH, Header, read_header

# What the types are does not matter here, a number below this one only makes a header believable.
EVENT_TYPE_COUNT = len(TYPE_NAMES)
DML, BATCH_RESOLVED = 0, 4
HIGHEST_BELIEVABLE_VERSION = 15

# Small frames are found in blocks of this size with numpy, big ones by hopping.
BLOCK_SIZE = 1 << 20
SMALL_FRAME = 1 << 13

HEADER_DTYPE = np.dtype([("magic", ">u4"), ("type", ">u2"), ("version", ">u2"), ("length", ">u8")])
MAGIC_WORD = int.from_bytes(MAGIC, "big")


def headers_at(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The headers that start at these places of some bytes, as HEADER_DTYPE."""
    return data[starts[:, None] + np.arange(HEADER_SIZE)].view(HEADER_DTYPE).reshape(-1)


class FrameRun(NamedTuple):
    """Frames that follow each other without a gap, as numpy columns."""

    offset: np.ndarray
    length: np.ndarray
    event_type: np.ndarray
    version: np.ndarray

    @property
    def end(self) -> int:
        return int(self.offset[-1] + self.length[-1])

    def filter(self, chosen: np.ndarray) -> FrameRun:
        """Some of the frames; they may have gaps between them."""
        return FrameRun(*(column[chosen] for column in self))


@dataclass(frozen=True, slots=True)
class Frame:
    offset: int
    length: int
    header: Header


@dataclass(frozen=True, slots=True)
class Skipped:
    """Bytes that belong to no believable frame."""

    offset: int
    length: int
    error: WireError


@dataclass(frozen=True, slots=True)
class TornTail:
    """The beginning of a frame whose rest is not written yet."""

    offset: int
    length: int


def scan(
    log: BinaryIO, start: int = 0, end: int | None = None, size: int | None = None
) -> Iterator[Frame | Skipped | TornTail]:
    """The pieces of `log` that begin in [start, end), one by one. `start` must be the beginning of a piece."""
    for piece in scan_runs(log, start, end, size):
        if isinstance(piece, FrameRun):
            for offset, length, event_type, version in zip(
                *(column.tolist() for column in piece), strict=True
            ):
                yield Frame(offset, length, Header(event_type, version, length - HEADER_SIZE))
        else:
            yield piece


def scan_runs(
    log: BinaryIO, start: int = 0, end: int | None = None, size: int | None = None
) -> Iterator[FrameRun | Skipped | TornTail]:
    """As `scan`, with consecutive frames together.

    `size` is where the log ends for this reader, even if it has grown meanwhile; the pieces found from a given start are the same whoever scans.
    """
    source = _Window(log, size)
    end = source.size if end is None else min(end, source.size)
    position = start
    while position < end:
        run = source.run_of_frames(position, end)
        if run is not None:
            yield run
            position = run.end
            continue
        piece = _piece_at(source, position)
        if isinstance(piece, Frame):
            yield FrameRun(
                np.array([piece.offset]),
                np.array([piece.length]),
                np.array([piece.header.event_type], dtype=np.uint16),
                np.array([piece.header.version], dtype=np.uint16),
            )
        else:
            yield piece
        position = piece.offset + piece.length


def _piece_at(source: _Window, position: int) -> Frame | Skipped | TornTail:
    header = source.header_at(position)
    if isinstance(header, WireError):
        return _skip_or_torn(source, position, header)
    next_position = position + HEADER_SIZE + header.payload_length
    if next_position > source.size:
        error = TruncatedPayload(
            f"the header announces {header.payload_length} bytes of payload, the log ends after {source.size - position - HEADER_SIZE}",
            offset=position,
            expected=header.payload_length,
            actual=source.size - position - HEADER_SIZE,
        )
        return _skip_or_torn(source, position, error)
    frame = Frame(position, next_position - position, header)
    if header.event_type == BATCH_RESOLVED or source.continues_at(next_position):
        return frame
    inner = source.find_header(position + HEADER_SIZE, next_position)
    if inner is None:
        return frame
    error = TruncatedPayload(
        f"the header announces {header.payload_length} bytes of payload, but another frame starts after {inner - position - HEADER_SIZE}",
        offset=position,
        expected=header.payload_length,
        actual=inner - position - HEADER_SIZE,
    )
    return Skipped(position, inner - position, error)


def _skip_or_torn(source: _Window, position: int, error: WireError) -> Skipped | TornTail:
    resume = source.find_header(position + 1, source.size)
    if resume is not None:
        return Skipped(position, resume - position, error)
    rest = source.size - position
    if isinstance(error, TruncatedPayload) or source.may_become_header(position):
        return TornTail(position, rest)
    # Corrupt to the end, but the last few bytes may be the first of a header that is still being written.
    for tail in range(min(HEADER_SIZE - 1, rest - 1), 0, -1):
        if source.may_become_header(source.size - tail):
            return Skipped(position, rest - tail, error)
    return Skipped(position, rest, error)


class _Window:
    """A log with one block of it in memory."""

    def __init__(self, log: BinaryIO, size: int | None):
        self.log = log
        self.size = log.seek(0, 2) if size is None else size
        self._start = 0
        self._block = b""
        self._index: _BlockIndex | None = None
        self._index_start = -1

    def read(self, position: int, length: int) -> memoryview:
        length = max(0, min(length, self.size - position))
        first = position - self._start
        if first < 0 or first + length > len(self._block):
            self._load(position, length)
            first = 0
        return memoryview(self._block)[first : first + length]

    def _load(self, position: int, length: int) -> bytes:
        self.log.seek(position)
        self._block, self._start = self.log.read(max(0, min(length, self.size - position))), position
        return self._block

    def header_at(self, position: int) -> Header | WireError:
        try:
            header = read_header(self.read(position, HEADER_SIZE))
        except (TruncatedHeader, BadMagic, OversizedPayload) as error:
            return error.at(position)
        return header

    def may_become_header(self, position: int) -> bool:
        """Whether fewer than 16 bytes are left and they do not contradict the magic."""
        head = bytes(self.read(position, HEADER_SIZE))
        return len(head) < HEADER_SIZE and head[: len(MAGIC)] == MAGIC[: len(head)]

    def continues_at(self, position: int) -> bool:
        """Whether a header, or the end of the log, is here."""
        if position >= self.size:
            return position == self.size
        if self.size - position < HEADER_SIZE:
            return self.may_become_header(position)
        return self._believable(position)

    def _believable(self, position: int) -> bool:
        header = self.header_at(position)
        return (
            isinstance(header, Header)
            and header.event_type < EVENT_TYPE_COUNT
            and header.version <= HIGHEST_BELIEVABLE_VERSION
        )

    def find_header(self, position: int, end: int) -> int | None:
        """The first place in [position, end) where a chain of frames can be taken up again.

        A DML header is nested in a batch more often than not, so it must be followed by a header; any other one must fit
        into the log, or be the last of it.
        """
        while position < end:
            block = bytes(self.read(position, min(BLOCK_SIZE, end - position) + len(MAGIC) - 1))
            found = block.find(MAGIC)
            while found >= 0:
                candidate = position + found
                if candidate >= end:
                    return None
                if self._resumes_at(candidate):
                    return candidate
                found = block.find(MAGIC, found + 1)
            position += BLOCK_SIZE
        return None

    def _resumes_at(self, candidate: int) -> bool:
        if self.size - candidate < HEADER_SIZE or not self._believable(candidate):
            return False
        header = self.header_at(candidate)
        next_position = candidate + HEADER_SIZE + header.payload_length
        if header.event_type == DML:
            return next_position < self.size and self.continues_at(next_position)
        return next_position <= self.size

    def run_of_frames(self, position: int, end: int) -> FrameRun | None:
        """The frames that follow each other from here within one block, found without a Python step per byte.

        None where the next frame is big or something is wrong: the caller then looks closely. A frame whose successor
        has not been seen is left out of the run.
        """
        header = self.header_at(position)
        if isinstance(header, WireError) or header.payload_length > SMALL_FRAME:
            return None
        index = self._index_around(position)
        first = int(np.searchsorted(index.start, position))
        if first >= len(index.start) or index.start[first] != position:
            return None
        chosen = index.chain_from(first, end)
        if not len(chosen):
            return None
        starts = index.start[chosen]
        return FrameRun(starts, index.end[chosen] - starts, index.event_type[chosen], index.version[chosen])

    def _index_around(self, position: int) -> _BlockIndex:
        """The index of a block that holds the frame at `position`, made once for each block."""
        ahead = self._start + len(self._block) - position
        if (
            self._index is None
            or self._index_start != self._start
            or not position - self._start >= 0
            or (ahead < 2 * SMALL_FRAME and self._start + len(self._block) < self.size)
        ):
            block = self._load(position, BLOCK_SIZE)
            self._index, self._index_start = _BlockIndex.of(block, position), position
        return self._index


class _BlockIndex(NamedTuple):
    """Every believable header of a block, and for each one the place of the header right behind its frame (-1: not seen)."""

    start: np.ndarray
    end: np.ndarray
    event_type: np.ndarray
    version: np.ndarray
    successor: np.ndarray

    @classmethod
    def of(cls, block: bytes, position: int) -> _BlockIndex:
        data = np.frombuffer(block, dtype=np.uint8)
        last = max(len(data) - HEADER_SIZE + 1, 0)
        starts = np.flatnonzero(data[:last] == MAGIC[0])
        for place in range(1, len(MAGIC)):
            starts = starts[data[starts + place] == MAGIC[place]]
        heads = headers_at(data, starts)
        believable = (heads["type"] < EVENT_TYPE_COUNT) & (heads["version"] <= HIGHEST_BELIEVABLE_VERSION)
        believable &= heads["length"] <= MAX_PAYLOAD_LENGTH
        starts, heads = starts[believable], heads[believable]
        ends = starts + HEADER_SIZE + heads["length"].astype(np.int64)
        following = np.searchsorted(starts, ends)
        seen = following < len(starts)
        seen[seen] = starts[following[seen]] == ends[seen]
        return cls(
            starts + position,
            ends + position,
            heads["type"].astype(np.uint16),
            heads["version"].astype(np.uint16),
            np.where(seen, following, -1),
        )

    def chain_from(self, first: int, end: int) -> np.ndarray:
        """The places of the frames reached from `first`, successor by successor, that begin before `end`."""
        successor = self.successor[first:]
        straight = successor == np.arange(first + 1, first + 1 + len(successor))
        length = len(straight) if straight.all() else int(np.argmin(straight))
        chain = np.arange(first, first + length)
        if length < len(successor) and successor[length] >= 0:
            # A header inside a payload stands in between: step over it.
            steps, place, further = self.successor.tolist(), first + length, []
            while steps[place] >= 0:
                further.append(place)
                place = steps[place]
            chain = np.concatenate([chain, np.array(further, dtype=np.int64)])
        return chain[self.start[chain] < end]
