"""Avro schemas: one test per rule."""

import json

import pytest
from avro_support import KEY, NOT_NULL, avro_settings, simple_table
from encode_support import BYTES, TEXT, column, table_of

from tidemark.encode.avro_schema import (
    AvroOptions,
    NoAvroSchema,
    avro_name,
    go_float,
    key_schema,
    namespace,
    subjects,
    value_schema,
)
from tidemark.wire import types

PLAIN = AvroOptions()


def field_of(item, options=PLAIN) -> str:
    """The text of one field, as it stands in the schema."""
    text = value_schema(table_of(item), options).text
    return text[text.index('"fields":[') + len('"fields":[') : -2]


def type_of(item, options=PLAIN):
    return json.loads(field_of(item, options))["type"]


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("plain_1", "plain_1"),
        ("with-dash and.dot", "with_dash_and_dot"),
        ("1st", "_1st"),
        ("-x", "_x"),
        ("名前", "__"),
        ("é", "_"),
        ("a😀b", "a_b"),
        ("_V$_idx_0", "_V__idx_0"),
    ],
)
def test_characters_that_avro_names_do_not_allow_become_underscores(name, clean):
    assert avro_name(name) == clean


def test_namespace_is_keyspace_and_schema():
    assert namespace("default", "shop") == "default.shop"
    assert namespace("my-space", "1db") == "my_space._1db"
    assert namespace("default", "") == "default"


def test_names_of_record_and_fields_are_clean():
    table = table_of(column("a b", types.INT), schema="x-y", table="t.1")
    schema = json.loads(value_schema(table, AvroOptions(keyspace="ks")).text)
    assert (schema["name"], schema["namespace"], schema["fields"][0]["name"]) == ("t_1", "ks.x_y", "a_b")


def test_two_columns_of_one_avro_name_have_no_schema():
    with pytest.raises(NoAvroSchema, match=r"2 fields would have the Avro name 'a_b'"):
        value_schema(table_of(column("a b", types.INT), column("a-b", types.INT)), PLAIN)


def test_a_column_may_not_have_the_name_of_an_extension_field():
    table = table_of(column("_tidb_commit_ts", types.BIGINT))
    value_schema(table, PLAIN)
    with pytest.raises(NoAvroSchema, match="_tidb_commit_ts"):
        value_schema(table, AvroOptions(extension=True))


def test_the_subject_is_the_topic_with_dots_replaced():
    assert subjects("a.b-c_d") == ("a_b-c_d-key", "a_b-c_d-value")


UNSIGNED = {"flag": types.UNSIGNED}


@pytest.mark.parametrize(
    ("item", "tidb_type", "avro_type"),
    [
        (column("c", types.TINYINT), "INT", "int"),
        (column("c", types.SMALLINT), "INT", "int"),
        (column("c", types.MEDIUMINT), "INT", "int"),
        (column("c", types.INT), "INT", "int"),
        (column("c", types.TINYINT, **UNSIGNED), "INT UNSIGNED", "int"),
        (column("c", types.MEDIUMINT, **UNSIGNED), "INT UNSIGNED", "int"),
        (column("c", types.INT, **UNSIGNED), "INT UNSIGNED", "long"),
        (column("c", types.BIGINT), "BIGINT", "long"),
        (column("c", types.BIGINT, **UNSIGNED), "BIGINT UNSIGNED", "long"),
        (column("c", types.TINYBLOB, **BYTES), "BLOB", "bytes"),
        (column("c", types.BLOB_TYPE, **BYTES), "BLOB", "bytes"),
        (column("c", types.MEDIUMBLOB, **BYTES), "BLOB", "bytes"),
        (column("c", types.LONGBLOB, **BYTES), "BLOB", "bytes"),
        (column("c", types.STRING, **BYTES), "BLOB", "bytes"),
        (column("c", types.VARCHAR, **BYTES), "BLOB", "bytes"),
        (column("c", types.TINYBLOB, **TEXT), "TEXT", "string"),
        (column("c", types.BLOB_TYPE, **TEXT), "TEXT", "string"),
        (column("c", types.MEDIUMBLOB, **TEXT), "TEXT", "string"),
        (column("c", types.LONGBLOB, **TEXT), "TEXT", "string"),
        (column("c", types.STRING, **TEXT), "TEXT", "string"),
        (column("c", types.VARCHAR, **TEXT), "TEXT", "string"),
        (column("c", types.FLOAT), "FLOAT", "float"),
        (column("c", types.DOUBLE), "DOUBLE", "double"),
        (column("c", types.DATE), "DATE", "string"),
        (column("c", types.DATETIME), "DATETIME", "string"),
        (column("c", types.TIMESTAMP), "TIMESTAMP", "string"),
        (column("c", types.TIME), "TIME", "string"),
        (column("c", types.YEAR, **UNSIGNED), "YEAR", "int"),
        (column("c", types.JSON), "JSON", "string"),
        (column("c", types.VECTOR), "TiDBVECTORFloat32", "string"),
    ],
)
def test_a_mysql_type_has_its_avro_type(item, tidb_type, avro_type):
    branch = {"type": avro_type, "connect.parameters": {"tidb_type": tidb_type}}
    assert type_of(item) == ["null", branch]


