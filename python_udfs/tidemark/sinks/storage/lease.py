"""One writer per prefix.

A writer announces itself with a file of its own, then looks who else is there:

    .tidemark-staging/lease/{token}.json        {"host","machine","pid","started","renewed","purpose"}

If any other announcement is alive it withdraws its own and fails. Of two that come at the same time at least one sees the other, so never do two
go on (both may fail; run one again). This needs no conditional writes, so it works the same on every store.

An announcement is dead when its process is gone (same machine), or when it was not renewed for `TTL` seconds. A holder renews in the background and
checks that its file is still there before each step that can be seen: one that slept through its time stops instead of writing into another's work.
The times of two machines are compared, so their clocks must agree better than TTL.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from tidemark.encode.paths import WORK
from tidemark.errors import TidemarkError
from tidemark.sinks.storage import faults
from tidemark.sinks.storage.errors import LeaseHeld, LeaseLost
from tidemark.sinks.storage.filesystem import Store

FOLDER = f"{WORK}/lease"
TTL = 600.0
# How long a look at one's own announcement is good for.
_TRUST = 5.0


@dataclass(frozen=True)
class Holder:
    host: str
    # Processes of one machine, boot and process namespace can be looked up.
    machine: str
    pid: int
    # Tells a process from a later one with the same number.
    started: str
    renewed: float
    purpose: str

    @classmethod
    def current(cls, purpose: str) -> Holder:
        return cls(
            socket.gethostname(), _machine(), os.getpid(), _start_of(os.getpid()), time.time(), purpose
        )

    @classmethod
    def parse(cls, content: bytes | None) -> Holder | None:
        try:
            return cls(**json.loads(content or b""))
        except (ValueError, TypeError):
            return None

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def is_alive(self, ttl: float) -> bool:
        if time.time() - self.renewed > ttl:
            return False
        return self.machine != _machine() or (self.started == _start_of(self.pid) != "")

    def __str__(self) -> str:
        seconds = max(0, round(time.time() - self.renewed))
        return f"{self.purpose} (process {self.pid} on {self.host}, last seen {seconds} s ago)"


class Lease:
    """Held from `acquire` to `release`; a context manager. `token` lets another process of the same run act for the holder (`attach`)."""

    def __init__(self, store: Store, token: str, holder: Holder | None, ttl: float):
        self.token = token
        self._store = store
        # None: attached to somebody else's lease.
        self._holder = holder
        self._ttl = ttl
        self._checked = self._renewed = time.monotonic()
        self._stopped = threading.Event()

    @classmethod
    def acquire(cls, store: Store, purpose: str = "a storage sink", ttl: float = TTL) -> Lease:
        holder = Holder.current(purpose)
        lease = cls(store, uuid.uuid4().hex, holder, ttl)
        store.write(lease._path, holder.to_bytes())
        try:
            lease._refuse_company()
        except BaseException:
            store.delete(lease._path)
            raise
        threading.Thread(target=lease._keep_alive, name="tidemark-lease", daemon=True).start()
        faults.point("lease-taken")
        return lease

    @classmethod
    def attach(cls, store: Store, token: str, ttl: float = TTL) -> Lease:
        """The lease that another process of this run holds."""
        lease = cls(store, token, None, ttl)
        lease._look()
        return lease

    @property
    def _path(self) -> str:
        return f"{FOLDER}/{self.token}.json"

    def _refuse_company(self) -> None:
        for entry in self._store.list(FOLDER):
            if entry.path == self._path:
                continue
            content = self._store.read_optional(entry.path)
            other = Holder.parse(content)
            if content is not None and other is not None and other.is_alive(self._ttl):
                raise LeaseHeld(
                    f"{self._store.shown} is being written by {other}; wait until it is done, or use another prefix"
                )
            self._store.delete(entry.path)

    def check(self) -> None:
        """Raise unless the lease is still held."""
        if time.monotonic() - self._checked > _TRUST:
            self._look()

    def _look(self) -> None:
        if self._has_run_out() or not self._store.exists(self._path):
            raise LeaseLost(
                f"the lease of {self._store.shown} was taken over by another writer; nothing more is written by this one"
            )
        self._checked = time.monotonic()

    def _keep_alive(self) -> None:
        while not self._stopped.wait(self._ttl / 3):
            try:
                if self._has_run_out() or not self._store.exists(self._path):
                    # Another writer may have begun: `check` tells this one.
                    return
                self._store.write(self._path, Holder.current(self._holder.purpose).to_bytes())
                self._renewed = time.monotonic()
            except TidemarkError:
                # The next attempt may succeed; if none does, the lease runs out.
                continue

    def _has_run_out(self) -> bool:
        return self._holder is not None and time.monotonic() - self._renewed > self._ttl

    def release(self) -> None:
        self._stopped.set()
        if self._holder is not None:
            self._store.delete(self._path)
            self._store.remove_folder(FOLDER)
            self._store.remove_folder(WORK)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _machine() -> str:
    """This machine, boot and process namespace; without /proc the host name has to do."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _start_of(pid: int) -> str:
    """When a process started, in whatever unit; "" when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _start_without_proc(pid)
    # The name, in parentheses, may hold anything.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _start_without_proc(pid: int) -> str:
    if os.path.isdir("/proc/self"):
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
