"""Avro's schema resolution and the compatibility levels: one test per rule."""

import json

import pytest

from tidemark.registry.avro_types import canonical, parse
from tidemark.registry.compatibility import LEVELS, incompatibilities, mismatches
from tidemark.registry.errors import InvalidSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
# writer -> readers
PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def can_read(reader, writer) -> bool:
    return not mismatches(parse(json.dumps(reader)), parse(json.dumps(writer)))


def record(*fields, name="r", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def one(name, kind="int", **more):
    return {"name": name, "type": kind, **more}


@pytest.mark.parametrize("reader", PRIMITIVES)
@pytest.mark.parametrize("writer", PRIMITIVES)
def test_primitives_are_read_as_themselves_or_promoted(reader, writer):
    assert can_read(reader, writer) == (reader == writer or reader in PROMOTIONS.get(writer, ()))


def test_a_field_that_the_writer_does_not_have_needs_a_default():
    assert can_read(record(one("a"), one("b", default=1)), record(one("a")))
    assert not can_read(record(one("a"), one("b")), record(one("a")))


def test_a_field_that_the_reader_does_not_have_is_skipped():
    assert can_read(record(one("a")), record(one("a"), one("b")))


def test_the_order_of_fields_does_not_matter():
    assert can_read(record(one("a"), one("b")), record(one("b"), one("a")))


def test_a_field_is_found_by_an_alias():
    assert can_read(record(one("new", aliases=["old"])), record(one("old")))


def test_records_must_have_one_name_or_an_alias():
    assert not can_read(record(one("a"), name="x"), record(one("a"), name="y"))
    assert can_read(record(one("a"), name="x", aliases=["y"]), record(one("a"), name="y"))
    assert can_read(record(one("a"), namespace="n1"), record(one("a"), namespace="n2"))


def test_each_branch_of_the_writers_union_must_be_read():
    assert can_read(["null", "int"], ["int", "null"])
    assert can_read(["null", "long"], ["null", "int"])
    assert not can_read("int", ["null", "int"])
    assert can_read("int", ["int"])


def test_some_branch_of_the_readers_union_must_read():
    assert can_read(["null", "int"], "int")
    assert not can_read(["null", "int"], "string")


def test_enums_need_the_writers_symbols_or_a_default():
    def enum(*symbols, **more):
        return {"type": "enum", "name": "e", "symbols": list(symbols), **more}

    assert can_read(enum("a", "b"), enum("a"))
    assert not can_read(enum("a"), enum("a", "b"))
    assert can_read(enum("a", default="a"), enum("a", "b"))


def test_fixed_needs_the_same_size():
    assert can_read({"type": "fixed", "name": "f", "size": 4}, {"type": "fixed", "name": "f", "size": 4})
    assert not can_read({"type": "fixed", "name": "f", "size": 4}, {"type": "fixed", "name": "f", "size": 5})


def test_arrays_and_maps_go_by_their_members():
    assert can_read({"type": "array", "items": "long"}, {"type": "array", "items": "int"})
    assert not can_read({"type": "map", "values": "int"}, {"type": "map", "values": "long"})
    assert not can_read({"type": "array", "items": "int"}, {"type": "map", "values": "int"})


def test_a_record_may_contain_itself():
    tree = record(one("v"), one("next", ["null", "r"]))
    assert can_read(tree, tree)
    assert not can_read(record(one("v", "string"), one("next", ["null", "r"])), tree)


def test_digits_of_a_decimal_do_not_matter_to_a_registry():
    def decimal(scale):
        return {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": scale}

    assert can_read(decimal(2), decimal(4))


def test_a_mismatch_tells_kind_path_and_reason():
    (found,) = mismatches(parse(json.dumps(record(one("a"), one("b")))), parse(json.dumps(record(one("a")))))
    assert (found.kind, found.path) == ("READER_FIELD_MISSING_DEFAULT_VALUE", "/b")
    assert "'b' without a default" in found.reason


V1, V2 = json.dumps(record(one("a"))), json.dumps(record(one("a"), one("b", default=1)))
# b has no default any more: V3 reads V2, but not V1.
V3 = json.dumps(record(one("a"), one("b")))


@pytest.mark.parametrize(
    ("new", "olds", "allowed"),
    [
        (V2, [V1], set(LEVELS)),
        (V3, [V1], {"FORWARD", "FORWARD_TRANSITIVE", "NONE"}),
        (V1, [V3], {"BACKWARD", "BACKWARD_TRANSITIVE", "NONE"}),
        (V3, [V1, V2], {"BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "NONE"}),
        (V1, [], set(LEVELS)),
    ],
)
def test_a_level_says_who_must_read_whom(new, olds, allowed):
    assert {level for level in LEVELS if not incompatibilities(new, olds, level)} == allowed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "1",
        "{}",
        '"nothing"',
        '{"type":"record","name":"r"}',
        '{"type":"record","fields":[]}',
        '{"type":"record","name":"1r","fields":[]}',
        '{"type":"record","name":"r","fields":[{"name":"a-b","type":"int"}]}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":"int","default":"x"}]}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":["null","int"],"default":1}]}',
        '{"type":"record","name":"r","fields":[{"name":"a","type":"int","default":2147483648}]}',
        '["int","int"]',
        '["int",["null"]]',
        '{"type":"enum","name":"e","symbols":[]}',
        '{"type":"enum","name":"e","symbols":["a","a"]}',
        '{"type":"fixed","name":"f"}',
        '{"type":"array"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_schema_is_refused(text):
    with pytest.raises(InvalidSchema):
        parse(text)


def test_white_space_and_the_order_of_keys_make_no_other_schema():
    assert canonical('{"type": "int", "x": 1}') == canonical('{"x":1,"type":"int"}')
    assert canonical('{"type":"int"}') != canonical('{"type":"long"}')
