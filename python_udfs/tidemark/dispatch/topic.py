"""The topic of a table.

An empty expression is the topic of the sink URI. A literal is taken as it is. In a name made from an expression every character of schema
and table that Kafka does not allow becomes "_", the name is cut at 249 bytes, and the names "." and "..", which Kafka keeps for itself,
become "_" and "__". Which expressions a sink takes is in `tidemark.config.topic_rule`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemark.config.topic_rule import is_static, topic_problem
from tidemark.dispatch.errors import InvalidTopicExpression

MAX_LENGTH = 249
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True)
class Topic:
    """A topic expression that was checked."""

    expression: str

    def name(self, schema: str, table: str) -> str:
        """The topic of a table."""
        if is_static(self.expression):
            return self.expression
        name = self.expression.replace("{schema}", _FORBIDDEN.sub("_", schema))
        name = name.replace("{table}", _FORBIDDEN.sub("_", table))
        if name in (".", ".."):
            return "_" * len(name)
        return name.encode()[:MAX_LENGTH].decode(errors="ignore")


def parse_topic(expression: str, sink_kind: str, protocol: str, default: str) -> Topic:
    """The expression as a Topic, `default` when it is empty; InvalidTopicExpression when the sink does not take it."""
    problem = topic_problem(expression, sink_kind, protocol)
    if problem:
        raise InvalidTopicExpression(f"topic = {expression!r} {problem[0]}; allowed: {problem[1]}")
    return Topic(expression or default)
