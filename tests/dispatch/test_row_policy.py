"""The rules for row changes outside of models: what they say, and that the model `row_policy` says the same."""

import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dbt_support import Dbt
from support import golden, jsonl
from tidemark.config import load
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.dispatch.errors import ExpressionsNeedModels, MissingSoftDeleteColumn
from tidemark.dispatch.row_policy import NOT_SENT, RowPolicy
from tidemark.sinks.row_batches import take
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import DELETE, INSERT, UPDATE, decode_batch
from tidemark.wire.tracker import SchemaTracker

ROOT = Path(__file__).parent.parent.parent
OPS = {INSERT: "insert", UPDATE: "update", DELETE: "delete", NOT_SENT: None}
LOG = str(golden("streams/active_active.bin"))


def numbered_batches(log=LOG):
    """Number, offset and rows of every frame with rows."""
    tracker = SchemaTracker()
    with open(log, "rb") as file:
        for number, frame in enumerate(scan(file)):
            file.seek(frame.offset)
            event = decode(file.read(frame.length))
            tracker.feed(event)
            if isinstance(event, BatchDMLEvent) and event.transactions:
                yield number, frame.offset, decode_batch(event, tracker.in_force(event.dispatcher_id).table)


def batches(log=LOG):
    """Offset and rows of every frame."""
    return ((offset, batch) for _, offset, batch in numbered_batches(log))


def without_nosd(changefeed):
    """The changefeed without the table that is flagged and has no column of soft deletes."""
    given = changefeed.get("filter", {})
    return {**changefeed, "filter": {**given, "rules": [*given.get("rules", ["*.*"]), "!aa.nosd"]}}


def judged(changefeed=None, compat="design", **more):
    """(offset, number) -> (table, op, what it is sent as)"""
    settings = load(without_nosd(changefeed or {}), "file:///x?protocol=csv", compat)
    policy, kept = RowPolicy(settings, **more), ChangefeedFilter(settings.changefeed)
    found = {}
    for offset, batch in batches():
        takes = kept.takes_table(batch.table.schema, batch.table.table)
        ops = policy.ops(batch).tolist() if takes else [NOT_SENT] * len(batch.changes)
        for number, (op, sent) in enumerate(zip(batch.changes.op.tolist(), ops, strict=True)):
            found[offset, number] = (batch.table.table, OPS[op], OPS[sent])
    return found


def outcomes(table, **more):
    return {(op, sent) for name, op, sent in judged(**more).values() if name == table}


def test_rows_of_other_tables_are_sent_as_they_are():
    assert outcomes("plain") == {("insert", "insert"), ("update", "update"), ("delete", "delete")}


@pytest.mark.parametrize("table", ["soft", "acct"])
def test_hard_deletes_are_dropped_and_soft_deletes_become_deletes(table):
    assert outcomes(table) == {
        ("insert", "insert"),
        ("update", "update"),
        ("update", "delete"),
        ("delete", None),
    }


@pytest.mark.parametrize("table", ["soft", "acct"])
def test_without_the_flags_of_tables_rows_are_sent_as_they_are(table):
    assert all(op == sent for op, sent in outcomes(table, table_flags=False))


def event_filter(**keys):
    return {
        "filter": {
            "event-filters": [
                {
                    "matcher": ["aa.plain", "aa.soft"],
                    **{key.replace("_", "-"): value for key, value in keys.items()},
                }
            ]
        }
    }


def test_event_filters_leave_out_row_changes_by_their_kind():
    assert outcomes("plain", changefeed=event_filter(ignore_event=["insert", "Delete"])) == {
        ("insert", None),
        ("update", "update"),
        ("delete", None),
    }
    assert {sent for _, sent in outcomes("plain", changefeed=event_filter(ignore_event=["all dml"]))} == {
        None
    }
    assert ("insert", "insert") in outcomes("acct", changefeed=event_filter(ignore_event=["all dml"]))


def test_event_filters_leave_out_updates_of_some_columns_only():
    (batch,) = [
        batch for _, batch in batches() if batch.table.table == "plain" and UPDATE in batch.changes.op
    ]
    changed = [
        name
        for name in batch.columns.schema.names
        if len(set(batch.columns.column(name).to_pylist())) > 1 and name != "id"
    ]
    upper = [name.upper() for name in changed]
    assert ("update", None) in outcomes("plain", changefeed=event_filter(ignore_update_only_columns=upper))
    assert ("update", "update") in outcomes(
        "plain", changefeed=event_filter(ignore_update_only_columns=["other"])
    )


def test_transactions_are_left_out_by_their_start_ts():
    start_ts = {int(ts) for _, batch in batches() for ts in batch.changes.start_ts}
    assert {sent for *_, sent in judged({"filter": {"ignore-txn-start-ts": sorted(start_ts)}}).values()} == {
        None
    }
    one = min(start_ts)
    rows = [batch.changes.start_ts == one for _, batch in batches() if batch.table.table != "nosd"]
    dropped = judged({"filter": {"ignore-txn-start-ts": [one]}}, table_flags=False).values()
    assert sum(sent is None for table, _, sent in dropped if table != "nosd") == sum(
        int(mask.sum()) for mask in rows
    )


