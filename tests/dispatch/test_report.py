"""What-if reports: rows per partition, skew, moved keys, keys out of order."""

import json
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import golden, jsonl
from tidemark.cli.row_batches import row_batches
from tidemark.config import load
from tidemark.dispatch.keys import key_fingerprints
from tidemark.dispatch.report import Report
from tidemark.dispatch.report_forms import as_json, as_text
from tidemark.dispatch.report_plot import as_svg
from tidemark.wire import types
from tidemark.wire.rows import INSERT, Changes, RowBatch
from tidemark.wire.table_info import Column, Index, TableInfo

URI = "kafka://127.0.0.1:9092/t?protocol=canal-json&partition-num={}"
BATCHES = list(row_batches([str(golden("streams/orders.bin"))], "test"))
ROWS = jsonl("streams/orders.rows.jsonl")


def rules(*entries: dict, count: int = 4, **changefeed):
    return load({"sink": {"dispatchers": list(entries)}, **changefeed}, URI.format(count))


def all_by(partition: str, **more):
    return rules({"matcher": ["*.*"], "partition": partition}, **more)


def spreads(*rule_sets, batches=BATCHES, max_keys: int = 1000) -> list:
    report = Report([(f"set {i}", settings) for i, settings in enumerate(rule_sets)], max_keys)
    for batch in batches:
        report.add(batch)
    return report.spreads()


def orders_by_key() -> dict:
    """Key -> commit ts of its changes, from the vectors."""
    changes = defaultdict(list)
    for row in ROWS:
        image = row["post"] or row["pre"]
        key = (
            tuple(json.dumps(image[name]) for name in row["handle_key"])
            if row["handle_key"]
            else row["row_key_hex"]
        )
        changes[row["table"], key].append(int(row["commit_ts"]))
    return changes


def test_rows_per_partition_are_counted():
    (spread,) = spreads(all_by("ts"))
    assert spread.topics[0].rows == tuple(
        Counter(int(row["commit_ts"]) % 4 for row in ROWS)[p] for p in range(4)
    )
    assert spread.rows == len(ROWS)


def test_skew_is_the_fullest_partition_over_the_mean():
    (spread,) = spreads(all_by("2"))
    assert spread.topics[0].rows == (0, 0, len(ROWS), 0)
    assert spread.skew == 4.0


def test_keys_are_counted_by_handle_key_or_record_key():
    (spread,) = spreads(all_by("ts"))
    assert spread.keys == len(orders_by_key())


def test_keys_out_of_order_have_changes_in_several_partitions():
    by_ts, by_key = spreads(all_by("ts"), all_by("rowid"))
    broken = [key for key, stamps in orders_by_key().items() if len({ts % 4 for ts in stamps}) > 1]
    assert by_ts.broken_keys == len(broken)
    assert by_key.broken_keys == 0
    assert {table.table: table.broken_keys for table in by_ts.tables if table.broken_keys} == Counter(
        name for name, _ in broken
    )


def test_keys_move_when_any_change_goes_elsewhere():
    before, same, other = spreads(all_by("0"), all_by("0"), all_by("ts"))
    moved = [key for key, stamps in orders_by_key().items() if any(ts % 4 for ts in stamps)]
    assert (before.moved_keys, same.moved_keys, other.moved_keys) == (0, 0, len(moved))


def test_another_topic_is_a_move():
    _, moved = spreads(
        all_by("0"),
        rules(
            {"matcher": ["shop.orders"], "partition": "0", "topic": "other"},
            {"matcher": ["*.*"], "partition": "0"},
        ),
    )
    assert moved.moved_keys == sum(name == "orders" for name, _ in orders_by_key())
    assert {topic.topic for topic in moved.topics} == {"t", "other"}


def test_candidates_may_have_another_number_of_partitions():
    _, more = spreads(all_by("ts"), all_by("ts", count=16))
    assert more.topics[0].rows == tuple(
        Counter(int(row["commit_ts"]) % 16 for row in ROWS)[p] for p in range(16)
    )


