"""Every event of the golden vectors, both ways, and the rules that all events share."""

import json

import pytest

from support import golden, jsonl
from tidemark.wire import errors
from tidemark.wire.events.batch_resolved import BatchResolvedEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.ready import ReadyEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.header import HEADER_SIZE, read_header, write_header
from tidemark.wire.ids import id_text, make_id
from tidemark.wire.json_form import event_form, id_form
from tidemark.wire.registry import EVENT_TYPES, decode, encode

VECTORS = sorted(path.stem for path in golden("wire").glob("*.bin"))
SINGLE = [name for name in VECTORS if not name.startswith("batch_resolved")]


def frame_of(name):
    return golden(f"wire/{name}.bin").read_bytes()


def expected_of(name):
    expected = json.loads(golden(f"wire/{name}.json").read_text())
    for context in ("physical_rows", "table_schema"):  # not part of the event itself
        expected["fields"].pop(context, None)
    return expected


def frames_in(data):
    while data:
        size = HEADER_SIZE + read_header(data).payload_length
        yield data[:size]
        data = data[size:]


def as_sets(fields):
    """The order of the dispatchers of a changefeed means nothing."""
    for changefeed in fields.get("availables") or ():
        changefeed["dispatchers"] = sorted(changefeed["dispatchers"], key=lambda d: d["dispatcher_id"]["hex"])
    return fields


def without_empty(value):
    """null and an empty list are the same in the vectors."""
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_empty(item) for item in value] or None
    return value


@pytest.mark.parametrize("name", SINGLE)
def test_vector_decodes_to_its_fields(name):
    expected, form = expected_of(name), event_form(decode(frame_of(name)))
    assert form["header"] == expected["header"]
    assert form["event"] == expected["event"]
    assert without_empty(as_sets(form["fields"])) == without_empty(as_sets(expected["fields"]))


@pytest.mark.parametrize("name", SINGLE)
def test_vector_encodes_to_its_bytes(name):
    frame = frame_of(name)
    assert encode(decode(frame)) == frame


@pytest.mark.parametrize("name", SINGLE)
def test_size_is_business_data_only(name):
    frame = frame_of(name)
    assert decode(frame).size() + HEADER_SIZE == len(frame)


@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("batch_resolved")])
def test_batch_resolved_without_a_frame_is_resolved_frames(name):
    expected = expected_of(name)["fields"]["events"] or []
    events = [decode(frame) for frame in frames_in(frame_of(name))]
    assert [event.fields() for event in events] == expected


def test_batch_resolved_with_a_frame_gives_its_events():
    frames = list(frames_in(frame_of("batch_resolved_three")))
    payload = b"".join(frames)
    frame = write_header(4, 1, len(payload)) + payload
    event = decode(frame, expect=BatchResolvedEvent)
    assert event.events == tuple(decode(inner) for inner in frames)
    assert encode(event) == frame
    assert event_form(event)["header"]["type_name"] == "BatchResolvedEvent"
    assert event_form(event)["fields"]["events"] == expected_of("batch_resolved_three")["fields"]["events"]


def test_batch_resolved_may_be_empty():
    event = decode(write_header(4, 1, 0))
    assert event.events == ()


def test_batch_resolved_holds_nothing_but_resolved_events():
    inner = frame_of("drop_typical")
    with pytest.raises(errors.WrongEventType) as caught:
        decode(write_header(4, 1, len(inner)) + inner)
    assert caught.value.offset == HEADER_SIZE + 4


# Where we differ from the running system on purpose: version 0 is the same layout as version 1, and bytes behind the payload
# are an error.
DIFFERS = {"version_0": None, "trailing_bytes_ignored": errors.TrailingBytes}
ERROR_CLASS = {
    "empty": errors.TruncatedHeader,
    "short_header": errors.TruncatedHeader,
    "header_only_len_gt_0": errors.TruncatedPayload,
    "bad_magic": errors.BadMagic,
    "type_mismatch": errors.WrongEventType,
    "type_mismatch_ready": errors.WrongEventType,
    "type_mismatch_ddl": errors.WrongEventType,
    "unknown_type": errors.WrongEventType,
    "version_2": errors.UnsupportedVersion,
    "version_65535": errors.UnsupportedVersion,
    "batch_dml_v2": errors.UnsupportedVersion,
    "heartbeat_v3": errors.UnsupportedVersion,
    "ddl_missing_dispatcher_size": errors.TruncatedPayload,
}
NAMES = {"heartbeat": "dispatcher_heartbeat"}


