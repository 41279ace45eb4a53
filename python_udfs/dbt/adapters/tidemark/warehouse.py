"""What lies in the folders of the warehouse, whether or not a table refers to it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation

# A version of a table, as the macros name them. Other folders are not ours to remove.
_VERSION = re.compile(r"\w+__\d{20}")


class WarehouseMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    connections: Any
    _catalog: Any
    _identifier: Any

    @available
    def table_bytes(self, relation: BaseRelation) -> int:
        """How many bytes of files a table has."""
        location = self._catalog().getTableMetadata(self._identifier(relation)).location()
        return _bytes(Path(location.getPath()))

    @available
    def unused_folders(self, schema: str) -> list[list[Any]]:
        """The folders of versions in a schema that no table refers to, each with its bytes: a process that died while it wrote a table leaves one."""
        return [[folder.name, _bytes(folder)] for folder in self._unused(schema)]

    @available
    def remove_unused_folders(self, schema: str) -> None:
        for folder in self._unused(schema):
            shutil.rmtree(folder)

    def _unused(self, schema: str) -> list[Path]:
        catalog = self.connections.spark_session()._jsparkSession.sharedState().externalCatalog()
        if not catalog.databaseExists(schema):
            return []
        location = urlparse(catalog.getDatabase(schema).locationUri().toString())
        folder = Path(unquote(location.path))
        if location.scheme not in ("", "file") or not folder.is_dir():
            return []
        names = catalog.listTables(schema).mkString("\n").split("\n")
        used = {Path(catalog.getTable(schema, name).location().getPath()) for name in names if name}
        return sorted(
            path
            for path in folder.iterdir()
            if path.is_dir() and path not in used and _VERSION.fullmatch(path.name)
        )


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
