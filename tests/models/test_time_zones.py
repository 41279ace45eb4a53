"""A log whose timestamps are in the time zone of the TiCDC that wrote it."""

import json
from collections import Counter

from histories import START_TS, Change, Table, Transaction
from streams import Sender

from support import golden
from tidemark.cli import main
from tidemark.sinks.kafka.topics import Topics

ZONE = "Asia/Shanghai"
SINK_URI = "kafka://127.0.0.1:1/events?protocol=canal-json"
PARTITIONS = 61


def test_timestamps_are_stored_in_utc_and_datetimes_as_written(dbt):
    log = {"upstream_id": "1", "path": str(golden("streams/alltypes_shanghai.bin")), "time_zone": ZONE}
    dbt.vars = {"event_logs": [log]}
    dbt.ok("run", "--select", "+int_row_changes")
    rows = dbt.rows("select post from {schema}.int_row_changes where table_name = 'times' and op = 'insert'")
    found = {row["id"]: (row["c_dt6"], row["c_ts2"]) for row in (json.loads(row["post"]) for row in rows)}
    assert found == {
        "1": ("2024-02-29 12:34:56.789123", "2024-02-29 12:34:56.78"),
        "2": (None, None),
        "3": ("0000-00-00 00:00:00.000000", "0000-00-00 00:00:00.00"),
        "4": ("1000-01-01 00:00:00.000001", "1970-01-01 00:00:01.00"),
        "5": ("9999-12-31 23:59:59.999999", "2038-01-19 03:14:07.99"),
        "6": ("2023-07-01 00:00:00.000000", "2023-07-01 23:30:00.10"),
    }


def test_rows_are_dispatched_by_their_timestamps_as_on_the_wire(dbt, tmp_path, monkeypatch, capfd):
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text(
        '[sink]\ndispatchers = [{ matcher = ["typ.times"], partition = "[c_ts2, c_ts6, c_dt6]" },'
        ' { matcher = ["s.nights"], partition = "[at]" }]\n'
    )
    nights = tmp_path / "nights.bin"
    nights.write_bytes(log_of_nights())
    zones = {str(golden("streams/alltypes_shanghai.bin")): ZONE, str(nights): "America/New_York"}
    dbt.vars = {
        "event_logs": [
            {"upstream_id": str(number), "path": path, "time_zone": zone}
            for number, (path, zone) in enumerate(zones.items())
        ],
        "changefeed": str(changefeed),
        "sink_uri": SINK_URI,
    }
    # No broker listens there; this is what it would say.
    monkeypatch.setattr(Topics, "spread", lambda self: PARTITIONS)
    dbt.ok("run", "--select", "+dispatch_spread")
    capfd.readouterr()
    for number, path in enumerate(zones):
        uri = f"{SINK_URI}&partition-num={PARTITIONS}"
        assert main(["dispatch", path, "--changefeed", str(changefeed), "--sink-uri", uri]) == 0
        sent = Counter(
            (row["table"], row["commit_ts"], row["op"], row["partition"])
            for row in map(json.loads, capfd.readouterr().out.splitlines())
        )
        shown = dbt.rows(f"select * from {{schema}}.row_dispatch where upstream_id = '{number}'")
        assert (
            Counter((row["table_name"], str(row["commit_ts"]), row["op"], row["partition"]) for row in shown)
            == sent
        )
    spread = dbt.table("dispatch_spread", "partition")
    fullest, rows = max(row["row_count"] for row in spread), sum(row["row_count"] for row in spread)
    assert {row["skew"] for row in spread} == {fullest * PARTITIONS / rows}


def log_of_nights() -> bytes:
    """Rows around the hours that New York has twice and never, as a TiCDC there sends them."""
    table = Table("nights", {"id": "int"}, {"at": "timestamp(6)"}, ())
    times = [
        "2024-11-03 00:59:59.999999",
        "2024-11-03 01:00:00.000000",
        "2024-11-03 01:30:00.250000",
        "2024-11-03 02:00:00.000000",
        "2024-03-10 01:59:59.999999",
        "2024-03-10 03:00:00.000000",
        "0000-00-00 00:00:00.000000",
        None,
    ]
    sender = Sender(table.info("s", 1), bytes(15) + b"\1")
    sender.begin(START_TS)
    for number, time in enumerate(times, 1):
        row = Change("insert", None, {"id": number, "at": time})
        sender.send([Transaction("1", None, START_TS + number, START_TS + number + 1, (row,))])
    sender.resolve(START_TS + 100)
    return b"".join(sender.frames)
