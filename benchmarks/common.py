"""What the benchmarks share: measuring on a machine that others use too."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable


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
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
