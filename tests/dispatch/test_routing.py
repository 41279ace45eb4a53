"""Under which names tables are written."""

import pytest

from support import golden
from tidemark.config import load
from tidemark.dispatch.errors import AmbiguousTarget
from tidemark.dispatch.routing import Routing, routing_document
from tidemark.sinks.sent_rows import SentRows, SharedTarget
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode
from tidemark.wire.tracker import SchemaTracker


def settings(*dispatchers, **changefeed):
    rules = [{"matcher": [matcher], **keys} for matcher, keys in dispatchers]
    return load({"sink": {"dispatchers": rules}, **changefeed}, "mysql://u@h:3306/")


def target(schema, table, *dispatchers, **changefeed):
    given = settings(*dispatchers, **changefeed)
    found = Routing.of(given).target(schema, table)
    # The same rules on their way to SQL.
    assert Routing.of_document(routing_document(given)).target(schema, table) == found
    return found


@pytest.mark.parametrize(
    ("keys", "want"),
    [
        ({"target-schema": "archive"}, ("archive", "orders")),
        ({"target-table": "{table}_bak"}, ("sales", "orders_bak")),
        ({"target-schema": "{schema}_mirror"}, ("sales_mirror", "orders")),
        ({"target-schema": "archive", "target-table": "{schema}_{table}"}, ("archive", "sales_orders")),
        (
            {"target-schema": "{table}", "target-table": "{table}{schema}{table}"},
            ("orders", "orderssalesorders"),
        ),
        ({"partition": "ts"}, ("sales", "orders")),
    ],
)
def test_targets_are_text_with_the_names_of_the_source_and_empty_ones_keep_them(keys, want):
    assert target("sales", "orders", ("sales.*", keys)) == want


def test_the_first_rule_with_a_target_decides_and_others_are_passed_over():
    rules = [
        ("sales.orders", {"partition": "ts"}),
        ("sales.*", {"target-schema": "first"}),
        ("*.*", {"target-schema": "second", "target-table": "t"}),
    ]
    assert target("sales", "orders", *rules) == ("first", "orders")
    assert target("hr", "staff", *rules) == ("second", "t")


def test_rules_match_without_regard_to_case_unless_told_and_names_keep_theirs():
    rule = ("sales.*", {"target-table": "{table}_x"})
    assert target("Sales", "Orders", rule) == ("Sales", "Orders_x")
    assert target("Sales", "Orders", rule, **{"case-sensitive": True}) == ("Sales", "Orders")


def test_a_database_has_the_target_that_its_tables_agree_on():
    rules = [("sales.a*", {"target-schema": "{schema}_x"}), ("sales.*", {"target-schema": "sales_x"})]
    assert target("sales", "", *rules) == ("sales_x", "")
    assert target("hr", "", *rules) == ("hr", "")
    assert target("", "", *rules) == ("", "")
    assert target("sales", "", ("sales.*", {"target-table": "t"})) == ("sales", "")


@pytest.mark.parametrize(
    "rules",
    [
        [("sales.a*", {"target-schema": "x"}), ("sales.*", {"target-schema": "y"})],
        [("sales.a*", {"target-schema": "x"}), ("sales.*", {"target-table": "t"})],
        [("sales.*", {"target-schema": "x_{table}"})],
    ],
)
def test_a_database_whose_tables_go_to_several_has_no_target(rules):
    with pytest.raises(AmbiguousTarget, match="database sales: its tables are written to more than one"):
        target("sales", "", *rules)


def tables(stream):
    tracker, found = SchemaTracker(), {}
    with golden(f"streams/{stream}.bin").open("rb") as log:
        for frame in list(scan(log)):
            log.seek(frame.offset)
            event = decode(log.read(frame.length))
            tracker.feed(event)
            schema = tracker.in_force(event.dispatcher_id) if hasattr(event, "dispatcher_id") else None
            if schema is not None:
                found[schema.table.schema, schema.table.table] = schema.table
    return found


def test_a_table_is_the_same_object_again_and_keeps_its_own_name():
    orders = tables("orders")["shop", "orders"]
    routing = Routing.of(settings(("shop.orders", {"target-schema": "archive"})))
    routed = routing.table(orders)
    assert (routed.schema, routed.table, routed.target_schema, routed.target_table) == (
        *("shop", "orders"),
        *("archive", "orders"),
    )
    assert routing.table(orders) is routed
    stock = tables("orders")["shop", "stock"]
    assert routing.table(stock) is stock
    assert Routing.of(settings()).table(orders) is orders


def test_two_tables_do_not_get_one_name():
    sent = SentRows(settings(("shop.*", {"target-schema": "x", "target-table": "one"})))
    found = tables("orders")
    assert sent._routed(found["shop", "orders"]).target_table == "one"
    with pytest.raises(SharedTarget, match=r"shop.orders and shop.stock would both be written as x.one"):
        sent._routed(found["shop", "stock"])