def test_float_is_a_double():
    """Document 001; the shipped TiCDC writes floats."""
    options = [AvroOptions.of(avro_settings(compat=name)) for name in ("design", "ticdc")]
    assert [made.avro_type(column("c", types.FLOAT)) for made in options] == ["double", "float"]


def test_bit_tells_its_length():
    block = '{"type":"bytes","connect.parameters":{"length":"9","tidb_type":"BIT"}}'
    assert block in field_of(column("c", types.BIT, flen=9))


def test_enum_and_set_tell_their_members_with_commas_escaped():
    for kind, name in ((types.ENUM, "ENUM"), (types.SET, "SET")):
        text = field_of(column("c", kind, elems=("a", "b,c", "it''s"), **TEXT))
        assert f'{{"allowed":"a,b\\\\,c,it\'s","tidb_type":"{name}"}}' in text


def test_a_precise_decimal_has_precision_and_scale():
    text = field_of(column("c", types.DECIMAL, flen=10, decimal=0, **NOT_NULL))
    assert text == (
        '{"name":"c","type":{"type":"bytes","connect.parameters":{"tidb_type":"DECIMAL"},'
        '"logicalType":"decimal","precision":10,"scale":0}}'
    )


def test_a_decimal_as_text_is_a_plain_string():
    item = column("c", types.DECIMAL, flen=10, decimal=2, default="1.50", **NOT_NULL)
    assert field_of(item, AvroOptions(precise_decimals=False)) == (
        '{"default":"1.50","name":"c","type":{"type":"string","connect.parameters":{"tidb_type":"DECIMAL"}}}'
    )


def test_a_bigint_unsigned_as_text_is_a_string_but_no_other_integer_is():
    options = AvroOptions(long_bigints=False)
    assert type_of(column("c", types.BIGINT, **UNSIGNED), options)[1]["type"] == "string"
    assert type_of(column("c", types.BIGINT), options)[1]["type"] == "long"
    assert type_of(column("c", types.INT, **UNSIGNED), options)[1]["type"] == "long"


def test_a_nullable_column_without_default_has_null_first():
    assert field_of(column("c", types.INT)).startswith('{"default":null,"name":"c","type":["null",{')


def test_a_nullable_column_with_default_has_its_type_first():
    text = field_of(column("c", types.INT, default="7"))
    assert text.startswith('{"default":7,"name":"c","type":[{')
    assert text.endswith(',"null"]}')


def test_a_column_that_is_not_null_is_no_union_and_may_have_no_default():
    assert field_of(column("c", types.INT, **NOT_NULL)).startswith('{"name":"c","type":{')
    assert field_of(column("c", types.INT, default="7", **NOT_NULL)).startswith('{"default":7,"name":"c"')


def test_a_precise_decimal_never_has_its_default():
    text = field_of(column("c", types.DECIMAL, flen=4, decimal=1, default="1.5"))
    assert text.startswith('{"default":null,"name":"c","type":["null",{')
    assert "default" not in field_of(column("c", types.DECIMAL, flen=4, decimal=1, default="1.5", **NOT_NULL))


BIGINT_UNSIGNED = {"flag": types.UNSIGNED | types.NOT_NULL}


