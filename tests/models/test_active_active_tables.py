"""Which tables stop a run in active-active mode, and what it says."""

from dataclasses import replace

from histories import ACTIVE_ACTIVE, COMMIT_TS, ORIGIN_TS, PLAIN, START_TS, Change, Table, Transaction
from streams import END_TS, Sender

DROP_TABLE, MODIFY_TABLE = 4, 12
CHANGEFEED = "bdr-mode = true\nenable-active-active = true\n"


def info(name, table_id, others=ACTIVE_ACTIVE, version=START_TS, *flags):
    return replace(Table(name, {"id": "int"}, others, (), flags).info("s", table_id), version=version)


def active(name, table_id, version=START_TS, others=ACTIVE_ACTIVE):
    return info(name, table_id, others, version, "is_active_active")


def write(sender, ts, number):
    row = {**dict.fromkeys(sender.info.arrow_schema.names), "id": number}
    sender.send([Transaction("1", None, ts - 1, ts, (Change("insert", None, row),))])


def log():
    """One dispatcher per table."""
    frames = []

    def begun(table, ts=START_TS):
        sender = Sender(table, table.table_id.to_bytes(16, "big"), frames=frames)
        sender.begin(ts)
        return sender

    plain = begun(info("recreated", 1, PLAIN))
    write(plain, START_TS + 10, 1)
    dropped = {"need_dropped_tables": {"InfluenceType": 2, "TableIDs": [1], "SchemaID": 0}}
    plain.execute(DROP_TABLE, START_TS + 20, plain.info, **dropped)
    recreated = begun(active("recreated", 2, START_TS + 30), START_TS + 31)
    write(recreated, START_TS + 40, 2)

    converted = begun(info("converted", 3))
    write(converted, START_TS + 10, 1)
    converted.execute(MODIFY_TABLE, START_TS + 21, active("converted", 3, START_TS + 20))
    write(converted, START_TS + 40, 2)

    # Nobody wrote to it before.
    empty = begun(info("converted_empty", 4))
    empty.execute(MODIFY_TABLE, START_TS + 21, active("converted_empty", 4, START_TS + 20))
    write(empty, START_TS + 40, 2)

    lacking = begun(active("lacking", 5, others={k: v for k, v in ACTIVE_ACTIVE.items() if k != ORIGIN_TS}))
    mistyped = begun(active("mistyped", 6, others={**ACTIVE_ACTIVE, "_tidb_softdelete_time": "bigint"}))
    # As TiCDC sends them: the commit ts of a row stands for the column.
    implicit = begun(active("implicit", 7, others={k: v for k, v in ACTIVE_ACTIVE.items() if k != COMMIT_TS}))
    write(implicit, START_TS + 40, 2)
    for sender in (recreated, converted, empty, lacking, mistyped, implicit):
        sender.resolve(END_TS)
    return b"".join(frames)


def test_a_table_stops_the_run_unless_it_is_gone_and_the_message_says_what_is_wrong(dbt, tmp_path):
    (tmp_path / "log.bin").write_bytes(log())
    changefeed = tmp_path / "changefeed.toml"
    changefeed.write_text(CHANGEFEED)
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log.bin")}],
        "changefeed": str(changefeed),
        "sink_uri": "tidb://root@127.0.0.1:4000/",
    }
    message = dbt.fails("run", "--select", "+row_policy")
    assert (
        "enable-active-active needs active-active tables only: s.converted is not an active-active table; "
        "s.implicit lacks _tidb_commit_ts; s.lacking lacks _tidb_origin_ts; "
        "s.mistyped lacks _tidb_softdelete_time TIMESTAMP(6) NULL. "
        "Leave these tables out with the filter of the changefeed, or add what is missing. "
        "TiCDC sends tables that do not list _tidb_commit_ts: "
        "take them with compat: {base: design, active_active_columns: ticdc}"
    ) in message

    changefeed.write_text(
        CHANGEFEED + '[filter]\nrules = ["*.*", "!s.converted", "!s.lacking", "!s.mistyped"]\n'
    )
    way_out = {"base": "design", "active_active_columns": "ticdc"}
    dbt.ok("run", "--select", "+current_rows", compat=way_out)
    rows = {(row["table_name"], row["key"]) for row in dbt.table("current_rows")}
    assert rows == {("recreated", '["2"]'), ("converted_empty", '["2"]'), ("implicit", '["2"]')}
