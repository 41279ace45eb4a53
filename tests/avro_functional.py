"""The functional tests that the design document of flat Avro lists, for any downstream: a `downstream` fixture says where messages go.

A test file imports everything from here and defines the fixture. Messages are read back with fastavro and applied to an SQLite database, as a connector would.
"""

from __future__ import annotations

import io
import json
import operator
import sqlite3
import uuid
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import quote

import fastavro
import numpy as np
import pytest
from encode_support import BYTES, TEXT, batch_of, batches, column, table_of

from support import jsonl
from tidemark.config import load
from tidemark.config.findings import ConfigError
from tidemark.encode.avro_tables import SharedTopic
from tidemark.registry.errors import IncompatibleSchema
from tidemark.wire import types
from tidemark.wire.rows import RowBatch

KEY_FLAGS = types.NOT_NULL | types.PRIMARY_KEY
ID = column("id", types.BIGINT, flag=KEY_FLAGS)
NAME = column("name", types.VARCHAR, **TEXT)


@dataclass(frozen=True)
class Record:
    topic: str
    key: bytes | None
    value: bytes | None


class Downstream:
    """Sends row changes and gives back what arrived. Subclasses say where to."""

    brokers = "127.0.0.1:9092"

    def __init__(self, registry_url: str):
        self.registry_url = registry_url
        # Servers are shared, so topics have names of their own.
        self.prefix = f"f{uuid.uuid4().hex[:8]}"

    def settings(self, query: str = "", topic: str | None = "{schema}_{table}", compat: str = "design"):
        rules = [{"matcher": ["*.*"], "topic": f"{self.prefix}_{topic}"}] if topic else []
        registry = quote(self.registry_url, safe="")
        uri = f"kafka://{self.brokers}/{self.prefix}?protocol=avro&partition-num=1&schema-registry={registry}{query}"
        return load({"sink": {"dispatchers": rules}}, uri, compat)

    def send(self, settings, *given: RowBatch) -> list[Record]:
        raise NotImplementedError

    def schema(self, schema_id: int) -> str:
        raise NotImplementedError

    def versions(self, subject: str) -> list[str]:
        """The schemas of a subject, oldest first."""
        raise NotImplementedError

    def datum(self, message: bytes | None) -> dict | None:
        if message is None:
            return None
        assert message[0] == 0
        schema = fastavro.parse_schema(json.loads(self.schema(int.from_bytes(message[1:5], "big"))))
        data = io.BytesIO(message[5:])
        found = fastavro.schemaless_reader(data, schema, None)
        assert data.read() == b""
        return found

    def values(self, records: Iterable[Record]) -> list[dict | None]:
        return [self.datum(record.value) for record in records]

    def database(self, records: Iterable[Record]) -> list[tuple]:
        """The table `t` of a database that took the messages one by one."""
        database = sqlite3.connect(":memory:")
        database.execute("create table t (id integer primary key, name text)")
        for record in records:
            key, value = self.datum(record.key), self.datum(record.value)
            if value is None:
                database.execute("delete from t where id = ?", (key["id"],))
            else:
                database.execute("insert or replace into t values (?, ?)", (value["id"], value["name"]))
        return database.execute("select id, name from t order by id").fetchall()


def field_types(schema: str) -> dict[str, str]:
    """Field -> Avro type, without null."""

    def plain(declared):
        found = (
            next(branch for branch in declared if branch != "null")
            if isinstance(declared, list)
            else declared
        )
        return found["type"] if isinstance(found, dict) else found

    return {field["name"]: plain(field["type"]) for field in json.loads(schema)["fields"]}


# --- Data mapping ---------------------------------------------------------------------------------------------------------------


