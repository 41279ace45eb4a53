"""Updates that give a row another key, which the sender leaves whole with output-raw-change-event."""

import json

from histories import PLAIN, START_TS, Change, Table, Transaction
from streams import Sender

TABLE = Table("t", {"id": "int", "name": "varchar(40)"}, PLAIN, ())


def row(number, name, v):
    return {"id": number, "name": name, "v": v, "n": None}


def live(dbt):
    rows = dbt.rows("select values from {schema}.current_rows where not is_deleted")
    return {tuple(json.loads(found["values"]).values()) for found in rows}


def test_the_row_is_under_its_new_key_only(dbt, tmp_path):
    log = tmp_path / "log.bin"
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    sender = Sender(TABLE.info("s", 1), bytes(15) + b"\1")
    sender.begin(START_TS)

    def run(ts, *changes):
        sender.send([Transaction("1", None, START_TS + ts - 1, START_TS + ts, changes)])
        sender.resolve(START_TS + ts)
        log.write_bytes(b"".join(sender.frames))
        dbt.ok("run", "--select", "+current_rows")

    first, second = row(1, "a", "first"), row(2, "b", "second")
    run(10, Change("insert", None, first), Change("insert", None, second))
    moved = row(3, "a", "first")
    run(20, Change("update", first, moved), Change("update", second, {**second, "v": "changed"}))
    assert dbt.rows("select key, old_key from {schema}.row_policy where old_key is not null") == [
        {"key": '["3","a"]', "old_key": '["1","a"]'}
    ]
    assert {(found[0], found[2]) for found in live(dbt)} == {("2", "changed"), ("3", "first")}
    dbt.ok("run", "--select", "current_rows", as_of_ts=str(START_TS + 20))
    assert {(found[0], found[2]) for found in live(dbt)} == {("2", "changed"), ("3", "first")}
    # The two change places.
    run(30, Change("update", moved, row(2, "b", "first")), Change("update", second, row(3, "a", "second")))
    assert {(found[0], found[2]) for found in live(dbt)} == {("2", "first"), ("3", "second")}
