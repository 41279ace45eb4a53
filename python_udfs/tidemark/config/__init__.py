"""Changefeed file + sink URI -> validated settings. No Spark, no dbt."""
