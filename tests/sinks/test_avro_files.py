"""Avro files under a prefix: container files that any Avro library reads, and files of messages with a registry beside them."""

import io
import itertools
import json
import re
import struct

import fastavro
import numpy as np
import pytest
from storage_support import files_below, is_data, log_of

from support import jsonl
from tidemark.config import load
from tidemark.encode import avro_files
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import IncompatibleSchema
from tidemark.sinks.storage.doctor import examine
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.log_driver import write_log_to_tree
from tidemark.sinks.storage.reader import read_tree

LENGTH = struct.Struct(">i")


def write(folder, query="", scenario="orders", **sink):
    settings = load({"sink": {"date-separator": "none", **sink}}, f"file://{folder}?protocol=avro{query}")
    return write_log_to_tree([log_of(scenario)], settings, str(folder))


def container_changes(data):
    reader = fastavro.reader(io.BytesIO(data))
    return [(change.get("key"), change["value"]) for change in reader], json.loads(
        reader.metadata["avro.schema"]
    )


def framed(data):
    """(key, value) of every message, as bytes."""
    file, found = io.BytesIO(data), []

    def part():
        length = LENGTH.unpack(file.read(LENGTH.size))[0]
        return None if length < 0 else file.read(length)

    while file.tell() < len(data):
        found.append((part(), part()))
    return found


def read_message(registry, message):
    if message is None:
        return None
    magic, schema_id = struct.unpack_from(">BI", message)
    assert magic == 0
    schema = fastavro.parse_schema(json.loads(registry.schema(schema_id)))
    return fastavro.schemaless_reader(io.BytesIO(message[5:]), schema, None)


def data_files(folder):
    return {path: data for path, data in files_below(folder).items() if is_data(path)}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """The same log as container files and as messages."""
    container, messages = tmp_path_factory.mktemp("container"), tmp_path_factory.mktemp("messages")
    published = [write(container), write(messages, "&avro-file-format=messages")]
    assert published[0].rows == published[1].rows > 0
    return container, messages


def test_container_files_and_messages_hold_the_same_rows(trees):
    container, messages = trees
    registry = EmbeddedRegistry(messages / ".tidemark-registry")
    files = data_files(container)
    assert {path.rpartition(".")[0] for path in files} == {
        path.rpartition(".")[0] for path in data_files(messages)
    }
    deletes = 0
    for path, data in files.items():
        found, _ = container_changes(data)
        other = framed((messages / path).with_suffix(".messages").read_bytes())
        assert found == [(read_message(registry, key), read_message(registry, value)) for key, value in other]
        deletes += sum(value is None for _, value in found)
    assert deletes, "a delete is a key without a value"


def test_container_files_have_their_schema_with_the_tidb_types(trees):
    without_key = 0
    for path, data in data_files(trees[0]).items():
        _, schema = container_changes(data)
        table = path.split("/")[1]
        assert schema["name"] == f"{table}_change"
        records = {field["name"]: field["type"][1] for field in schema["fields"]}
        assert records["value"]["name"] == table
        assert "tidb_type" in json.dumps(records["value"])
        if "key" in records:
            assert records["key"]["name"] == f"{table}_key"
        without_key += "key" not in records
    assert without_key, "a table without a primary key has values only"


def test_container_files_need_no_registry(trees):
    assert not (trees[0] / ".tidemark-registry").exists()


def test_blocks_do_not_depend_on_how_rows_arrive(monkeypatch):
    monkeypatch.setattr(avro_files, "BLOCK_BYTES", 40)
    lengths = np.array([7, 30, 5, 100, 1, 1, 38, 2, 9])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    data = bytes(range(int(offsets[-1])))

    def blocks(*cuts):
        made, body = [], avro_files._Blocks(b"sync")
        edges = [0, *cuts, len(lengths)]
        for start, end in itertools.pairwise(edges):
            part = memoryview(data)[offsets[start] : offsets[end]]
            made += body.add(part, offsets[start : end + 1])
        return b"".join(made + body.end())

    whole = blocks()
    assert whole.count(b"sync") > 2
    assert all(blocks(*cuts) == whole for cuts in ([1], [2], [3, 4], [5, 8], list(range(1, 9))))


