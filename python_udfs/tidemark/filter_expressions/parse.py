"""The text of an expression as a tree."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidemark.errors import TidemarkError


class ExpressionError(TidemarkError, ValueError):
    """An expression that cannot be read, or that is not known to mean the same in MySQL and in Spark."""


def parsed(text: str) -> exp.Expression:
    """The one expression that a text is."""
    try:
        statements = sqlglot.parse(f"SELECT {text}", read="mysql")
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is nested too deeply"
        raise ExpressionError(f"is no SQL expression: {reason}") from None
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select) or any(
        value for name, value in select.args.items() if name != "expressions"
    ):
        raise ExpressionError("is more than one expression")
    if len(select.expressions) != 1:
        raise ExpressionError(f"is {len(select.expressions)} expressions instead of one")
    return select.expressions[0]
