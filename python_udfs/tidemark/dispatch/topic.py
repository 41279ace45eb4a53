"""Topic expressions.

    literal    := ( A-Z | a-z | 0-9 | . | _ | - )*
    kafka      := literal ["{schema}"] [literal "{table}"] literal
    avro       := literal "{schema}" literal "{table}" literal  |  a literal that is not empty
    pulsar     := scheme "://" part "/" part "/" part           scheme: persistent or non-persistent
                | any text without "/"                          part: literals and braces

An empty expression is the topic of the sink URI. A literal is taken as it is. In a name made from an expression every character of schema and
table that is not allowed in a literal becomes "_", the name is cut at 249 bytes, and the names "." and "..", which Kafka keeps for itself,
become "_" and "__".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemark.dispatch.errors import InvalidTopicExpression

KAFKA, AVRO, PULSAR = "kafka", "avro", "pulsar"
MAX_LENGTH = 249

_LITERAL = r"[A-Za-z0-9._-]*"
_PULSAR_PART = r"[A-Za-z0-9{}._-]*"
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]")
_PULSAR_FULL = re.compile(r"(?:non-)?persistent://")
_EXPRESSION = {
    KAFKA: re.compile(rf"{_LITERAL}(\{{schema\}})?({_LITERAL}\{{table\}})?{_LITERAL}"),
    AVRO: re.compile(rf"{_LITERAL}\{{schema\}}{_LITERAL}\{{table\}}{_LITERAL}"),
    PULSAR: re.compile(rf"(?:non-)?persistent://{_PULSAR_PART}/{_PULSAR_PART}/{_PULSAR_PART}"),
}
_ALLOWED = {
    KAFKA: "letters, digits, '.', '_', '-' with at most one {schema} and then at most one {table}",
    AVRO: "letters, digits, '.', '_', '-' with one {schema} and then one {table}",
    PULSAR: "persistent://tenant/namespace/topic, non-persistent://tenant/namespace/topic or a topic name without '/'",
}


@dataclass(frozen=True)
class Topic:
    """A topic expression that was checked."""

    expression: str

    @property
    def is_literal(self) -> bool:
        return not _FORBIDDEN.search(self.expression)

    def name(self, schema: str, table: str) -> str:
        """The topic of a table."""
        if self.is_literal:
            return self.expression
        name = self.expression.replace("{schema}", _FORBIDDEN.sub("_", schema))
        name = name.replace("{table}", _FORBIDDEN.sub("_", table))
        if name in (".", ".."):
            return "_" * len(name)
        return name.encode()[:MAX_LENGTH].decode(errors="ignore")


def parse_topic(expression: str, kind: str, default: str) -> Topic:
    """The expression as a Topic, `default` when it is empty; InvalidTopicExpression when the sink kind does not take it."""
    if not expression:
        return Topic(default)
    if not _FORBIDDEN.search(expression) or _EXPRESSION[kind].fullmatch(expression):
        return Topic(expression)
    if kind == PULSAR and "/" not in expression and not _PULSAR_FULL.search(expression):
        return Topic(expression)
    raise InvalidTopicExpression(
        f"topic = {expression!r} is not a topic expression for {kind}; allowed: {_ALLOWED[kind]}"
    )
