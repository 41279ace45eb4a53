"""tidemark encode: what it prints and in which order."""

import base64
import json

import pytest

from routing_support import PLAIN, ROUTED, target
from support import golden, jsonl
from tidemark.cli import main
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.ddl import DDLEvent
from tidemark.wire.framing import scan
from tidemark.wire.header import HEADER_SIZE
from tidemark.wire.registry import decode

KAFKA = "kafka://127.0.0.1:9092/topic?protocol=canal-json"


def encode(capfdbinary, *arguments):
    status = main(["encode", *map(str, arguments)])
    captured = capfdbinary.readouterr()
    return status, [json.loads(line) for line in captured.out.splitlines()], captured.err.decode()


def test_messages_are_printed_in_stream_order(capfdbinary):
    status, messages, _ = encode(
        capfdbinary,
        golden("streams/orders.bin"),
        "--sink-uri",
        "file:///x?protocol=csv",
        "--compat",
        "ticdc",
    )
    assert status == 0
    want = jsonl("encode/orders/csv.default.jsonl")
    assert [message["value_text"] for message in messages] == [message["value_text"] for message in want]
    rows = jsonl("streams/orders.rows.jsonl")
    assert [(message["schema"], message["table"], message["commit_ts"]) for message in messages] == [
        (row["schema"], row["table"], row["commit_ts"]) for row in rows
    ]
    assert {(message["kind"], message["topic"], message["key"]) for message in messages} == {
        ("row", None, None)
    }


def test_by_default_the_letter_of_the_design_document_counts(capfdbinary):
    _, messages, _ = encode(capfdbinary, golden("streams/orders.bin"), "--sink-uri", "file:///x?protocol=csv")
    assert '"2024-01-02 03:04:05.678000"' in messages[0]["value_text"]


def test_ddl_and_watermarks_are_printed_once(capfdbinary):
    _, messages, _ = encode(
        capfdbinary, golden("streams/evolve.bin"), "--sink-uri", f"{KAFKA}&enable-tidb-extension=true"
    )
    ddl = [message for message in messages if message["kind"] == "ddl"]
    want = [line for line in jsonl("encode/evolve/canal-json.tidb_extension.ddl.jsonl") if "ddl" in line]
    assert [message["commit_ts"] for message in ddl] == [line["finished_ts"] for line in want]
    watermarks = [int(message["commit_ts"]) for message in messages if message["kind"] == "watermark"]
    assert watermarks == sorted(set(watermarks))
    assert watermarks[-1] == max(
        int(line["checkpoint_ts"])
        for line in jsonl("encode/evolve/canal-json.tidb_extension.ddl.jsonl")
        if "checkpoint_ts" in line
    )
    assert {message["topic"] for message in messages} == {"topic"}


def test_a_row_that_cannot_be_encoded_has_an_error(capfdbinary):
    _, messages, _ = encode(
        capfdbinary, golden("streams/alltypes.bin"), "--sink-uri", "file:///x?protocol=csv"
    )
    (failed,) = [message for message in messages if "error" in message]
    assert "ENUM" in failed["error"]
    assert failed["value"] is None


def test_topics_follow_the_dispatch_rules_without_a_partition_count(capfdbinary, tmp_path):
    changefeed = tmp_path / "c.toml"
    changefeed.write_text(
        "[sink]\ndispatchers = [{matcher = ['*.*'], topic = '{schema}_{table}', partition = 'ts'}]\n"
    )
    _, messages, _ = encode(
        capfdbinary, golden("streams/orders.bin"), "--sink-uri", KAFKA, "--changefeed", changefeed
    )
    rows = [message for message in messages if message["kind"] == "row"]
    assert {message["topic"] for message in rows} == {f"shop_{message['table']}" for message in rows}


def test_tables_outside_the_filter_are_not_printed(capfdbinary, tmp_path):
    changefeed = tmp_path / "c.toml"
    changefeed.write_text("[filter]\nrules = ['shop.orders']\n")
    _, messages, _ = encode(
        capfdbinary, golden("streams/orders.bin"), "--sink-uri", KAFKA, "--changefeed", changefeed
    )
    assert {message["table"] for message in messages if message["kind"] == "row"} == {"orders"}
    assert {message["table"] for message in messages if message["kind"] == "ddl"} == {"", "orders"}


def test_damage_is_reported_and_the_rest_is_printed(capfdbinary, tmp_path):
    raw = bytearray(golden("streams/orders.bin").read_bytes())
    events = jsonl("streams/orders.events.jsonl")
    batch = [event for event in events if event["kind"] == "batch_dml"][1]
    raw[int(batch["offset"]) : int(batch["offset"]) + 4] = b"\0\0\0\0"
    log = tmp_path / "damaged.bin"
    log.write_bytes(raw)
    status, messages, error = encode(capfdbinary, log, "--sink-uri", "file:///x?protocol=csv")
    assert status == 0
    assert 0 < len(messages) < len(jsonl("encode/orders/csv.default.jsonl"))
    assert f"offset {batch['offset']}" in error


