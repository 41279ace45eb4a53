"""Real servers for tests: a MariaDB of the Debian package, private and gone afterwards.

It listens on 127.0.0.1 on a port of its own, with its data in a temporary folder. Where the package is missing it is installed if this is root with
apt; elsewhere the tests that need it are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

STARTUP_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_program(name: str, package: str) -> str:
    """Path of a server program, or a skip with the reason."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    found = shutil.which(name, path=path)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update"], **quiet)
        # The package would start a server of its own; ours is the only one.
        subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", package], env=environment, **quiet
        )
        found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not here; install the package {package} to run this test")
    return found


class MariaDb:
    """`options` are further options of the server. root logs in over TCP without a password."""

    def __init__(self, folder: Path, *options: str):
        self.folder, self.options, self.port = folder, options, free_port()
        self._server = find_program("mariadbd", "mariadb-server")
        self._process: subprocess.Popen | None = None
        self.data = folder / "data"
        self._install()

    @property
    def uri(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/"

    def _install(self) -> None:
        program = find_program("mariadb-install-db", "mariadb-server")
        made = subprocess.run(
            [
                program,
                "--no-defaults",
                f"--datadir={self.data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *self._user(),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, f"mariadb-install-db: {made.stdout[-2000:]} {made.stderr[-2000:]}"

    def _user(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def start(self) -> None:
        log = (self.folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            [
                self._server,
                "--no-defaults",
                f"--datadir={self.data}",
                f"--socket={self.folder / 's'}",
                f"--pid-file={self.folder / 'pid'}",
                "--bind-address=127.0.0.1",
                f"--port={self.port}",
                "--skip-name-resolve",
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=64M",
                "--character-set-server=utf8mb4",
                *self._user(),
                *self.options,
            ],
            stdout=log,
            stderr=log,
        )
        log.close()
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        text = (self.folder / "server.log").read_text(errors="replace")
        raise AssertionError(f"MariaDB did not start: {text[-3000:]}")

    def kill(self) -> None:
        """As in a power cut."""
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
