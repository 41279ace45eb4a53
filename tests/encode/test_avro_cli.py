"""`tidemark encode` with Avro: the CLI tests of the design document, and what the command shows."""

import base64
import json
from urllib.parse import quote

import pytest
from encode_support import configs

from support import golden, jsonl
from tidemark.cli import main
from tidemark.registry.embedded import EmbeddedRegistry

LOG = str(golden("streams/orders.bin"))
RULES = "[sink]\ndispatchers = [ { matcher = ['*.*'], topic = '{schema}_{table}' } ]\n"


@pytest.fixture
def encode(tmp_path, capsys):
    """Runs the command; gives the exit status, the objects printed and what stood on stderr."""
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text(RULES)

    def run(query="", *more, protocol="avro", registry="http://127.0.0.1:1"):
        uri = f"kafka://127.0.0.1:9092/t?protocol={protocol}{query}"
        uri += f"&schema-registry={registry}" if registry else ""
        status = main(["encode", LOG, "--sink-uri", uri, "--changefeed", str(changefeed), *more])
        printed = capsys.readouterr()
        return status, [json.loads(line) for line in printed.out.splitlines()], printed.err

    return run


@pytest.mark.parametrize("protocol", ["avro", "flat-avro"])
def test_cli_protocol(encode, protocol):
    status, messages, _ = encode(protocol=protocol)
    assert status == 0
    assert len(messages) == len(jsonl("encode/orders/avro.precise_long.jsonl"))
    assert messages[0]["topic"] == "shop_customers"


@pytest.mark.parametrize("protocol", ["avro", "flat-avro"])
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("enable-tidb-extension", ("true", "false")),
        ("avro-decimal-handling-mode", ("precise", "string")),
        ("avro-bigint-unsigned-handling-mode", ("long", "string")),
    ],
)
def test_cli_options_take_their_values_and_no_others(encode, protocol, key, values):
    seen = [encode(f"&{key}={value}", protocol=protocol) for value in values]
    assert [status for status, _, _ in seen] == [0, 0]
    assert seen[0][1] != seen[1][1]
    status, messages, error = encode(f"&{key}=wrong", protocol=protocol)
    assert (status, messages) == (2, [])
    assert key in error


@pytest.mark.parametrize("protocol", ["avro", "flat-avro"])
def test_cli_schema_registry_is_needed(encode, protocol):
    assert encode(protocol=protocol)[0] == 0
    status, _, error = encode(protocol=protocol, registry="")
    assert status == 2
    assert "schema-registry" in error


@pytest.mark.parametrize(
    "url", ["ftp://h", "nonsense", "http://", "http://h:port", "file://host/x", "http://h?x=1", "http://[bad"]
)
def test_cli_a_registry_that_is_none_is_refused(encode, url):
    for status, messages, error in (encode("", "--registry", url), encode(registry=quote(url, safe=""))):
        assert (status, messages) == (2, [])
        assert "schema-registry" in error


# Deletes from tables of the log whose only unique key is NOT NULL, and from tables without such a key.
UNIQUE_ONLY = {"shop.coupons": 2, "shop.loyalty": 2}
WITHOUT_KEY = {"shop.audit_log": 1, "shop.nullable_uk": 1}


@pytest.mark.parametrize(
    ("compat", "silent"), [("design", WITHOUT_KEY), ("ticdc", UNIQUE_ONLY | WITHOUT_KEY)]
)
def test_deletes_that_say_nothing_are_counted(encode, compat, silent):
    status, messages, said = encode("", "--compat", compat)
    assert status == 0
    nothing = {"key": None, "value": None}
    empty = [f"{m['schema']}.{m['table']}" for m in messages if nothing.items() <= m.items()]
    assert {name: empty.count(name) for name in empty} == silent
    for name, count in silent.items():
        assert f"{name}: {count} delete{'s say' if count > 1 else ' says'} nothing in Avro" in said
    assert said.count("nothing in Avro") == len(silent)


def test_old_rows_in_avro_are_refused_by_name(encode):
    status, messages, said = encode("&avro-include-before-value=true")
    assert (status, messages) == (2, [])
    assert "avro-include-before-value" in said
    assert "_ticdc_before" in said
    assert encode("&avro-include-before-value=false")[0] == 0


def test_deletes_of_other_protocols_always_say_something(capsys):
    assert main(["encode", LOG, "--sink-uri", "kafka://127.0.0.1:9092/t?protocol=canal-json"]) == 0
    assert capsys.readouterr().err == ""


def test_schemas_go_to_a_file_as_they_were_registered(encode, tmp_path):
    path = tmp_path / "schemas.jsonl"
    encode("", "--schemas", str(path), "--compat", "ticdc")
    assert path.read_bytes() == golden("encode/orders/avro.precise_long.schemas.jsonl").read_bytes()


def test_schemas_are_shown_before_the_first_message_that_needs_them(encode):
    _, shown, _ = encode("", "--schemas", "--compat", "ticdc")
    known = set()
    for item in shown:
        if item["kind"] == "schema":
            known.add(item["id"])
        elif item.get("value"):
            assert int.from_bytes(base64.b64decode(item["value"])[1:5], "big") in known
    assert len(known) == len(jsonl("encode/orders/avro.precise_long.schemas.jsonl"))


def test_a_registry_that_is_named_gives_the_ids(encode, tmp_path):
    folder = tmp_path / "registry"
    arguments = ("", "--registry", f"file://{folder}", "--compat", "ticdc")
    first = encode(*arguments)[1]
    assert encode(*arguments)[1] == first
    registry = EmbeddedRegistry(folder)
    assert registry.subjects() == sorted(
        {item["subject"] for item in jsonl("encode/orders/avro.precise_long.schemas.jsonl")}
    )


def test_a_refused_schema_stops_with_table_and_reason(encode, tmp_path):
    registry = EmbeddedRegistry(tmp_path / "registry")
    registry.register("shop_customers-value", '"string"')
    status, _, error = encode("", "--registry", f"file://{tmp_path / 'registry'}")
    assert status == 2
    assert "table shop.customers, subject 'shop_customers-value'" in error
    assert "409" in error


def test_schemas_and_registry_are_for_avro_only(capsys):
    for more in (["--schemas"], ["--registry", "file:///x"]):
        assert main(["encode", LOG, "--sink-uri", "file:///x?protocol=csv", *more]) == 2
        assert "protocol=avro" in capsys.readouterr().err


def test_the_uri_of_the_vectors_is_one_that_nothing_answers():
    assert "schema-registry=http://127.0.0.1:8081" in configs()["avro.precise_long"]["sink_uri"]


def test_records_have_the_names_of_the_target_and_subjects_follow_the_topic(tmp_path, capsys):
    changefeed, uri = (
        tmp_path / "routed.toml",
        "kafka://127.0.0.1:9092/t?protocol=avro&schema-registry=http://127.0.0.1:1",
    )
    changefeed.write_text(
        "[sink]\ndispatchers = [ { matcher = ['*.*'], topic = '{schema}_{table}', target-schema = 'archive', target-table = '{table}_y' } ]\n"
    )
    assert main(["encode", LOG, "--sink-uri", uri, "--changefeed", str(changefeed), "--schemas"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (record,) = [
        json.loads(found["schema"])
        for found in shown
        if found["kind"] == "schema" and found["subject"] == "shop_orders-value"
    ]
    assert (record["name"], record["namespace"]) == ("orders_y", "default.archive")
    assert {(row["topic"], row["schema"], row["table"]) for row in shown if row["kind"] == "row"} >= {
        ("shop_orders", "archive", "orders_y"),
        ("shop_stock", "archive", "stock_y"),
    }
