"""Data source `tidemark_log_plan`: what is new in the event logs, cut into segments on frame boundaries.

Name          tidemark_log_plan
Options       logs       JSON list of {upstream_id, path}; a path is a file, a folder, a glob or an fsspec URL
              positions  JSON object file -> [next offset, size when last planned] of what earlier plans covered
              segment_bytes  how much of a log one segment takes (default 32 MiB)
Partitioning  files, spread over the tasks
Guarantees    Hops from header to header; payloads are not read. A segment starts and ends on a frame boundary. A torn last frame is left for a
              later plan and reported in `torn_bytes`. A file that has not grown since it was planned gives no row.
              A log that became shorter than what was read of it is an error.
Example       create temporary view plan using tidemark_log_plan options (logs '[{"upstream_id": "1", "path": "/data/log"}]')
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from tidemark.errors import TidemarkError
from tidemark.logs import LogFile, find_logs, open_log
from tidemark.wire.framing import FrameRun, TornTail, scan_runs
from tidemark.wire.header_columns import is_known
from tidemark.wire.registry import EVENT_TYPES
from tidemark.words import counted

SEGMENT_BYTES = 32 * 1024 * 1024
PLANNING_TASKS = 32

SCHEMA = (
    "upstream_id string, file string, segment_start bigint, segment_end bigint, log_size bigint, "
    "frame_count bigint, families array<string>, skipped_bytes bigint, torn_bytes bigint"
)
ARROW_SCHEMA = pa.schema(
    {
        "upstream_id": pa.string(),
        "file": pa.string(),
        "segment_start": pa.int64(),
        "segment_end": pa.int64(),
        "log_size": pa.int64(),
        "frame_count": pa.int64(),
        "families": pa.list_(pa.string()),
        "skipped_bytes": pa.int64(),
        "torn_bytes": pa.int64(),
    }
)


Find = Callable[[str], list[LogFile]]


class LogShrank(TidemarkError):
    """A log holds less than what was already read of it."""


class LogPlanSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidemark_log_plan"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema) -> LogPlanReader:
        return LogPlanReader(self.options)


class _Files(InputPartition):
    def __init__(self, files: list[GrownFile]):
        self.files = files


class LogPlanReader(DataSourceReader):
    def __init__(self, options):
        self.logs = json.loads(options.get("logs", "[]"))
        self.positions = json.loads(options.get("positions", "{}"))
        self.segment_bytes = int(options.get("segment_bytes", SEGMENT_BYTES))

    def partitions(self) -> list[_Files]:
        grown = list(grown_files(self.logs, self.positions))
        tasks = min(len(grown), PLANNING_TASKS)
        # Spark wants one partition even where there is nothing to do.
        return [_Files(grown[task::tasks]) for task in range(tasks)] or [_Files([])]

    def read(self, partition: _Files) -> Iterator[pa.RecordBatch]:
        for file in partition.files:
            yield pa.RecordBatch.from_pylist(plan_file(file, self.segment_bytes), schema=ARROW_SCHEMA)


class GrownFile(NamedTuple):
    upstream_id: str
    log: LogFile
    # Where the last plan ended.
    position: int


def plan_logs(
    logs: list[dict[str, str]], positions: Mapping[str, tuple[int, int]], find: Find = find_logs
) -> pa.Table:
    """The whole plan at once, in this process: what the data source gives, without Spark's tasks and their start."""
    # Before the first one is planned: a log that is missing or was cut is known at once.
    grown = list(grown_files(logs, positions, find))
    with ThreadPoolExecutor(PLANNING_TASKS) as pool:
        planned = list(pool.map(plan_file, grown))
    return pa.Table.from_pylist([row for rows in planned for row in rows], schema=ARROW_SCHEMA)


def grown_files(
    logs: list[dict[str, str]], positions: Mapping[str, tuple[int, int]], find: Find = find_logs
) -> Iterator[GrownFile]:
    """The files with something that no plan has covered."""
    for log in logs:
        for file in find(log["path"]):
            position, planned_size = positions.get(file.path, (0, 0))
            if file.size < position:
                raise LogShrank(
                    f"the event log {file.path} has {counted(file.size, 'byte')}, but {position} were already read: it was cut or replaced. "
                    f"Give a new log a new name, or start over with another state_dir"
                )
            if file.size > planned_size:
                yield GrownFile(str(log["upstream_id"]), file, position)


def plan_file(file: GrownFile, segment_bytes: int = SEGMENT_BYTES) -> list[dict[str, Any]]:
    return [
        {
            **segment,
            "upstream_id": file.upstream_id,
            "file": file.log.path,
            "log_size": file.log.size,
            "families": sorted(segment["families"]),
        }
        for segment in plan_segments(file.log, file.position, segment_bytes)
    ]


def plan_segments(file: LogFile, start: int, segment_bytes: int) -> list[dict[str, Any]]:
    """Segments of [start, size) of about `segment_bytes` each; the torn tail, if any, belongs to none of them."""
    segments = []
    current = _new_segment(start)
    with open_log(file.path) as log:
        for piece in scan_runs(log, start, size=file.size):
            if isinstance(piece, TornTail):
                current["torn_bytes"] = piece.length
                break
            if isinstance(piece, FrameRun):
                current["frame_count"] += len(piece.offset)
                current["families"] |= _families(piece)
                current["segment_end"] = piece.end
                # Behind a frame that another header follows, a second reader finds the same pieces as this one.
                if piece.end - current["segment_start"] >= segment_bytes:
                    segments.append(current)
                    current = _new_segment(piece.end)
            else:
                current["skipped_bytes"] += piece.length
                current["segment_end"] = piece.offset + piece.length
    if current["segment_end"] > current["segment_start"] or current["torn_bytes"]:
        segments.append(current)
    return segments


def _families(run: FrameRun) -> set[str]:
    """The event families of the frames that somebody can decode."""
    kinds = np.unique(run.event_type[is_known(run.event_type, run.version)])
    return {EVENT_TYPES[kind].family for kind in kinds.tolist()}


def _new_segment(start: int) -> dict[str, Any]:
    return {
        "segment_start": start,
        "segment_end": start,
        "frame_count": 0,
        "families": set(),
        "skipped_bytes": 0,
        "torn_bytes": 0,
    }
