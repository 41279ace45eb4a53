"""Runs an operation of this project, a macro that changes tables, as `tidemark run` runs dbt."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.cli.run import NotAProject
from tidemark.interrupts import Interrupted, handled


def run_operation(name: str, arguments: list[str], given: Mapping[str, Any] | None = None) -> int:
    """`arguments` go to dbt as they are, `given` to the macro. What the macro prints is the command's output."""
    if not Path("dbt_project.yml").exists():
        raise NotAProject("there is no dbt_project.yml here: run it from the root of the project")
    os.environ.setdefault("DBT_PROFILES_DIR", "profiles")

    from dbt.cli.main import dbtRunner

    from dbt.adapters.tidemark.interrupts import end_dbt

    with handled(end_dbt):
        outcome = dbtRunner().invoke(
            ["--log-level", "warn", "run-operation", name, "--args", json.dumps(given or {}), *arguments]
        )
        if isinstance(outcome.exception, Interrupted):
            raise outcome.exception
    # What went wrong, dbt has said.
    return 0 if outcome.success else 1
