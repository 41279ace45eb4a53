"""A second session on the same tables, which reads common table expressions (CTEs) in another way.

Spark gives every use of a CTE new columns and, to put it in place later, renames those of all that it stands for: for a chain of them this takes a quarter of the time of a
small statement. The old way to read CTEs does without, but takes the outer one of two with one name, and computes one that is used twice twice, also where that gives
other values (`rand`). So it is for models that ask for it, and views keep how they were read.
"""

from __future__ import annotations

from typing import Any


def inlining_clone(spark: Any) -> Any:
    from pyspark.sql import SparkSession

    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    clone.conf.set("spark.sql.legacy.ctePrecedencePolicy", "LEGACY")
    return clone
