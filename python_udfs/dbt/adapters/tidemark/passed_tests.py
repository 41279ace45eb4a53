"""Which tests have passed, and on what: a test is not run again while nothing has changed that its result depends on.

    {state_dir}/passed_tests.jsonl      a line per test that has passed, or that is to be forgotten; of several lines of a test the last one counts

A line is added when a test has passed, and one that forgets it before it runs again: a command that dies leaves tests that run once more. Nothing but time is lost with the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pyspark
from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt.flags import get_flags
from dbt.version import __version__ as dbt_version
from dbt_common.clients import agate_helper

from dbt.adapters.tidemark.connections import project_state_dir

logger = AdapterLogger("Tidemark")


class PassedTests:
    """The file, read once. The lock of the state folder keeps other processes out."""

    def __init__(self, path: Path):
        self._path = path
        self._guard = threading.Lock()
        self._found: dict[str, dict[str, Any] | None] = {}
        text = path.read_text(errors="replace") if path.exists() else ""
        lines = text.splitlines()
        for line in lines:
            match _read(line):
                case [str(test), dict() | None as passed]:
                    self._found[test] = passed
        self._found = {test: passed for test, passed in self._found.items() if passed is not None}
        if len(lines) > 2 * len(self._found) + 100 or not text.endswith("\n"):
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".new")
            beside.write_text("".join(map(_line, self._found.items())))
            os.replace(beside, path)

    def get(self, test: str) -> dict[str, Any] | None:
        return self._found.get(test)

    def note(self, test: str, passed: dict[str, Any] | None) -> None:
        with self._guard:
            if self._found.get(test) != passed:
                self._found[test] = passed
                with self._path.open("a") as file:
                    file.write(_line((test, passed)))


class TestMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    __test__ = False
    config: Any
    _code_digest: Any
    _passed_tests: PassedTests | None = None
    _unchanged_tests = 0

    @available
    def test_digest(self, texts: list[Any]) -> str:
        """A digest of what a test is made of, and of what runs it."""
        parts = [self._code_digest(), dbt_version, pyspark.__version__, *map(str, texts)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @available
    def passed_test(self, test: str) -> dict[str, Any]:
        """What was noted when a test passed the last time; nothing if it did not, and with --defer, where it may read other tables."""
        if getattr(get_flags(), "DEFER", False):
            return {}
        return self._passed().get(self._test_key(test)) or {}

    @available
    def note_test(self, test: str, passed: dict[str, Any] | None) -> None:
        """Note that a test has passed, or forget that it has."""
        if not getattr(get_flags(), "DEFER", False):
            self._passed().note(self._test_key(test), passed)

    @available
    def unchanged_test(self, columns: list[str], rows: list[list[Any]]) -> Any:
        """The result of a test that is not run again."""
        self._unchanged_tests += 1
        return agate_helper.table_from_rows(rows, columns)

    @available
    def is_as_expected(self, table: Any) -> bool:
        """Whether the rows that a unit test gives are those that it expects. dbt compares them later; where the two might not agree this says no."""
        rows: dict[str, list[str]] = {"actual": [], "expected": []}
        *_, kinds = (column.values() for column in table.columns)
        for kind, row in zip(kinds, table.rows, strict=True):
            rows[kind].append(str(list(row.values())[:-1]))
        return sorted(rows["actual"]) == sorted(rows["expected"])

    def cleanup_connections(self) -> None:
        if self._unchanged_tests:
            logger.info(
                f"{self._unchanged_tests} tests were not run again: nothing has changed since they passed"
            )
            self._unchanged_tests = 0
        super().cleanup_connections()  # type: ignore[misc]

    def _passed(self) -> PassedTests:
        if self._passed_tests is None:
            self._passed_tests = PassedTests(project_state_dir(self.config) / "passed_tests.jsonl")
        return self._passed_tests

    def _test_key(self, test: str) -> str:
        """Each schema has its own."""
        return f"{self.config.credentials.schema} {test}"


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:  # the process that wrote the line died
        return None


def _line(item: tuple[str, Any]) -> str:
    return json.dumps(item) + "\n"
