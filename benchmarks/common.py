"""What the benchmarks share: measuring on a machine that others use too."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Callable
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


def cpu_seconds() -> float:
    """What this process, and all that it started, have used of the cores so far."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15]))  # user and system, its own and that of ended children
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")
