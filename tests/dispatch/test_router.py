"""Dispatch rules: which rule takes a table, and where its rows go."""

import json
import zlib
from collections import defaultdict
from functools import cache

import pytest

from support import golden, jsonl
from tidemark.cli.row_batches import row_batches
from tidemark.config import ConfigError, load
from tidemark.dispatch.errors import DispatchError, MissingColumns, MissingIndex, NoPartitions
from tidemark.dispatch.router import Router

# There the design document governs, not the shipped TiCDC.
DESIGN_GOVERNS = {"pk_alias", "bracket_columns", "partition_number", "unknown_word"}
RULE_SETS = {rules["name"]: rules for rules in json.loads(golden("dispatch/rule_sets.json").read_text())}


def uri(count: int = 16, *, scheme: str = "kafka", protocol: str = "canal-json", topic: str = "dflt") -> str:
    return f"{scheme}://127.0.0.1:9092/{topic}?protocol={protocol}&partition-num={count}"


def router(
    *rules: dict, count: int = 16, compat: str = "design", case_sensitive: bool = False, **sink
) -> Router:
    return Router(
        load(
            {"case-sensitive": case_sensitive, "sink": {"dispatchers": list(rules)}},
            uri(count, **sink),
            compat,
        )
    )


@cache
def batches(scenario: str) -> list:
    return list(row_batches([str(golden(f"streams/{scenario}.bin"))], "test"))


def batch_of(scenario: str, table: str):
    return next(batch for batch in batches(scenario) if batch.table.table == table)


def golden_cases() -> dict:
    groups = defaultdict(list)
    for scenario in ("orders", "alltypes"):
        for case in jsonl(f"dispatch/cases_{scenario}.jsonl"):
            if case["rule_set"] not in DESIGN_GOVERNS:
                groups[case["rule_set"], scenario, case["partition_num"]].append(case)
    return groups


CASES = golden_cases()


def rules_of(rule_set: str) -> dict:
    if rule_set.startswith("columns:") or rule_set == "columns_typ":
        name = rule_set.partition(":")[2] or "id"
        return {
            "rules": [{"matcher": ["*.*"], "partition": "columns", "columns": [name]}],
            "case_sensitive": False,
            "pulsar": False,
        }
    return RULE_SETS[rule_set]


@pytest.mark.parametrize(("rule_set", "scenario", "count"), CASES, ids=lambda value: str(value))
def test_topic_partition_and_key_are_those_of_the_vectors(rule_set, scenario, count):
    rules = rules_of(rule_set)
    entries = [{key: value for key, value in rule.items() if value} for rule in rules["rules"]]
    scheme = "pulsar" if rules["pulsar"] else "kafka"
    routing = router(
        *entries, count=count, compat="ticdc", case_sensitive=rules["case_sensitive"], scheme=scheme
    )
    expected = {case["row"]: case for case in CASES[rule_set, scenario, count]}
    row = compared = 0
    for batch in batches(scenario):
        cases = [expected.get(row + i) for i in range(len(batch.changes))]
        row += len(batch.changes)
        if not any(cases):
            continue
        if any(case and "error" in case for case in cases):
            with pytest.raises(DispatchError):
                routing.partitions(batch)
            compared += sum(case is not None for case in cases)
            continue
        partitions, keys = routing.partitions(batch).tolist(), routing.partition_keys(batch).to_pylist()
        topic = routing.route(batch.table.schema, batch.table.table).topic
        for case, partition, key in zip(cases, partitions, keys, strict=True):
            if case:
                compared += 1
                assert (topic, partition, key) == (case["topic"], case["partition"], case["partition_key"]), (
                    case
                )
    assert compared == len(expected)


def test_pk_is_rowid():
    batch = batch_of("orders", "order_items")
    by_pk = router({"matcher": ["*.*"], "partition": "pk"}).partition_keys(batch)
    assert by_pk == router({"matcher": ["*.*"], "partition": "rowid"}).partition_keys(batch)


