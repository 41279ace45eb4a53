"""encode -> decode -> encode for any event."""

import pytest
from hypothesis import given, settings
from wire_strategies import EVENTS

from tidemark.wire.events.dml import DMLEvent, pack_keys, read_dml
from tidemark.wire.events.dml import write as write_dml
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.json_form import event_form, json_line
from tidemark.wire.registry import EVENT_TYPES, decode, encode

MODEST = settings(max_examples=40, deadline=None, derandomize=True)


def test_every_event_type_has_a_strategy():
    assert {name.split()[0] for name in EVENTS} == {kind.name for kind in EVENT_TYPES.values()}


@pytest.mark.parametrize("name", EVENTS)
def test_event_survives_the_wire(name):
    @MODEST
    @given(EVENTS[name])
    def check(event):
        frame = encode(event)
        again = decode(frame)
        assert again == event
        assert encode(again) == frame
        assert len(frame) == event.size() + HEADER_SIZE

    check()


@pytest.mark.parametrize("name", [name for name in EVENTS if name not in ("ddl", "handshake")])
def test_event_has_a_json_form(name):
    @MODEST
    @given(EVENTS[name])
    def check(event):
        assert json_line(event_form(event)).startswith(b'{"header":{')

    check()


@pytest.mark.parametrize(
    "lengths", [[19] * 3, [19] * 100, [0] * 50, [300] * 40, [1, 2, 3] * 30, [7] * 20 + [8]]
)
def test_row_keys_of_one_and_of_many_lengths(lengths):
    keys = [bytes([i % 256]) * length for i, length in enumerate(lengths)]
    event = DMLEvent(bytes(16), 1, 2, 3, 4, 5, 6, 7, 8, b"\1" * len(keys), len(keys), pack_keys(keys))
    payload = write_dml(event)
    assert read_dml(payload, 0, len(payload)).row_keys() == keys
