"""Workers read the directory of an archive once, however many tasks they run."""

import importlib
import sys
import zipfile
from zipimport import zipimporter

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
