"""Runs the commands that the documentation shows, as they stand there.

A page's commands run in a copy of the project, whose packages are those of this Python. Placeholders become true by one table: `World.placeholders`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from doc_pages import PAGES, ROOT, Command, blocks, commands, mentions
from support import golden

# What a command begins with, and why no test runs it.
NOT_RUN = {
    "make test": "this test is part of it",
    "make test-long": "this test is part of it",
    "make test-servers": "the commands that need its servers are part of it",
    "make setup": "make test runs it first; the copy of the project uses what it installed",
    ".ci/run": "runs make test",
    "python -m tidemark.spark.fast_start.class_archive": "make setup runs it; here it would replace what running sessions use",
    "python benchmarks/": "a measurement, which takes minutes and wants a log of one table",
    "uv pip compile": "asks a package index",
}
# A changefeed that every sink accepts, and whose CSV can be an input again.
CHANGEFEED = """\
[filter]
rules = ["shop.*"]

[sink]
csv = { include-commit-ts = true, output-old-value = true }
"""
# Avro has a topic for each table.
AVRO_CHANGEFEED = """\
[sink]
dispatchers = [{ matcher = ["*.*"], topic = "{schema}_{table}" }]
"""
# For all commands of a block, on a machine that does other things, too.
PATIENCE_SECONDS = 3600


def is_run(text: str) -> bool:
    """Whole words count, except after a slash."""
    return not any(
        text.startswith(start if start.endswith("/") else f"{start} ") or text == start for start in NOT_RUN
    )


def needs_dbt(text: str) -> bool:
    """Whether it takes Spark or dbt, and so half a minute."""
    return bool(re.search(r"\b(dbt|sqlfluff|make|tidemark (run|clean|upgrade))\b", text))


def needs_servers(text: str) -> bool:
    """Whether it takes what `make test-servers` fetches: a Kafka broker, Delta or Iceberg."""
    return needs_dbt(text) and bool(re.search("kafka://|--target (delta|iceberg)", text))


def needs_database(text: str) -> bool:
    return "db.example" in text


def is_to_type(text: str) -> bool:
    """Whether a sentence shows a whole command, not the name of one or of its option (`tidemark check --json`)."""
    words = shlex.split(text)
    return len(words) > 2 and not (words[0] == "tidemark" and words[2].startswith("-"))


def units() -> list[tuple[str, list[Command]]]:
    """What is run together: the commands of a block, or one within a sentence. Each with its place."""
    found = []
    for page in PAGES:
        there = [(block.line, commands(block)) for block in blocks(page) if block.language == "sh"]
        there += [(said.line, [said]) for said in mentions(page) if is_to_type(said.text)]
        for line, shown in sorted(there, key=lambda unit: unit[0]):
            if run := [command for command in shown if is_run(command.text)]:
                found.append((f"{page}:{line}", run))
    return found


def activation() -> str:
    """How the README says to begin: what later blocks and other pages take for granted."""
    return "\n".join(
        command.text
        for block in blocks("README.md")
        if block.language == "sh"
        for command in commands(block)
        if re.match(r"source |export DBT_", command.text)
    )


class World:
    """A copy of the project, and the files and servers that the documentation speaks of."""

    def __init__(self, folder: Path, servers: dict[str, str] | None = None):
        self.folder, self.project, self.data = folder, folder / "project", folder / "data"
        self.servers = servers or {}
        self._fresh = 0
        # What each command printed, by its place.
        self.outputs: dict[str, str] = {}
        _copy_project(self.project)
        (self.project / "changefeed.toml").write_text(CHANGEFEED)
        (self.project / "cf.toml").write_text(AVRO_CHANGEFEED)
        rules, *_ = (block for block in blocks("docs/dispatch.md") if block.language == "toml")
        (self.project / "rules.toml").write_text(rules.text)
        (self.data / "log").mkdir(parents=True)
        shutil.copy(golden("streams/orders.bin"), self.data / "log")
        for path, content in json.loads(golden("storage/orders/json_year/tree.json").read_text()).items():
            (self.data / "ticdc" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.data / "ticdc" / path).write_bytes(content.encode())

    def placeholders(self) -> list[tuple[str, str | Callable[[re.Match], str]]]:
        """What a page says, as a pattern, and what it stands for. The first that fits is taken."""
        return [
            *((re.escape(name), address) for name, address in self.servers.items()),
            (r"/data/log\b", str(self.data / "log")),
            (r"/data/ticdc\b", str(self.data / "ticdc")),
            (r"/data/(tree|state)\b", f"{self.data}/{self._fresh}-\\1"),
            (r"\b(DB_PASSWORD|AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY)=…", r"\1=secret"),
            (r"\bas_of_ts: …", "as_of_ts: sync_point"),
            (r"--offset N\b", "--offset 0"),
            (r"\bLOG(…|\.\.\.|\b)", str(self.data / "log" / "orders.bin")),
            (r"\bURI\b", "'kafka://h:9092/t?protocol=canal-json&partition-num=6'"),
            (r"\b(FILE|OTHER)\b", "rules.toml"),
            (r"\bPREFIX\b", str(self.data / "ticdc")),
            (r"\bDIR\b", self._new_folder),
            (r"\b[NS]\b", "100"),
        ]

    def run(self, place: str, shown: list[Command]) -> list[str]:
        """Runs them in one shell. The failures, each with place, command and the end of its output."""
        self._fresh += 1
        lines = [] if self._is_before_activation(place) else [activation()]
        files = []
        for number, command in enumerate(shown):
            output = self.folder / f"output-{self._fresh}-{number}"
            files.append(output)
            # In this shell, since a command may set what the next one needs.
            lines += ["{", self.filled(command.text), f"}} >{shlex.quote(str(output))} 2>&1"]
            lines += [f"echo $? >{shlex.quote(str(output))}.status"]
        subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            cwd=self.project,
            env=self._environment(place, shown),
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        failures = []
        for command, file in zip(shown, files, strict=True):
            output = self.outputs[command.place] = file.read_text(errors="replace") if file.exists() else ""
            if (status := _status(file)) != "0":
                failures.append(f"{command.place}: {command.text}\nended with {status}:\n{output[-3000:]}")
        return failures

    def filled(self, text: str) -> str:
        for pattern, value in self.placeholders():
            text = re.sub(pattern, value, text)
        assert "…" not in text, f"{text}: a placeholder that no table explains"
        return text

    def _new_folder(self, _found) -> str:
        self._fresh += 1
        return str(self.data / f"new-{self._fresh}")

    def _is_before_activation(self, place: str) -> bool:
        """Blocks of the README that stand above the one that activates."""
        page, line = place.rsplit(":", 1)
        return page == "README.md" and int(line) < next(
            block.line for block in blocks(page) if block.text.startswith("source ")
        )

    def _environment(self, place: str, shown: list[Command]) -> dict[str, str]:
        here = str(Path(sys.executable).parent)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TIDEMARK_", "DBT_", "PYTEST_", "SPARK_")) and name != "VIRTUAL_ENV"
        }
        kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if part != here)
        if any("event_logs:" in command.text for command in shown):
            # Logs of one's own have a state folder of their own, as the README says.
            kept["TIDEMARK_STATE_DIR"] = str(self.data / f"state-{place.replace('/', '-')}")
        return kept


def _status(output: Path) -> str:
    status = output.with_name(output.name + ".status")
    return status.read_text().strip() if status.exists() else "the shell"


def _copy_project(folder: Path) -> None:
    left_out = shutil.ignore_patterns(".git", ".venv", ".tidemark", "target", "logs", "__pycache__", "golden")
    shutil.copytree(ROOT, folder, ignore=left_out)
    venv = folder / ".venv"
    venv.mkdir()
    for entry in Path(sys.prefix).iterdir():
        (venv / entry.name).symlink_to(entry)
    # For make, the packages are installed.
    (venv / ".setup-done").unlink(missing_ok=True)
    (venv / ".setup-done").touch()