def test_a_torn_last_frame_is_reported_with_its_place(capfdbinary, tmp_path):
    whole = golden("streams/orders.bin").read_bytes()
    log = tmp_path / "torn.bin"
    log.write_bytes(whole + whole[:20])
    _, _, error = encode(capfdbinary, log, "--sink-uri", "file:///x?protocol=csv")
    place = len(whole)
    assert f"offset {place}: the last frame is not complete: 20 bytes (at byte {place})" in error


@pytest.mark.parametrize(
    ("uri", "text"),
    [("mysql://root@h/", "protocol ''"), ("kafka://h:1/t?protocol=craft", "'craft' has no encoder")],
)
def test_a_sink_without_an_encoder_is_refused(capfdbinary, uri, text):
    status, messages, error = encode(capfdbinary, golden("streams/orders.bin"), "--sink-uri", uri)
    assert status == 2
    assert not messages
    assert text in error


def rows_of(capfdbinary, log, *arguments):
    status, messages, errors = encode(
        capfdbinary, golden(f"streams/{log}.bin"), "--sink-uri", "file:///x?protocol=csv", *arguments
    )
    assert status == 0, errors
    return [message for message in messages if message["kind"] == "row"]


def test_what_event_filters_leave_out_is_not_printed(capfdbinary, tmp_path):
    changefeed = tmp_path / "c.toml"
    changefeed.write_text(
        "[[filter.event-filters]]\nmatcher = ['shop.orders']\nignore-event = ['delete', 'update', 'create table']\n"
    )
    whole = rows_of(capfdbinary, "orders")
    kept = rows_of(capfdbinary, "orders", "--changefeed", changefeed)
    assert kept == [row for row in whole if row["table"] != "orders" or row["value_text"].startswith('"I"')]
    assert len(kept) < len(whole)
    _, messages, _ = encode(
        capfdbinary, golden("streams/orders.bin"), "--sink-uri", KAFKA, "--changefeed", changefeed
    )
    assert "orders" not in {message["table"] for message in messages if message["kind"] == "ddl"}


def test_transactions_are_left_out_by_their_start_ts(capfdbinary, tmp_path):
    rows = jsonl("streams/orders.rows.jsonl")
    changefeed = tmp_path / "c.toml"
    changefeed.write_text(f"[filter]\nignore-txn-start-ts = [{rows[3]['start_ts']}]\n")
    kept = [row["commit_ts"] for row in rows if row["start_ts"] != rows[3]["start_ts"]]
    printed = rows_of(capfdbinary, "orders", "--changefeed", changefeed)
    assert [row["commit_ts"] for row in printed] == kept


@pytest.mark.parametrize("command", ["encode", "dispatch", "dispatch-report"])
def test_commands_refuse_expressions_that_only_models_evaluate(command, capfdbinary, tmp_path):
    changefeed = tmp_path / "c.toml"
    changefeed.write_text(
        "[[filter.event-filters]]\nmatcher = ['shop.*']\nignore-delete-value-expr = 'id > 1'\n"
    )
    uri = f"{KAFKA}&partition-num=3"
    arguments = [
        command,
        str(golden("streams/orders.bin")),
        "--sink-uri",
        uri,
        "--changefeed",
        str(changefeed),
    ]
    assert main(arguments) == 2
    captured = capfdbinary.readouterr()
    assert captured.out == b""
    assert b"filter.event-filters[0].ignore-delete-value-expr is evaluated by the models only" in captured.err


def test_with_row_policy_a_soft_delete_is_a_delete_of_the_old_row(capfdbinary, tmp_path):
    changefeed = tmp_path / "c.toml"
    changefeed.write_text("[filter]\nrules = ['*.*', '!aa.nosd']\n")
    raw = rows_of(capfdbinary, "active_active")
    assert len(raw) == len(jsonl("streams/active_active.rows.jsonl"))
    sent = rows_of(capfdbinary, "active_active", "--row-policy", "--changefeed", changefeed)
    ops = [(row["table"], row["value_text"][1]) for row in sent]
    rows = jsonl("streams/active_active.rows.jsonl")
    becomes_deleted = [
        row
        for row in rows
        if row["op"] == "update"
        and row["table"] in ("acct", "soft", "comp")
        and not (row["pre"].get("_tidb_softdelete_time") or "")
        and row["post"].get("_tidb_softdelete_time")
    ]
    assert sum(table in ("acct", "soft", "comp") and op == "D" for table, op in ops) == len(becomes_deleted)
    assert ("plain", "D") in ops
    deleted = [row for row in sent if row["table"] == "soft" and row["value_text"].startswith('"D"')]
    assert all("2025-04" not in row["value_text"] for row in deleted)


def test_with_row_policy_a_soft_delete_table_without_the_column_is_refused(capfdbinary):
    log, uri = golden("streams/active_active.bin"), "file:///x?protocol=csv"
    status, _, errors = encode(capfdbinary, log, "--sink-uri", uri, "--row-policy")
    assert status == 2
    assert "aa.nosd is an active-active table and has no column _tidb_softdelete_time" in errors


