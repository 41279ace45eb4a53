"""DDL events: the body that TiCDC sends with each statement."""

from __future__ import annotations

from typing import Any

from tidemark.demo.clock import LOGICAL_BITS
from tidemark.demo.dispatchers import Dispatcher
from tidemark.demo.tables import SCHEMA, Table
from tidemark.wire.events.ddl import DDLEvent

# TiDB's numbers of statements, and of the kind of influence "these tables".
CREATE_SCHEMA, CREATE_TABLE, ADD_COLUMN = 1, 3, 5
NORMAL_INFLUENCE = 2
TABLE_TRIGGER = 0
DURATION = 5 << LOGICAL_BITS


def create_database(schema_id: int, finished_ts: int, dispatcher: Dispatcher) -> DDLEvent:
    body = _body(CREATE_SCHEMA, schema_id, "", f"create database {SCHEMA}", finished_ts, dispatcher)
    return DDLEvent.build(body, dispatcher.id)


def create_table(schema_id: int, table: Table, dispatcher: Dispatcher) -> DDLEvent:
    body = _body(CREATE_TABLE, schema_id, table.name, table.create_statement(), table.created_ts, dispatcher)
    body["need_added_tables"] = [{"SchemaID": schema_id, "TableID": table.table_id, "Splitable": False}]
    name = {"SchemaName": SCHEMA, "TableName": table.name}
    body["table_name_change"] = {"AddName": [name], "DropName": None, "DropDatabaseName": ""}
    return DDLEvent.build(body, dispatcher.id, table.info.to_bytes())


def add_column(schema_id: int, table: Table, dispatcher: Dispatcher) -> DDLEvent:
    """Sent to the table trigger and to the dispatcher of the table; `table` is as it is afterwards."""
    body = _body(ADD_COLUMN, schema_id, table.name, table.alter_statement(), table.added_at, dispatcher)
    body["blocked_tables"]["TableIDs"].append(table.table_id)
    body["blocked_table_names"] = [{"SchemaName": SCHEMA, "TableName": table.name}]
    return DDLEvent.build(body, dispatcher.id, table.info.to_bytes())


def _body(
    kind: int, schema_id: int, table: str, query: str, finished_ts: int, dispatcher: Dispatcher
) -> dict[str, Any]:
    return {
        "version": 1,
        "type": kind,
        "schema_id": schema_id,
        "schema_name": SCHEMA,
        "table_name": table,
        "extra_schema_name": "",
        "extra_table_name": "",
        "query": query,
        "start_ts": finished_ts - DURATION,
        "finished_ts": finished_ts,
        "seq": dispatcher.next_seq(),
        "epoch": dispatcher.epoch,
        "blocked_tables": {
            "InfluenceType": NORMAL_INFLUENCE,
            "TableIDs": [TABLE_TRIGGER],
            "SchemaID": schema_id,
        },
        "blocked_table_names": None,
        "need_dropped_tables": None,
        "need_added_tables": None,
        "updated_schemas": None,
        "table_name_change": None,
        "tidb_only": False,
        "bdr_mode": "",
        "err": "",
        "not_sync": False,
        "index_ids": None,
        "NotSync": False,
    }
