"""Bytes <-> events and rows. Plain Python, numpy and Arrow: no Spark, no dbt."""
