"""The documentation holds together: links lead somewhere, blocks say what they are, and the settings that they show are good."""

import argparse
import ast
import importlib
import json
import os.path
import re

import pytest
import yaml

from doc_commands import NOT_RUN
from doc_pages import LANGUAGES, PAGES, ROOT, anchors, blocks, commands, is_command, links, mentions
from tidemark.cli import COMMANDS
from tidemark.config import check
from tidemark.config.project_vars import check_project_vars

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib


def blocks_in(*languages):
    found = [block for page in PAGES for block in blocks(page) if block.language in languages]
    return [pytest.param(block, id=block.place) for block in found]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_are_there(page):
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        assert (ROOT / target).exists(), f"{page} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{page} links to {link}: {target} has no such heading"


def test_the_readme_links_to_every_page():
    linked = {link.partition("#")[0] for link in links("README.md")}
    assert set(PAGES) - {"README.md"} - linked == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.place}: mark the block as one of {sorted(LANGUAGES)}"
        if block.language != "sh":
            shown = [line for line in block.text.splitlines() if is_command(line.strip().removeprefix("$ "))]
            assert not shown, (
                f"{block.place}: commands belong in a block marked sh, where they are run: {shown}"
            )


def test_commands_that_are_not_run_are_shown():
    shown = [command.text for page in PAGES for command in mentions(page)]
    shown += [command.text for page in PAGES for block in blocks(page) for command in commands_of(block)]
    stale = [start for start in NOT_RUN if not any(text.startswith(start) for text in shown)]
    assert not stale, "no page shows these any more: take them out of NOT_RUN"


def commands_of(block):
    return commands(block) if block.language == "sh" else []


@pytest.mark.parametrize("page", PAGES)
def test_the_names_of_commands_within_sentences_exist(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    known = {"tidemark": set(COMMANDS), "make": set(targets), "dbt": _dbt_commands()}
    for mention in mentions(page):
        program, *rest = mention.text.split()
        if program in known and rest:
            assert rest[0] in known[program] or rest[0].startswith("-"), f"{mention.place}: {mention.text}"
        if program == "tidemark" and rest and rest[0] in COMMANDS:
            options = [word.partition("=")[0] for word in rest[1:] if word.startswith("--")]
            assert set(options) <= options_of(rest[0]), f"{mention.place}: {mention.text}"


def options_of(command):
    parser = argparse.ArgumentParser()
    importlib.import_module(f"tidemark.cli.{COMMANDS[command]}").add_arguments(parser)
    return set(parser._option_string_actions)


def _dbt_commands():
    from dbt.cli.main import cli

    return set(cli.commands)


@pytest.mark.parametrize("block", blocks_in("toml"))
def test_changefeeds_that_are_shown_are_accepted(block, tmp_path):
    file = tmp_path / "changefeed.toml"
    file.write_text(block.text)
    assert tomllib.loads(block.text)
    findings = check(str(file), "kafka://h:9092/t?protocol=canal-json")
    assert [str(finding) for finding in findings if finding.severity == "error"] == []


@pytest.mark.parametrize("block", blocks_in("yaml"))
def test_settings_that_are_shown_have_a_place(block):
    """A piece of the profile or of dbt_project.yml: its keys are there too, so that a reader finds where it goes."""
    shown = yaml.safe_load(block.text)
    homes = [
        yaml.safe_load((ROOT / "dbt_project.yml").read_text()),
        yaml.safe_load((ROOT / "dbt_project.yml").read_text())["vars"],
        yaml.safe_load((ROOT / "profiles/profiles.yml").read_text())["tidemark"]["outputs"]["embedded"],
    ]
    assert any(shown.keys() <= home.keys() for home in homes), f"{block.place}: {list(shown)}"
    if "event_logs" in shown:
        assert check_project_vars(shown, {}, {}) == []


def test_the_picture_is_the_same_in_both_places():
    (picture,) = (block for block in blocks("docs/architecture.md") if "▼" in block.text)
    assert picture.text in [block.text for block in blocks("README.md")]


@pytest.mark.parametrize("block", blocks_in("json"))
def test_json_that_is_shown_is_json(block):
    for line in block.text.splitlines():
        json.loads(line)


@pytest.mark.parametrize("block", blocks_in("python"))
def test_python_that_is_shown_imports_what_there_is(block):
    imports = [node for node in ast.parse(block.text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), block.place, "exec"), {})
