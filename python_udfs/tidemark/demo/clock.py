"""Timestamps as TiDB gives them out.

    tso := physical_ms << 18 | logical

All clusters share one physical clock. Commit timestamps of a cluster strictly increase, and those of different clusters are never equal.
"""

from __future__ import annotations

from datetime import datetime, timezone

import numpy as np

from tidemark.demo.dice import Dice

LOGICAL_BITS = 18
# Shortly before midnight, so that even a short log has two dates.
START_MS = int(datetime(2025, 3, 1, 23, 55, tzinfo=timezone.utc).timestamp() * 1000)
# Between two transactions of a cluster.
MAX_GAP_MS = 1500


def microseconds(tso: np.ndarray) -> np.ndarray:
    """Physical time in microseconds; the logical part makes up the digits below a millisecond."""
    return (tso >> np.uint64(LOGICAL_BITS)) * np.uint64(1000) + tso % np.uint64(1000)


class Clock:
    def __init__(self, clusters: int):
        self._clusters = clusters
        self._now_ms = START_MS
        self._latest_ms = START_MS

    def tick(self) -> int:
        """A timestamp after all that were given out, for an event that all clusters may share."""
        self._now_ms = self._latest_ms = max(self._now_ms, self._latest_ms) + 10
        return self._now_ms << LOGICAL_BITS

    def commits(self, cluster: int, count: int, dice: Dice) -> np.ndarray:
        """Ascending commit timestamps of one cluster from now on. The clusters run side by side until the next tick."""
        gaps = dice.below(count, MAX_GAP_MS) + 1
        physical = self._now_ms + np.cumsum(gaps)
        if count:
            self._latest_ms = max(self._latest_ms, int(physical[-1]))
        places = np.arange(count) % ((1 << LOGICAL_BITS) // self._clusters)
        return (physical.astype(np.uint64) << np.uint64(LOGICAL_BITS)) + (
            places * self._clusters + cluster
        ).astype(np.uint64)
