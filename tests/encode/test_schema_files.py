"""Schema files: content and hash of the reference, the design document's form, and reading both back."""

import json

import pytest
from encode_support import BYTES, TEXT, column, ddl_events, table_of

from support import jsonl
from tidemark.encode.ddl import DdlStatement, statements
from tidemark.encode.errors import InvalidSchemaFile
from tidemark.encode.schema_file import SchemaFile
from tidemark.wire import types

SCENARIOS = ("orders", "alltypes", "evolve", "active_active")


def of(scenario):
    return {
        (ordinal, sub): ddl
        for ordinal, event in enumerate(ddl_events(scenario))
        for sub, ddl in enumerate(statements(event))
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_content_hash_and_paths_are_those_of_the_reference(scenario):
    ddls = of(scenario)
    for want in jsonl(f"storage/{scenario}/schema_files.jsonl"):
        ddl = ddls[want["ddl"], want["sub"]]
        file = SchemaFile.of_ddl(ddl, want["output_column_id"])
        assert file.content(design=False).decode() == want["content"]
        assert file.checksum() == want["checksum"]
        assert file.path(encode=False) == want["path"]
        table_id = ddl.table_info.table_id if ddl.table_info else None
        assert file.path(table_id, encode=False) == want["path_table_id"]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("design", [True, False])
def test_both_forms_are_read_back_and_verify_against_their_name(scenario, design):
    for ddl in of(scenario).values():
        for column_ids in (True, False):
            file = SchemaFile.of_ddl(ddl, column_ids)
            parsed = SchemaFile.parse(file.content(design=design))
            parsed.verify(file.path())
            assert parsed.content(design=design) == file.content(design=design)


def design_column(kind, **more):
    table = table_of(column("c", kind, **more))
    return json.loads(SchemaFile.of_table(table, 5).content())["TableColumns"][0]


@pytest.mark.parametrize(
    ("kind", "more", "fields"),
    [
        (types.INT, {"flen": 11}, {"ColumnType": "INT", "ColumnPrecision": "11"}),
        (
            types.BIGINT,
            {"flag": types.UNSIGNED, "flen": 20},
            {"ColumnType": "BIGINT UNSIGNED", "ColumnPrecision": "20"},
        ),
        (types.BIT, {"flag": types.UNSIGNED, "flen": 9}, {"ColumnType": "BIT", "ColumnPrecision": "9"}),
        (
            types.DECIMAL,
            {"flen": 12, "decimal": 2},
            {"ColumnType": "DECIMAL", "ColumnPrecision": "12", "ColumnScale": "2"},
        ),
        (
            types.FLOAT,
            {"flen": 7, "decimal": 2},
            {"ColumnType": "FLOAT", "ColumnPrecision": "7", "ColumnScale": "2"},
        ),
        (types.DATE, {}, {"ColumnType": "DATE"}),
        (types.YEAR, {"flag": types.UNSIGNED}, {"ColumnType": "YEAR"}),
        (types.DATETIME, {"decimal": 0}, {"ColumnType": "DATETIME"}),
        (types.TIMESTAMP, {"decimal": 6}, {"ColumnType": "TIMESTAMP", "ColumnScale": "6"}),
        (types.STRING, {"flen": 20, **TEXT}, {"ColumnType": "CHAR", "ColumnLength": "20"}),
        (types.BLOB_TYPE, {"flen": 20, **BYTES}, {"ColumnType": "BLOB", "ColumnLength": "20"}),
        (types.JSON, {}, {"ColumnType": "JSON", "ColumnLength": "4294967295"}),
        (types.SET, {"elems": ("a", "b")}, {"ColumnType": "SET", "ColumnElems": ["a", "b"]}),
    ],
)
def test_columns_have_the_fields_of_the_design_document(kind, more, fields):
    assert design_column(kind, **more) == {"ColumnName": "c", **fields}


def test_keys_and_not_null_are_words():
    fields = design_column(types.INT, flen=11, flag=types.PRIMARY_KEY | types.NOT_NULL, default="7")
    assert (fields["ColumnNullable"], fields["ColumnIsPk"], fields["ColumnDefault"]) == ("false", "true", "7")


def test_the_total_is_text_for_tables_and_a_number_for_databases():
    assert (
        json.loads(SchemaFile.of_table(table_of(column("c", types.INT)), 5).content())["TableColumnsTotal"]
        == "1"
    )
    database = json.loads(
        SchemaFile.of_ddl(DdlStatement(1, "db", "", "create database db", 5, None)).content()
    )
    assert (database["TableColumnsTotal"], database["TableColumns"], database["Table"]) == (0, None, "")


def test_the_hash_does_not_depend_on_query_version_or_form():
    table = table_of(column("c", types.INT))
    ddl = DdlStatement(3, "db", "t", "create table t (c int)", 9, table)
    assert SchemaFile.of_ddl(ddl).checksum() == SchemaFile.of_table(table, 5).checksum()


def test_a_bit_default_that_is_no_utf8_survives_reading():
    table = table_of(column("c", types.BIT, flen=8, flag=types.UNSIGNED, default_bit="/w=="))
    file = SchemaFile.of_table(table, 5)
    assert b'"ColumnDefault": "\\ufffd"' in file.content()
    SchemaFile.parse(file.content()).verify(file.path())


def test_go_escapes_are_used():
    content = SchemaFile.of_ddl(DdlStatement(1, "a<b>&c", "", "x\u2028", 5, None)).content()
    assert b'"a\\u003cb\\u003e\\u0026c"' in content
    assert b'"x\\u2028"' in content


def test_a_file_that_differs_from_its_name_is_told():
    file = SchemaFile.of_table(table_of(column("c", types.INT)), 5)
    for path in (file.path().replace("schema_5_", "schema_6_"), file.path()[:-6] + "9.json"):
        if path != file.path():
            with pytest.raises(InvalidSchemaFile, match="the name says"):
                file.verify(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"Table":"t","Schema":"s","TableVersion":1,"TableColumns":[],"TableColumnsTotal":1}',
        b'{"Table":"t","Schema":"s","TableVersion":1,"TableColumns":[{"ColumnName":"c","ColumnType":"NOPE"}],"TableColumnsTotal":1}',
        b'{"Table":"t","Schema":"s","TableVersion":1,"TableColumns":[{"ColumnName":"c"}],"TableColumnsTotal":1}',
        b'{"Table":"t","Schema":"s","TableVersion":1,"TableColumns":"x","TableColumnsTotal":1}',
    ],
)
def test_a_file_that_cannot_be_read_is_told(content):
    with pytest.raises(InvalidSchemaFile):
        SchemaFile.parse(content)


