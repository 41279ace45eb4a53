"""Reader of the data source `tidemark_storage`: a storage tree, ours or TiCDC's, as row changes.

Name          tidemark_storage
Options       tree         a folder, or a URI like a sink URI, with the options that the tree was written with
              changefeed   the changefeed file of the tree, where its CSV form is not the default one
              upstream_id  what to call the cluster that the rows came from
Rows          the shape of int_row_changes; what a tree does not tell is 0 or null (see docs/storage-sink.md), `offset` is 0 and `row_number` counts the rows of a file
Partitioning  one partition per data file
Guarantees    Rows up to the checkpoint of the tree, of files that an index vouches for. A file that is missing or cannot be read ends the query with its name.
Example       create temporary view changes using tidemark_storage options (tree 'file:///data/tree?protocol=csv')
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from tidemark.config import load
from tidemark.config.secrets import expand_environment
from tidemark.joined_frames import DecodedFrames
from tidemark.sinks.row_batches import take
from tidemark.sinks.storage.errors import InvalidTree
from tidemark.sinks.storage.filesystem import open_store, store_of
from tidemark.sinks.storage.journal import read_checkpoint
from tidemark.sinks.storage.reader import read_file, readable_files
from tidemark.sinks.storage.tree import DataFile, Folder, Tree, scan_tree
from tidemark.spark import row_changes, storage_sink
from tidemark.wire.errors import WireError


class StorageSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_storage"

    def schema(self) -> str:
        return row_changes.SCHEMA if "tree" in self.options else storage_sink.SCHEMA

    def reader(self, schema) -> StorageReader:
        return StorageReader(dict(self.options))

    def writer(self, schema, overwrite) -> storage_sink.StorageWriter:
        return storage_sink.StorageWriter(dict(self.options))


class TreeFile(InputPartition):
    def __init__(self, folder: Folder, file: DataFile, schema_files: dict[int, list[str]], checkpoint: int):
        self.folder, self.file, self.schema_files, self.checkpoint = folder, file, schema_files, checkpoint


class StorageReader(DataSourceReader):
    def __init__(self, options: dict[str, str]):
        self.tree, self.changefeed = options["tree"], options.get("changefeed")
        self.upstream_id = options.get("upstream_id", "")

    def _open(self):
        uri = expand_environment(self.tree, os.environ)
        settings = load(self.changefeed, uri) if "://" in uri else None
        return (store_of(settings) if settings else open_store(uri)), settings

    def partitions(self) -> list[TreeFile | None]:
        store, settings = self._open()
        # Before the files: what a checkpoint vouches for was there when it was written.
        checkpoint = read_checkpoint(store)
        tree = scan_tree(store, settings)
        if not tree.has_metadata:
            checkpoint = (1 << 64) - 1
        found = [
            TreeFile(folder, file, tree.schema_files.get(folder.table_path or "", {}), checkpoint)
            for folder, file in readable_files(tree)
        ]
        # Spark wants one partition even where there is nothing to read.
        return found or [None]

    def read(self, partition: TreeFile | None) -> Iterator[pa.RecordBatch]:
        if partition is None:
            return
        store, settings = self._open()
        folder = partition.folder
        tree = Tree(store, {}, {folder.table_path or "": partition.schema_files}, True, [], [])
        batch = read_file(tree, folder, partition.file, settings)
        rows = np.flatnonzero(batch.changes.commit_ts <= np.uint64(partition.checkpoint))
        decoded = DecodedFrames(take(batch, rows), np.zeros(len(rows), np.int64), rows)
        path = f"{store.shown}/{partition.file.path}"
        try:
            found = row_changes.row_change_batch(self.upstream_id, path, decoded, folder.version)
        except WireError as error:
            raise InvalidTree(f"{path}: {error.message}") from None
        yield found.cast(row_changes.PLAIN_SCHEMA)