def decode_as(case):
    by_name = {kind.name: kind.event for kind in EVENT_TYPES.values()}
    frame = bytes.fromhex(case["hex"])
    if case["decode_as"] == "batch_resolved":  # without a frame of its own: give it one
        frame = write_header(4, 1, len(frame)) + frame
    return decode(frame, expect=by_name[NAMES.get(case["decode_as"], case["decode_as"])])


@pytest.mark.parametrize("case", jsonl("wire/errors.jsonl"), ids=lambda case: case["case"])
def test_malformed_vector_is_refused_with_its_class(case):
    expected = DIFFERS.get(
        case["case"], None if case["ok"] else ERROR_CLASS.get(case["case"], errors.WireError)
    )
    if expected is None:
        assert decode_as(case).size() >= 0
    else:
        with pytest.raises(expected):
            decode_as(case)


def test_wrong_type_names_both_types():
    with pytest.raises(
        errors.WrongEventType, match=r"expected ReadyEvent \(type 6\), found type 9 \(DropEvent\)"
    ):
        decode(frame_of("drop_typical"), expect=ReadyEvent)


def test_unknown_type_is_told_with_the_type():
    frame = bytearray(frame_of("drop_typical"))
    frame[5] = 13
    with pytest.raises(errors.UnknownEventType, match="event type 13") as caught:
        decode(bytes(frame))
    assert (caught.value.offset, caught.value.actual) == (4, 13)


def test_errors_count_offsets_from_the_beginning_of_the_file():
    with pytest.raises(errors.TruncatedPayload) as caught:
        decode(frame_of("drop_typical")[:-1], offset=1000)
    assert (caught.value.offset, caught.value.expected, caught.value.actual) == (1008, 40, 39)


def test_payload_longer_than_its_fields_has_trailing_bytes():
    payload = frame_of("drop_typical")[HEADER_SIZE:] + b"\0"
    with pytest.raises(errors.TrailingBytes) as caught:
        decode(write_header(9, 1, len(payload)) + payload)
    assert (caught.value.offset, caught.value.actual) == (HEADER_SIZE + 40, 1)


def test_events_of_different_types_are_different():
    raw = bytes(16)
    assert decode(frame_of("ready_zero")) == ReadyEvent(raw)
    assert decode(frame_of("ready_zero")) != decode(frame_of("not_reusable_zero"))


def test_id_is_two_little_endian_halves():
    raw = make_id(3, 81985529216486898)
    assert raw.hex() == "0300000000000000f2cdab8967452301"
    assert id_text(raw) == "381985529216486898"
    assert id_form(raw) == {
        "hex": raw.hex(),
        "low": "3",
        "high": "81985529216486898",
        "text": "381985529216486898",
    }


def test_ddl_numbers_above_2_to_the_53_stay_exact():
    body = {"type": 3, "finished_ts": (1 << 64) - 1, "start_ts": (1 << 53) + 1, "seq": 1}
    event = DDLEvent.build(body, bytes(16))
    again = decode(encode(event), expect=DDLEvent)
    assert (again.finished_ts, again.start_ts) == ((1 << 64) - 1, (1 << 53) + 1)


def test_ddl_body_keeps_its_bytes():
    body = b'{ "query" : "caf\\u00e9 \\u003c", "finished_ts":1.0e0, "new":[1,{}] }'.replace(b"1.0e0", b"1")
    event = DDLEvent(body, bytes(16), b"table", (b"one", b"two"))
    again = decode(encode(event))
    assert (again.body, again.query, again.extra_table_infos) == (body, "café <", (b"one", b"two"))
    assert again == event


def test_ddl_not_sync_is_read_from_the_old_key_too():
    assert DDLEvent(b'{"NotSync":true}', bytes(16)).not_sync
    assert not DDLEvent(b'{"not_sync":false,"NotSync":true}', bytes(16)).not_sync


def test_lone_surrogate_in_a_ddl_body_becomes_the_replacement_character():
    event = DDLEvent(b'{"query":"a\\ud800b \\ud83d\\ude00"}', bytes(16))
    assert event.query == "a\ufffdb \U0001f600"


def test_resolved_is_read_from_a_memoryview():
    view = memoryview(b"xx" + frame_of("resolved_typical"))[2:]
    assert decode(view, expect=ResolvedEvent).seq == 7


def test_number_that_does_not_fit_cannot_be_written():
    with pytest.raises(errors.InvalidField, match="does not fit"):
        encode(ResolvedEvent(1 << 64, 0, 0, bytes(16)))


def test_id_of_another_length_cannot_be_written():
    with pytest.raises(errors.InvalidField, match="16 bytes"):
        encode(ReadyEvent(b"short"))
