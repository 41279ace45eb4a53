"""Sends messages and knows when all of them are acknowledged.

The producer is idempotent: the broker drops what the client sends twice, and the messages of a partition keep their order whatever is repeated.
Every in-sync replica acknowledges. What was sent is waited for in rounds of `_ROUND_BYTES`, which bounds the memory and keeps the client's queue from running
over: in a queue that is full, later messages could pass earlier ones.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidemark.encode.protocol import Message, Messages
from tidemark.encode.strings import offsets_of
from tidemark.sinks.kafka.client import Connection, client_library
from tidemark.sinks.kafka.errors import DeliveryFailed, UnencodableRow
from tidemark.wire.rows import RowBatch
from tidemark.words import counted

if TYPE_CHECKING:
    from tidemark.config import Settings

# How long one message is tried before it counts as lost.
DELIVERY_SECONDS = 60.0
# What the client takes for its limit, which is one of batches, too.
_MESSAGE_BYTES = (1000, 1_000_000_000)
_ROUND_BYTES = 64 * 1024 * 1024
_ROUND_MESSAGES = 400_000
_SLICE_MESSAGES = 20_000


class Sender:
    """One producer. Not for several threads."""

    def __init__(self, settings: Settings, *, delivery_seconds: float = DELIVERY_SECONDS):
        library = client_library()
        self._connection = Connection(settings)
        self._delivery_seconds = delivery_seconds
        largest = settings.uri.options.max_message_bytes
        self._producer = library.Producer(
            self._connection.options(
                **{
                    "enable.idempotence": True,
                    "acks": "all",
                    "compression.type": settings.uri.options.compression,
                    "message.max.bytes": min(max(largest, _MESSAGE_BYTES[0]), _MESSAGE_BYTES[1]),
                    "message.timeout.ms": int(delivery_seconds * 1000),
                    "queue.buffering.max.messages": 2 * _ROUND_MESSAGES,
                    "queue.buffering.max.kbytes": (2 * _ROUND_BYTES + largest) // 1024 + 1,
                    "linger.ms": 5,
                    # Only what fails comes back to Python.
                    "delivery.report.only.error": True,
                }
            )
        )
        self._problem: DeliveryFailed | None = None
        self._sent = self._round_bytes = self._round_messages = 0

    @property
    def sent(self) -> int:
        """Messages handed to the client; all acknowledged after `flush`."""
        return self._sent

    def rows(self, topic: str, partitions: np.ndarray, batch: RowBatch, messages: Messages) -> None:
        """The messages of row changes, each to its partition. `partitions` has an entry per row change of the batch."""
        refuse_errors(batch, messages)
        table = f"{batch.table.schema}.{batch.table.table}"
        chosen = partitions[messages.change]
        order = np.argsort(chosen, kind="stable")
        keys, values = messages.key.take(pa.array(order)), messages.value.take(pa.array(order))
        edges = np.flatnonzero(np.diff(chosen[order])) + 1
        for start, end in itertools.pairwise([0, *edges.tolist(), len(order)]):
            if start < end:
                partition = int(chosen[order[start]])
                self.messages(topic, partition, keys[start:end], values[start:end], table)

    def event(self, topic: str, partition: int, message: Message, what: str) -> None:
        """A message that is no row change; `what` names it in errors."""
        size = len(message.key or b"") + len(message.value or b"")
        self._produce(topic, partition, [{"key": message.key, "value": message.value}], size, what)

    def messages(
        self, topic: str, partition: int, keys: pa.BinaryArray, values: pa.BinaryArray, what: str
    ) -> None:
        """Messages of one partition, in order; `what` names their tables in errors."""
        sizes = np.diff(offsets_of(keys)) + np.diff(offsets_of(values))
        start = 0
        while start < len(sizes):
            size = np.cumsum(sizes[start : start + _SLICE_MESSAGES], dtype=np.int64)
            fitting = max(1, int(np.searchsorted(size, _ROUND_BYTES - self._round_bytes, "right")))
            stop = start + fitting
            # The client takes dictionaries, so here every message is touched once.
            made = [
                {"key": key, "value": value}
                for key, value in zip(
                    keys[start:stop].to_pylist(), values[start:stop].to_pylist(), strict=True
                )
            ]
            self._produce(topic, partition, made, int(size[fitting - 1]), what)
            start = stop

    def _produce(self, topic: str, partition: int, made: list[dict[str, Any]], size: int, what: str) -> None:
        """The partition is one of the call: the client does not look at partitions of single messages."""
        failed = functools.partial(self._failed, what)
        try:
            self._producer.produce_batch(topic, made, partition=partition, on_delivery=failed)
        except client_library().KafkaException as problem:
            self._fail(what, topic, partition, problem.args[0])
        for message in made:
            if "_error" in message:
                self._fail(what, topic, partition, message["_error"])
        self._sent += len(made)
        self._round_bytes += size
        self._round_messages += len(made)
        self._raise_problem()
        if self._round_bytes >= _ROUND_BYTES or self._round_messages >= _ROUND_MESSAGES:
            self.flush()

    def flush(self) -> None:
        """Returns when every message is acknowledged; DeliveryFailed when one is not."""
        # Messages give up by themselves after delivery_seconds; the rest is for their reports.
        waiting = self._producer.flush(self._delivery_seconds + 10)
        self._raise_problem()
        if waiting:
            raise DeliveryFailed(
                f"Kafka at {self._connection.brokers}: {counted(waiting, 'message')} not acknowledged; run again when the brokers answer"
            )
        self._round_bytes = self._round_messages = 0

    def close(self) -> None:
        """Give up what is not acknowledged."""
        self._producer.purge()
        self._producer.flush(1)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, what: str, error: Any, message: Any) -> None:
        if error is not None:
            self._fail(what, message.topic(), message.partition(), error)

    def _fail(self, what: str, topic: str, partition: int, error: Any) -> None:
        """The first failure is the one to tell: those after it are mostly its consequences."""
        if self._problem is None:
            timed_out = error.code() == client_library().KafkaError._MSG_TIMED_OUT
            reason = self._connection.reason(error) if timed_out else error.str()
            self._problem = DeliveryFailed(
                f"{what}: a message for topic {topic!r}, partition {partition}, was not accepted by Kafka at {self._connection.brokers}: {reason}; "
                "the checkpoint has not moved, so a later run sends it again"
            )

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem


def refuse_errors(batch: RowBatch, messages: Messages) -> None:
    """UnencodableRow for the first row change that has no message."""
    if messages.error.null_count == len(messages.error):
        return
    where = int(np.argmax(messages.error.is_valid().to_numpy(zero_copy_only=False)))
    table, ts = batch.table, int(batch.changes.commit_ts[messages.change[where]])
    raise UnencodableRow(
        f"table {table.schema}.{table.table}: a row with commit ts {ts} cannot be sent: {messages.error[where].as_py()}"
    )
