"""Staged files: where they are cut, and that they depend on nothing but rows, settings and range."""

import numpy as np
import pytest
from storage_support import TS, files_below, inserts, settings, table_named

from tidemark.encode.protocol import encoder_for
from tidemark.sinks.storage.errors import RowsOutOfOrder, StorageError, UnencodableRow
from tidemark.sinks.storage.filesystem import LocalStore
from tidemark.sinks.storage.layout import FolderStream, StorageLayout
from tidemark.sinks.storage.rows import in_order, take
from tidemark.sinks.storage.span import Span
from tidemark.sinks.storage.writer import StagedStream, StreamWriter

SPAN = Span(TS, TS + 1_000_000)


def writer_of(folder, given, file_size=None, **more):
    layout, table = StorageLayout(given), table_named()
    stream = layout.stream(table, TS, table.table_id, TS + 1)
    size = given.uri.options.file_size if file_size is None else file_size
    return StreamWriter(
        LocalStore(str(folder)), SPAN, stream, table, layout, encoder_for(given), size, **more
    )


def transactions(*sizes):
    """Transactions of that many rows, at TS+1, TS+2, …"""
    return [
        (TS + 1 + place, [(place * 1000 + row, "x" * 20) for row in range(size)])
        for place, size in enumerate(sizes)
    ]


def staged_rows(folder, staged: StagedStream) -> list[int]:
    return [(folder / file.path).read_bytes().count(b"\r\n") for file in staged.files]


ROW = len(f'"I","t","db",{TS},1000,"{"x" * 20}"\r\n')


def test_a_file_is_closed_when_a_whole_transaction_reaches_the_size(tmp_path):
    writer = writer_of(tmp_path, settings(), file_size=3 * ROW - 10)
    writer.add(inserts(table_named(), transactions(1, 1, 1, 2, 5, 1)))
    assert staged_rows(tmp_path, writer.finish()) == [3, 7, 1]


@pytest.mark.parametrize("atomicity", ["none", "table"])
def test_a_transaction_never_spans_files(tmp_path, atomicity):
    given = settings(transaction_atomicity=atomicity)
    writer = writer_of(tmp_path, given, file_size=2 * ROW)
    writer.add(inserts(table_named(), transactions(50, 1)))
    assert staged_rows(tmp_path, writer.finish()) == [50, 1]


def test_a_transaction_may_arrive_in_several_batches(tmp_path):
    batch = inserts(table_named(), transactions(1, 6, 1, 1))
    whole = writer_of(tmp_path / "whole", settings(), file_size=2 * ROW)
    whole.add(batch)
    pieces = writer_of(tmp_path / "pieces", settings(), file_size=2 * ROW)
    for row in range(len(batch.changes)):
        pieces.add(take(batch, np.array([row])))
    assert pieces.finish() == whole.finish()
    assert files_below(tmp_path / "pieces") == files_below(tmp_path / "whole")


def test_the_header_line_does_not_count(tmp_path):
    given = settings(csv={"output-field-header": True})
    writer = writer_of(tmp_path, given, file_size=ROW + 20)
    writer.add(inserts(table_named(), transactions(1, 1, 1)))
    # Two rows reach the size; a header alone would have.
    assert staged_rows(tmp_path, writer.finish()) == [3, 2]


def test_no_rows_no_file(tmp_path):
    assert writer_of(tmp_path, settings()).finish().files == ()


def test_a_manifest_tells_size_rows_and_times(tmp_path):
    writer = writer_of(tmp_path, settings())
    writer.add(inserts(table_named(), transactions(2, 1)))
    (file,) = writer.finish().files
    assert file.size == (tmp_path / file.path).stat().st_size
    assert (file.rows, file.first_commit_ts, file.last_commit_ts) == (3, TS + 1, TS + 2)


def test_a_manifest_survives_json(tmp_path):
    writer = writer_of(tmp_path, settings())
    writer.add(inserts(table_named(), transactions(2, 1)))
    staged = writer.finish()
    assert StagedStream.from_json(staged.to_json()) == staged
    with pytest.raises(StorageError, match="no description"):
        StagedStream.from_json("{}")


def test_a_task_that_runs_twice_writes_the_same_files(tmp_path):
    batch = inserts(table_named(), transactions(3, 3, 3))
    first, second = (writer_of(tmp_path, settings(), file_size=ROW) for _ in range(2))
    first.add(batch)
    # At the same time: both have a file open.
    second.add(batch)
    assert first.finish() == second.finish()
    assert len([path for path in files_below(tmp_path) if path.endswith(".csv")]) == 3


