"""The type-mapping table covers every type and names it as the reference does."""

import pytest
from encode_support import BYTES, TEXT, column

from tidemark.encode import types
from tidemark.encode.errors import UnknownProtocol
from tidemark.encode.protocol import encoder_for
from tidemark.wire import types as wire


def test_every_mysql_type_has_a_row():
    assert set(wire.MYSQL_TYPES) <= set(types.TYPES)


@pytest.mark.parametrize(
    ("kind", "more", "short", "full"),
    [
        (wire.TINYINT, {"flen": 1}, "tinyint", "tinyint(1)"),
        (wire.INT, {}, "int", "int(11)"),
        (wire.BIT, {"flen": 9, "flag": wire.UNSIGNED}, "bit", "bit(9)"),
        (wire.YEAR, {"flen": 4, "flag": wire.UNSIGNED | wire.ZEROFILL}, "year", "year(4)"),
        (wire.FLOAT, {"flen": 12}, "float", "float"),
        (wire.FLOAT, {"flen": 7, "decimal": 2}, "float", "float(7,2)"),
        (wire.DECIMAL, {}, "decimal", "decimal(10,0)"),
        (wire.DATETIME, {"flen": 19, "decimal": 0}, "datetime", "datetime"),
        (wire.TIMESTAMP, {"decimal": 3}, "timestamp", "timestamp(3)"),
        (wire.VARCHAR, {"flen": 9, **TEXT}, "varchar", "varchar(9)"),
        (wire.VARCHAR, {"flen": 9, **BYTES}, "varbinary", "varbinary(9)"),
        (wire.STRING, {"flen": 9, **BYTES}, "binary", "binary(9)"),
        (wire.LONGBLOB, BYTES, "longblob", "longblob"),
        (wire.LONGBLOB, TEXT, "longtext", "longtext"),
        (wire.VECTOR, {"flen": 3}, "vector", "vector(3)"),
        (wire.VECTOR, {}, "vector", "vector"),
        (wire.SET, {"elems": ("a\n", "b\0")}, "set", "set('a\\n','b\\0')"),
    ],
)
def test_type_names_with_and_without_parameters(kind, more, short, full):
    assert types.mysql_type(column("c", kind, **more), full=False) == short
    assert types.mysql_type(column("c", kind, **more), full=True) == full


@pytest.mark.parametrize(
    ("kind", "more", "avro", "name"),
    [
        (wire.INT, {}, "int", "INT"),
        (wire.INT, {"flag": wire.UNSIGNED}, "long", "INT UNSIGNED"),
        (wire.MEDIUMINT, {"flag": wire.UNSIGNED}, "int", "INT UNSIGNED"),
        (wire.BIGINT, {"flag": wire.UNSIGNED}, "long", "BIGINT UNSIGNED"),
        (wire.FLOAT, {"flag": wire.UNSIGNED}, "float", "FLOAT"),
        (wire.YEAR, {"flag": wire.UNSIGNED}, "int", "YEAR"),
        (wire.BIT, {"flag": wire.UNSIGNED}, "bytes", "BIT"),
        (wire.STRING, BYTES, "bytes", "BLOB"),
        (wire.STRING, TEXT, "string", "TEXT"),
        (wire.DECIMAL, {}, "bytes", "DECIMAL"),
        (wire.VECTOR, {}, "string", "TiDBVECTORFloat32"),
    ],
)
def test_avro_names(kind, more, avro, name):
    item = column("c", kind, **more)
    assert (types.avro_type(item), types.tidb_type(item)) == (avro, name)


def test_a_protocol_without_encoder_is_named():
    class Settings:
        protocol = "craft"

    with pytest.raises(UnknownProtocol, match=r"'craft'.*csv"):
        encoder_for(Settings())
