"""How fast event logs are read, into Spark and by the reader alone, and how much memory the reader takes.

    python benchmarks/bench_log_reader.py [--megabytes 1000] [--rounds 3]

A demo log is written into a temporary folder. Spark runs embedded, as in a real run, on all cores. All rates are those of log bytes, also where few of
them leave the reader:

    per core    log bytes / seconds / cores: what a run sees on a quiet machine
    per CPU s   log bytes / core seconds used by all processes together: the same without what others do on the machine
    fixed s     what a query costs before its first byte, from reading the whole log and half of it
    of plain    `per core`, next to reading the same files on one core and doing nothing

Memory is the peak of a process that only drains the reader over one segment; the line without a log is what its imports take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from common import cpu_seconds, peak_memory_mib
from tidemark.demo.shop import write_demo_logs
from tidemark.logs import find_logs
from tidemark.spark.event_log import EventLogReader
from tidemark.spark.log_plan import SEGMENT_BYTES, plan_segments
from tidemark.spark.session import session, stop
from tidemark.wire.events.resolved import ResolvedEvent
from tidemark.wire.registry import encode

BYTES_PER_ROW = 246
QUERIES = {
    "whole frames": ("full", "select count(*), sum(length(frame)) from frames"),
    "headers only": ("header", "select count(*), sum(length) from frames"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the log (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts (default 3)")
    parser.add_argument("--drain", nargs=2, metavar=("FILE", "PAYLOAD"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drain:
        print(drain_in_this_process(*args.drain))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "log", args.megabytes)
        speed(folder, args.rounds)
        memory(folder, args.megabytes)


def write_log(folder: Path, megabytes: int, **more) -> None:
    rows = megabytes * 1_000_000 // BYTES_PER_ROW
    write_demo_logs(folder, tables=3, rows=rows, upstreams=1, seed=1, **more)


def speed(folder: Path, rounds: int) -> None:
    files = [file.path for file in find_logs(str(folder / "log"))]
    segments = plan(folder / "log")
    cores = os.cpu_count() or 1
    print(f"log of {size_of(segments) / 1e6:.0f} MB, {cores} cores, load average {load_average()}\n")
    print(f"{'read':40}{'seconds':>9}{'per core':>10}{'per CPU s':>11}{'fixed s':>9}{'of plain':>10}")
    plain = measure(lambda chosen: [read_plainly(file) for file in files], segments, rounds)

    def show(what: str, read: Callable[[list[list]], object], cores: int = 1) -> None:
        whole = measure(read, segments, rounds)
        half = segments[: len(segments) // 2]
        share = size_of(half) / size_of(segments)
        fixed = (measure(read, half, rounds).seconds - whole.seconds * share) / (1 - share)
        report(what, size_of(segments), whole, fixed, plain, cores)

    report("plain file read, one core", size_of(segments), plain, 0, plain, 1)
    show("plan, one core", lambda chosen: plan(folder / "log", len(chosen)))
    for name, (payload, _) in QUERIES.items():
        show(f"{name}, reader alone, one core", lambda chosen, payload=payload: drain(chosen, payload))
    spark = session(folder / "state", {})
    try:
        for name, (payload, query) in QUERIES.items():
            show(
                f"{name}, Spark",
                lambda chosen, payload=payload, query=query: run(spark, chosen, payload, query),
                cores,
            )
    finally:
        stop()
    print(f"\nload average {load_average()}")


class Cost(NamedTuple):
    seconds: float
    cpu_seconds: float


def measure(read: Callable[[list[list]], object], segments: list[list], rounds: int) -> Cost:
    """The best of the rounds, after one to warm up."""
    read(segments)
    costs = []
    for _ in range(rounds):
        start, used = time.perf_counter(), cpu_seconds()
        read(segments)
        costs.append(Cost(time.perf_counter() - start, cpu_seconds() - used))
    return Cost(*(min(column) for column in zip(*costs, strict=True)))


def report(what: str, size: int, cost: Cost, fixed: float, plain: Cost, cores: int) -> None:
    megabytes = size / 1e6
    print(
        f"{what:40}{cost.seconds:>9.2f}{megabytes / cost.seconds / cores:>10.0f}"
        f"{megabytes / max(cost.cpu_seconds, 0.01):>11.0f}{max(fixed, 0):>9.2f}"
        f"{plain.seconds / cost.seconds / cores:>10.3f}",
        flush=True,
    )


def plan(folder: Path, wanted: int | None = None) -> list[list]:
    """The segments of the log, as a run plans them; of the first files only, where fewer are wanted."""
    segments: list[list] = []
    for file in find_logs(str(folder)):
        if wanted is not None and len(segments) >= wanted:
            break
        segments += [
            [1, "1", file.path, segment["segment_start"], segment["segment_end"], file.size]
            for segment in plan_segments(file, 0, SEGMENT_BYTES)
        ]
    return segments


def size_of(segments: list[list]) -> int:
    return sum(end - start for _, _, _, start, end, _ in segments)


def read_plainly(file: str) -> None:
    buffer = bytearray(1 << 20)
    with open(file, "rb", buffering=0) as log:
        while log.readinto(buffer):
            pass


def drain(segments: list[list], payload: str) -> int:
    reader = EventLogReader({"segments": json.dumps(segments), "payload": payload})
    return sum(len(batch) for part in reader.partitions() for batch in reader.read(part))


def run(spark, segments: list[list], payload: str, query: str) -> None:
    options = f"segments '{json.dumps(segments)}', payload '{payload}'"
    spark.sql(f"create or replace temporary view frames using tidemark_events options ({options})")
    spark.sql(query).collect()


def load_average() -> str:
    return ", ".join(f"{load:.2f}" for load in os.getloadavg())


def memory(folder: Path, megabytes: int) -> None:
    """Every log is one file and one segment, so that nothing but the reader bounds what it holds."""
    print(f"\n{'log':40}{'MB':>7}{'frames':>12}{'whole frames':>15}{'headers only':>15}   MiB")
    nothing = folder / "nothing.bin"
    nothing.touch()
    report_memory("none", nothing)
    for name, size in (("an eighth of the log", megabytes // 8), ("the log", megabytes)):
        write_log(folder / name, size, file_bytes=1 << 40)
        (file,) = find_logs(str(folder / name))
        report_memory(name, Path(file.path))
    tiny = encode(ResolvedEvent(1, 1, 1, bytes(16))) * 10_000
    for name, size in (
        ("an eighth, Resolved events only", megabytes // 8),
        ("Resolved events only", megabytes),
    ):
        file = folder / f"{name}.bin"
        with file.open("wb") as out:
            for _ in range(size * 1_000_000 // len(tiny)):
                out.write(tiny)
        report_memory(name, file)


def report_memory(name: str, file: Path) -> None:
    frames, peaks = "0", ""
    for payload, _ in QUERIES.values():
        command = [sys.executable, __file__, "--drain", str(file), payload]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        frames, peak = answer.split()
        peaks += f"{float(peak):>15.0f}"
    print(f"{name:40}{file.stat().st_size / 1e6:>7.0f}{int(frames):>12,}{peaks}", flush=True)


def drain_in_this_process(file: str, payload: str) -> str:
    size = os.path.getsize(file)
    frames = drain([[1, "1", file, 0, size, size]], payload)
    return f"{frames} {peak_memory_mib()}"


if __name__ == "__main__":
    main()