def test_decreasing_commit_ts_is_refused(tmp_path):
    writer = writer_of(tmp_path, settings())
    writer.add(inserts(table_named(), [(TS + 5, [(1, "a")])]))
    with pytest.raises(RowsOutOfOrder, match="decreasing"):
        writer.add(inserts(table_named(), [(TS + 4, [(1, "a")])]))


@pytest.mark.parametrize("ts", [SPAN.start, SPAN.end + 1])
def test_rows_outside_of_the_range_are_refused(tmp_path, ts):
    with pytest.raises(RowsOutOfOrder, match="the run is for"):
        writer_of(tmp_path, settings()).add(inserts(table_named(), [(ts, [(1, "a")])]))


class _Failing:
    """An encoder that cannot express the second row."""

    extension = ".csv"

    def __init__(self, encoder):
        self.file_header = encoder.file_header
        self._encoder = encoder

    def encode_file(self, batch):
        import pyarrow as pa

        from tidemark.encode.protocol import EncodedFile

        rows = [self._encoder.encode_file(take(batch, np.array([row]))).data.to_pybytes() for row in range(3)]
        lengths = np.array([len(rows[0]), 0, len(rows[2])])
        return EncodedFile(pa.py_buffer(rows[0] + rows[2]), lengths, pa.array([None, "no such member", None]))


def test_a_row_that_cannot_be_encoded_stops_the_run(tmp_path):
    writer = writer_of(tmp_path, settings())
    writer._encoder = _Failing(writer._encoder)
    with pytest.raises(UnencodableRow, match=rf"db\.t: a row with commit ts {TS + 2} .*no such member"):
        writer.add(inserts(table_named(), transactions(1, 1, 1)))


def test_a_row_that_cannot_be_encoded_can_be_left_out(tmp_path):
    seen = []
    writer = writer_of(tmp_path, settings(), on_error=lambda batch, error: seen.append(error.to_pylist()))
    writer._encoder = _Failing(writer._encoder)
    writer.add(inserts(table_named(), transactions(1, 1, 1)))
    assert writer.finish().files[0].rows == 2
    assert seen == [[None, "no such member", None]]


def test_a_writer_that_gives_up_leaves_no_file(tmp_path):
    writer = writer_of(tmp_path, settings())
    writer.add(inserts(table_named(), transactions(2)))
    writer.abort()
    assert files_below(tmp_path) == {}


def test_streams_are_split_by_date_and_partition():
    layout = StorageLayout(settings(date_separator="day"))
    table = table_named(is_partition=True)
    day = 24 * 60 * 60 * 1000 << 18
    batch = inserts(table, [(TS, [(1, "a")]), (TS + day, [(2, "b")]), (TS + day + 1, [(3, "c")])], table_id=7)
    parts = {stream.date: which.tolist() for stream, which in layout.split(batch, 5)}
    assert list(parts.values()) == [[0], [1, 2]]
    assert {stream.partition for stream, _ in layout.split(batch, 5)} == {7}


def test_dates_follow_the_time_zone_of_the_uri():
    # 2023-05-09 23:30 UTC
    ts = 1683675000000 << 18
    dates = [
        StorageLayout(settings(date_separator="day", query=query)).stream(table_named(), 5, 100, ts).date
        for query in ("", "&time-zone=Asia/Shanghai", "&time-zone=America/New_York")
    ]
    assert dates == ["2023-05-09", "2023-05-10", "2023-05-09"]


def test_an_unknown_time_zone_is_refused():
    with pytest.raises(StorageError, match="Mars/Olympus"):
        StorageLayout(settings(query="&time-zone=Mars/Olympus"))


def test_the_key_of_a_stream_does_not_depend_on_the_process():
    assert FolderStream("db", "t", 5).key() == "5b7e0e8c5ca2f298efbe54c638e90913"
    assert len({FolderStream("db", "t", 5).key(), FolderStream("db", "t", 6).key()}) == 2


def test_rows_of_several_dispatchers_are_put_in_order():
    table = table_named()
    one = inserts(table, [(TS + 1, [(1, "a")]), (TS + 3, [(2, "b")])], table_id=1)
    two = inserts(table, [(TS + 2, [(3, "c")]), (TS + 3, [(4, "d")])], table_id=2)
    merged = in_order([two, one])
    ids = merged.columns.column(0).take(merged.changes.post).to_pylist()
    assert ids == [1, 3, 2, 4]
