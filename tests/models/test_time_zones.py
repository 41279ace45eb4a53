"""A log whose timestamps are in the time zone of the TiCDC that wrote it."""

import json

from support import golden

ZONE = "Asia/Shanghai"


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
