"""What the settings of a profile bring along: catalogs and table formats, and what is said where their jars are missing."""

from types import SimpleNamespace

import pytest

from tidemark.spark.formats import implied, missing_class, refusal

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
ICEBERG = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "jdbc",
    "spark.sql.catalog.lake.uri": "jdbc:sqlite:/data/lake.db",
}


def session_with(*packages):
    """A session whose jars have the classes of these packages."""

    def load(name):
        if not name.startswith(packages):
            raise RuntimeError("java.lang.ClassNotFoundException")

    loader = SimpleNamespace(loadClass=load)
    spark = SimpleNamespace(
        util=SimpleNamespace(Utils=SimpleNamespace(getContextOrSparkClassLoader=lambda: loader))
    )
    return SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark))))


@pytest.mark.parametrize(
    ("settings", "packages", "words"),
    [
        (
            DELTA,
            ("none",),
            ["Delta is not there", DELTA["spark.sql.extensions"], "io.delta:delta-spark_4.1_2.13:4.4.0"],
        ),
        (
            ICEBERG,
            ("none",),
            ["Iceberg is not there", "spark.sql.catalog.lake in", "iceberg-spark-runtime-4.1_2.13:1.12.0"],
        ),
        (
            ICEBERG,
            ("org.apache.iceberg",),
            ["SQLite is not there", "org.sqlite.JDBC", "org.xerial:sqlite-jdbc:"],
        ),
        ({"spark.sql.catalog.x": "a.B"}, ("none",), ["spark.sql.catalog.x", "a.B", "spark.jars"]),
    ],
)
def test_a_class_that_no_jar_has_is_one_sentence_with_what_to_do(settings, packages, words):
    said = missing_class(session_with(*packages), settings)
    assert all(word in said for word in words), said
    assert "\n" not in said


def test_classes_that_are_there_and_other_settings_are_no_matter():
    assert missing_class(session_with("io.delta", "org.apache"), DELTA) is None
    assert missing_class(None, {"spark.driver.memory": "1g"}) is None


def test_iceberg_catalogs_get_what_they_need_and_others_nothing():
    assert implied(ICEBERG) == {
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    }
    assert implied(DELTA) == {}


def test_another_default_catalog_is_refused_with_what_to_do():
    said = refusal({"spark.sql.defaultCatalog": "lake"})
    assert "table_format: iceberg" in said
    assert "iceberg_catalog: lake" in said
    assert refusal({"spark.sql.defaultCatalog": "spark_catalog"}) is None
    assert refusal({}) is None
