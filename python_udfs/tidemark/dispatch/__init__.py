"""Table filter, partition and topic rules. No Spark, no dbt."""