def test_a_list_in_brackets_is_columns_dispatch():
    batch = batch_of("orders", "orders")
    brackets = router({"matcher": ["*.*"], "partition": "[customer_id, Status]"}).partition_keys(batch)
    columns = router(
        {"matcher": ["*.*"], "partition": "columns", "columns": ["customer_id", "status"]}
    ).partition_keys(batch)
    assert brackets == columns


def test_a_number_is_that_partition():
    batch = batch_of("orders", "orders")
    assert set(router({"matcher": ["*.*"], "partition": "2"}, count=3).partitions(batch).tolist()) == {2}


@pytest.mark.parametrize("partition", ["3", "99"])
def test_a_number_beyond_the_partitions_is_an_error(partition):
    with pytest.raises((ConfigError, NoPartitions), match=partition):
        router({"matcher": ["*.*"], "partition": partition}, count=3)


def test_an_unknown_expression_is_an_error_that_says_what_is_allowed():
    with pytest.raises(ConfigError, match=r"frobnicate.*index-value"):
        router({"matcher": ["*.*"], "partition": "frobnicate"}, compat="ticdc")


def test_design_hashes_the_columns_that_exist():
    batch = batch_of("orders", "orders")
    some = router({"matcher": ["*.*"], "partition": "[customer_id, nope]"}).partition_keys(batch)
    assert some == router({"matcher": ["*.*"], "partition": "[customer_id]"}).partition_keys(batch)


def test_design_sends_to_partition_0_when_no_column_exists():
    batch = batch_of("orders", "orders")
    assert set(router({"matcher": ["*.*"], "partition": "[nope]"}).partitions(batch).tolist()) == {0}


def test_a_virtual_generated_column_counts_as_missing():
    batch = batch_of("alltypes", "gens")
    assert set(router({"matcher": ["*.*"], "partition": "[v_sum]"}).partitions(batch).tolist()) == {0}
    with pytest.raises(MissingColumns, match="v_sum"):
        router({"matcher": ["*.*"], "partition": "[v_sum]"}, compat="ticdc").partitions(batch)


def test_ticdc_fails_on_a_missing_column_and_names_it():
    with pytest.raises(MissingColumns, match=r"shop\.orders has no column 'nope'"):
        router({"matcher": ["*.*"], "partition": "[customer_id, nope]"}, compat="ticdc").partitions(
            batch_of("orders", "orders")
        )


@pytest.mark.parametrize("compat", ["design", "ticdc"])
def test_a_missing_index_is_an_error_that_names_those_there_are(compat):
    rule = {"matcher": ["*.*"], "partition": "index-value", "index": "nope"}
    with pytest.raises(MissingIndex, match=r"no index 'nope'.*uk_email"):
        router(rule, compat=compat).partitions(batch_of("orders", "customers"))


def test_an_index_that_is_not_unique_gives_a_warning():
    rule = {"matcher": ["shop.orders"], "partition": "index-value", "index": "idx_customer"}
    routing = router(rule)
    assert "not unique" in routing.warnings(batch_of("orders", "orders").table)[0]
    assert routing.warnings(batch_of("orders", "customers").table) == []


def test_a_table_without_handle_key_is_hashed_by_its_name():
    batch = batch_of("orders", "audit_log")
    keys = router({"matcher": ["*.*"], "partition": "rowid"}).partition_keys(batch).to_pylist()
    assert set(keys) == {str(zlib.crc32(b"shopaudit_log"))}


def test_the_first_matching_rule_wins_and_no_match_is_default():
    routing = router(
        {"matcher": ["shop.orders"], "partition": "ts", "topic": "a"},
        {"matcher": ["shop.*"], "partition": "rowid", "topic": "{schema}.{table}"},
    )
    assert vars(routing.route("shop", "orders")) == {"rule": 0, "topic": "a", "partition": "ts"}
    assert vars(routing.route("shop", "stock")) == {"rule": 1, "topic": "shop.stock", "partition": "rowid"}
    assert vars(routing.route("other", "orders")) == {"rule": None, "topic": "dflt", "partition": "default"}


