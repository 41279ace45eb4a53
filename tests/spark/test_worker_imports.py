"""Workers start quickly: from compiled modules that their parent has loaded, and without reading archives again for every task."""

import importlib
import sys
import zipfile
from zipimport import zipimporter

import pyarrow as pa
import pyspark
from pyspark.sql.functions import arrow_udf

import tidemark.spark  # noqa: F401


def test_the_directory_of_an_archive_is_not_read_again_for_every_task(tmp_path, monkeypatch):
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("first.py", "")
    importer = zipimporter(str(archive))
    monkeypatch.setitem(sys.path_importer_cache, str(archive), importer)
    with zipfile.ZipFile(archive, "a") as out:
        out.writestr("second.py", "")
    importlib.invalidate_caches()
    assert importer.find_spec("first") is not None
    assert importer.find_spec("second") is None


def test_workers_have_the_installed_pyspark_and_what_they_need_from_their_parent(spark):
    @arrow_udf("string")
    def loaded(numbers: pa.Array) -> pa.Array:
        import pyspark

        is_loaded = "tidemark.spark.registration" in sys.modules
        return pa.array([f"{pyspark.__file__} {is_loaded}"] * len(numbers))

    ((found,),) = spark.range(1).select(loaded("id")).collect()
    assert found == f"{pyspark.__file__} True"
