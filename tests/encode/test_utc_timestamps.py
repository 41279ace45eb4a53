"""Timestamps in UTC, whatever the time zone they were sent in."""

import pyarrow as pa
import pytest

from tidemark.demo.column_types import column
from tidemark.time_zones import in_utc, is_known
from tidemark.wire.errors import InvalidField
from tidemark.wire.table_info import TableInfo


@pytest.mark.parametrize(
    ("digits", "zone", "sent", "utc"),
    [
        (0, "Asia/Shanghai", "2024-02-29 20:34:56", "2024-02-29 12:34:56"),
        (2, "Asia/Shanghai", "2038-01-19 11:14:07.99", "2038-01-19 03:14:07.99"),
        (6, "Asia/Shanghai", "1970-01-01 08:00:01.000001", "1970-01-01 00:00:01.000001"),
        (3, "Asia/Shanghai", "0000-00-00 00:00:00.000", "0000-00-00 00:00:00.000"),
        (0, "Asia/Shanghai", None, None),
        (1, "Europe/Berlin", "2025-07-01 00:00:00.5", "2025-06-30 22:00:00.5"),
        # Twice on that day: the first is meant.
        (0, "Europe/Berlin", "2025-10-26 02:30:00", "2025-10-26 00:30:00"),
    ],
)
def test_a_timestamp_is_moved_and_keeps_its_digits(digits, zone, sent, utc):
    columns = [column(f"at timestamp({digits})", 0), column("local datetime", 1), column("id int", 2)]
    table = TableInfo.build("s", "t", 1, 1, columns=columns)
    rows = pa.RecordBatch.from_arrays(
        [pa.array([sent, None], pa.string()), pa.array(["2024-02-29 20:34:56", None]), pa.array([1, 2])],
        names=["at", "local", "id"],
    )
    assert in_utc(rows, table, zone).to_pydict() == {**rows.to_pydict(), "at": [utc, None]}


def test_what_is_no_point_in_time_is_refused_with_its_column():
    table = TableInfo.build("s", "t", 1, 1, columns=[column("at timestamp", 0)])
    rows = pa.RecordBatch.from_arrays([pa.array(["2025-02-31 00:00:00"])], names=["at"])
    with pytest.raises(InvalidField, match=r"column at of s\.t holds no timestamp"):
        in_utc(rows, table, "Asia/Shanghai")


def test_names_of_zones():
    assert is_known("Asia/Shanghai")
    assert is_known("+08:00")
    assert not is_known("Asia/Nowhere")