def encode_both(capfdbinary, tmp_path, uri):
    """What is sent under the names of the source, and under those of the target."""
    found = []
    for name, text in {"plain.toml": PLAIN, "routed.toml": ROUTED}.items():
        (tmp_path / name).write_text(text)
        status, messages, problem = encode(
            capfdbinary, golden("streams/evolve.bin"), "--sink-uri", uri, "--changefeed", tmp_path / name
        )
        assert (status, problem) == (0, "")
        found.append(messages)
    assert len(found[0]) == len(found[1]) > 20
    return zip(*found, strict=True)


def test_messages_have_the_names_of_the_target_and_topics_those_of_the_source(capfdbinary, tmp_path):
    queries = {}
    for plain, sent in encode_both(capfdbinary, tmp_path, KAFKA):
        assert (sent["schema"], sent["table"]) == target(plain["schema"], plain["table"])
        assert sent["topic"] == plain["topic"]
        before, after = json.loads(plain["value_text"]), json.loads(sent["value_text"])
        assert (after["database"], after["table"]) == target(before["database"], before["table"])
        if sent["kind"] == "ddl":
            queries[before["sql"]] = after["sql"]
        kept = ("type", "data", "old", "es", "mysqlType", "pkNames")
        assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
    assert queries["create database evo"] == "create database `evo_x`"
    assert (
        queries["create table t2 like evo_b.t1_moved"]
        == "create table `evo_x`.`t2_y` like `moved`.`evo_b_t1_moved`"
    )
    assert (
        queries["rename table evo.t1_renamed to evo_b.t1_moved"]
        == "rename table `evo_x`.`t1_renamed_y` to `moved`.`evo_b_t1_moved`"
    )
    assert queries["create view v1 as select id, a from t2"] == (
        "create view `evo_x`.`v1_y` as select id, a from `evo_x`.`t2_y` AS `t2`"
    )
    assert queries["drop database evo_b"] == "drop database `moved`"


def test_csv_lines_have_the_names_of_the_target(capfdbinary, tmp_path):
    for plain, sent in encode_both(capfdbinary, tmp_path, "file:///x?protocol=csv"):
        schema, table = target(plain["schema"], plain["table"])
        before, after = plain["value_text"].split(",", 3), sent["value_text"].split(",", 3)
        assert after[1:3] == [f'"{table}"', f'"{schema}"']
        assert (after[0], after[3]) == (before[0], before[3])


def test_open_protocol_keys_have_the_names_of_the_target(capfdbinary, tmp_path):
    uri = "kafka://127.0.0.1:9092/topic?protocol=open-protocol&max-batch-size=1"
    for plain, sent in encode_both(capfdbinary, tmp_path, uri):
        for before, after in zip(open_keys(plain), open_keys(sent), strict=True):
            assert (after.pop("scm"), after.pop("tbl")) == target(before.pop("scm"), before.pop("tbl"))
            assert after == before


def open_keys(message):
    """The keys of a message of the open protocol: a version, then each with its length, eight bytes each."""
    raw = message["key_text"].encode() if "key_text" in message else base64.b64decode(message["key"])
    keys, place = [], 8
    while place < len(raw):
        length = int.from_bytes(raw[place : place + 8], "big")
        key = json.loads(raw[place + 8 : place + 8 + length])
        keys += [key] if key.get("scm") else []
        place += 8 + length
    return keys


def test_the_command_fails_when_nothing_can_be_decoded(capfdbinary, tmp_path):
    log, sink = tmp_path / "log", ("--sink-uri", "file:///x?protocol=csv")
    for content, bad in ((b"", ""), (b"\0" * 99, " (1 piece)")):
        log.write_bytes(content)
        status, messages, err = encode(capfdbinary, log, *sink)
        assert (status, messages) == (2, [])
        assert err.endswith(
            f"tidemark encode: nothing could be decoded{bad}: give logs of TiCDC event frames\n"
        )


def test_the_command_fails_when_only_watermarks_are_left(capfdbinary, tmp_path):
    log, frames = tmp_path / "log", []
    with golden("streams/orders.bin").open("rb") as stream:
        for piece in scan(stream):
            stream.seek(piece.offset)
            frame = stream.read(piece.length)
            event = decode(frame)
            if isinstance(event, BatchDMLEvent):
                frames.append(frame[:HEADER_SIZE] + b"\xff" * (len(frame) - HEADER_SIZE))
            elif not isinstance(event, DDLEvent):
                frames.append(frame)
    log.write_bytes(b"".join(frames))
    status, messages, err = encode(capfdbinary, log, "--sink-uri", f"{KAFKA}&enable-tidb-extension=true")
    assert status == 2
    assert {message["kind"] for message in messages} == {"watermark"}
    assert "nothing could be decoded (" in err


def test_logs_that_hold_only_what_the_changefeed_leaves_out_are_no_failure(capfdbinary, tmp_path):
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text("[filter]\nrules = ['nowhere.*']\n")
    sink = ("--sink-uri", "file:///x?protocol=csv", "--changefeed", changefeed)
    assert encode(capfdbinary, golden("streams/orders.bin"), *sink)[:2] == (0, [])
