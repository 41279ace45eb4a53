"""Real servers for tests: a MariaDB of the Debian package, and S3 as moto speaks it; private and gone afterwards.

MariaDB listens on 127.0.0.1 on a port of its own, with its data in a temporary folder. Where the package is missing it is installed if this is root with
apt; elsewhere the tests that need it are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

STARTUP_SECONDS = 60
_S3_PACKAGES = ("moto", "flask", "s3fs")


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


class S3Server:
    """moto's server on a port of its own. `checked`: requests need credentials that it knows, which nobody has."""

    def __init__(self, folder, checked: bool = False):
        missing = [name for name in _S3_PACKAGES if importlib.util.find_spec(name) is None]
        if missing:
            pytest.skip(f"no S3 server: install {', '.join(missing)} (the dev dependencies) to run this test")
        self.port = free_port()
        environment = {**os.environ, "MOTO_PORT": str(self.port)}
        if checked:
            environment["INITIAL_NO_AUTH_ACTION_COUNT"] = "1"
        self._log = (folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            env=environment,
            stdout=self._log,
            stderr=self._log,
        )
        self.endpoint = f"http://127.0.0.1:{self.port}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=1).close()
                return
            except (urllib.error.URLError, OSError):
                assert self._process.poll() is None, (folder / "server.log").read_text()[-2000:]
                time.sleep(0.05)
        raise AssertionError("the S3 server did not start")

    def uri(self, prefix: str, key: str = "key", protocol: str = "csv") -> str:
        return (
            f"s3://trees/{prefix}?protocol={protocol}&endpoint={self.endpoint}&region=us-east-1"
            f"&access-key={key}&secret-access-key=secret"
        )

    def make_bucket(self, name: str = "trees") -> None:
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()
