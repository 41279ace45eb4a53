"""A Kafka broker and a schema registry for tests, private and gone afterwards; see server_files for where they come from.

Both listen on 127.0.0.1 on ports of their own, with their data in a temporary folder.
"""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka.admin import AdminClient

from server_files import files_of, java, unpacked
from servers import free_port

STARTUP_SECONDS = 90
_SMALL_HEAP = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class _JavaServer:
    name: str

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen | None = None

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _is_ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), cwd=self.folder, stdout=log, stderr=log)
        deadline = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._is_ready():
                return
            time.sleep(0.2)
        self.stop()
        text = (self.folder / "server.log").read_text(errors="replace")
        raise AssertionError(f"{self.name} did not start: {text[-3000:]}")

    def stop(self) -> None:
        if self._process is not None:
            # Nothing of these servers is needed afterwards, so nothing has to be closed in order.
            self._process.kill()
            self._process.wait()
            self._process = None


class KafkaBroker(_JavaServer):
    """One node that is broker and controller. `options` are further lines of server.properties.

    Besides the plain listener there is one with TLS (given a `keystore` in PEM form) and one with SASL (given `users`, name -> password).
    """

    name = "Kafka"

    def __init__(
        self, folder: Path, *options: str, keystore: Path | None = None, users: dict[str, str] | None = None
    ):
        super().__init__(folder)
        self._classpath = ":".join(map(str, files_of("kafka")))
        self._java = str(java())
        self.port, self.tls_port, self.sasl_port = free_port(), free_port(), free_port()
        controller = free_port()
        listeners = {"PLAINTEXT": self.port}
        lines = [*options]
        if keystore is not None:
            listeners["SSL"] = self.tls_port
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={keystore}"]
        if users:
            listeners["SASL_PLAINTEXT"] = self.sasl_port
            known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
            plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
            lines += [
                "sasl.enabled.mechanisms=PLAIN",
                f"listener.name.sasl_plaintext.plain.sasl.jaas.config={plain} {known};",
            ]
        addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items())
        protocols = ",".join(f"{name}:{name}" for name in listeners)
        lines += [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}",
            "controller.listener.names=CONTROLLER",
            f"listeners={addresses},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners={addresses}",
            f"listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT",
            f"log.dirs={folder / 'data'}",
            "offsets.topic.num.partitions=1",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            "auto.create.topics.enable=false",
        ]
        self._properties = folder / "server.properties"
        self._properties.write_text("\n".join(lines) + "\n")
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        made = subprocess.run(
            [
                *self._run("kafka.tools.StorageTool"),
                # In one word, since the name of a cluster may begin with a dash.
                *("format", f"--cluster-id={cluster}", "-c", str(self._properties), "--standalone"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, f"StorageTool: {made.stdout[-2000:]} {made.stderr[-2000:]}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def _run(self, main_class: str) -> list[str]:
        return [self._java, *_SMALL_HEAP, "-cp", self._classpath, main_class]

    def _command(self) -> list[str]:
        return [*self._run("kafka.Kafka"), str(self._properties)]

    def _is_ready(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=2).brokers)
        except Exception:
            # Every kind of "not yet".
            return False


class Apicurio(_JavaServer):
    """Apicurio Registry with its state in memory; `url` is its Confluent API."""

    name = "Apicurio"

    def __init__(self, folder: Path):
        super().__init__(folder)
        self._jar = unpacked(files_of("apicurio")[0]) / "quarkus-run.jar"
        self._java = str(java())
        self.port, self._management = free_port(), free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def _command(self) -> list[str]:
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self.port,
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": self._management,
        }
        return [
            self._java,
            *_SMALL_HEAP,
            *(f"-D{name}={value}" for name, value in settings.items()),
            *("-jar", str(self._jar)),
        ]

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False
