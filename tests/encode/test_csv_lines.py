"""The rules of CSV lines, one test each."""

import base64
from decimal import Decimal

import numpy as np
import pytest
from encode_support import BYTES, TEXT, TS, batch_of, column, csv_settings, inserts, table_of, texts

from tidemark.config import load
from tidemark.encode import encoder_for
from tidemark.wire import types
from tidemark.wire.floats import go_g

ID = column("id", types.INT)
NAME = column("name", types.VARCHAR, **TEXT)


def lines(batch, **csv):
    return texts(encoder_for(csv_settings(**csv)).encode_rows(batch))


def value(kind, cell, more=None, **csv):
    """One cell as it stands in a line of a table with this column only."""
    (line,) = lines(inserts(table_of(column("c", kind, **(more or {}))), [cell]), **csv)
    return line.removeprefix('"I","t","db",').removesuffix("\r\n")


def test_operation_table_and_schema_come_first():
    batch = batch_of(table_of(ID), ("I", [1]), ("U", [1], [2]), ("D", [2]))
    assert lines(batch) == ['"I","t","db",1\r\n', '"U","t","db",2\r\n', '"D","t","db",2\r\n']


def test_the_commit_ts_follows_the_schema():
    assert lines(inserts(table_of(ID), [1]), include_commit_ts=True) == [f'"I","t","db",{TS},1\r\n']


def test_old_values_make_an_update_two_lines_that_say_so():
    batch = batch_of(table_of(ID), ("I", [1]), ("U", [1], [2]), ("D", [2]))
    assert lines(batch, output_old_value=True) == [
        '"I","t","db",false,1\r\n',
        '"D","t","db",true,1\r\n"I","t","db",true,2\r\n',
        '"D","t","db",false,2\r\n',
    ]


def test_old_values_without_updates_still_have_the_field():
    assert lines(inserts(table_of(ID), [1]), output_old_value=True) == ['"I","t","db",false,1\r\n']


def test_output_handle_key_has_no_effect():
    batch = inserts(table_of(ID), [1])
    assert lines(batch, output_handle_key=True) == lines(batch)


def test_quotes_inside_are_doubled_and_nothing_else_changes():
    assert value(types.VARCHAR, 'a"b\\c\r\n,', TEXT) == '"a""b\\c\r\n,"'


def test_without_a_quote_special_characters_are_escaped():
    batch = inserts(table_of(NAME), ["a|b\\c\r\nd"])
    assert lines(batch, quote="", delimiter="|") == ["I|t|db|a\\|b\\\\c\\r\\nd\r\n"]


def test_every_byte_of_a_long_delimiter_is_escaped():
    batch = inserts(table_of(NAME), ["a||b|c"])
    assert lines(batch, quote="", delimiter="||") == ["I||t||db||a\\|\\|b|c\r\n"]


@pytest.mark.parametrize(
    ("delimiter", "text", "escaped"),
    [
        ("\\", "a\\|b", "a\\\\|b"),
        ("\\|", "a\\|b", "a\\\\\\|b"),
        ("\\|", "a\\b|", "a\\\\b|"),
        ("n", "n\\r\r\n", "\\n\\\\r\\r\\n"),
        ("r", "n\\r\r\n", "n\\\\\\r\\r\\n"),
        ("nx", "\nx nx", "\\nx \\n\\x"),
        ("né", "\né", "\\né"),
    ],
)
def test_a_delimiter_does_not_change_the_escapes_of_other_characters(delimiter, text, escaped):
    batch = inserts(table_of(NAME, schema=text), [text, None, ""])
    start = f"I{delimiter}t{delimiter}{escaped}{delimiter}"
    want = [f"{start}{field}\r\n" for field in (escaped, "\\N", "")]
    assert lines(batch, quote="", delimiter=delimiter) == want


def test_names_are_quoted_and_escaped_like_values():
    batch = inserts(table_of(ID, schema='s"1', table="t,1"), [1])
    assert lines(batch) == ['"I","t,1","s""1",1\r\n']
    assert lines(batch, quote="") == ['I,t\\,1,s"1,1\r\n']


def test_null_has_its_own_word_without_quotes():
    batch = inserts(table_of(ID, NAME), [1, None], [None, "x"])
    assert lines(batch, null="<null>") == ['"I","t","db",1,<null>\r\n', '"I","t","db",<null>,"x"\r\n']


def test_an_empty_null_word_leaves_the_field_empty():
    assert value(types.VARCHAR, None, TEXT, null="") == ""


def test_the_terminator_is_configured():
    settings = load({"sink": {"terminator": "\n"}}, "file:///x?protocol=csv")
    assert texts(encoder_for(settings).encode_rows(inserts(table_of(ID), [1]))) == ['"I","t","db",1\n']


