"""The main job: `dbt build` of this project on the embedded Spark, and a summary of what came out.

Everything behind `run` goes to dbt as it is (`dbt build --help` explains it), so
`tidemark run --vars '{event_logs: [{upstream_id: "1", path: /data/log}]}'` is the whole call. While the var
event_logs is that of the demo, the demo's logs are written first.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tidemark.cli.demo_log import write_demo_logs
from tidemark.errors import TidemarkError
from tidemark.interrupts import Interrupted, handled

SUMMARY = "run dbt build on the embedded Spark and print a summary"
# The command line gives us what is behind the command as `passed_on`, unread.
PASSES_ON = True

# The last part of the folder of the demo, in the event_logs of dbt_project.yml.
DEMO_FOLDER = "demo-log"
DEMO_ROWS = 50_000
DEMO_TABLES = 3
DEMO_UPSTREAMS = 2
DEMO_SEED = 1
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class NotAProject(TidemarkError):
    """The command was called outside a Tidemark project."""


def add_arguments(parser) -> None:
    parser.usage = "tidemark run [DBT_ARGUMENT ...]"


def run(args) -> int:
    if not Path("dbt_project.yml").exists():
        raise NotAProject("there is no dbt_project.yml here: run it from the root of the project")
    os.environ.setdefault("DBT_PROFILES_DIR", "profiles")
    arguments = [argument for argument in args.passed_on if argument != "--"]
    demo = _demo_folder(_vars_in_force(arguments))
    if demo is not None and not demo.exists():
        print(f"writing a demo event log below {demo}", flush=True)
        write_demo_logs(demo, tables=DEMO_TABLES, rows=DEMO_ROWS, upstreams=DEMO_UPSTREAMS, seed=DEMO_SEED)

    from dbt.cli.main import dbtRunner

    from dbt.adapters.tidemark.interrupts import end_dbt
    from tidemark.cli.summary import print_summary

    # Unit tests test the project's SQL, not this run's data; `make test` runs them.
    started, warnings = datetime.now(timezone.utc), []

    def note_warning(event: Any) -> None:
        if event.info.level == "warn":
            warnings.append(" ".join(_COLOUR.sub("", event.info.msg).split()))

    with handled(end_dbt):
        outcome = dbtRunner(callbacks=[note_warning]).invoke(
            ["build", "--exclude-resource-type", "unit_test", *arguments]
        )
        if isinstance(outcome.exception, Interrupted):
            raise outcome.exception
        if outcome.exception is not None:
            raise TidemarkError(str(outcome.exception))
        print_summary(outcome.result.results, started, warnings)
    return 0 if outcome.success else 1


def _vars_in_force(arguments: list[str]) -> dict[str, Any]:
    """The vars as dbt will see them. What is wrong with them, dbt says better."""
    import yaml

    texts = [Path("dbt_project.yml").read_text(), "{}"]
    for number, argument in enumerate(arguments):
        if argument == "--vars":
            texts[1] = "".join(arguments[number + 1 : number + 2])
        elif argument.startswith("--vars="):
            texts[1] = argument.removeprefix("--vars=")
    try:
        project, given = (yaml.safe_load(text) or {} for text in texts)
        return {**project.get("vars", {}), **given}
    except (yaml.YAMLError, TypeError, AttributeError):
        return {}


def _demo_folder(values: dict[str, Any]) -> Path | None:
    """The folder of the demo's logs, if they are what is to be read."""
    logs = values.get("event_logs")
    if not isinstance(logs, list) or not all(isinstance(log, dict) for log in logs):
        return None
    folders = {Path(str(log.get("path"))).parent for log in logs}
    return (
        folders.pop() if len(folders) == 1 and {DEMO_FOLDER} == {folder.name for folder in folders} else None
    )
