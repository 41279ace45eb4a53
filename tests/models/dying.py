"""Commands one after another in a process of their own, which may die before a statement."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROCESS = """
import json, os, sys
from pathlib import Path
from dbt.adapters.tidemark.connections import TidemarkCursor
from tidemark.cli import main

commands, text = json.loads(sys.argv[1])
execute = TidemarkCursor.execute

def deadly(self, sql, *parameters):
    if text and text in " ".join(sql.lower().split()):
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    return execute(self, sql, *parameters)

def run(program, *words):
    if program == "tidemark":
        return main(words)
    if program == "dbt":
        from dbt.cli.main import dbtRunner
        return 0 if dbtRunner().invoke(list(words)).success else 1
    from tidemark.spark.session import session
    rows = session(Path(os.environ["TIDEMARK_STATE_DIR"]), {}).table(f"tidemark.{words[0]}").collect()
    for row in rows:
        print("row", json.dumps([words[0], row.asDict(recursive=True)], sort_keys=True, default=str))
    return 0

TidemarkCursor.execute = deadly
for words in commands:
    if status := run(*words):
        sys.exit(status)
"""


class Ended:
    """What a process printed, and how it ended: -9 if it died."""

    def __init__(self, done):
        self.output, self.status = done.stdout + done.stderr, done.returncode
        self._rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("row ")]

    def rows(self, name):
        found = [row for of, row in self._rows if of == name]
        return sorted(
            found,
            key=lambda row: (row.get("batch_id") or 0, row.get("op", ""), json.dumps(row, sort_keys=True)),
        )


def process(state, *commands, dies_before="", **variables):
    """Runs commands until one fails: `dbt …`, `tidemark …`, and `rows TABLE`, which shows a table as it is then."""
    given = [
        [*words, "--vars", json.dumps(variables)] if words[0] != "rows" else words
        for words in (words.split() if isinstance(words, str) else list(words) for words in commands)
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, json.dumps([given, dies_before])],
        cwd=ROOT,
        env={**os.environ, "TIDEMARK_STATE_DIR": str(state), "DBT_PROFILES_DIR": "profiles"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    return Ended(done)
