"""The bytes of every row message, DDL message and watermark of the reference system."""

import base64
import json
import re

import pytest
from encode_support import SCENARIOS, batches, configs, ddl_events, settings_of

from support import golden, jsonl
from tidemark.encode import encoder_for
from tidemark.encode.ddl import statements

CASES = [
    (scenario, name)
    for scenario in SCENARIOS
    for name in configs()
    if name.startswith(("csv.", "canal-json.")) and golden(f"encode/{scenario}/{name}.jsonl").exists()
]
DDL_CASES = [case for case in CASES if golden("encode/{}/{}.ddl.jsonl".format(*case)).exists()]
_STREAMS: dict = {}


def stream(scenario):
    if scenario not in _STREAMS:
        _STREAMS[scenario] = batches(scenario)
    return _STREAMS[scenario]


def raw(message, part):
    text = message.get(f"{part}_text")
    if text is not None:
        return text.encode()
    return None if message.get(part) is None else base64.b64decode(message[part])


def comparable(value: bytes) -> bytes:
    """canal-json without the wall clock, and with mysqlType, whose order is random there, sorted."""
    value = re.sub(rb'"ts":\d+', b'"ts":0', value, count=1)
    match = re.search(rb'"mysqlType":(\{.*?\}),"old":', value)
    if match is None:
        return value
    ordered = json.dumps(json.loads(match[1]), sort_keys=True).encode()
    return value[: match.start(1)] + ordered + value[match.end(1) :]


@pytest.mark.parametrize(("scenario", "name"), CASES)
def test_row_messages_are_byte_for_byte_those_of_the_reference(scenario, name):
    encoder = encoder_for(settings_of(name))
    form = comparable if name.startswith("canal-json") else (lambda value: value)
    want = jsonl(f"encode/{scenario}/{name}.jsonl")
    got = []
    for batch in stream(scenario):
        messages = encoder.encode_rows(batch)
        assert messages.change.tolist() == list(range(len(batch.changes)))
        got += zip(
            messages.key.to_pylist(), messages.value.to_pylist(), messages.error.to_pylist(), strict=True
        )
    assert len(got) == len(want)
    for number, ((key, value, error), message) in enumerate(zip(got, want, strict=True)):
        if "error" in message:
            assert error
            assert value is None
        else:
            assert error is None, number
            assert form(value) == form(raw(message, "value")), number
            assert key == raw(message, "key"), number


@pytest.mark.parametrize(("scenario", "name"), [case for case in CASES if case[0] in ("orders", "alltypes")])
def test_a_file_is_the_messages_in_a_row_with_terminators(scenario, name):
    encoder = encoder_for(settings_of(name))
    terminator = b"\r\n" if name.startswith("canal-json") else b""
    for batch in stream(scenario):
        values = [
            None if value is None else comparable(value) + terminator
            for value in encoder.encode_rows(batch).value.to_pylist()
        ]
        file = encoder.encode_file(batch)
        data, start, rows = bytes(file.data), 0, []
        for length in file.lengths.tolist():
            rows.append(comparable(data[start : start + length]) if length else None)
            start += length
        assert start == len(data)
        assert rows == values
        assert (file.error is None) == (None not in values)


@pytest.mark.parametrize(("scenario", "name"), DDL_CASES)
def test_ddl_and_watermark_messages_are_those_of_the_reference(scenario, name):
    encoder = encoder_for(settings_of(name))
    want = jsonl(f"encode/{scenario}/{name}.ddl.jsonl")
    got = [encoder.encode_ddl(ddl) for event in ddl_events(scenario) for ddl in statements(event)]
    ddl = [message for message in want if "ddl" in message]
    assert [comparable(message.value) for message in got] == [
        comparable(raw(message, "value")) for message in ddl
    ]
    watermarks = [message for message in want if "checkpoint_ts" in message]
    assert watermarks
    for message in watermarks:
        watermark = encoder.encode_watermark(int(message["checkpoint_ts"]))
        if message.get("no_message"):
            assert watermark is None
        else:
            assert comparable(watermark.value) == comparable(raw(message, "value"))