SAMPLE = {"Table": "t", "Schema": "s", "TableVersion": 1, "TableColumnsTotal": 1}
COLUMN = {"ColumnName": "c", "ColumnType": "INT"}


@pytest.mark.parametrize("key", ["Table", "Schema", "TableVersion", "Query", "Type", "TableColumnsTotal"])
@pytest.mark.parametrize("value", [1.5, True, [], {}])
def test_a_field_of_another_type_is_told_by_its_name(key, value):
    content = json.dumps({**SAMPLE, "TableColumns": [COLUMN], key: value}).encode()
    with pytest.raises(InvalidSchemaFile, match=f"^a schema file: '{key}' cannot be "):
        SchemaFile.parse(content)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ColumnName", 5),
        ("ColumnType", 5),
        ("ColumnType", ["INT"]),
        ("ColumnId", "x"),
        ("ColumnId", 10**30),
        ("ColumnLength", 1.5),
        ("ColumnPrecision", "1_0"),
        ("ColumnScale", []),
        ("ColumnDefault", []),
        ("ColumnDefault", 10**400),
        ("ColumnElems", "ab"),
        ("ColumnElems", [1]),
    ],
)
def test_a_field_of_a_column_of_another_type_is_told_by_its_name(key, value):
    content = json.dumps({**SAMPLE, "TableColumns": [{**COLUMN, key: value}]}).encode()
    with pytest.raises(InvalidSchemaFile, match=f"'{key}' (cannot be|must hold) "):
        SchemaFile.parse(content)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[]", "a schema file is not a JSON object"),
        (b"\xff", "a schema file is not UTF-8"),
        (b"", "a schema file is not JSON: "),
        (b"[" * 100_000, "a schema file nests more than 64 levels deep"),
        (b'{"TableVersion":1e400}', "a schema file without 'TableColumnsTotal'"),
    ],
)
def test_why_a_file_cannot_be_read_is_a_sentence(content, problem):
    with pytest.raises(InvalidSchemaFile, match=f"^{problem}"):
        SchemaFile.parse(content)


def test_a_parsed_file_gives_a_table_for_reading_rows():
    table = table_of(
        column("id", types.INT, flag=types.PRIMARY_KEY | types.NOT_NULL),
        column("b", types.VARCHAR, flen=9, **BYTES),
    )
    parsed = SchemaFile.parse(SchemaFile.of_table(table, 5).content()).table_info(77)
    assert parsed.arrow_schema == table.arrow_schema
    assert (parsed.handle_key, parsed.table_id, parsed.version) == (("id",), 77, 5)
    assert parsed.columns[1].is_binary