@pytest.mark.parametrize(
    ("protocol", "partitions"),
    [("canal-json", [0]), ("canal", [0]), ("open-protocol", [0, 1, 2]), ("simple", [0, 1, 2])],
)
def test_ddl_goes_to_partition_0_with_canal_and_to_all_otherwise(protocol, partitions):
    assert list(router(count=3).ddl_partitions(protocol)) == partitions


def test_the_topic_of_a_ddl_is_that_of_its_table_or_of_the_old_name():
    routing = router({"matcher": ["*.*"], "topic": "{schema}.{table}"})
    assert routing.ddl_topic("s", "t") == "s.t"
    assert routing.ddl_topic("s", "new", "s", "old") == "s.old"
    assert routing.ddl_topic("s", "") == "dflt"
    assert routing.ddl_topic("s", "t", "s", "") == "dflt"


def test_a_sink_without_partitions_cannot_dispatch():
    with pytest.raises(NoPartitions, match="kafka://"):
        Router(load({}, "file:///tmp/x?protocol=csv"))


def test_the_number_of_partitions_must_be_known():
    with pytest.raises(NoPartitions, match="partition-num"):
        Router(load({}, "kafka://127.0.0.1:9092/t?protocol=canal-json"))


def test_a_column_is_hashed_from_the_table_version_on_that_has_it():
    routing = router({"matcher": ["*.*"], "partition": "[b]"}, count=1021)
    seen = [
        ("b" in batch.table.columns_by_name, set(routing.partitions(batch).tolist()) == {0})
        for batch in batches("evolve")
        if batch.table.table == "t1"
    ]
    assert {has_column for has_column, _ in seen} == {True, False}
    assert all(has_column != in_partition_0 for has_column, in_partition_0 in seen)


@pytest.mark.parametrize(
    "case",
    [case for case in jsonl("dispatch/errors.jsonl") if case["kind"] == "event_router"],
    ids=lambda case: case["rule_set"]["name"],
)
def test_rule_sets_are_refused_as_in_the_vectors(case):
    rules = case["rule_set"]
    entries = [{key: value for key, value in rule.items() if value} for rule in rules["rules"]]
    sink = {
        "scheme": "pulsar" if rules["pulsar"] else "kafka",
        "protocol": "avro" if rules["avro"] else "canal-json",
    }
    if sink["protocol"] == "avro":
        sink["protocol"] += "&schema-registry=http://127.0.0.1:8081"
    # The shipped TiCDC takes any word and any number.
    refused = "error" in case or rules["name"] in {"ok_number_partition", "ok_unknown_partition"}
    if refused:
        with pytest.raises((ConfigError, DispatchError)):
            router(*entries, compat="ticdc", **sink)
    else:
        router(*entries, compat="ticdc", **sink)


@pytest.mark.parametrize(
    "rule_set",
    sorted({case["rule_set"] for case in jsonl("dispatch/errors.jsonl") if case["kind"] == "verify_table"}),
)
def test_tables_are_refused_or_warned_about_as_in_the_vectors(rule_set):
    errors = {
        case["table"]: case["error"]
        for case in jsonl("dispatch/errors.jsonl")
        if case["kind"] == "verify_table" and case["rule_set"] == rule_set
    }
    routing = router(*RULE_SETS[rule_set]["rules"], compat="ticdc")
    for batch in batches("orders"):
        error = errors.get(batch.table.table, "")
        if "not unique" in error:
            assert routing.warnings(batch.table)
        elif error:
            with pytest.raises(DispatchError):
                routing.partitions(batch)
        else:
            assert routing.warnings(batch.table) == []
            routing.partitions(batch)