def test_data_mapping_all_generated_schema_and_data_are_correct(downstream):
    """Every SQL type of the mapping table: the reference's schema texts under our subjects, its datums in our messages."""
    settings = downstream.settings(
        "&enable-tidb-extension=false&avro-decimal-handling-mode=precise&avro-bigint-unsigned-handling-mode=long",
        compat="ticdc",
    )
    # The reference could not express some of these rows; nor can we.
    given = [kept for batch in batches("alltypes") if (kept := _encodable(settings, batch)) is not None]
    records = downstream.send(settings, *given)
    wanted = [row for row in jsonl("encode/alltypes/avro.precise_long.jsonl") if "error" not in row]
    assert len(records) == len(wanted) > 0
    registered = {
        row["subject"]: json.loads(row["schema"])
        for row in jsonl("encode/alltypes/avro.precise_long.schemas.jsonl")
    }
    ours = {}
    for topic in {record.topic for record in records}:
        for part in ("key", "value"):
            for text in downstream.versions(f"{topic}-{part}"):
                ours[f"{topic.removeprefix(downstream.prefix + '_')}-{part}"] = json.loads(text)
    assert ours == registered

    def datums(topic, key, value):
        return topic, key and key[5:], value and value[5:]

    sent = [
        datums(record.topic.removeprefix(f"{downstream.prefix}_"), record.key, record.value)
        for record in records
    ]
    reference = [
        datums(
            row["topic"],
            *(row[name] and b64decode(row[name]) for name in ("key", "value")),
        )
        for row in wanted
    ]
    # There is an order within a topic only.
    by_topic = operator.itemgetter(0)
    assert sorted(sent, key=by_topic) == sorted(reference, key=by_topic)
    downstream.values(records)


def _encodable(settings, batch):
    from tidemark.encode.avro import AvroEncoder
    from tidemark.registry.sequential import SequentialIds
    from tidemark.sinks.storage.rows import take

    error = AvroEncoder(settings, registry=SequentialIds()).encode_rows(batch).error
    which = np.flatnonzero(error.is_null().to_numpy(zero_copy_only=False))
    return take(batch, which) if len(which) else None


def test_data_mapping_enable_tidb_extension_adds_three_fields(downstream):
    settings = downstream.settings("&enable-tidb-extension=true")
    table = table_of(ID, NAME)
    ts = 450_000_000_000_000_001
    batch = batch_of(table, ("I", (1, "a")), ("U", (1, "a"), (1, "b")), ("D", (1, "b")), commit_ts=ts)
    created, updated, deleted = downstream.values(downstream.send(settings, batch))
    extension = {"_tidb_commit_ts": ts, "_tidb_commit_physical_time": ts >> 18}
    assert created == {"id": 1, "name": "a", "_tidb_op": "c", **extension}
    assert updated == {"id": 1, "name": "b", "_tidb_op": "u", **extension}
    assert deleted is None
    (schema,) = downstream.versions(f"{downstream.prefix}_db_t-value")
    assert list(field_types(schema))[2:] == ["_tidb_op", "_tidb_commit_ts", "_tidb_commit_physical_time"]


@pytest.mark.parametrize(
    ("mode", "avro", "value"), [("precise", "bytes", Decimal("-12.30")), ("string", "string", "-12.30")]
)
def test_data_mapping_avro_decimal_handling_mode(downstream, mode, avro, value):
    settings = downstream.settings(f"&avro-decimal-handling-mode={mode}")
    table = table_of(ID, column("price", types.DECIMAL, flen=10, decimal=2))
    (found,) = downstream.values(downstream.send(settings, batch_of(table, ("I", (1, Decimal("-12.30"))))))
    assert found == {"id": 1, "price": value}
    (schema,) = downstream.versions(f"{downstream.prefix}_db_t-value")
    assert field_types(schema)["price"] == avro


@pytest.mark.parametrize(
    ("mode", "avro", "value"), [("long", "long", -1), ("string", "string", "18446744073709551615")]
)
def test_data_mapping_avro_bigint_unsigned_handling_mode(downstream, mode, avro, value):
    settings = downstream.settings(f"&avro-bigint-unsigned-handling-mode={mode}")
    table = table_of(ID, column("big", types.BIGINT, flag=types.UNSIGNED))
    (found,) = downstream.values(downstream.send(settings, batch_of(table, ("I", (1, 2**64 - 1)))))
    assert found == {"id": 1, "big": value}
    (schema,) = downstream.versions(f"{downstream.prefix}_db_t-value")
    assert field_types(schema)["big"] == avro


# --- DML ------------------------------------------------------------------------------------------------------------------------


def test_dml_insert_row_and_check_the_row_in_downstream_database(downstream):
    batch = batch_of(table_of(ID, NAME), ("I", (1, "a")), ("I", (2, None)))
    assert downstream.database(downstream.send(downstream.settings(), batch)) == [(1, "a"), (2, None)]


