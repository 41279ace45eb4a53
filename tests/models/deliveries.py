"""The ways in which one and the same log may reach Tidemark over several runs.

Each is a function (dice, frames, runs) -> for every run the list of (file name, bytes to append to that file).
"""

from __future__ import annotations

import random
from itertools import pairwise

Delivery = list[list[tuple[str, bytes]]]


def once(dice: random.Random, frames: list[bytes], runs: int) -> Delivery:
    return [[("log.bin", b"".join(frames))], *([] for _ in range(runs - 1))]


def grown(dice: random.Random, frames: list[bytes], runs: int) -> Delivery:
    """One file that grows; where it ends, a frame may be cut in two."""
    log = b"".join(frames)
    cuts = [0, *sorted(dice.sample(range(1, len(log)), runs - 1)), len(log)]
    return [[("log.bin", log[start:end])] for start, end in pairwise(cuts)]


def shuffled(dice: random.Random, frames: list[bytes], runs: int) -> Delivery:
    """Later files before earlier ones."""
    files = _files(dice, frames, runs)
    in_order = list(files)
    while files == in_order:
        dice.shuffle(files)
    return [[file] for file in files]


def twice(dice: random.Random, frames: list[bytes], runs: int) -> Delivery:
    """File by file, and each file again under another name: in the same run, in the next one, or in the last one."""
    made = [[file] for file in _files(dice, frames, runs)]
    for run, (name, log) in enumerate([files[0] for files in made]):
        again = dice.choice((run, min(run + 1, runs - 1), runs - 1))
        made[again].append((f"again_{name}", log))
    return made


DELIVERIES = (once, grown, shuffled, twice)


def _files(dice: random.Random, frames: list[bytes], count: int) -> list[tuple[str, bytes]]:
    """Pieces of a log in order. Their names say nothing about it."""
    cuts = [0, *sorted(dice.sample(range(1, len(frames)), count - 1)), len(frames)]
    names = dice.sample(range(1000), count)
    return [
        (f"{name:03d}.bin", b"".join(frames[start:end]))
        for name, (start, end) in zip(names, pairwise(cuts), strict=True)
    ]
