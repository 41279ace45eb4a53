"""What the shipped TiCDC does with row changes and tables, case by case: its answers are in the vectors.

Each case has a schema of its own in one log: a transaction of the scenario, with the flags of its table forced.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from support import golden, jsonl
from tidemark.demo.column_types import column
from tidemark.wire.chunk import encode_chunk
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.events.dml import DMLEvent
from tidemark.wire.events.handshake import HandshakeEvent
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.framing import scan
from tidemark.wire.registry import decode, encode
from tidemark.wire.rows import decode_batch
from tidemark.wire.table_info import TableInfo
from tidemark.wire.tracker import SchemaTracker

FILTER_CASES = jsonl("active_active/filter_cases.jsonl")
TABLE_CASES = [case for case in jsonl("active_active/table_mode_cases.jsonl") if case["enable_active_active"]]
ACTIVE_ACTIVE = "bdr-mode = true\nenable-active-active = true\n"
END_TS = 2**62


def flagged(table: TableInfo, number: int, case: dict) -> TableInfo:
    return replace(
        table,
        schema=f"case_{number}",
        table_id=number + 1,
        is_active_active=case["active_active_table"],
        is_soft_delete=case["soft_delete_table"],
    )


def transactions(scenario: str) -> dict[tuple[int, int], tuple[TableInfo, DMLEvent, bytes]]:
    """(event, transaction) -> the table, the transaction and the chunk of its rows alone."""
    tracker, found = SchemaTracker(), {}
    log = golden(f"streams/{scenario}.bin")
    data = log.read_bytes()
    with log.open("rb") as file:
        for index, frame in enumerate(scan(file)):
            event = decode(data[frame.offset : frame.offset + frame.length])
            tracker.feed(event)
            if isinstance(event, BatchDMLEvent):
                table = tracker.in_force(event.dispatcher_id).table
                rows = decode_batch(event, table).columns
                for place, part in enumerate(event.transactions):
                    chunk = encode_chunk(rows.slice(part.previous_total_offset, len(part.row_types)), table)
                    found[index, place] = table, part, chunk
    return found


def stream(table: TableInfo, transaction: DMLEvent | None = None, chunk: bytes = b"") -> bytes:
    """A dispatcher that sends one transaction, or none."""
    dispatcher_id = table.table_id.to_bytes(16, "big")
    frames = [encode(HandshakeEvent(1, 1, 1, dispatcher_id, table.to_bytes()))]
    if transaction is not None:
        alone = replace(
            transaction,
            dispatcher_id=dispatcher_id,
            physical_table_id=table.table_id,
            seq=2,
            epoch=1,
            previous_total_offset=0,
        )
        frames.append(encode(BatchDMLEvent((alone,), chunk)))
    frames.append(encode(ResolvedEvent(END_TS, 1, len(frames), dispatcher_id)))
    return b"".join(frames)


@pytest.fixture
def changefeed(tmp_path):
    def write(text: str) -> str:
        file = tmp_path / "changefeed.toml"
        file.write_text(text)
        return str(file)

    return write


def test_row_policy_is_that_of_ticdc(dbt, tmp_path, changefeed, monkeypatch):
    from dbt.adapters.tidemark.impl import TidemarkAdapter

    sent, scenario = [], transactions("active_active")
    for number, case in enumerate(FILTER_CASES):
        table, transaction, chunk = scenario[case["event"], case["txn"]]
        assert (table.schema, table.table) == (case["schema"], case["table"])
        assert case["scenario"] == "active_active"
        sent.append(stream(flagged(table, number, case), transaction, chunk))
    (tmp_path / "log.bin").write_bytes(b"".join(sent))
    dbt.vars = {
        "event_logs": [{"upstream_id": "1", "path": str(tmp_path / "log.bin")}],
        "sink_uri": "tidb://root@127.0.0.1:4000/",
        "compat": "ticdc",
    }
    normal, refused = cases(enable_active_active=False), refusals(enable_active_active=False)
    message = dbt.fails("run", "--select", "+row_policy", changefeed=changefeed(rules({**normal, **refused})))
    assert named(message) == {missing(number, case) for number, case in refused.items()}

    only = ("--select", "table_filter", "row_policy")
    dbt.ok("run", *only, changefeed=changefeed(rules(normal)))
    assert policy(dbt, normal) == {number: outputs(case) for number, case in normal.items()}

    refused = refusals(enable_active_active=True)
    message = dbt.fails("run", *only, changefeed=changefeed(ACTIVE_ACTIVE + rules(refused)))
    for number, case in refused.items():
        (reason,) = [part for part in message.split("; ") if f"case_{number}.{case['table']} " in part]
        assert "_tidb_softdelete_time" in reason

    # Other tables are refused before a row of them is judged; the columns that a table must have and the loop guard are not part of these cases.
    settings = TidemarkAdapter.changefeed_settings
    changed = {"bdr_mode": False, "active_active_columns": []}
    monkeypatch.setattr(
        TidemarkAdapter, "changefeed_settings", lambda adapter: {**settings(adapter), **changed}
    )
    active = {
        number: case
        for number, case in cases(enable_active_active=True).items()
        if case["active_active_table"]
    }
    dbt.ok("run", *only, changefeed=changefeed(ACTIVE_ACTIVE + rules(active)))
    assert policy(dbt, active) == {number: outputs(case) for number, case in active.items()}


def rules(numbers: Iterable[int]) -> str:
    """The filter that takes the tables of some cases."""
    return f"[filter]\nrules = {json.dumps([f'case_{number}.*' for number in numbers])}\n"


def cases(enable_active_active: bool) -> dict[int, dict]:
    """The cases of a mode that are no errors, by number."""
    return {
        number: case
        for number, case in enumerate(FILTER_CASES)
        if case["enable_active_active"] == enable_active_active and "error" not in case
    }


def refusals(enable_active_active: bool) -> dict[int, dict]:
    """Those where TiCDC stops: the table is flagged, and has no column of soft deletes."""
    found = {
        number: case
        for number, case in enumerate(FILTER_CASES)
        if case["enable_active_active"] == enable_active_active and "error" in case
    }
    assert found
    assert all("missing required column _tidb_softdelete_time" in case["error"] for case in found.values())
    return found


def missing(number: int, case: dict) -> str:
    kind = "an active-active" if case["active_active_table"] else "a soft-delete"
    return f"case_{number}.{case['table']} is {kind} table and has no column _tidb_softdelete_time"


def named(message: str) -> set[str]:
    """The tables that a message is about, each with what is wrong with it."""
    return set(re.findall(r"case_\d+\.\w+ is [^;.]*", message))


def outputs(case: dict) -> list[tuple]:
    return [(row["op"], row["pre"], row["post"]) for row in case["output"] or []]


def policy(dbt, cases: dict[int, dict]) -> dict[int, list[tuple]]:
    """What the model makes of the same transactions."""
    found = {number: [] for number in cases}
    for row in dbt.rows("select * from {schema}.row_policy where policy_op is not null order by row_number"):
        number = int(row["schema_name"].removeprefix("case_"))
        if number in found:
            images = (json.loads(row[image]) if row[image] else None for image in ("pre", "post"))
            found[number].append((row["policy_op"], *images))
    return found


def test_active_active_mode_refuses_the_tables_that_ticdc_refuses(dbt, tmp_path, changefeed):
    refused, taken, sent = {}, [], []
    for number, case in enumerate(TABLE_CASES):
        name, _, columns = case["ddl"].removeprefix("create table ").partition(" (")
        described = [column(sql, place) for place, sql in enumerate(columns.removesuffix(")").split(", "))]
        sent.append(stream(flagged(TableInfo.build("s", name, 1, 1, columns=described), number, case)))
        if case.get("ok"):
            taken.append(f"case_{number}.{name} ")
        else:
            refused[f"case_{number}.{name} "] = case["error"]
    (tmp_path / "log.bin").write_bytes(b"".join(sent))
    message = dbt.fails(
        "run",
        *("--select", "+row_policy"),
        event_logs=[{"upstream_id": "1", "path": str(tmp_path / "log.bin")}],
        changefeed=changefeed(ACTIVE_ACTIVE),
        sink_uri="tidb://root@127.0.0.1:4000/",
        compat="ticdc",
    )
    assert taken
    assert not [name for name in taken if name in message]
    reasons = {name: next((part for part in message.split("; ") if name in part), "") for name in refused}
    for name, error in refused.items():
        if "is not active-active" in error:
            assert "is not an active-active table" in reasons[name]
        else:
            problem = "_tidb_origin_ts" if "_tidb_origin_ts" in error else "_tidb_softdelete_time"
            assert problem in reasons[name], name
