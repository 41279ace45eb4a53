"""The commands of the documentation that need the servers of this suite: see tests/docs/test_doc_commands.py."""

import pytest

from doc_commands import World, needs_servers, units

UNITS = [(place, shown) for place, shown in units() if any(needs_servers(each.text) for each in shown)]


@pytest.mark.parametrize(("place", "shown"), [pytest.param(*unit, id=unit[0]) for unit in UNITS])
def test_commands_that_need_servers_work_as_they_stand(broker, tmp_path, place, shown):
    world = World(tmp_path, {"h:9092": broker.address})
    if any("tidemark upgrade" in each.text for each in shown):
        # What it brings to another format: the tables of the README's first command.
        assert world.run(*units()[0]) == []
    assert world.run(place, shown) == []
