"""Rows -> CSV, canal-json, Avro and schema files. No Spark, no dbt."""
