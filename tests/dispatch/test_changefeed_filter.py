"""What a changefeed leaves out."""

from tidemark.config import load
from tidemark.dispatch.changefeed_filter import ChangefeedFilter
from tidemark.encode.ddl import DdlStatement


def ddl(table, query="alter table t", schema="shop", kind=3, **others):
    return DdlStatement(kind, schema, table, query, 1, None, **others)


def changefeed_filter(**filter_keys):
    return ChangefeedFilter(load({"filter": filter_keys}).changefeed)


def test_a_statement_follows_the_filter_rules_of_its_table():
    taken = changefeed_filter(rules=["shop.*", "!shop.audit"]).takes_ddl
    assert taken(ddl("orders"))
    assert not taken(ddl("audit"))
    assert not taken(ddl("orders", schema="other"))
    assert taken(ddl(""))
    assert not taken(ddl("", schema="other"))


def test_a_rename_is_taken_when_one_of_its_names_is():
    taken = changefeed_filter(rules=["shop.orders"]).takes_ddl
    assert taken(ddl("orders_old", old_schema="shop", old_table="orders"))
    assert taken(ddl("orders", old_schema="shop", old_table="orders_new"))
    assert not taken(ddl("a", old_schema="shop", old_table="b"))


def test_event_filters_leave_out_statements_by_their_text():
    filters = [{"matcher": ["shop.orders"], "ignore-sql": ["^drop", "add column"]}]
    taken = changefeed_filter(**{"event-filters": filters}).takes_ddl
    assert not taken(ddl("orders", "DROP TABLE orders"))
    assert not taken(ddl("orders", "alter table orders ADD COLUMN n int"))
    assert taken(ddl("orders", "alter table orders drop column n"))
    assert taken(ddl("stock", "drop table stock"))


def test_ignored_transactions_are_statements_too():
    taken = changefeed_filter(**{"ignore-txn-start-ts": [7, 9]}).takes_ddl
    assert not taken(ddl("orders", start_ts=7))
    assert taken(ddl("orders", start_ts=8))


def test_all_ddl_leaves_out_every_statement_of_the_tables():
    filters = [{"matcher": ["shop.*"], "ignore-event": ["All DDL"]}]
    taken = changefeed_filter(**{"event-filters": filters}).takes_ddl
    assert not taken(ddl("orders"))
    assert taken(ddl("orders", schema="other"))


CREATE_DATABASE, DROP_TABLE, ADD_COLUMN, RENAME_TABLE, DROP_INDEX = 1, 4, 5, 14, 8


def test_event_filters_leave_out_statements_by_their_kind():
    filters = [{"matcher": ["shop.*"], "ignore-event": ["drop table", "Add Column"]}]
    taken = changefeed_filter(**{"event-filters": filters}).takes_ddl
    assert not taken(ddl("orders", kind=DROP_TABLE))
    assert not taken(ddl("orders", kind=ADD_COLUMN))
    assert taken(ddl("orders", kind=DROP_INDEX))
    assert taken(ddl("orders", kind=DROP_TABLE, schema="other"))


def test_alter_table_means_everything_that_changes_a_table():
    filters = [{"matcher": ["shop.*"], "ignore-event": ["alter table"]}]
    taken = changefeed_filter(**{"event-filters": filters}).takes_ddl
    assert not taken(ddl("orders", kind=ADD_COLUMN))
    assert not taken(ddl("orders", kind=DROP_INDEX))
    assert not taken(ddl("new", kind=RENAME_TABLE, old_schema="shop", old_table="orders"))
    assert taken(ddl("orders", kind=DROP_TABLE))


def test_an_event_filter_knows_a_renamed_table_by_its_old_name():
    filters = [{"matcher": ["shop.orders"], "ignore-event": ["rename table"]}]
    taken = changefeed_filter(**{"event-filters": filters}).takes_ddl
    assert not taken(ddl("orders_old", kind=RENAME_TABLE, old_schema="shop", old_table="orders"))
    assert taken(ddl("orders", kind=RENAME_TABLE, old_schema="shop", old_table="orders_new"))


def test_an_event_filter_is_for_statements_of_a_database_when_it_is_for_one_of_its_tables():
    filters = [{"matcher": ["shop.orders"], "ignore-event": ["create schema"]}]
    taken = changefeed_filter(**{"event-filters": filters}).takes_ddl
    assert not taken(ddl("", kind=CREATE_DATABASE))
    assert taken(ddl("", kind=CREATE_DATABASE, schema="other"))