@pytest.mark.parametrize(
    ("item", "default"),
    [
        (column("c", types.TINYINT, default="-1", **NOT_NULL), "-1"),
        (column("c", types.INT, default="2147483647", **NOT_NULL), "2147483647"),
        (column("c", types.INT, default="4294967295", **BIGINT_UNSIGNED), "4294967295"),
        (column("c", types.BIGINT, default="18446744073709551615", **BIGINT_UNSIGNED), "-1"),
        (column("c", types.YEAR, default="2024", **NOT_NULL), "2024"),
        (column("c", types.DOUBLE, default="1.10", **NOT_NULL), "1.1"),
        (column("c", types.DOUBLE, default="5", **NOT_NULL), "5"),
        (column("c", types.DOUBLE, default="1e-7", **NOT_NULL), "1e-7"),
        (column("c", types.FLOAT, default="3.14", **NOT_NULL), "3.140000104904175"),
        (column("c", types.VARCHAR, default="<a&b>", **NOT_NULL, **TEXT), '"\\u003ca\\u0026b\\u003e"'),
        (column("c", types.VARCHAR, default="", **NOT_NULL, **TEXT), '""'),
        (column("c", types.ENUM, default="b", elems=("a", "b"), **NOT_NULL, **TEXT), '"b"'),
        (column("c", types.TIMESTAMP, default="CURRENT_TIMESTAMP", **NOT_NULL), '"CURRENT_TIMESTAMP"'),
        (column("c", types.BIT, flen=10, default_bit="Aqo=", **NOT_NULL), '"Aqo="'),
        (
            column("c", types.VARCHAR, default="abc", charset="binary", flag=types.NOT_NULL | types.BINARY),
            '"YWJj"',
        ),
    ],
)
def test_a_default_is_written_as_a_value_of_its_type(item, default):
    assert field_of(item).startswith(f'{{"default":{default},"name":"c"')


@pytest.mark.parametrize("default", ["nextval(`s`)", "1.5", "", "99999999999"])
def test_a_default_that_is_no_number_has_no_schema(default):
    with pytest.raises(NoAvroSchema, match="column 'c'"):
        value_schema(table_of(column("c", types.TINYINT, default=default)), PLAIN)


@pytest.mark.parametrize("kind", [types.FLOAT, types.DOUBLE])
@pytest.mark.parametrize(
    "default",
    [
        "",
        "x",
        "1_0",
        " 1",
        "1\n",
        "\u0663",
        "0x10",
        ".",
        "e5",
        "1e",
        "+-1",
        "inf",
        "-Infinity",
        "nan",
        "1e400",
    ],
)
def test_a_default_that_go_does_not_read_as_a_float_has_no_schema(kind, default):
    with pytest.raises(NoAvroSchema, match=r"column 'c'.*(is not a number|is out of range)"):
        value_schema(table_of(column("c", kind, default=default)), PLAIN)


@pytest.mark.parametrize(
    ("default", "text"),
    [("+1", "1"), ("1.", "1"), (".5", "0.5"), ("-.5E1", "-5"), ("1e+2", "100"), ("007", "7")],
)
def test_a_default_that_go_reads_as_a_float_is_one(default, text):
    assert field_of(column("c", types.DOUBLE, default=default, **NOT_NULL)).startswith(f'{{"default":{text},')


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (-123.456, "-123.456"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_floats_are_written_as_go_does(number, text):
    assert go_float(number) == text


def test_the_key_has_the_primary_key_columns_in_the_order_of_the_table():
    second = column("k2", types.VARCHAR, flag=types.NOT_NULL | types.PRIMARY_KEY, **TEXT)
    table = table_of(KEY, column("v", types.INT), second)
    schema = key_schema(table, AvroOptions(extension=True))
    assert [field.name for field in schema.fields] == ["id", "k2"]
    assert "_tidb_op" not in schema.text


def test_a_table_without_primary_key_has_no_key():
    unique = column("u", types.INT, flag=types.NOT_NULL | types.UNIQUE_KEY)
    assert key_schema(table_of(unique), PLAIN) is None
    assert key_schema(table_of(unique), AvroOptions(handle_keys=True)) is None, "no index says that it is one"


def test_extension_fields_come_last():
    fields = json.loads(value_schema(simple_table(), AvroOptions(extension=True)).text)["fields"]
    assert fields[-3:] == [
        {"default": "", "name": "_tidb_op", "type": "string"},
        {"default": 0, "name": "_tidb_commit_ts", "type": "long"},
        {"default": 0, "name": "_tidb_commit_physical_time", "type": "long"},
    ]


def test_virtual_generated_columns_are_part_of_the_value():
    virtual = column("v", types.INT, generated_expr="`id` + 1")
    assert [field.name for field in value_schema(simple_table(virtual), PLAIN).fields] == ["id", "name", "v"]
