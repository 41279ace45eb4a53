r"""Topic expressions: what may be written.

    kafka    := literal [{schema}] literal [{table}] literal          literal: letters, digits, . _ -
    avro     := literal {schema} literal {table} literal | a name without placeholders
    pulsar   := (persistent|non-persistent)://tenant/namespace/topic | topic without /

Empty stands for the topic of the sink URI. Only TopicNameStrategy exists: a subject is a topic's name, so with Avro a topic carries one table.
"""

from __future__ import annotations

import re

_LITERAL = r"[A-Za-z0-9._\-]*"
_KAFKA = re.compile(rf"{_LITERAL}(\{{schema\}})?{_LITERAL}(\{{table\}})?{_LITERAL}")
_AVRO = re.compile(rf"{_LITERAL}\{{schema\}}{_LITERAL}\{{table\}}{_LITERAL}")
_STATIC = re.compile(r"[A-Za-z0-9._\-]+")
_PULSAR_PREFIX = ("persistent://", "non-persistent://")
_PULSAR_PART = r"[A-Za-z0-9{}._\-]*"
_PULSAR_FULL = re.compile(rf"(?:non-)?persistent://{_PULSAR_PART}/{_PULSAR_PART}/{_PULSAR_PART}")

KAFKA_ALLOWED = "letters, digits, . _ - with at most one {schema} followed by at most one {table}"
AVRO_ALLOWED = "an expression with {schema} followed by {table}, or a name without placeholders"
PULSAR_ALLOWED = (
    "persistent://tenant/namespace/topic, non-persistent://tenant/namespace/topic, or a name without /"
)


def is_static(expression: str) -> bool:
    """Whether every table gets the same topic."""
    return _STATIC.fullmatch(expression) is not None


def topic_problem(expression: str, sink_kind: str, protocol: str) -> tuple[str, str] | None:
    """What is wrong with a topic expression and what is allowed, or None."""
    if expression == "":
        return None
    if sink_kind == "pulsar":
        if expression.startswith(_PULSAR_PREFIX):
            ok = _PULSAR_FULL.fullmatch(expression)
        else:
            ok = "/" not in expression
        return None if ok else ("is not a Pulsar topic", PULSAR_ALLOWED)
    if protocol == "avro":
        if _AVRO.fullmatch(expression) or is_static(expression):
            return None
        return "a topic rule for Avro must contain {schema} and {table}", AVRO_ALLOWED
    return None if _KAFKA.fullmatch(expression) else ("is not a topic expression", KAFKA_ALLOWED)
