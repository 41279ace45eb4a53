"""SQL expressions of event filters: parsed as MySQL, checked, and written as Spark SQL over the columns of a table.

`check` says what is wrong with an expression before any table is known; `condition` writes it for the columns of one. What is not known to mean the same in
both is refused by name. docs/filter-expressions.md lists what there is.
"""

from tidemark.filter_expressions.parse import ExpressionError
from tidemark.filter_expressions.translate import Condition, check, condition

__all__ = ["Condition", "ExpressionError", "check", "condition"]
