"""TiDB and MySQL: row changes as statements, written in parallel, safe to repeat.

RowBatch -> `steps` (which statements, with which parameters) -> `writer` (lanes, transactions, retries) -> server.
`progress` keeps the progress table. Nothing here imports Spark, dbt or, before a connection is opened, a driver.
"""
