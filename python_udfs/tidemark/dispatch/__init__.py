"""Which table goes where: table filter, topics and partitions. No Spark, no dbt."""

from tidemark.dispatch.table_filter import TableFilter, TableFilterError

__all__ = ["TableFilter", "TableFilterError"]
