"""tidemark dispatch and tidemark dispatch-report, as a user calls them."""

import json
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from support import golden, jsonl
from tidemark.cli import main

LOG = str(golden("streams/orders.bin"))
URI = "kafka://127.0.0.1:9092/dflt?protocol=canal-json&partition-num=16"
ROWS = jsonl("streams/orders.rows.jsonl")


@pytest.fixture
def changefeed(tmp_path):
    def write(text: str, name: str = "changefeed.toml") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def tidemark(capfd):
    """Call the command line: exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_dispatch_prints_one_object_per_row_change_in_stream_order(tidemark, changefeed):
    file = changefeed(
        '[sink]\ndispatchers = [{ matcher = ["shop.orders"], partition = "rowid", topic = "{schema}_{table}" }]\n'
    )
    code, out, _ = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [list(line) for line in lines[:1]] == [
        ["schema", "table", "commit_ts", "op", "rule", "topic", "partition"]
    ]
    for name in ("schema", "table", "commit_ts", "op"):
        assert [line[name] for line in lines] == [row[name] for row in ROWS]
    assert {(line["table"] == "orders", line["rule"], line["topic"]) for line in lines} == {
        (True, 0, "shop_orders"),
        (False, None, "dflt"),
    }
    expected = [
        case["partition"]
        for case in jsonl("dispatch/cases_orders.jsonl")
        if case["rule_set"] == "rowid" and case["partition_num"] == 16 and case["table"] == "orders"
    ]
    assert [line["partition"] for line in lines if line["table"] == "orders"] == expected


def test_dispatch_leaves_out_what_the_filter_leaves_out(tidemark, changefeed):
    file = changefeed('[filter]\nrules = ["*.*", "!shop.stock"]\n')
    _, out, _ = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
    tables = [json.loads(line)["table"] for line in out.splitlines()]
    assert tables == [row["table"] for row in ROWS if row["table"] != "stock"]


IGNORED = ROWS[3]["start_ts"]
LEAVES_OUT = f"""[filter]
ignore-txn-start-ts = [{IGNORED}]
[[filter.event-filters]]
matcher = ["shop.orders"]
ignore-event = ["delete"]
"""


def kept_rows() -> list[dict]:
    """The rows that a changefeed with LEAVES_OUT sends."""
    kept = [
        row
        for row in ROWS
        if row["start_ts"] != IGNORED and (row["table"], row["op"]) != ("orders", "delete")
    ]
    assert len(kept) < sum(row["start_ts"] != IGNORED for row in ROWS) < len(ROWS)
    return kept


def test_dispatch_leaves_out_row_changes_and_transactions_that_the_changefeed_ignores(tidemark, changefeed):
    _, out, _ = tidemark("dispatch", LOG, "--changefeed", changefeed(LEAVES_OUT), "--sink-uri", URI)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["commit_ts"], line["op"]) for line in lines] == [
        (row["commit_ts"], row["op"]) for row in kept_rows()
    ]


def test_dispatch_report_does_not_count_what_a_changefeed_ignores(tidemark, changefeed):
    """The rules in force send everything, the candidate does not, and no row goes elsewhere."""
    _, out, _ = tidemark(
        "dispatch-report", LOG, "--json", "--sink-uri", URI, "--candidate", changefeed(LEAVES_OUT)
    )
    in_force, candidate = json.loads(out)["rule_sets"]
    kept = Counter(row["table"] for row in kept_rows())
    assert {table["table"]: table["rows"] for table in candidate["tables"]} == kept
    assert {table["table"]: table["rows"] for table in in_force["tables"]} == Counter(
        row["table"] for row in ROWS
    )
    assert sum(sum(topic["rows_per_partition"]) for topic in candidate["topics"]) == kept.total()
    # A row that is not sent is in no partition.
    assert candidate["keys_out_of_order"] == in_force["keys_out_of_order"] == 0


def test_dispatch_says_what_is_wrong_with_the_rules(tidemark, changefeed):
    file = changefeed('[sink]\ndispatchers = [{ matcher = ["*.*"], partition = "bogus" }]\n')
    code, out, err = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
    assert (code, out) == (2, "")
    assert "bogus" in err
    assert "allowed" in err


def test_dispatch_fails_on_a_missing_column_only_with_compat_ticdc(tidemark, changefeed):
    file = changefeed('[sink]\ndispatchers = [{ matcher = ["*.*"], partition = "[nope]" }]\n')
    code, out, _ = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
    assert code == 0
    assert {json.loads(line)["partition"] for line in out.splitlines()} == {0}
    code, _, err = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI, "--compat", "ticdc")
    assert code == 2
    assert "nope" in err


def test_dispatch_warns_once_about_an_index_that_is_not_unique(tidemark, changefeed):
    file = changefeed(
        '[sink]\ndispatchers = [{ matcher = ["shop.orders"], partition = "index-value", index = "idx_customer" }]\n'
    )
    code, _, err = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
    assert code == 0
    assert err.count("not unique") == 1


def test_dispatch_reads_around_bad_bytes_and_says_so(tidemark, tmp_path):
    data = golden("streams/orders.bin").read_bytes()
    (tmp_path / "torn.bin").write_bytes(data[: len(data) * 9 // 10])
    code, out, err = tidemark("dispatch", str(tmp_path / "torn.bin"), "--sink-uri", URI)
    assert code == 0
    assert 0 < len(out.splitlines()) < len(ROWS)
    assert "torn.bin: offset" in err


def test_dispatch_says_where_rows_without_a_schema_are(tidemark, tmp_path):
    batch = next(event for event in jsonl("streams/orders.events.jsonl") if event["kind"] == "batch_dml")
    start = int(batch["offset"])
    frame = golden("streams/orders.bin").read_bytes()[start:]
    log = tmp_path / "log.bin"
    log.write_bytes(golden("wire/ready_typical.bin").read_bytes() + frame)
    place = golden("wire/ready_typical.bin").stat().st_size
    _, _, error = tidemark("dispatch", str(log), "--sink-uri", URI)
    assert f"offset {place}: " in error
    assert f"no readable Handshake came (at byte {place})" in error


def test_report_compares_candidates_as_text_json_and_plot(tidemark, changefeed, tmp_path):
    now = changefeed('[sink]\ndispatchers = [{ matcher = ["*.*"], partition = "rowid" }]\n')
    other = changefeed('[sink]\ndispatchers = [{ matcher = ["*.*"], partition = "ts" }]\n', "other.toml")
    words = ("dispatch-report", LOG, "--changefeed", now, "--candidate", other, "--sink-uri", URI)
    code, out, _ = tidemark(*words, "--plot", str(tmp_path / "plot.svg"))
    assert code == 0
    assert out.splitlines()[1].startswith("in force")
    assert other in out.splitlines()[2]
    ET.parse(tmp_path / "plot.svg")
    _, out, _ = tidemark(*words, "--json")
    in_force, candidate = json.loads(out)["rule_sets"]
    assert (in_force["rows"], in_force["moved_keys"], in_force["keys_out_of_order"]) == (len(ROWS), 0, 0)
    assert candidate["keys_out_of_order"] > 0


def test_report_takes_another_partition_count_for_candidates(tidemark, changefeed):
    file = changefeed('[sink]\ndispatchers = [{ matcher = ["*.*"], partition = "rowid" }]\n')
    more = URI.replace("=16", "=32")
    _, out, _ = tidemark(
        "dispatch-report",
        LOG,
        "--changefeed",
        file,
        "--candidate",
        file,
        "--sink-uri",
        URI,
        "--candidate-sink-uri",
        more,
        "--json",
    )
    counts = [len(rules["topics"][0]["rows_per_partition"]) for rules in json.loads(out)["rule_sets"]]
    assert counts == [16, 32]


def test_report_needs_at_least_one_key_to_remember(tidemark):
    with pytest.raises(SystemExit):
        tidemark("dispatch-report", LOG, "--sink-uri", URI, "--max-keys", "0")


def test_dispatch_shows_under_which_name_a_table_is_sent_and_dispatches_by_its_own(tidemark, changefeed):
    rules = '{ matcher = ["shop.orders"], partition = "rowid", topic = "{schema}_{table}" }'
    routed = '{ matcher = ["shop.orders"], target-schema = "archive", target-table = "{schema}_{table}" }'
    lines = {}
    for name, text in {"plain": rules, "routed": f"{rules}, {routed}"}.items():
        file = changefeed(f"[sink]\ndispatchers = [{text}]\n", f"{name}.toml")
        code, out, _ = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
        assert code == 0
        lines[name] = [json.loads(line) for line in out.splitlines()]
    for plain, sent in zip(lines["plain"], lines["routed"], strict=True):
        is_orders = plain["table"] == "orders"
        names = ("archive", "shop_orders") if is_orders else (plain["schema"], plain["table"])
        assert sent == {**plain, "target_schema": names[0], "target_table": names[1]}


def test_dispatch_refuses_two_tables_under_one_name(tidemark, changefeed):
    file = changefeed('[sink]\ndispatchers = [{ matcher = ["*.*"], target-table = "one" }]\n')
    code, _, err = tidemark("dispatch", LOG, "--changefeed", file, "--sink-uri", URI)
    assert code != 0
    assert "would both be written as shop.one" in err
