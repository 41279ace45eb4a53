"""Everything a Spark session of ours knows beyond Spark: data sources and functions, registered once per session."""

from __future__ import annotations

from pyspark.sql.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from tidemark.spark.event_log import EventLogSource
from tidemark.spark.kafka_sink import KafkaSource
from tidemark.spark.log_plan import LogPlanSource
from tidemark.spark.mysql_sink import MysqlSource
from tidemark.spark.progress_sink import ProgressSource
from tidemark.spark.row_change_writer import RowChangeSource
from tidemark.spark.storage_tree import StorageSource
from tidemark.spark.udfs import UDFS

DATA_SOURCES = [
    EventLogSource,
    LogPlanSource,
    RowChangeSource,
    StorageSource,
    MysqlSource,
    ProgressSource,
    KafkaSource,
]


def register_all(spark) -> None:
    for source in DATA_SOURCES:
        spark.dataSource.register(source)
    for function, returns in UDFS.items():
        spark.udf.register(function.__name__, arrow_udf(function, from_arrow_type(returns)))
