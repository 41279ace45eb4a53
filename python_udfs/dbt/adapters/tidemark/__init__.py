"""A thin dbt adapter on top of dbt-spark: one embedded Spark session with Tidemark's functions, Python models, safe tables."""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.tidemark import interrupts

# Before the other imports: they take most of a second.
interrupts.handle_in_dbt_command()

from dbt.adapters.tidemark.connections import TidemarkCredentials  # noqa: E402
from dbt.adapters.tidemark.impl import TidemarkAdapter  # noqa: E402
from dbt.include import tidemark  # noqa: E402

Plugin = AdapterPlugin(
    adapter=TidemarkAdapter,
    credentials=TidemarkCredentials,
    include_path=tidemark.PACKAGE_PATH,
    dependencies=["spark"],
)
