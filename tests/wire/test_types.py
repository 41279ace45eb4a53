"""The one table of MySQL types."""

import pyarrow as pa
import pytest
from tables import column, text_column

from tidemark.wire import types
from tidemark.wire.errors import InvalidField
from tidemark.wire.types import MYSQL_TYPES, arrow_type, kind_of


def test_every_type_number_has_an_arrow_type():
    for number in MYSQL_TYPES:
        arrow_type(column("c", number, flen=10, decimal=0))


@pytest.mark.parametrize(
    ("col", "expected"),
    [
        (column("c", types.INT), pa.int64()),
        (column("c", types.INT, flag=types.UNSIGNED), pa.uint64()),
        (column("c", types.YEAR), pa.int64()),
        (column("c", types.FLOAT), pa.float32()),
        (column("c", types.DOUBLE, flag=types.UNSIGNED), pa.float64()),
        (column("c", types.DECIMAL), pa.decimal128(10, 0)),
        (column("c", types.DECIMAL, flen=38, decimal=5), pa.decimal128(38, 5)),
        (column("c", types.DECIMAL, flen=39, decimal=5), pa.decimal256(39, 5)),
        (column("c", types.TIMESTAMP), pa.string()),
        (column("c", types.SET), pa.uint64()),
        (text_column(), pa.string()),
        (column("c", types.VARCHAR), pa.binary()),
        (text_column(mysql_type=types.LONGBLOB), pa.string()),
        (column("c", types.LONGBLOB), pa.binary()),
        (column("c", types.JSON), pa.string()),
        (column("c", types.VECTOR), pa.string()),
    ],
)
def test_arrow_type_of_a_column(col, expected):
    assert arrow_type(col) == expected


@pytest.mark.parametrize("number", [0, 6, 17, 244, 255, -1])
def test_numbers_that_are_no_column_type(number):
    with pytest.raises(InvalidField, match=str(number)):
        kind_of(number)


@pytest.mark.parametrize(("precision", "scale"), [(66, 0), (0, 0), (65, 31), (5, 6), (-2, 0), (5, -3)])
def test_decimals_that_mysql_does_not_have(precision, scale):
    with pytest.raises(InvalidField):
        types.decimal_digits(column("c", types.DECIMAL, flen=precision, decimal=scale))
