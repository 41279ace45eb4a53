"""Fast start is one package that one variable turns off; what it does is tested beside it."""

import os
import subprocess
import sys

import pytest

from tidemark.spark import fast_start

SESSION = """
import sys
from pathlib import Path
from tidemark.spark import session
spark = session.session(Path(sys.argv[1]), {})
options = spark.sparkContext.getConf().get("spark.driver.defaultJavaOptions")
print(session.inlining_session() is spark, "SharedArchiveFile" in options, "worker_site" in __import__("os").environ.get("PYTHONPATH", ""))
print(spark.sql("with a as (select 1 as x) select * from a").collect()[0].x)
"""


def in_process(folder, value):
    environment = {**os.environ, fast_start.VARIABLE: value, "PYTHONPATH": ""}
    return subprocess.run(
        [sys.executable, "-c", SESSION, str(folder)], env=environment, capture_output=True, text=True
    )


def test_one_variable_turns_it_off(tmp_path):
    done = in_process(tmp_path, "off")
    assert done.stdout.splitlines() == ["True False False", "1"], done.stderr


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("", {"classes", "workers", "ctes"}),
        ("on", {"classes", "workers", "ctes"}),
        ("off", set()),
        ("classes, ctes", {"classes", "ctes"}),
    ],
)
def test_the_variable_names_the_parts(monkeypatch, value, parts):
    monkeypatch.setenv(fast_start.VARIABLE, value)
    fast_start.check()
    assert {part for part in fast_start.PARTS if fast_start.uses(part)} == parts


def test_a_part_that_is_not_known_is_refused(monkeypatch):
    monkeypatch.setenv(fast_start.VARIABLE, "classes,worker")
    with pytest.raises(
        fast_start.UnknownPart, match=r"'worker': it takes on, off, or some of classes, workers, ctes"
    ):
        fast_start.check()
