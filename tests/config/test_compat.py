"""`compat`: a name, or single switches over a base."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.cli import main
from tidemark.compat import SWITCHES, Compat, CompatError
from tidemark.config import load
from tidemark.config.project_vars import check_project_vars
from tidemark.spark.sink_settings import settings_of, settings_option

DESIGN, TICDC = Compat.named("design"), Compat.named("ticdc")
MIXED = {"base": "design", "active_active_columns": "ticdc"}


def test_a_mapping_sets_single_switches_over_its_base():
    expected = replace(DESIGN, active_active_columns=TICDC.active_active_columns)
    assert Compat.of(MIXED) == expected
    assert Compat.of({"active_active_columns": "ticdc"}) == expected
    assert Compat.of({"base": "ticdc", "progress_table": "design"}) == replace(
        TICDC, progress_table=DESIGN.progress_table
    )
    assert Compat.of({}) == DESIGN


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("other", "compat = 'other': allowed are design and ticdc, or a mapping"),
        (["design"], "allowed are design and ticdc, or a mapping"),
        ({"base": "other"}, "compat.base = 'other': allowed are design and ticdc"),
        ({"progress_table": True}, "compat.progress_table = True: allowed are design and ticdc"),
        (
            {"active_active_column": "ticdc"},
            "compat.active_active_column: is not a known switch; did you mean active_active_columns?",
        ),
    ],
)
def test_what_is_no_compat_is_an_error_that_says_what_is(given, said):
    with pytest.raises(CompatError) as problem:
        load(compat=given)
    assert said in str(problem.value)
    (finding,) = check_project_vars({}, {"compat": given}, {})
    assert finding.severity == "error"
    assert said in str(finding)


def test_the_tasks_of_a_sink_have_the_same_switches():
    option = settings_option(None, "file:///x?protocol=csv", MIXED)
    assert settings_of({"settings": option}).compat == Compat.of(MIXED)


@pytest.mark.parametrize("form", [json.dumps, lambda given: "{base: design, active_active_sinks: ticdc}"])
def test_commands_take_a_mapping_as_text(form, tmp_path, capsys):
    path = tmp_path / "changefeed.toml"
    path.write_text("enable-active-active = true\nbdr-mode = true\n")
    command = ["check", str(path), "--sink-uri", "file:///x?protocol=csv"]
    assert main(command) == 1
    assert main([*command, "--compat", form({"base": "design", "active_active_sinks": "ticdc"})]) == 0
    with pytest.raises(SystemExit):
        main([*command, "--compat", "{active_active_sink: ticdc}"])
    assert "did you mean active_active_sinks?" in capsys.readouterr().err


def test_every_switch_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [switch for switch in SWITCHES if f"| `{switch}` |" not in page] == []
