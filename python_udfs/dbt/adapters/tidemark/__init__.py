"""A thin dbt adapter on top of dbt-spark: one embedded Spark session with Tidemark's functions, Python models, safe tables."""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.tidemark.connections import TidemarkCredentials
from dbt.adapters.tidemark.impl import TidemarkAdapter
from dbt.include import tidemark

Plugin = AdapterPlugin(
    adapter=TidemarkAdapter,
    credentials=TidemarkCredentials,
    include_path=tidemark.PACKAGE_PATH,
    dependencies=["spark"],
)
