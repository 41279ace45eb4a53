"""Events in columns: what the staging functions return of each family, by vector and by rule."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import golden
from tidemark.wire.event_columns import (
    CONTROL,
    DDL,
    DML,
    HANDSHAKE,
    RESOLVED,
    SYNC_POINT,
    control_columns,
    ddl_columns,
    dml_columns,
    handshake_columns,
    resolved_columns,
    sync_point_columns,
)
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.events.drop_v2 import DropEventV2
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.header import HEADER_SIZE, read_header, write_header
from tidemark.wire.registry import EVENT_TYPES, HIGHEST_VERSION, decode, encode
from tidemark.wire.transactions import read_transactions, without_rows

COLUMNS = {
    "dml": (dml_columns, DML),
    "ddl": (ddl_columns, DDL),
    "resolved": (resolved_columns, RESOLVED),
    "syncpoint": (sync_point_columns, SYNC_POINT),
    "handshake": (handshake_columns, HANDSHAKE),
    "control": (control_columns, CONTROL),
}
FAMILY_OF_EVENT = {kind.name: kind.family for kind in EVENT_TYPES.values()}
LARGEST = (1 << 63) - 1


def vector(name):
    document = json.loads(golden(f"wire/{name}.json").read_text())
    return document["event"], document["fields"]


def frame(name):
    return golden(f"wire/{name}.bin").read_bytes()


def rows(family, *frames):
    function, _ = COLUMNS[family]
    return function(pa.array(frames, pa.binary())).to_pylist()


def framed(type_id, payload, version=1):
    return write_header(type_id, version, len(payload)) + payload


NAMES = sorted(path.stem for path in golden("wire").glob("*.bin"))
# These vectors are several frames, or none.
SINGLE = [name for name in NAMES if not name.startswith("batch_resolved")]
FAMILY = {name: FAMILY_OF_EVENT[vector(name)[0]] for name in SINGLE}
TYPICAL = {
    "dml": "batch_dml_orders_0",
    "ddl": "ddl_evolve_add_column",
    "resolved": "resolved_typical",
    "syncpoint": "sync_point_typical",
    "handshake": "handshake_orders_0",
    "control": "drop_typical",
}
NO_ERROR = {"error_reason": None, "error_message": None}


def of_family(*families):
    return [name for name in SINGLE if FAMILY[name] in families]


def fits(fields):
    """Whether every 64-bit number of the vector is one that SQL can hold."""
    return all(int(fields.get(name, 0)) <= LARGEST for name in ("seq", "epoch", "commit_ts", "resolved_ts"))


def place(fields):
    return {
        "dispatcher_id": fields["dispatcher_id"]["hex"],
        "epoch": int(fields["epoch"]),
        "seq": int(fields["seq"]),
    }


def column_of(column):
    return {
        "id": column["id"],
        "name": column["name"],
        "mysql_type": column["mysql_type"],
        "type_name": column["type_name"],
        "column_type": column["compact"] + (" unsigned" if column["unsigned"] else ""),
        "flag": column["flag"],
        "flen": column["flen"],
        "decimal": column["decimal"],
        "charset": column["charset"],
        "collation": column["collate"],
        "elems": column["elems"] or [],
        "default_value": column["default"],
        "origin_default": column["origin_default"],
        "is_unsigned": column["unsigned"],
        "is_nullable": not column["not_null"],
        "is_primary_key": column["pk"],
        "is_handle_key": column["handle_key"],
        "is_binary": column["binary_flag"],
        "is_stored_generated": column["stored_generated"],
        "is_virtual_generated": column["virtual_generated"],
        "is_hidden": column["hidden"],
    }


def assert_table(table, expected):
    names = {column["id"]: column["name"] for column in expected["columns"]}
    assert table["table_id"] == int(expected["table_id"])
    assert table["table_version"] == int(expected["table_version"])
    assert (table["schema_name"], table["table_name"]) == (expected["schema"], expected["table"])
    assert (table["is_partition"], table["is_active_active"], table["is_soft_delete"]) == (
        expected["is_partition"],
        expected["active_active"],
        expected["soft_delete"],
    )
    assert table["handle_key"] == [names[key] for key in expected["handle_key_column_ids"]]
    assert [
        {key: column[key] for key in column if key not in ("comment", "generated_expr")}
        for column in table["columns"]
    ] == [column_of(column) for column in expected["columns"]]
    assert table["indexes"] == [
        {
            "name": index["name"],
            "columns": index["columns"],
            "is_unique": index["unique"],
            "is_primary": index["primary"],
        }
        for index in expected["indexes"] or []
    ]


@pytest.mark.parametrize("name", of_family("dml"))
def test_transactions_are_those_of_the_vector(name):
    event, fields = vector(name)
    expected = fields["dml_events"] if event == "batch_dml" else [fields]
    (row,) = rows("dml", frame(name))
    assert row == {
        "transactions": [
            {
                **place(one),
                "physical_table_id": int(one["physical_table_id"]),
                "start_ts": int(one["start_ts"]),
                "commit_ts": int(one["commit_ts"]),
                "row_count": one["length"],
            }
            for one in expected
        ],
        **NO_ERROR,
    }


@pytest.mark.parametrize("name", [name for name in SINGLE if name.startswith("batch_dml")])
def test_a_batch_without_its_rows_still_gives_its_transactions(name):
    whole = frame(name)
    header = read_header(whole)
    (payload,) = without_rows([memoryview(whole)[HEADER_SIZE:]])
    bare = write_header(header.event_type, header.version, len(payload)) + payload
    assert len(bare) < len(whole)
    assert rows("dml", bare) == rows("dml", whole)
    # With something else beside it, frames are read one by one.
    assert rows("dml", bare, b"x")[0] == rows("dml", whole)[0]


def test_batches_without_their_rows_are_those_of_each_alone():
    payloads = [memoryview(frame(name))[HEADER_SIZE:] for name in SINGLE if name.startswith("batch_dml")]
    assert len(payloads) > 1
    assert without_rows(payloads) == [without_rows([payload])[0] for payload in payloads]


def test_a_batch_cut_inside_its_transactions_is_an_error():
    whole = frame("batch_dml_orders_0")
    (chunk,) = read_transactions([memoryview(whole)[HEADER_SIZE:]])[1]
    (row,) = rows("dml", whole[: len(whole) - len(chunk) - 1])
    assert (row["transactions"], row["error_reason"]) == (None, "truncated_payload")


@pytest.mark.parametrize("name", of_family("ddl"))
def test_ddl_fields_are_those_of_the_vector(name):
    _, fields = vector(name)
    body = fields["json_body"]
    (row,) = rows("ddl", frame(name))
    assert {key: row[key] for key in ("dispatcher_id", "epoch", "seq")} == place(fields)
    assert (row["start_ts"], row["finished_ts"]) == (int(fields["start_ts"]), int(fields["finished_ts"]))
    assert row["ddl_type"] == body["type"]
    assert (row["schema_name"], row["table_name"]) == (body["schema_name"], body["table_name"])
    assert (row["old_schema_name"], row["old_table_name"]) == (
        body["extra_schema_name"],
        body["extra_table_name"],
    )
    assert (row["query"], row["is_not_synced"]) == (body["query"], body["not_sync"])
    assert json.loads(row["body"]) == body
    assert (row["error_reason"], row["error_message"]) == (None, None)
    expected = [fields["table_info"], *(fields["multiple_table_infos"] or [])]
    tables = [table for table in expected if table is not None]
    assert len(row["tables"]) == len(tables)
    for table, wanted in zip(row["tables"], tables, strict=True):
        assert_table(table, wanted)


def test_dropped_tables_of_a_ddl_are_listed():
    for name in of_family("ddl"):
        dropped = vector(name)[1]["json_body"]["need_dropped_tables"] or {}
        (row,) = rows("ddl", frame(name))
        assert row["dropped_table_ids"] == (dropped.get("TableIDs") or [])
    assert rows("ddl", frame("ddl_evolve_drop_table"))[0]["dropped_table_ids"]


def test_a_dropped_schema_is_named_only_where_the_whole_schema_goes():
    def dropped_schema(influence_type):
        document = {"need_dropped_tables": {"InfluenceType": influence_type, "TableIDs": [], "SchemaID": 117}}
        return rows("ddl", encode(DDLEvent.build(document, bytes(16))))[0]["dropped_schema_id"]

    assert [dropped_schema(kind) for kind in (0, 1, 2)] == [None, 117, None]


def test_a_view_is_told_from_a_table():
    assert [table["is_view"] for table in rows("ddl", frame("ddl_evolve_create_view"))[0]["tables"]] == [True]
    assert [table["is_view"] for table in rows("ddl", frame("ddl_evolve_add_column"))[0]["tables"]] == [False]


@pytest.mark.parametrize("name", of_family("handshake"))
def test_handshake_and_its_table_are_those_of_the_vector(name):
    _, fields = vector(name)
    (row,) = rows("handshake", frame(name))
    table = row.pop("table")
    assert row == {**place(fields), "resolved_ts": int(fields["resolved_ts"]), **NO_ERROR}
    assert_table(table, fields["table_info"])


def handshake_with(key, replacement):
    """The handshake of the customers table with a piece of its table info replaced."""
    raw = decode(frame("handshake_orders_0")).table_info
    size = int.from_bytes(raw[-8:], "big")
    head, columns = raw[: -8 - size], raw[-8 - size : -8]
    assert key in head + columns
    head, columns = head.replace(key, replacement), columns.replace(key, replacement)
    return encode(HandshakeEvent(1, 1, 1, bytes(16), head + columns + len(columns).to_bytes(8, "big")))


def test_comments_and_expressions_of_columns_are_kept_and_empty_ones_are_null():
    def texts(handshake):
        columns = rows("handshake", handshake)[0]["table"]["columns"]
        return {(column["comment"], column["generated_expr"]) for column in columns}

    assert texts(frame("handshake_orders_0")) == {(None, None)}
    assert texts(handshake_with(b'"comment":""', b'"comment":"x"')) == {("x", None)}
    generated = handshake_with(b'"generated_expr_string":""', b'"generated_expr_string":"`id` + 1"')
    assert texts(generated) == {(None, "`id` + 1")}


@pytest.mark.parametrize("name", of_family("syncpoint"))
def test_sync_points_are_those_of_the_vector(name):
    _, fields = vector(name)
    (row,) = rows("syncpoint", frame(name))
    if fits(fields):
        assert row == {**place(fields), "commit_ts": int(fields["commit_ts"]), **NO_ERROR}
    else:
        assert (row["commit_ts"], row["error_reason"]) == (None, "invalid_field")


@pytest.mark.parametrize("name", of_family("control"))
def test_control_events_are_those_of_the_vector(name):
    event, fields = vector(name)
    (row,) = rows("control", frame(name))
    given_fields = json.loads(row.pop("fields"))
    dispatcher = fields.get("dispatcher_id")
    assert row == {
        "event_name": event,
        "dispatcher_id": dispatcher["hex"] if dispatcher else None,
        **NO_ERROR,
    }
    assert given_fields.keys() == fields.keys()
    for key, value in fields.items():
        if key != "availables":  # the order of its entries means nothing, see the tests of the events
            assert (given_fields[key] or None) == (value or None)


def test_the_reason_of_a_drop_event_is_among_its_fields():
    event = DropEventV2(bytes(range(16)), 5, 6, 7, 2, "dispatcher moved")
    (row,) = rows("control", encode(event))
    assert json.loads(row["fields"])["dropped_reason"] == "dispatcher moved"


@pytest.mark.parametrize("name", of_family("resolved"))
def test_resolved_events_are_those_of_the_vector(name):
    _, fields = vector(name)
    (row,) = rows("resolved", frame(name))
    if fits(fields):
        assert row == {
            "resolved": [{**place(fields), "resolved_ts": int(fields["resolved_ts"])}],
            **NO_ERROR,
        }
    else:
        assert (row["resolved"], row["error_reason"]) == (None, "invalid_field")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("batch_resolved")])
def test_a_batch_of_resolved_events_gives_each_of_them(name):
    _, fields = vector(name)
    payload = frame(name)
    expected = [{**place(one), "resolved_ts": int(one["resolved_ts"])} for one in fields["events"] or []]
    single = [payload[start : start + 56] for start in range(0, len(payload), 56)]
    assert rows("resolved", framed(4, payload)) == [{"resolved": expected, **NO_ERROR}]
    assert [row["resolved"] for row in rows("resolved", *single)] == [[one] for one in expected]


def test_single_and_batched_resolved_events_may_be_mixed():
    one, three = frame("resolved_typical"), framed(4, frame("batch_resolved_three"))
    found = rows("resolved", one, three, framed(4, b""), one)
    assert [len(row["resolved"]) for row in found] == [1, 3, 0, 1]
    # the same in the way that is taken when a neighbour is bad
    assert rows("resolved", one, three, framed(4, b""), one, b"?")[:-1] == found


BAD_BATCHES = {
    "bad_magic": b"?" + framed(4, b"")[1:],
    "oversized_payload": write_header(4, 1, 1 << 63),
    "unsupported_version": framed(4, frame("resolved_typical"), version=9),
    "truncated_payload": write_header(4, 1, 112) + frame("resolved_typical"),
    "trailing_bytes": write_header(4, 1, 0) + frame("resolved_typical"),
    "wrong_event_type": framed(4, frame("sync_point_typical")),
}


@pytest.mark.parametrize("reason", BAD_BATCHES)
def test_a_bad_batch_of_resolved_events_is_an_error_of_its_own(reason):
    one = frame("resolved_typical")
    found = rows("resolved", one, BAD_BATCHES[reason], one)
    assert [row["error_reason"] for row in found] == [None, reason, None]
    assert [row["resolved"] is None for row in found] == [False, True, False]


def damaged(family):
    """(reason, frame) for each way in which a frame of the family can be wrong."""
    good = frame(TYPICAL[family])
    type_id = good[5]
    other = "resolved_typical" if family != "resolved" else "sync_point_typical"
    yield "wrong_event_type", frame(other)
    yield "truncated_header", good[: HEADER_SIZE - 1]
    yield "bad_magic", b"\x00" + good[1:]
    yield "unknown_event_type" if family != "dml" else "wrong_event_type", framed(99, b"")
    yield (
        "unsupported_version",
        good[:6] + (HIGHEST_VERSION[type_id] + 1).to_bytes(2, "big") + good[8:],
    )
    yield "oversized_payload", write_header(type_id, 1, (1 << 64) - 1)
    yield "truncated_payload", framed(type_id, b"")
    if family != "dml":  # the chunk of a batch is cut off on purpose
        yield "truncated_payload", good[:-1]
        yield "trailing_bytes", good + b"\x00"


@pytest.mark.parametrize(
    ("family", "reason", "bad"),
    [
        pytest.param(family, reason, bad, id=f"{family} {reason} {number}")
        for family in COLUMNS
        for number, (reason, bad) in enumerate(damaged(family))
    ],
)
def test_a_bad_frame_is_a_row_with_its_reason_and_harms_no_neighbour(family, reason, bad):
    good = frame(TYPICAL[family])
    (alone,) = rows(family, good)
    assert alone["error_reason"] is None
    before, row, after = rows(family, good, bad, good)
    assert before == after == alone
    assert row["error_reason"] == reason
    assert row["error_message"]
    assert {value for key, value in row.items() if not key.startswith("error_")} == {None}


NUMBERS = {  # event, bytes before the number in its frame
    ("dml", "dml_orders_0"): {"start_ts": 40, "commit_ts": 48, "seq": 56, "epoch": 64},
    ("dml", "batch_dml_orders_0"): {"start_ts": 72, "commit_ts": 80, "seq": 88, "epoch": 96},
    ("resolved", "resolved_typical"): {"resolved_ts": 16, "epoch": 24, "seq": 32},
    ("syncpoint", "sync_point_typical"): {"seq": 16, "epoch": 24, "commit_ts": 32},
    ("handshake", "handshake_orders_0"): {"resolved_ts": 16, "seq": 24, "epoch": 32},
}


@pytest.mark.parametrize(
    ("family", "name", "place_of_number"),
    [
        pytest.param(family, name, at, id=f"{name} {field}")
        for (family, name), fields in NUMBERS.items()
        for field, at in fields.items()
    ],
)
def test_a_number_that_sql_cannot_hold_is_an_error_and_not_a_wrong_number(family, name, place_of_number):
    good = frame(name)

    def with_number(value):
        return good[:place_of_number] + value.to_bytes(8, "big") + good[place_of_number + 8 :]

    found = rows(family, with_number(LARGEST), with_number(LARGEST + 1), with_number((1 << 64) - 1), good)
    assert [row["error_reason"] for row in found] == [None, "invalid_field", "invalid_field", None]
    assert str(LARGEST) in found[1]["error_message"]
    assert str(LARGEST) in str(found[0])


@pytest.mark.parametrize("key", ["start_ts", "finished_ts", "seq", "epoch"])
def test_a_ddl_number_that_sql_cannot_hold_is_an_error(key):
    (row,) = rows("ddl", encode(DDLEvent.build({key: LARGEST + 1}, bytes(16))))
    assert row["error_reason"] == "invalid_field"
    assert row["error_message"].startswith(key)


WRONG_TYPES = [
    {"query": 5},
    {"schema_name": ["shop"]},
    {"table_name": {"O": "orders"}},
    {"extra_table_name": True},
    {"type": "create table"},
    {"type": 3.5},
    {"type": 1 << 40},
    {"seq": "7"},
    {"epoch": -1},
    {"finished_ts": 1.5},
    {"finished_ts": 1 << 64},
    {"not_sync": "yes"},
    {"NotSync": 1},
    {"need_dropped_tables": []},
    {"need_dropped_tables": {"TableIDs": 5}},
    {"need_dropped_tables": {"TableIDs": "five"}},
    {"need_dropped_tables": {"TableIDs": {"a": 1}}},
    {"need_dropped_tables": {"TableIDs": [1, "two"]}},
    {"need_dropped_tables": {"TableIDs": [1.5]}},
    {"need_dropped_tables": {"TableIDs": [True]}},
    {"need_dropped_tables": {"TableIDs": [1 << 70]}},
    {"need_dropped_tables": {"InfluenceType": 1, "SchemaID": "shop"}},
    {"need_dropped_tables": {"InfluenceType": 1, "SchemaID": 1 << 70}},
]


def ddl_frame(document):
    body = json.dumps(document).encode()
    tail = (16).to_bytes(8, "big") + bytes(16)
    return framed(2, body + bytes(16) + tail)


@pytest.mark.parametrize("document", WRONG_TYPES, ids=json.dumps)
def test_a_ddl_with_values_of_the_wrong_type_is_an_error_of_its_own(document):
    good = frame("ddl_evolve_add_column")
    (alone,) = rows("ddl", good)
    before, row, after = rows("ddl", good, ddl_frame(document), good)
    assert before == after == alone
    assert row["error_reason"] == "invalid_field"
    assert row["error_message"]


def test_a_ddl_without_optional_keys_has_empty_fields():
    (row,) = rows("ddl", ddl_frame({"need_dropped_tables": {"TableIDs": None}, "query": None}))
    assert (row["error_reason"], row["query"], row["dropped_table_ids"], row["tables"]) == (None, "", [], [])


# a key of the handshake's table info -> a value too large for its column
TOO_LARGE = {
    b'"TableID":119': b'"TableID":%d' % (1 << 70),
    b'"Flen":64': b'"Flen":%d' % (1 << 70),
    b'"Decimal":3': b'"Decimal":%d' % (1 << 40),
    b'"Flag":4101': b'"Flag":%d' % (1 << 70),
}


@pytest.mark.parametrize("key", TOO_LARGE, ids=bytes.decode)
def test_a_number_of_a_table_that_does_not_fit_is_an_error_of_its_own(key):
    changed = handshake_with(key, TOO_LARGE[key])
    good = frame("handshake_orders_0")
    before, row, after = rows("handshake", good, changed, good)
    assert before == after == rows("handshake", good)[0]
    assert (row["table"], row["error_reason"]) == (None, "invalid_field")


@pytest.mark.parametrize("family", COLUMNS)
def test_the_type_is_the_declared_one_for_good_bad_and_no_frames(family):
    function, kind = COLUMNS[family]
    for frames in ([], [frame(TYPICAL[family])], [b""], [frame(TYPICAL[family]), b"?"]):
        array = function(pa.array(frames, pa.binary()))
        assert array.type == kind
        assert len(array) == len(frames)
        array.validate(full=True)


@pytest.mark.parametrize("family", COLUMNS)
def test_a_slice_of_frames_gives_the_rows_of_the_slice(family):
    function, _ = COLUMNS[family]
    good = frame(TYPICAL[family])
    part = pa.array([b"?", good, b"", good], pa.binary())[1:3]
    assert function(part).to_pylist() == rows(family, good, b"")


SOME_FRAMES = {
    family: [frame(name) for name in of_family(family) if len(frame(name)) < 3000][:12] for family in COLUMNS
}


@st.composite
def doubtful_frames(draw, family):
    """Random bytes, random payloads behind a sound header, and frames with a stretch replaced."""
    kind = draw(st.integers(0, 2))
    noise = draw(st.binary(max_size=120))
    if kind == 0:
        return noise
    if kind == 1:
        types = [event.id for event in EVENT_TYPES.values() if event.family == family]
        return framed(draw(st.sampled_from(types)), noise, draw(st.integers(0, 3)))
    good = draw(st.sampled_from(SOME_FRAMES[family] or [frame(TYPICAL[family])]))
    at = draw(st.integers(0, len(good)))
    return good[:at] + noise[:16] + good[at + len(noise[:16]) :]


@pytest.mark.parametrize("family", COLUMNS)
def test_no_bytes_raise(family):
    function, kind = COLUMNS[family]

    @settings(max_examples=150, deadline=None)
    @given(st.lists(doubtful_frames(family), max_size=5))
    def check(frames):
        array = function(pa.array(frames, pa.binary()))
        array.validate(full=True)
        assert array.type == kind
        for row in array.to_pylist():
            assert (row["error_reason"] is None) == (row["error_message"] is None)

    check()


def test_batches_that_are_read_together_give_what_each_gives_alone():
    frames = [
        golden(f"wire/{name}.bin").read_bytes() for name in of_family("dml") if name.startswith("batch")
    ]
    sound = [frame for frame in frames if dml_columns(pa.array([frame]))[0]["error_reason"].as_py() is None]
    assert len(sound) > 2
    together = dml_columns(pa.array([b"before", *sound, *sound]).slice(1)).to_pylist()
    # One frame that cannot be read, and all are read one by one.
    *alone, bad = dml_columns(pa.array([*sound, b"bad"])).to_pylist()
    assert together == alone * 2
    assert bad["error_reason"] is not None