@pytest.mark.parametrize(
    ("kind", "cell", "more", "text"),
    [
        (types.TINYINT, -128, {}, "-128"),
        (types.TINYINT, 255, {"flag": types.UNSIGNED}, "255"),
        (types.BIGINT, 2**64 - 1, {"flag": types.UNSIGNED}, "18446744073709551615"),
        (types.YEAR, 0, {"flag": types.UNSIGNED}, "0"),
        (types.BIT, 5, {"flen": 8}, "5"),
        (types.FLOAT, 0.1, {}, "0.1"),
        (types.DOUBLE, 1e6, {}, "1e+06"),
        (types.DOUBLE, 1.5e-7, {}, "1.5e-07"),
        (types.DECIMAL, Decimal("-0.50"), {"flen": 10, "decimal": 2}, '"-0.50"'),
        (types.DECIMAL, Decimal("0"), {"flen": 30, "decimal": 9}, '"0.000000000"'),
        (types.DATETIME, "2024-01-02 03:04:05.6", {"decimal": 1}, '"2024-01-02 03:04:05.600000"'),
        (types.TIME, "-838:59:59", {}, '"-838:59:59"'),
        (types.JSON, '{"a": 1}', {}, '"{""a"": 1}"'),
        (types.VECTOR, "[1,2.5]", {}, '"[1,2.5]"'),
        (types.ENUM, 2, {"elems": ("a", 'b"')}, '"b"""'),
        (types.SET, 5, {"elems": ("a", "b", "c")}, '"a,c"'),
        (types.SET, 0, {"elems": ("a", "b", "c")}, '""'),
    ],
)
def test_every_type_has_its_form(kind, cell, more, text):
    assert value(kind, cell, more) == text


MOMENTS = [
    (types.DATETIME, 0, "2024-01-02 03:04:05", ".000000"),
    (types.TIMESTAMP, 0, "0000-00-00 00:00:00", ".000000"),
    (types.DATETIME, 1, "2024-01-02 03:04:05.6", "00000"),
    (types.TIMESTAMP, 3, "2024-01-02 03:04:05.678", "000"),
    (types.DATETIME, 6, "2024-01-02 03:04:05.678901", ""),
    (types.DATE, 0, "2024-01-02", ""),
    (types.TIME, 2, "-03:04:05.67", ""),
]


@pytest.mark.parametrize(("kind", "digits", "text", "zeros"), MOMENTS)
def test_datetimes_and_timestamps_have_six_digits_of_fraction(kind, digits, text, zeros):
    """Document 002: yyyy-MM-dd HH:mm:ss.%06d; the shipped TiCDC writes as many digits as the column has."""
    more = {"decimal": digits}
    assert value(kind, text, more) == f'"{text}{zeros}"'
    assert value(kind, text, more, compat="ticdc") == f'"{text}"'


@pytest.mark.parametrize(
    ("form", "made"),
    [
        ({"quote": '"'}, '"2024-01-02 03:04:05.000000"'),
        ({"quote": ""}, "2024-01-02 03:04:05.000000"),
        ({"quote": "", "delimiter": ":"}, "2024-01-02 03\\:04\\:05.000000"),
        ({"quote": "0"}, "020024-001-002 003:004:005.0000000000000"),
        ({"quote": "", "delimiter": "."}, "2024-01-02 03:04:05\\.000000"),
    ],
)
def test_the_zeros_of_a_fraction_are_quoted_and_escaped_like_the_rest(form, made):
    table = table_of(column("c", types.DATETIME))
    delimiter = form.get("delimiter", ",")
    found = lines(inserts(table, ["2024-01-02 03:04:05", None]), **form)
    start = f"db{form['quote']}{delimiter}"
    assert [line.removesuffix("\r\n").split(start)[1] for line in found] == [made, "\\N"]
    (nothing,) = lines(inserts(table, [None]), **form)
    assert nothing.endswith(f"{delimiter}\\N\r\n")


def test_the_old_and_the_new_row_have_six_digits():
    table = table_of(ID, column("c", types.TIMESTAMP, decimal=2))
    (made,) = lines(
        batch_of(table, ("U", [1, "2024-01-02 03:04:05.67"], [1, None])), output_old_value=True, quote=""
    )
    assert made == "D,t,db,true,1,2024-01-02 03:04:05.670000\r\nI,t,db,true,1,\\N\r\n"


@pytest.mark.parametrize(
    ("method", "encode"), [("base64", lambda raw: base64.b64encode(raw).decode()), ("hex", bytes.hex)]
)
@pytest.mark.parametrize("cell", [b"", b"\x00", b"\xff\x00", b"abc", bytes(range(256))])
def test_binary_values_are_base64_or_hex(method, encode, cell):
    assert value(types.BLOB_TYPE, cell, BYTES, binary_encoding_method=method) == f'"{encode(cell)}"'


