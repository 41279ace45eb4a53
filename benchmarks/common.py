"""What the benchmarks share: measuring on a machine that others use too."""

from __future__ import annotations

import os
import re
import resource
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def best_time(function: Callable[[], object], seconds: float = 1.0) -> float:
    """The fastest of many calls: what the code costs when nobody disturbs it."""
    function()
    best, deadline = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        function()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > deadline:
            return best


def peak_memory_mib() -> float:
    """The most memory this process had so far."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage counts what the parent had when it started this process
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Every process with the fields of its stat file that follow its name."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        yield int(stat.parent.name), fields


def cpu_seconds() -> float:
    """What this process, and all that it started, have used of the cores so far. Workers that ended and that nobody waited for are missing: see CpuMeter."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for pid, fields in _processes():
        children.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15]))  # user and system, its own and that of ended children
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Core seconds of this process and all that it started, also of those that ended unseen: Spark ends Python workers that nobody waits for.

    A thread looks at every process twice a second, so what one does in its last moments may be missed. Up to then the sum never falls.
    """

    def __init__(self) -> None:
        # (process, when it started) -> ticks
        self._used: dict[tuple[int, str], int] = {}
        self._guard = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.seconds()
            time.sleep(0.5)

    def seconds(self) -> float:
        with self._guard:
            self._look()
            return sum(self._used.values()) / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        parents: dict[int, int] = {}
        found: dict[int, tuple[str, int]] = {}
        for pid, fields in _processes():
            parents[pid] = int(fields[1])
            found[pid] = fields[19], int(fields[11]) + int(fields[12])
        for pid, (started, ticks) in found.items():
            above = pid
            while above in parents and above != os.getpid():
                above = parents[above]
            if above == os.getpid():
                self._used[pid, started] = ticks
