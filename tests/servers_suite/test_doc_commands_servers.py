"""The commands of the documentation that need the servers of this suite: see tests/docs/test_doc_commands.py."""

import re
import subprocess

import pytest

from doc_commands import World, needs_servers, units
from server_files import files_of

UNITS = [(place, shown) for place, shown in units() if any(needs_servers(each.text) for each in shown)]


@pytest.mark.parametrize(("place", "shown"), [pytest.param(*unit, id=unit[0]) for unit in UNITS])
def test_commands_that_need_servers_work_as_they_stand(broker, tmp_path, place, shown):
    world = World(tmp_path, {"h:9092": broker.address})
    name_jars(world.project / "profiles" / "profiles.yml")
    if any("tidemark upgrade" in each.text for each in shown):
        # What it brings to another format: the tables of the README's first command.
        assert world.run(*units()[0]) == []
    else:
        demo = [".venv/bin/tidemark", "demo-log", "--out", ".tidemark/demo-log"]
        subprocess.run(demo, cwd=world.project, check=True, capture_output=True)
    assert world.run(place, shown) == []


def name_jars(profile):
    """The jars that this suite has fetched, as docs/table-formats.md says for a machine without network."""

    def jars(packages):
        table_format = "delta" if "delta" in packages[1] else "iceberg"
        return "spark.jars: " + ",".join(str(jar) for jar in files_of(table_format))

    profile.write_text(re.sub(r"spark\.jars\.packages: (\S+)", jars, profile.read_text()))
