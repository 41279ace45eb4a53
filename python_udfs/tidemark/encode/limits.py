"""How large a message may be, and what becomes of one that is larger."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.encode.errors import EncodeError

if TYPE_CHECKING:
    from tidemark.config import Settings

# What Kafka adds to a message at most: five 32-bit and one 64-bit variable-length number, and a byte.
RECORD_OVERHEAD = 5 * 5 + 10 + 1


def largest_message(settings: Settings) -> int:
    """Bytes that a message may have in Kafka; files know no limit."""
    return sys.maxsize if settings.sink_kind == "storage" else settings.uri.options.max_message_bytes


def handle_key_when_large(settings: Settings) -> bool:
    """Whether a message that is too large is sent with its handle key only. Ways to handle one that are not built in are refused."""
    large = settings.sink.kafka.large_message_handle
    option, compression = large.large_message_handle_option, large.large_message_handle_compression
    if option == "claim-check" or compression != "none":
        raise EncodeError(
            f"{settings.protocol}: claim-check and message compression are not supported; remove large-message-handle"
        )
    return option == "handle-key-only"


def too_large(lengths: np.ndarray, largest: int) -> pa.StringArray:
    """Why a row has no message, for those whose message is too large."""
    sizes = pc.binary_join_element_wise(
        "a message of ", pa.array(lengths).cast(pa.string()), f" bytes; max-message-bytes is {largest}", ""
    )
    return pc.if_else(pa.array(lengths > largest), sizes, pa.scalar(None, pa.string()))
