"""The main job: `dbt build` of this project on the embedded Spark, and a summary of what came out.

Without event logs of your own it reads a demo log, which it writes first. Every other argument goes to dbt as it is, so
`tidemark run --vars '{event_logs: [{upstream_id: "1", path: /data/log}]}'` is the whole call.
"""

from __future__ import annotations

import os
from pathlib import Path

from tidemark.cli.demo_log import write_demo_logs
from tidemark.errors import TidemarkError

SUMMARY = "run dbt build on the embedded Spark and print a summary"

DEMO_ROWS = 50_000
DEMO_TABLES = 3
DEMO_UPSTREAMS = 2
DEMO_SEED = 1


class NotAProject(TidemarkError):
    """The command was called outside a Tidemark project."""


def add_arguments(parser) -> None:
    parser.add_argument("dbt_arguments", nargs="...", metavar="DBT_ARGUMENT", help="arguments for dbt build")


def run(args) -> int:
    if not Path("dbt_project.yml").exists():
        raise NotAProject("there is no dbt_project.yml here: run it from the root of the project")
    os.environ.setdefault("DBT_PROFILES_DIR", "profiles")
    arguments = [argument for argument in args.dbt_arguments if argument != "--"]
    demo = Path(os.environ.get("TIDEMARK_STATE_DIR", ".tidemark")) / "demo-log"
    if not any("event_logs" in argument for argument in arguments) and not demo.exists():
        print(f"writing a demo event log below {demo}", flush=True)
        write_demo_logs(demo, tables=DEMO_TABLES, rows=DEMO_ROWS, upstreams=DEMO_UPSTREAMS, seed=DEMO_SEED)

    from dbt.cli.main import dbtRunner

    from tidemark.cli.summary import print_summary

    # Unit tests test the project's SQL, not this run's data; `make test` runs them.
    outcome = dbtRunner().invoke(["build", "--exclude-resource-type", "unit_test", *arguments])
    if outcome.exception is not None:
        raise TidemarkError(str(outcome.exception))
    print_summary()
    return 0 if outcome.success else 1
