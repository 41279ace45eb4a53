"""Typed errors of the storage sink."""

from __future__ import annotations

from tidemark.errors import TidemarkError


class StorageError(TidemarkError):
    """The tree cannot be written or read."""


class StoreError(StorageError):
    """A file system or object store refused: not there, no permission, no space, wrong credentials."""


class FileExists(StorageError):
    """A file that must be new is already there. Data files are never overwritten."""


class LeaseHeld(StorageError):
    """Another writer works on the prefix."""


class LeaseLost(StorageError):
    """The lease was taken over by another writer while this one was working."""


class StaleRange(StorageError):
    """A run was planned for a range that does not begin where the tree ends."""


class RowsOutOfOrder(StorageError):
    """Rows of a stream came with a decreasing commit ts, or outside of the run's range."""


class UnencodableRow(StorageError):
    """A row that the protocol cannot express."""


class NameCollision(StorageError):
    """Two tables whose folders are one on this store."""


class DamagedTree(StorageError):
    """Files that Tidemark has published are gone, or `metadata` went back: writing on would hide it."""


class InvalidTree(StorageError):
    """A tree that cannot be read: a file is missing, torn, or not what its name says."""