def test_files_of_many_blocks_read_back(tmp_path, trees, monkeypatch):
    monkeypatch.setattr(avro_files, "BLOCK_BYTES", 100)
    write(tmp_path)
    most = 0
    for path, data in data_files(tmp_path).items():
        assert container_changes(data) == container_changes((trees[0] / path).read_bytes())
        sync = data[-16:]
        most = max(most, data.count(sync) - 1)
    assert most > 1


@pytest.mark.parametrize("query", ["", "&avro-file-format=messages"])
def test_writing_again_changes_nothing(tmp_path, query):
    write(tmp_path, query)
    before = files_below(tmp_path)
    assert not write(tmp_path, query).wrote
    assert files_below(tmp_path) == before


def test_a_schema_that_the_registry_refuses_leaves_the_checkpoint(tmp_path):
    EmbeddedRegistry(tmp_path / ".tidemark-registry").register("shop_orders-value", '"string"')
    with pytest.raises(IncompatibleSchema, match=r"table shop\.orders"):
        write(tmp_path, "&avro-file-format=messages")
    assert not (tmp_path / "metadata").exists()


def test_the_tree_is_healthy_and_its_reader_says_what_it_does_not_read(trees):
    for folder in trees:
        report = examine(str(folder))
        assert not report.findings
        assert report.rows == len(jsonl("streams/orders.rows.jsonl"))
        with pytest.raises(InvalidTree, match="any Avro library"):
            list(read_tree(str(folder)))


@pytest.mark.parametrize("cut", [50, -1, -20])
@pytest.mark.parametrize("query", ["", "&avro-file-format=messages"])
def test_a_torn_file_is_found(tmp_path, query, cut):
    write(tmp_path, query)
    path = tmp_path / next(iter(data_files(tmp_path)))
    path.write_bytes(path.read_bytes()[:cut])
    assert [finding.code for finding in examine(str(tmp_path)).findings] == ["file-unreadable"]


def test_a_damaged_schema_is_found(tmp_path):
    write(tmp_path)
    path = tmp_path / next(iter(data_files(tmp_path)))
    path.write_bytes(path.read_bytes().replace(b'"name"', b'"nbme"', 1))
    assert [finding.code for finding in examine(str(tmp_path)).findings] == ["file-unreadable"]


def test_a_run_says_how_many_deletes_say_nothing(dbt, tmp_path):
    """A table without a primary key has no Avro key with compat: ticdc, and a delete is only its key."""
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": log_of("orders")}],
        "sink_uri": f"file://{tmp_path}/tree?protocol=avro",
        "compat": "ticdc",
    }
    built = dbt.ok(
        *("build", "--indirect-selection", "empty"),
        *("--select", "+sink_storage", "avro_deletes_have_a_key", "--exclude-resource-type", "unit_test"),
    )
    said = " ".join((dbt.folder / "logs" / "dbt.log").read_text().split())
    for table, deletes in (
        ("coupons", "2 deletes say"),
        ("loyalty", "2 deletes say"),
        ("audit_log", "1 delete says"),
    ):
        assert f"sink_storage: shop.{table}: {deletes} nothing in Avro" in said
    assert said.count("nothing in Avro") == 4
    assert "avro_handle_keys: design" in said
    (noted,) = dbt.rows("select empty_delete_count from {schema}.sink_checkpoints")
    assert noted["empty_delete_count"] == sum(map(int, re.findall(r"(\d+) deletes? says? nothing", said)))
    warned = [result.node.name for result in built.result if str(result.status) == "warn"]
    assert warned == ["avro_deletes_have_a_key"], "dbt counts it"
