"""DDL statements for the names under which tables are written (`tidemark.dispatch.routing`).

A name without a database is in that of the statement; the old name of a rename in that of the old table. Names that differ from the event's in case only mean the
event's tables.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark.dispatch.errors import AmbiguousTarget
from tidemark.dispatch.routing import Routing
from tidemark.encode.ddl import DdlStatement
from tidemark.encode.ddl_names import Name, Qualified, with_names
from tidemark.encode.errors import UnknownStatement, UnroutableStatement


def routed_statement(ddl: DdlStatement, routing: Routing) -> DdlStatement:
    """The statement as it is sent. Filters and topics are to be asked before: they know the names in the source."""
    if not routing:
        return ddl

    def resolve(name: Name) -> tuple[Qualified, Qualified]:
        source = _meant(name, ddl)
        return source, routing.target(*source)

    try:
        query = with_names(ddl.query, resolve) if ddl.query.strip() else ddl.query
        schema, table = routing.target(ddl.schema, ddl.table)
        old_schema, old_table = routing.target(ddl.old_schema, ddl.old_table)
    except (UnknownStatement, AmbiguousTarget) as problem:
        raise UnroutableStatement(
            f"the DDL statement {ddl.query!r:.200} of {'.'.join(filter(None, (ddl.schema, ddl.table)))} (finished ts {ddl.finished_ts}) "
            f"cannot be written for target-schema and target-table: {problem}; leave it out with ignore-sql of an event filter, "
            "and apply it downstream by hand"
        ) from None
    info = ddl.table_info and routing.table(ddl.table_info)
    return replace(
        ddl,
        schema=schema,
        table=table,
        query=query,
        old_schema=old_schema,
        old_table=old_table,
        table_info=info,
    )


def _meant(name: Name, ddl: DdlStatement) -> Qualified:
    """The table or database of the source that a name in a statement means."""
    if not name.table:
        is_own = not name.schema or name.schema.lower() == ddl.schema.lower()
        return (ddl.schema if is_own else name.schema), ""
    own, old = (ddl.schema, ddl.table), (ddl.old_schema, ddl.old_table)
    known = [own, old] if name.is_new or not ddl.old_schema else [old, own]
    for schema, table in known:
        if name.table.lower() == table.lower() and name.schema.lower() in ("", schema.lower()):
            return schema, table
    return name.schema or known[0][0], name.table
