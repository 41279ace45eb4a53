"""Ctrl-C and SIGTERM, as real processes get them: one line, the status of a shell, nothing left running."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidemark.cli.demo_log import write_demo_logs

ROOT = Path(__file__).parent.parent.parent

SIGNALS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}
SCRIPTS = Path(sys.executable).parent


def as_from_a_terminal():
    """In the new process: who started the tests in the background of a shell has Ctrl-C ignored, and that would be inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_ends_with_one_line(number, tmp_path):
    command = [SCRIPTS / "tidemark", "demo-log", "--rows", "5000000", "--out", tmp_path / "log"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_from_a_terminal
    )
    until(lambda: list(tmp_path.rglob("*.bin")))
    process.send_signal(number)
    word, status = SIGNALS[number]
    assert process.communicate(timeout=60) == ("", f"tidemark demo-log: {word}\n")
    assert process.returncode == status
    assert list(tmp_path.iterdir()) == []


# A signal that comes while the command `dbt` imports the adapter.
WHILE_IMPORTING = """
import os, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "dbt.adapters.tidemark.impl":
            os.kill(os.getpid(), {number:d})

sys.argv = ["dbt"]
sys.meta_path.insert(0, Finder())
import dbt.adapters.tidemark
print("still there")
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_dbt_ends_with_one_line_while_it_imports_the_adapter(number):
    done = subprocess.run(
        [sys.executable, "-c", WHILE_IMPORTING.format(number=number)],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=as_from_a_terminal,
    )
    word, status = SIGNALS[number]
    line = f"dbt: {word}; what is complete is kept, and the next run goes on from there\n"
    assert (done.returncode, done.stdout, done.stderr) == (status, "", line)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs") / "log"
    write_demo_logs(folder, tables=1, rows=60, upstreams=1, seed=3)
    return [{"upstream_id": "1", "path": str(folder / "upstream-1")}]


def processes_of(folder):
    """Java and Python processes that were started with a state folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("command", "number", "moment"),
    [
        (["tidemark", "run"], signal.SIGINT, ".int_row_changes ."),
        (["dbt", "run"], signal.SIGTERM, "START sql batched model"),
    ],
)
def test_a_run_ends_with_one_line_and_leaves_no_process(command, number, moment, logs, tmp_path):
    state = tmp_path / "state"
    arguments = [
        "--select",
        "+int_row_changes",
        "--no-use-colors",
        "--vars",
        json.dumps({"event_logs": logs}),
    ]
    arguments += ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs")]
    process = subprocess.Popen(
        [SCRIPTS / command[0], *command[1:], *arguments],
        cwd=ROOT,
        env={**os.environ, "TIDEMARK_STATE_DIR": str(state), "DBT_PROFILES_DIR": "profiles"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As a terminal does it: all processes of the command get the signal.
        start_new_session=True,
        preexec_fn=as_from_a_terminal,
    )
    before = next(line for line in process.stdout if moment in line)
    assert processes_of(state), "Java runs"
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=100)
    word, status = SIGNALS[number]
    assert process.returncode == status, before + out + err
    name = "dbt" if command[0] == "dbt" else "tidemark run"
    told = [line for line in err.splitlines() if "incubator" not in line]
    assert told == [f"{name}: {word}; what is complete is kept, and the next run goes on from there"]
    assert "Traceback" not in out
    assert "ERROR" not in out
    until(lambda: not processes_of(state))