def test_the_binary_flag_and_not_the_charset_tells_binary_values():
    assert value(types.BLOB_TYPE, b"abc", {"charset": "binary"}) == '"abc"'
    assert value(types.BLOB_TYPE, "abc", {**TEXT, "flag": types.BINARY}) == '"YWJj"'


def test_text_that_is_no_utf8_is_passed_on():
    messages = encoder_for(csv_settings()).encode_rows(inserts(table_of(NAME), [b'\xff"\xfe']))
    assert messages.value[0].as_py() == b'"I","t","db","\xff""\xfe"\r\n'


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        (types.ENUM, 0, "members 1 to 2, the value is 0"),
        (types.ENUM, 3, "value is 3"),
        (types.SET, 8, "no set of them is 8"),
    ],
)
def test_a_number_without_a_member_is_an_error_of_its_row_only(kind, cell, text):
    batch = inserts(table_of(column("c", kind, elems=("a", "b"))), [1, cell, None])
    encoder = encoder_for(csv_settings(output_field_header=True))
    messages = encoder.encode_rows(batch)
    assert texts(messages) == ['"I","t","db","a"\r\n', None, '"I","t","db",\\N\r\n']
    assert messages.error[0].as_py() is None
    assert text in messages.error[1].as_py()
    assert "'c'" in messages.error[1].as_py()
    file = encoder.encode_file(batch)
    assert bytes(file.data) == b'"I","t","db","a"\r\n"I","t","db",\\N\r\n'
    assert (file.lengths == 0).tolist() == [False, True, False]
    assert file.error[1].as_py() == messages.error[1].as_py()


def test_an_update_fails_if_one_of_its_two_lines_does():
    table = table_of(column("c", types.ENUM, elems=("a",)))
    messages = encoder_for(csv_settings(output_old_value=True)).encode_rows(
        batch_of(table, ("U", [0], [1]), ("U", [1], [0]))
    )
    assert messages.error.null_count == 0


def test_virtual_generated_columns_are_left_out():
    table = table_of(ID, column("v", types.INT, generated_expr="id+1"))
    assert lines(inserts(table, [1], [None])) == ['"I","t","db",1\r\n']


def test_column_selectors_choose_columns():
    selectors = [{"matcher": ["db.t"], "columns": ["*", "!NA*"]}]
    settings = load(
        {"sink": {"column-selectors": selectors, "csv": {"output-field-header": True}}},
        "file:///x?protocol=csv",
    )
    messages = encoder_for(settings).encode_rows(inserts(table_of(ID, NAME), [1], ["x"]))
    assert texts(messages) == ['"I","t","db",1\r\n']
    assert messages.key[0].as_py() == b"ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,id\r\n"


def test_the_header_names_every_field():
    encoder = encoder_for(
        csv_settings(output_field_header=True, include_commit_ts=True, output_old_value=True, delimiter="|")
    )
    assert encoder.file_header(table_of(ID, NAME)) == (
        b"ticdc-meta$operation|ticdc-meta$table|ticdc-meta$schema|ticdc-meta$commit-ts|ticdc-meta$is-update|id|name\r\n"
    )
    assert encoder_for(csv_settings()).file_header(table_of(ID)) == b""


def test_csv_has_no_ddl_and_no_watermarks():
    encoder = encoder_for(csv_settings())
    assert encoder.encode_watermark(TS) is None


def test_no_rows_give_no_messages():
    batch = inserts(table_of(ID, NAME, column("e", types.ENUM, elems=("a",))), [], [], [])
    encoder = encoder_for(csv_settings(include_commit_ts=True))
    assert len(encoder.encode_rows(batch)) == 0
    assert bytes(encoder.encode_file(batch).data) == b""


def test_many_rows_are_written_like_one():
    """Large batches take shortcuts that small ones do not."""
    count = 6000
    random = np.random.default_rng(1)
    numbers = random.integers(-128, 128, count).tolist()
    cents = [Decimal(number).scaleb(-2) for number in random.integers(-(10**6), 10**6, count).tolist()]
    weights = (random.integers(0, 10**6, count) / 1000).tolist()
    names = [f"{number:04d}" for number in range(count)]
    table = table_of(
        column("tiny", types.TINYINT),
        column("cents", types.DECIMAL, flen=15, decimal=2),
        column("weight", types.DOUBLE),
        NAME,
        column("e", types.ENUM, elems=("a", "b")),
    )
    members = random.integers(1, 3, count).tolist()
    batch = inserts(table, numbers, cents, weights, names, members)
    texts_of_weights = go_g(batch.columns.column(2)).to_pylist()
    want = [
        f'"I","t","db",{number},"{cent:.2f}",{weight},"{name}","{" ab"[member]}"\r\n'
        for number, cent, weight, name, member in zip(
            numbers, cents, texts_of_weights, names, members, strict=True
        )
    ]
    assert lines(batch) == want