def test_tables_that_the_filter_leaves_out_are_not_counted():
    (spread,) = spreads(all_by("ts", filter={"rules": ["shop.orders"]}))
    assert [table.table for table in spread.tables] == ["orders"]
    assert spread.rows == sum(row["table"] == "orders" for row in ROWS)


def many_keys(start: int, count: int) -> RowBatch:
    table = TableInfo.build(
        "s", "t", 1, 1, columns=[Column(1, "id", 0, types.BIGINT, flag=types.PRIMARY_KEY | types.NOT_NULL)]
    )
    numbers, rows = np.arange(start, start + count), np.arange(count)
    stamps = numbers.astype(np.uint64)
    changes = Changes(
        np.full(count, INSERT, np.uint8),
        np.full(count, -1),
        rows,
        stamps,
        stamps,
        stamps,
        stamps,
        rows,
        pa.array([b""] * count),
    )
    return RowBatch(table, pa.RecordBatch.from_arrays([pa.array(numbers)], names=["id"]), changes, b"\0" * 16)


def test_beyond_max_keys_counts_are_estimates_from_a_sample():
    report = Report([("all", all_by("rowid"))], max_keys=1000)
    for start in range(0, 100_000, 20_000):
        report.add(many_keys(start, 20_000))
        report.add(many_keys(start, 20_000))
    (spread,) = report.spreads()
    assert spread.rows == 200_000
    assert report.sampled >= 128
    assert spread.keys == pytest.approx(100_000, rel=0.25)
    assert spread.broken_keys == 0


def test_no_rows_is_an_empty_report():
    report = Report([("all", all_by("ts"))])
    (spread,) = report.spreads()
    assert (spread.rows, spread.keys, spread.skew) == (0, 0, 0.0)
    assert as_text(report, [spread])
    ET.fromstring(as_svg([spread]))


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=30))
def test_fingerprints_tell_keys_apart_and_are_equal_for_equal_keys(texts):
    column = Column(1, "k", 0, types.VARCHAR, flag=types.PRIMARY_KEY | types.NOT_NULL, charset="utf8mb4")
    table = TableInfo.build(
        "s", "t", 1, 1, columns=[column], indexes=[Index("PRIMARY", ("k",), is_unique=True, is_primary=True)]
    )
    rows = pa.RecordBatch.from_arrays([pa.array(texts)], names=["k"])
    batch = RowBatch(table, rows, many_keys(0, len(texts)).changes, b"\0" * 16)
    fingerprints = key_fingerprints(batch).tolist()
    assert len(set(zip(texts, fingerprints, strict=True))) == len(set(texts)) == len(set(fingerprints))


def report_of_orders() -> tuple:
    report = Report([("in force", all_by("rowid")), ("by <ts>", all_by("ts"))])
    for batch in BATCHES:
        report.add(batch)
    return report, report.spreads()


def test_text_names_every_rule_set_table_and_partition():
    text = as_text(*report_of_orders())
    assert text.splitlines()[0].split("  ")[0] == "rules"
    for word in ("in force", "by <ts>", "shop.order_items", "keys out of order"):
        assert word in text


def test_json_has_the_figures():
    form = json.loads(json.dumps(as_json(*report_of_orders())))
    by_ts = form["rule_sets"][1]
    assert by_ts["name"] == "by <ts>"
    assert sum(by_ts["topics"][0]["rows_per_partition"]) == by_ts["rows"] == len(ROWS)
    assert by_ts["keys_out_of_order"] > 0
    assert form["keys_sampled"] == 1


def test_svg_has_a_bar_per_partition():
    tree = ET.fromstring(as_svg(report_of_orders()[1]))
    titles = [title.text for title in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 2 * 4
    assert any("by <ts>" in (text.text or "") for text in tree.iter("{http://www.w3.org/2000/svg}text"))


def test_text_shows_the_fullest_of_many_partitions():
    report = Report([("all", all_by("rowid", count=100))])
    for batch in BATCHES:
        report.add(batch)
    assert "and 68 partitions with fewer rows" in as_text(report, report.spreads())