def test_dml_update_row_and_check_the_row_in_downstream_database(downstream):
    batch = batch_of(table_of(ID, NAME), ("I", (1, "a")), ("I", (2, "x")), ("U", (1, "a"), (1, "b")))
    assert downstream.database(downstream.send(downstream.settings(), batch)) == [(1, "b"), (2, "x")]


def test_dml_delete_row_and_check_the_row_in_downstream_database(downstream):
    batch = batch_of(table_of(ID, NAME), ("I", (1, "a")), ("I", (2, "x")), ("D", (1, "a")))
    records = downstream.send(downstream.settings(), batch)
    assert downstream.database(records) == [(2, "x")]
    assert (downstream.datum(records[2].key), records[2].value) == ({"id": 1}, None)


# --- Schema ---------------------------------------------------------------------------------------------------------------------

OPTIONAL = column("note", types.VARCHAR, **TEXT)
REQUIRED = column("note", types.VARCHAR, flag=types.NOT_NULL, **TEXT)
RENAMED_TYPE = column("name", types.BIGINT)


def test_schema_not_in_schema_registry_a_fresh_new_schema_is_created(downstream):
    downstream.send(downstream.settings(), batch_of(table_of(ID, NAME), ("I", (1, "a"))))
    for part in ("key", "value"):
        assert len(downstream.versions(f"{downstream.prefix}_db_t-{part}")) == 1


def test_schema_in_schema_registry_and_compatible_a_new_version_is_created(downstream):
    settings = downstream.settings()
    records = downstream.send(settings, batch_of(table_of(ID, NAME), ("I", (1, "a"))))
    records += downstream.send(settings, batch_of(table_of(ID, NAME, OPTIONAL), ("I", (2, "b", "n"))))
    assert len(downstream.versions(f"{downstream.prefix}_db_t-value")) == 2
    assert len(downstream.versions(f"{downstream.prefix}_db_t-key")) == 1, "the key is what it was"
    assert downstream.values(records) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b", "note": "n"}]


@pytest.mark.parametrize(
    "changed", [table_of(ID, NAME, REQUIRED), table_of(ID, RENAMED_TYPE)], ids=["required", "type"]
)
def test_schema_in_schema_registry_and_incompatible_reports_error(downstream, changed):
    settings = downstream.settings()
    downstream.send(settings, batch_of(table_of(ID, NAME), ("I", (1, "a"))))
    row = (2, 5) if len(changed.columns) == 2 else (2, "b", "n")
    with pytest.raises(IncompatibleSchema, match=rf"table db\.t, subject '{downstream.prefix}_db_t-value'"):
        downstream.send(settings, batch_of(changed, ("I", row)))
    assert len(downstream.versions(f"{downstream.prefix}_db_t-value")) == 1


# --- Subject name strategy ------------------------------------------------------------------------------------------------------


def test_subject_name_strategy_with_only_the_default_topic_one_table_can_be_replicated(downstream):
    settings = downstream.settings(topic=None)
    first, second = (batch_of(table_of(ID, NAME, table=name), ("I", (1, "a"))) for name in ("t", "u"))
    (record,) = downstream.send(settings, first)
    assert record.topic == downstream.prefix
    assert len(downstream.versions(f"{downstream.prefix}-value")) == 1
    with pytest.raises(SharedTopic, match=r"db\.t and db\.u"):
        downstream.send(settings, first, second)


@pytest.mark.parametrize("rule", ["{schema}", "{table}", "all", "{table}_{schema}", "{schema}_{table}_ä"])
def test_subject_name_strategy_invalid_topic_rule_reports_error(downstream, rule):
    with pytest.raises(ConfigError, match=r"sink\.dispatchers\[0\]\.topic"):
        downstream.settings(topic=rule)


# Bytes that are no text, and a null key: what a registry and a broker must not touch.
def test_binary_values_and_null_keys_arrive_as_they_were(downstream):
    table = table_of(column("data", types.VARCHAR, **BYTES))
    raw = bytes(range(256))
    (record,) = downstream.send(downstream.settings(), batch_of(table, ("I", (raw,))))
    assert record.key is None
    assert downstream.datum(record.value) == {"data": raw}
