"""Every command that README, CONTRIBUTING and docs show works as it stands there.

Those that need a Kafka broker, Delta or Iceberg are run by tests/servers_suite/test_doc_commands_servers.py.
"""

import re

import fsspec
import pytest

from doc_commands import World, needs_database, needs_dbt, needs_servers, units
from doc_pages import Block, blocks, commands
from servers import MariaDb, S3Server
from support import golden
from tidemark.config import load
from tidemark.sinks.mysql.connection import Connection, Target

UNITS = [(place, shown) for place, shown in units() if not any(needs_servers(each.text) for each in shown)]


def units_where(rule):
    """Those of which some command fits the rule."""
    return [(place, shown) for place, shown in UNITS if any(rule(command.text) for command in shown)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    s3 = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        s3.make_bucket("bucket")
        logs = fsspec.filesystem("s3", key="key", secret="secret", endpoint_url=s3.endpoint)
        logs.pipe("bucket/log/orders.bin", golden("streams/orders.bin").read_bytes())
        yield World(tmp_path_factory.mktemp("docs"), {"https://store.example:9000": s3.endpoint})
    finally:
        s3.stop()


@pytest.mark.parametrize(
    ("place", "shown"),
    [pytest.param(*unit, id=unit[0]) for unit in UNITS if unit not in units_where(needs_dbt)],
)
def test_commands_work_as_they_stand(world, place, shown):
    assert world.run(place, shown) == []


@pytest.mark.long
def test_commands_on_the_demo_work_one_after_the_other(world):
    """They share a state folder, which the README's first command makes."""
    on_demo = [
        unit
        for unit in units_where(needs_dbt)
        if unit not in [*units_where(brings_logs), *units_where(needs_database)]
    ]
    assert [command.text.split("#")[0].strip() for command in on_demo[0][1]] == ["make run"]
    failures = [failure for place, shown in on_demo for failure in world.run(place, shown)]
    assert not failures, "\n\n".join(failures)
    assert_is_part_of(sample("Summary"), world.outputs[on_demo[0][1][0].place])


def sample(start):
    """The output that the README shows."""
    (shown,) = (block.text for block in blocks("README.md") if block.text.startswith(start))
    return shown


def assert_is_part_of(shown, output):
    """Numbers may be others, and … stands for what is left out."""
    patterns = [
        re.sub(r"[\d,]*\d", r"[\\d,]*\\d", re.escape(line)).replace("…", ".*") for line in shown.splitlines()
    ]
    assert re.search("\n".join(patterns), output), f"{shown}\nis not part of\n{output[-3000:]}"


def brings_logs(text):
    return "event_logs:" in text


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "shown"),
    [
        pytest.param(*unit, id=unit[0])
        for unit in units_where(brings_logs)
        if unit not in units_where(needs_database)
    ],
)
def test_commands_on_logs_of_ones_own_work(world, place, shown):
    assert world.run(place, shown) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "shown"), [pytest.param(*unit, id=unit[0]) for unit in units_where(needs_database)]
)
def test_commands_that_write_to_a_database_work(tmp_path, place, shown):
    server = MariaDb(tmp_path / "mariadb")
    server.start()
    try:
        create_tables(server)
        world = World(tmp_path / "docs", {"db.example:4000": f"127.0.0.1:{server.port}"})
        assert world.run(place, shown) == []
    finally:
        server.stop()


def create_tables(server):
    """The tables of the log, as upstream has them, and the user of the page."""
    script = golden("streams/orders.sql").read_text()
    creations = re.findall(r"^create (?:database|table).*;$", script, re.MULTILINE)
    connection = Connection(Target.from_settings(load(None, server.uri)))
    try:
        connection.execute("create user cdc identified by 'secret'")
        connection.execute("grant all on *.* to cdc")
        for creation in creations:
            statement = creation.replace("create table ", "create table shop.").rstrip(";")
            connection.execute(re.sub(r" (non)?clustered\b", "", statement))
    finally:
        connection.close()


def test_a_command_that_fails_is_reported_with_its_page_and_its_output(world):
    block = Block(
        "docs/some.md", 7, "sh", "export A=1\ntidemark events nowhere  # no such log\ntest $A = 1\n"
    )
    (failure,) = world.run(block.place, commands(block))
    assert failure.startswith("docs/some.md:9: tidemark events nowhere")
    assert "nowhere does not exist" in failure


def test_a_command_may_span_lines():
    block = Block("docs/some.md", 1, "sh", "# a remark\nmake \\\n  run\necho 'a\nb'  # a quote\n")
    assert [(each.line, each.text) for each in commands(block)] == [
        (3, "make \\\n  run"),
        (5, "echo 'a\nb'  # a quote"),
    ]
