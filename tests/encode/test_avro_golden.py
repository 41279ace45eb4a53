"""Messages and registered schemas of the reference system, byte for byte."""

import base64

import pytest
from encode_support import SCENARIOS, batches, configs, settings_of

from support import golden, jsonl
from tidemark.encode.avro import AvroEncoder
from tidemark.registry.recorded import Recorded
from tidemark.registry.sequential import SequentialIds

CASES = [
    (scenario, name)
    for scenario in SCENARIOS
    for name in configs()
    if name.startswith("avro.") and golden(f"encode/{scenario}/{name}.jsonl").exists()
]


def raw(text):
    return None if text is None else base64.b64decode(text)


@pytest.mark.parametrize(("scenario", "name"), CASES)
def test_messages_and_schemas_are_byte_for_byte_those_of_the_reference(scenario, name):
    registry = Recorded(SequentialIds())
    encoder = AvroEncoder(settings_of(name), registry=registry)
    want = jsonl(f"encode/{scenario}/{name}.jsonl")
    got = []
    for batch in batches(scenario):
        messages = encoder.encode_rows(batch)
        got += zip(
            messages.key.to_pylist(), messages.value.to_pylist(), messages.error.to_pylist(), strict=True
        )
    assert len(got) == len(want)
    for number, ((key, value, error), message) in enumerate(zip(got, want, strict=True)):
        if "error" in message:
            assert error, f"row {number}"
        else:
            assert (key, value, error) == (raw(message["key"]), raw(message["value"]), None), f"row {number}"
    schemas = [made.document() for made in registry.take()]
    assert schemas == jsonl(f"encode/{scenario}/{name}.schemas.jsonl")


def test_there_are_vectors_for_all_four_modes():
    assert {name for _, name in CASES} == {
        "avro.precise_long",
        "avro.precise_string",
        "avro.string_long_ext",
        "avro.string_string_ext",
    }
