"""Rows of BatchDML events: what happened to which row, with the schema in force."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tables import STREAMS, column, events, table, text_column

from support import jsonl
from tidemark.errors import TidemarkError
from tidemark.wire import types
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.errors import InvalidField, TrailingBytes, TruncatedPayload, WireError
from tidemark.wire.events.batch_dml import BatchDMLEvent, read_batch_dml, write
from tidemark.wire.events.dml import DMLEvent, pack_keys
from tidemark.wire.rows import DELETE, INSERT, NO_ROW, UPDATE, decode_batch, decode_batches
from tidemark.wire.text import canonical_values
from tidemark.wire.tracker import SchemaTracker

TABLE = table(column("id", types.BIGINT, flag=types.PRIMARY_KEY | types.NOT_NULL), text_column("v"))


def chunk(rows: list[tuple]) -> bytes:
    ids, values = [row[0] for row in rows], [row[1] for row in rows]
    arrays = [pa.array(ids, pa.int64()), pa.array(values, pa.string())]
    return encode_chunk(pa.RecordBatch.from_arrays(arrays, names=["id", "v"]), TABLE)


def transaction(
    row_types: list[int], *, offset: int = 0, keys: list[bytes] | None = None, **more
) -> DMLEvent:
    keys = [b"k%d" % position for position in range(len(row_types))] if keys is None else keys
    fields = {
        "dispatcher_id": bytes(16),
        "physical_table_id": 7,
        "start_ts": 10,
        "commit_ts": 20,
        "seq": 2,
        "epoch": 1,
        "row_count": len(row_types) - row_types.count(UPDATE) // 2,
        "approximate_size": 0,
        "previous_total_offset": offset,
        "row_types": bytes(row_types),
        "key_count": len(keys),
        "keys": pack_keys(keys),
    }
    return DMLEvent(**{**fields, **more})


def payload(*transactions: DMLEvent, rows: list[tuple]) -> bytes:
    return write(BatchDMLEvent(tuple(transactions), chunk(rows)))


def rows_of_stream(stream: str):
    """(schema in force, batch) per BatchDML event of a golden stream."""
    tracker = SchemaTracker()
    for _, event in events(stream):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent):
            schema = tracker.in_force(event.dispatcher_id)
            yield schema, decode_batch(event, schema.table)


@pytest.mark.parametrize("stream", STREAMS)
def test_every_golden_row_change(stream):
    expected = iter(jsonl(f"streams/{stream}.rows.jsonl"))
    for schema, batch in rows_of_stream(stream):
        values = {
            col.name: canonical_values(array, col)
            for col, array in zip(schema.table.columns, batch.columns.columns, strict=True)
        }
        changes = batch.changes
        for at in range(len(changes)):
            want = next(expected)
            assert want["op"] == ("delete", "insert", "update")[changes.op[at]]
            assert want["dispatcher"] == batch.dispatcher_id.hex()
            assert want["physical_table_id"] == str(changes.physical_table_id[at])
            assert (want["seq"], want["start_ts"], want["commit_ts"]) == (
                str(changes.seq[at]),
                str(changes.start_ts[at]),
                str(changes.commit_ts[at]),
            )
            assert want["row_key_hex"] == changes.row_key[at].as_py().hex()
            for image, row in (("pre", changes.pre[at]), ("post", changes.post[at])):
                got = (
                    None
                    if row == NO_ROW
                    else {name: column_values[row] for name, column_values in values.items()}
                )
                assert want[image] == got
            assert want["table_version"] == str(schema.table.version)
            assert want["table_info_version"] == str(schema.table_info_version)
            assert (want["handle_key"] or []) == list(schema.table.handle_key)
    assert next(expected, None) is None


@pytest.mark.parametrize("stream", STREAMS)
def test_golden_chunks_written_again_hold_the_same_values(stream):
    for schema, batch in rows_of_stream(stream):
        table = schema.table
        again = encode_chunk(batch.columns, table)
        event = BatchDMLEvent((transaction([INSERT] * batch.columns.num_rows),), again)
        columns = [col for col in table.columns if col.kind is not types.Kind.JSON]
        got = decode_batch(event, table).columns
        for col in columns:
            assert got.column(col.name).equals(batch.columns.column(col.name))


def test_an_update_is_one_change_with_both_images():
    batch = decode_batch(
        payload(
            transaction([DELETE, UPDATE, UPDATE, INSERT]),
            rows=[(1, "gone"), (2, "old"), (2, "new"), (3, "fresh")],
        ),
        TABLE,
    )
    assert batch.changes.op.tolist() == [DELETE, UPDATE, INSERT]
    assert batch.changes.pre.tolist() == [0, 1, NO_ROW]
    assert batch.changes.post.tolist() == [NO_ROW, 2, 3]
    assert batch.changes.row_key.to_pylist() == [b"k0", b"k1", b"k3"]
    assert batch.columns.column("v").to_pylist() == ["gone", "old", "new", "fresh"]


def test_a_split_transaction_is_several_dml_events_of_one_commit_ts():
    batch = decode_batch(
        payload(
            transaction([INSERT], seq=5),
            transaction([UPDATE, UPDATE], offset=1, seq=6),
            rows=[(1, "a"), (2, "b"), (2, "c")],
        ),
        TABLE,
    )
    assert batch.changes.commit_ts.tolist() == [20, 20]
    assert batch.changes.seq.tolist() == [5, 6]


def test_rows_are_found_by_previous_total_offset():
    batch = decode_batch(
        payload(transaction([INSERT], offset=1), transaction([DELETE], offset=0), rows=[(1, "a"), (2, "b")]),
        TABLE,
    )
    assert batch.changes.post.tolist() == [1, NO_ROW]
    assert batch.changes.pre.tolist() == [NO_ROW, 0]


def test_many_payloads_give_the_rows_of_each():
    one = payload(transaction([INSERT, INSERT]), rows=[(1, "a"), (2, None)])
    two = payload(transaction([UPDATE, UPDATE], commit_ts=30), rows=[(2, None), (2, "ü")])
    empty = write(BatchDMLEvent((), b""))
    joined = decode_batch([one, empty, two], TABLE)
    assert joined.columns.column("id").to_pylist() == [1, 2, 2, 2]
    assert joined.columns.column("v").to_pylist() == ["a", None, None, "ü"]
    assert joined.changes.commit_ts.tolist() == [20, 20, 30]
    assert joined.changes.pre.tolist() == [NO_ROW, NO_ROW, 2]
    assert joined.changes.post.tolist() == [0, 1, 3]


def test_to_arrow_has_one_line_per_physical_row():
    arrow = decode_batch(
        payload(transaction([DELETE, UPDATE, UPDATE, INSERT]), rows=[(1, "a"), (2, "b"), (2, "c"), (3, "d")]),
        TABLE,
    ).to_arrow()
    assert arrow.column("_tidemark_op").to_pylist() == [DELETE, UPDATE, UPDATE, INSERT]
    assert arrow.column("_tidemark_image").to_pylist() == ["pre", "pre", "post", "post"]
    assert arrow.column("_tidemark_row").to_pylist() == [0, 1, 1, 2]
    assert arrow.column("_tidemark_row_key").to_pylist() == [b"k0", b"k1", b"k1", b"k3"]
    assert arrow.schema.names[:2] == ["id", "v"]


def test_to_arrow_refuses_a_table_that_uses_reserved_names():
    owner = table(column("_tidemark_op", types.BIGINT))
    event = BatchDMLEvent(
        (transaction([INSERT]),),
        encode_chunk(pa.RecordBatch.from_arrays([pa.array([1])], names=["_tidemark_op"]), owner),
    )
    with pytest.raises(TidemarkError, match="reserved"):
        decode_batch(event, owner).to_arrow()


@pytest.mark.parametrize(
    "keys",
    [
        [b"t\x80\0\0\0\0\0\0\x07_r\x01", b"t\x80\0\0\0\0\0\0\x07_r\x01\x02", b"t\x80\0\0\0\0\0\0\x07_r"],
        # A key that contains the prefix of its table.
        [b"t\x80\0\0\0\0\0\0\x07_r" * 3, b"t\x80\0\0\0\0\0\0\x07_r", b"t\x80\0\0\0\0\0\0\x07_r\0"],
        [b"", b"a", b"bc"],
        [b"abc", b"abd", b"abe"],
    ],
)
def test_row_keys_of_any_lengths(keys):
    rows = [(1, "a"), (2, "b"), (3, "c")]
    batch = decode_batch(payload(transaction([INSERT] * 3, keys=keys), rows=rows), TABLE)
    assert batch.changes.row_key.to_pylist() == keys


def test_a_sender_may_leave_row_keys_out():
    batch = decode_batch(payload(transaction([INSERT], keys=[]), rows=[(1, "a")]), TABLE)
    assert batch.changes.row_key.to_pylist() == [None]


@pytest.mark.parametrize(
    ("transactions", "rows"),
    [
        ([transaction([UPDATE], row_count=1)], [(1, "a")]),
        ([transaction([UPDATE, INSERT, UPDATE], row_count=2)], [(1, "a")] * 3),
        # The partner is in another transaction.
        (
            [transaction([UPDATE], row_count=1), transaction([UPDATE], offset=1, row_count=0)],
            [(1, "a")] * 2,
        ),
        ([transaction([INSERT, INSERT], row_count=1)], [(1, "a")] * 2),
        ([transaction([INSERT])], [(1, "a")] * 2),
        ([transaction([INSERT] * 2)], [(1, "a")]),
        ([transaction([INSERT], offset=2), transaction([INSERT])], [(1, "a")] * 2),
        ([transaction([INSERT]), transaction([INSERT])], [(1, "a")] * 2),
        ([transaction([INSERT], keys=[b"a", b"b"])], [(1, "a")]),
        ([transaction([INSERT]), transaction([INSERT], offset=1, dispatcher_id=b"x" * 16)], [(1, "a")] * 2),
    ],
    ids=[
        "update alone",
        "update pair with a row between",
        "update pair over two transactions",
        "row count disagrees with row types",
        "more rows in the chunk than listed",
        "fewer rows in the chunk than listed",
        "offset beyond the chunk",
        "two transactions claim one row",
        "more keys than rows",
        "two dispatchers",
    ],
)
def test_rows_that_contradict_each_other_are_an_error(transactions, rows):
    with pytest.raises(InvalidField):
        decode_batch(payload(*transactions, rows=rows), TABLE)


def test_a_table_without_columns_has_no_rows():
    empty = replace(TABLE, columns=())
    with pytest.raises(WireError):
        decode_batch(BatchDMLEvent((transaction([INSERT]),), b""), empty)
    with pytest.raises(TrailingBytes):
        decode_batch(BatchDMLEvent((transaction([INSERT]),), b"\xff\xff\xff\xff\0\0\0\0"), empty)


def test_errors_say_where_in_the_payload():
    good = payload(transaction([INSERT]), rows=[(1, "a")])
    with pytest.raises(TruncatedPayload) as found:
        decode_batch(good[:-1], TABLE)
    assert found.value.offset == len(good) - 1
    assert "column 'v'" in str(found.value)


def test_one_bad_batch_does_not_take_the_others_with_it():
    good = [payload(transaction([INSERT]), rows=[(number, "x")]) for number in range(3)]
    batch, bad = decode_batches([("a", good[0]), ("b", good[1][:-1]), ("c", good[2])], TABLE)
    assert batch.columns.column("id").to_pylist() == [0, 2]
    assert [(key, type(error)) for key, error in bad] == [("b", TruncatedPayload)]
    assert decode_batches([("a", good[0][:-1])], TABLE)[0] is None
    assert decode_batches([], TABLE) == (None, [])


@pytest.mark.parametrize("stream", ["orders", "alltypes"])
def test_every_truncation_of_a_golden_batch_is_a_typed_error(stream):
    tracker, tried = SchemaTracker(), 0
    for _, event in events(stream):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent) and tried < 6:
            tried += 1
            table, whole = tracker.in_force(event.dispatcher_id).table, write(event)
            for length in range(0, len(whole), 1 if len(whole) < 800 else 7):
                with pytest.raises(WireError):
                    decode_batch(whole[:length], table)


@pytest.mark.parametrize("stream", ["orders", "alltypes"])
def test_bit_flips_of_golden_batches_give_values_or_typed_errors(stream):
    tracker, random = SchemaTracker(), np.random.default_rng(7)
    for _, event in events(stream):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent):
            table, whole = tracker.in_force(event.dispatcher_id).table, write(event)
            for bit in random.choice(len(whole) * 8, size=min(60, len(whole)), replace=False).tolist():
                flipped = bytearray(whole)
                flipped[bit // 8] ^= 1 << bit % 8
                try:
                    batch = decode_batch(flipped, table)
                except WireError:
                    continue
                batch.to_arrow().validate(full=True)
                for col, array in zip(table.columns, batch.columns.columns, strict=True):
                    canonical_values(array, col)


@pytest.mark.parametrize("stream", ["orders", "alltypes"])
def test_what_the_event_decoder_refuses_the_row_decoder_refuses_too(stream):
    tracker, random = SchemaTracker(), np.random.default_rng(11)
    for _, event in events(stream):
        tracker.feed(event)
        if isinstance(event, BatchDMLEvent):
            table, whole = tracker.in_force(event.dispatcher_id).table, write(event)
            heads = len(whole) - len(event.chunk)
            for bit in random.choice(heads * 8, size=min(40, heads), replace=False).tolist():
                flipped = bytearray(whole)
                flipped[bit // 8] ^= 1 << bit % 8
                if refuses(lambda: read_batch_dml(memoryview(flipped), 0, len(flipped))):  # noqa: B023
                    assert refuses(lambda: decode_batch(flipped, table))  # noqa: B023


def refuses(decode) -> bool:
    try:
        decode()
    except WireError:
        return True
    return False
