"""Bring the tables of a warehouse to the form of this version, and to the var table_format.

For a warehouse of an older version, and to switch between parquet, delta and iceberg. The tables are copied from their own rows; no log is read, and sinks go on where they are.
Everything behind `upgrade` goes to dbt as it is, so `tidemark upgrade --vars 'table_format: delta'` is a whole call.
"""

from __future__ import annotations

from tidemark.cli.operation import run_operation

SUMMARY = "bring the tables to the form of this version and of table_format"
PASSES_ON = True


def add_arguments(parser) -> None:
    parser.usage = "tidemark upgrade [DBT_ARGUMENT ...]"


def run(args) -> int:
    return run_operation("upgrade", args.passed_on)
