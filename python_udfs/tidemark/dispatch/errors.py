"""Typed errors of the dispatch rules."""

from __future__ import annotations

from tidemark.errors import TidemarkError


class DispatchError(TidemarkError, ValueError):
    """A row change cannot be given a topic or a partition."""


class InvalidTopicExpression(DispatchError):
    """A topic expression that the sink does not take."""


class MissingColumns(DispatchError):
    """A rule hashes columns that the table does not have."""


class MissingIndex(DispatchError):
    """A rule hashes the columns of an index that the table does not have."""


class InvalidColumnRule(DispatchError):
    """A column selector has a rule that names no columns."""


class DroppedColumn(DispatchError):
    """A column selector leaves out a column that rows are told apart or dispatched by."""


class MissingSoftDeleteColumn(DispatchError):
    """A table has the flag of soft delete or active-active, and no column that says which rows are deleted."""


class ExpressionsNeedModels(DispatchError):
    """An event filter has an expression on values, which only the models evaluate."""


class NoPartitions(DispatchError):
    """The sink has no topics and partitions, or too few for a rule."""


class AmbiguousTarget(DispatchError):
    """A statement about a database whose tables are written to several."""


class SharedTarget(DispatchError):
    """Two tables would be written under one name."""
