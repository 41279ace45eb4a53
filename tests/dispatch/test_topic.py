"""Topic expressions: the forms each sink takes, and the names they make."""

import pytest

from support import golden, jsonl
from tidemark.dispatch.errors import InvalidTopicExpression
from tidemark.dispatch.topic import MAX_LENGTH, parse_topic

# sink of the vectors -> sink kind and protocol
SINKS = {"kafka": ("kafka", "canal-json"), "avro": ("kafka", "avro"), "pulsar": ("pulsar", "canal-json")}
KAFKA, PULSAR = SINKS["kafka"], SINKS["pulsar"]
CASES = jsonl("dispatch/topic_cases.jsonl")


def test_there_are_vectors():
    assert golden("dispatch/topic_cases.jsonl").exists()
    assert {case["sink"] for case in CASES} == set(SINKS)


@pytest.mark.parametrize("sink", SINKS)
def test_topics_are_those_of_the_vectors(sink):
    for case in CASES:
        if case["sink"] != sink:
            continue
        if "error" in case:
            with pytest.raises(InvalidTopicExpression):
                parse_topic(case["expression"], *SINKS[sink], case["default_topic"])
        else:
            topic = parse_topic(case["expression"], *SINKS[sink], case["default_topic"])
            assert topic.name(case["schema"], case["table"]) == case["topic"], case


def test_an_error_names_the_expression_and_what_is_allowed():
    with pytest.raises(
        InvalidTopicExpression, match=r"'\{foo\}_x' is not a topic expression; allowed: .*\{schema\}"
    ):
        parse_topic("{foo}_x", *KAFKA, "t")


@pytest.mark.parametrize("expression", ["a\n", "{schema}\n", "{schema}_{table} "])
def test_a_line_break_or_blank_at_the_end_is_no_literal(expression):
    with pytest.raises(InvalidTopicExpression):
        parse_topic(expression, *KAFKA, "t")


@pytest.mark.parametrize(
    "expression", ["x/persistent://a/b/c", "persistent://a/b", "persistent://a/b/c/d", "a/b"]
)
def test_pulsar_names_are_full_or_have_no_slash(expression):
    with pytest.raises(InvalidTopicExpression):
        parse_topic(expression, *PULSAR, "t")


@pytest.mark.parametrize(("schema", "topic"), [(".", "_"), ("..", "__"), ("...", "...")])
def test_names_that_kafka_keeps_for_itself_become_underscores(schema, topic):
    assert parse_topic("{schema}", *KAFKA, "t").name(schema, "t") == topic


def test_names_are_cut_at_249_bytes():
    topic = parse_topic("{schema}.{table}", *KAFKA, "t")
    assert len(topic.name("s" * 200, "t" * 200)) == MAX_LENGTH
    assert topic.name("s" * 124, "t" * 124) == f"{'s' * 124}.{'t' * 124}"


def test_a_schema_called_like_a_placeholder_is_not_substituted():
    assert parse_topic("{schema}_{table}", *KAFKA, "t").name("{table}", "x") == "_table__x"
