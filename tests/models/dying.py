"""The `tidemark` command in a process of its own, which may die before a statement."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROCESS = """
import json, os, sys
from dbt.adapters.tidemark.connections import TidemarkCursor
from tidemark.cli import main

words, text = json.loads(sys.argv[1])
execute = TidemarkCursor.execute

def deadly(self, sql, *parameters):
    if text and text in " ".join(sql.lower().split()):
        sys.stdout.flush()
        os.kill(os.getpid(), 9)
    return execute(self, sql, *parameters)

TidemarkCursor.execute = deadly
if words[0] == "dbt":
    from dbt.cli.main import dbtRunner
    outcome = dbtRunner().invoke(words[1:])
    sys.exit(0 if outcome.success else 1)
sys.exit(main(words[1:]))
"""


def command(state, *words, dies_before="", **variables):
    """What it printed, and how it ended: -9 if it died."""
    given = [*words, "--vars", json.dumps(variables)]
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, json.dumps([given, dies_before])],
        cwd=ROOT,
        env={**os.environ, "TIDEMARK_STATE_DIR": str(state), "DBT_PROFILES_DIR": "profiles"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    return done.stdout + done.stderr, done.returncode