def batch_of(case):
    """The rows of the transaction of a case, with the flags of its table forced."""
    for index, _, batch in numbered_batches():
        if index == case["event"]:
            changes = batch.changes
            starts = list(dict.fromkeys(changes.start_ts.tolist()))
            rows = np.flatnonzero(changes.start_ts == np.uint64(starts[case["txn"]]))
            flags = {
                "is_active_active": case["active_active_table"],
                "is_soft_delete": case["soft_delete_table"],
            }
            return replace(take(batch, rows), table=replace(batch.table, **flags))
    raise AssertionError(case)


# In active-active mode other tables are refused before a row of them is judged.
FILTER_CASES = [
    case
    for case in jsonl("active_active/filter_cases.jsonl")
    if not case["enable_active_active"] or case["active_active_table"] or case["soft_delete_table"]
]


def test_rows_become_what_ticdc_makes_of_them():
    refused = 0
    for case in FILTER_CASES:
        settings = load({}, "tidb://root@127.0.0.1:4000/", "ticdc")
        # The loop guard of bdr-mode is not part of these cases.
        feed = replace(settings.changefeed, enable_active_active=case["enable_active_active"])
        policy, batch = RowPolicy(replace(settings, changefeed=feed)), batch_of(case)
        assert [OPS[op] for op in batch.changes.op.tolist()] == [row["op"] for row in case["input"]]
        if "error" in case:
            refused += 1
            name = f"{case['schema']}.{case['table']}"
            with pytest.raises(MissingSoftDeleteColumn, match=f"{name} .* _tidb_softdelete_time"):
                policy.ops(batch)
            continue
        sent = [OPS[op] for op in policy.ops(batch).tolist() if op != NOT_SENT]
        assert sent == [row["op"] for row in case["output"] or []], case
    assert refused == 30


def test_without_the_flags_of_tables_a_column_of_soft_deletes_is_not_needed():
    (case, *_) = [case for case in FILTER_CASES if "error" in case]
    batch = batch_of(case)
    ops = RowPolicy(load({}, "file:///x?protocol=csv"), table_flags=False).ops(batch)
    assert ops.tolist() == batch.changes.op.tolist()


@pytest.mark.parametrize("key", ["insert", "update-old", "update-new", "delete"])
def test_expressions_on_values_are_refused_since_only_the_models_evaluate_them(key):
    changefeed = {"filter": {"event-filters": [{"matcher": ["a.*"], f"ignore-{key}-value-expr": "id > 1"}]}}
    with pytest.raises(
        ExpressionsNeedModels, match=rf"filter\.event-filters\[0\]\.ignore-{key}-value-expr .* dbt"
    ):
        RowPolicy(load(changefeed, "file:///x?protocol=csv"))


CHANGEFEEDS = {
    "plain": ({}, "design"),
    "ticdc": ({}, "ticdc"),
    "filters": (
        {
            "filter": {
                "rules": ["aa.*", "!aa.comp"],
                "ignore-txn-start-ts": [470493445641469964, 470493445644091404],
                "event-filters": [
                    {"matcher": ["*.acct"], "ignore-event": ["insert"]},
                    {"matcher": ["*.*"], "ignore-update-only-columns": ["V", "bal", "_tidb_softdelete_time"]},
                ],
            }
        },
        "design",
    ),
    "bdr": ({"bdr-mode": True}, "design"),
    "active-active": (
        {"enable-active-active": True, "bdr-mode": True, "filter": {"rules": ["aa.acct"]}},
        "ticdc",
    ),
}


@pytest.fixture(scope="module")
def models(spark, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        runner = Dbt(spark, patch, tmp_path_factory.mktemp("policy"), f"test_{uuid.uuid4().hex[:12]}")
        runner.vars = {"event_logs": [{"upstream_id": "1", "path": LOG}]}
        runner.ok("run", "--select", "+row_policy", changefeed=without_nosd({}))
        yield runner
        runner.drop()


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGEFEEDS)
def test_the_model_says_the_same(models, name):
    changefeed, compat = CHANGEFEEDS[name]
    models.ok(
        "run", "--select", "table_filter", "row_policy", changefeed=without_nosd(changefeed), compat=compat
    )
    rows = models.rows("select `offset`, row_number, op, policy_op from {schema}.row_policy")
    said = {(row["offset"], row["row_number"]): (row["op"], row["policy_op"]) for row in rows}
    ours = {place: row[1:] for place, row in judged(changefeed, compat).items()}
    assert said == {place: ours[place] for place in said}
    assert len(said) > 0.9 * len(ours)
