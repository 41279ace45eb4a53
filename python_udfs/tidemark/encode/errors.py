"""Typed errors of the encoders."""

from __future__ import annotations

from tidemark.errors import TidemarkError


class EncodeError(TidemarkError, ValueError):
    """Rows, settings or names that a protocol cannot express."""


class UnknownProtocol(EncodeError):
    """The settings name a protocol that has no encoder here."""


class UnsafePath(EncodeError):
    """A schema or table name that cannot be a folder below the prefix."""


class InvalidFileName(EncodeError):
    """A name that is not one of a data, index or schema file."""


class InvalidSchemaFile(EncodeError):
    """A schema file that cannot be read, or that differs from what its name says."""


class UnknownStatement(EncodeError):
    """A DDL statement whose table names cannot be told for sure."""


class UnroutableStatement(EncodeError):
    """A DDL statement that cannot be written for the names its tables are written under."""
