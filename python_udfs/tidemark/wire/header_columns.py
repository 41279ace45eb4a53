"""Frame headers in columns: what the first 16 bytes of each frame say, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.wire import errors
from tidemark.wire.framing import HEADER_DTYPE, MAGIC_WORD, headers_at
from tidemark.wire.header import HEADER_SIZE, MAX_PAYLOAD_LENGTH
from tidemark.wire.registry import HIGHEST_VERSION

HEADER_FIELDS = pa.struct(
    [
        pa.field("event_type", pa.int32()),
        pa.field("version", pa.int32()),
        pa.field("payload_length", pa.int64()),
        pa.field("error", pa.string()),
    ]
)

_HIGHEST = np.full(1 << 16, -1, dtype=np.int32)
for _event_type, _version in HIGHEST_VERSION.items():
    _HIGHEST[_event_type] = _version


def is_known(event_type: np.ndarray, version: np.ndarray) -> np.ndarray:
    """Whether a decoder exists for each (type, version)."""
    return version.astype(np.int32) <= _HIGHEST[event_type]


def header_columns(frames: pa.Array, lengths: pa.Array) -> pa.StructArray:
    """HEADER_FIELDS of each frame.

    `frames` holds at least the first 16 bytes of each frame, `lengths` the length of the whole frame. Fields that were read are given even where
    `error` (the reason word of a wire error) is set; null where the header is not there at all.
    """
    frames = frames.cast(pa.binary()) if not pa.types.is_binary(frames.type) else frames
    count = len(frames)
    _, offset_buffer, data_buffer = frames.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int32)[frames.offset : frames.offset + count + 1].astype(
        np.int64
    )
    data = (
        np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.zeros(0, dtype=np.uint8)
    )
    whole = np.diff(offsets) >= HEADER_SIZE
    heads = np.zeros(count, dtype=HEADER_DTYPE)
    heads[whole] = headers_at(data, offsets[:-1][whole])

    event_type = heads["type"].astype(np.int32)
    version = heads["version"].astype(np.int32)
    oversized = heads["length"] > MAX_PAYLOAD_LENGTH
    payload_length = np.where(oversized, -1, heads["length"]).astype(np.int64)
    actual = np.asarray(lengths, dtype=np.int64) - HEADER_SIZE
    highest = _HIGHEST[event_type]

    # The first condition that holds names the error.
    conditions = [
        (~whole, errors.TruncatedHeader),
        (heads["magic"] != MAGIC_WORD, errors.BadMagic),
        (highest < 0, errors.UnknownEventType),
        (version > highest, errors.UnsupportedVersion),
        (oversized, errors.OversizedPayload),
        (payload_length > actual, errors.TruncatedPayload),
        (payload_length < actual, errors.TrailingBytes),
    ]
    names = pa.array([error.reason for _, error in conditions])
    which = np.select([condition for condition, _ in conditions], range(len(conditions)), default=-1)
    reason = names.take(pa.array(which, mask=which < 0))

    missing = ~whole | (heads["magic"] != MAGIC_WORD)
    return pa.StructArray.from_arrays(
        [
            pa.array(event_type, mask=missing),
            pa.array(version, mask=missing),
            pa.array(payload_length, mask=missing | oversized),
            reason,
        ],
        fields=list(HEADER_FIELDS),
    )
