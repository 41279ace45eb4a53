"""Which batches of winners a new one takes over."""

from histories import PLAIN, START_TS, Change, Table, Transaction
from streams import Sender


def test_a_batch_takes_over_those_before_it_that_are_no_larger(dbt, tmp_path):
    log = tmp_path / "log.bin"
    dbt.vars = {"event_logs": [{"upstream_id": "1", "path": str(log)}]}
    dbt.ok("seed")
    sender = Sender(Table("t", {"id": "int"}, PLAIN, (), ()).info("s", 1), bytes(15) + b"\1")
    sender.begin(START_TS)
    found, written = [], 0
    for rows in (20, 4000, 20):
        ts = START_TS + 10 * (len(found) + 1)
        names = dict.fromkeys(sender.info.arrow_schema.names)
        changes = [
            Change("insert", None, {**names, "id": number}) for number in range(written, written + rows)
        ]
        sender.send([Transaction("1", None, ts - 1, ts, tuple(changes))])
        sender.resolve(ts)
        written += rows
        log.write_bytes(b"".join(sender.frames))
        dbt.ok("run", "--select", "+current_rows")
        (batches,) = dbt.rows("select sort_array(collect_set(batch_id)) as ids from {schema}.int_winners")
        found.append(batches["ids"])
        (shown,) = dbt.rows("select count(*) as n, count(distinct key) as keys from {schema}.current_rows")
        assert (shown["n"], shown["keys"]) == (written, written)
    assert found == [[1], [2], [2, 3]]
