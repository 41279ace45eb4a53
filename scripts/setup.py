"""Sets up the project's virtual environment from the lock file, with a Java runtime when the machine has none.

Usage: python3 scripts/setup.py .venv      (what `make setup` runs; only the standard library is needed)
"""

import os
import re
import shutil
import subprocess
import sys
import venv

OLDEST_PYTHON, NEWEST_PYTHON = (3, 10), (3, 13)
OLDEST_JAVA = 17


def main(folder):
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return (
            "Tidemark runs on Python {}.{} to {}.{}, this is {}.{}: run `make PYTHON=python3.11 …` with one that fits"
        ).format(*OLDEST_PYTHON, *NEWEST_PYTHON, *sys.version_info[:2])
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        print(f"creating {folder} with Python {sys.version.split()[0]}", flush=True)
        venv.create(folder, with_pip=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [
        ("installing the locked packages (a few minutes the first time)", [*pip, "-r", "requirements.lock"]),
        ("installing Tidemark itself", [*pip, "--no-deps", "--no-build-isolation", "-e", "."]),
    ]
    if not java_fits():
        steps.append(
            (
                f"no Java {OLDEST_JAVA} or newer found: installing one from a wheel",
                [*pip, "-r", "requirements-java.lock"],
            )
        )
    for message, command in steps:
        print(message, flush=True)
        if subprocess.call(command) != 0:
            return f"`{' '.join(command)}` failed; its message is above"
    print("writing the archive of Java's classes, which Spark starts faster with", flush=True)
    # Nothing needs the archive; where it cannot be written its message says why.
    subprocess.call([python, "-m", "tidemark.spark.fast_start.class_archive"])
    return 0


def java_fits():
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return False
    answer = subprocess.run(
        [java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    return bool(version) and int(version.group(1)) >= OLDEST_JAVA


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ".venv"))
