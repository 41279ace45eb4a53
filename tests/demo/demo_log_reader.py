"""Reads a demo log back with the codecs, for tests."""

from dataclasses import dataclass, field
from pathlib import Path

from tidemark.logs import find_logs, open_log
from tidemark.wire.events.batch_dml import BatchDMLEvent
from tidemark.wire.framing import Frame, scan
from tidemark.wire.registry import decode
from tidemark.wire.rows import decode_batch
from tidemark.wire.tracker import SchemaTracker


def upstream_folders(out: Path) -> list[Path]:
    return sorted(out.iterdir())


def events_of(folder: Path):
    """All events of an upstream, in order. Anything that is not a frame is an error."""
    for file in find_logs(str(folder)):
        with open_log(file.path) as log:
            for piece in scan(log):
                assert isinstance(piece, Frame), piece
                log.seek(piece.offset)
                yield decode(log.read(piece.length))


@dataclass
class Change:
    table: str
    key: int
    op: int
    pre: dict | None
    post: dict | None
    commit_ts: int
    start_ts: int
    seq: int
    epoch: int
    dispatcher_id: bytes
    row_key: bytes
    event: int
    info: object = field(repr=False, default=None)


def changes_of(folder: Path) -> list[Change]:
    """Every row change in the order of the log, repeated ones too."""
    tracker, found = SchemaTracker(), []
    for number, event in enumerate(events_of(folder)):
        tracker.feed(event)
        if not isinstance(event, BatchDMLEvent):
            continue
        info = tracker.in_force(event.dispatcher_id).table
        batch = decode_batch(event, info)
        images = [*batch.columns.to_pylist(), None]
        changes = batch.changes
        for index in range(len(changes)):
            pre, post = images[changes.pre[index]], images[changes.post[index]]
            found.append(
                Change(
                    table=info.table,
                    key=(post or pre)[info.handle_key[0]],
                    op=int(changes.op[index]),
                    pre=pre,
                    post=post,
                    commit_ts=int(changes.commit_ts[index]),
                    start_ts=int(changes.start_ts[index]),
                    seq=int(changes.seq[index]),
                    epoch=int(changes.epoch[index]),
                    dispatcher_id=batch.dispatcher_id,
                    row_key=changes.row_key[index].as_py(),
                    event=number,
                    info=info,
                )
            )
    return found


def once(changes: list[Change]) -> list[Change]:
    """Without the changes that were sent again."""
    seen, kept = set(), []
    for change in changes:
        identity = (change.table, change.key, change.commit_ts)
        if identity not in seen:
            seen.add(identity)
            kept.append(change)
    return kept


def replay(changes: list[Change]) -> dict[tuple[str, int], dict]:
    """The rows that exist after all changes."""
    rows = {}
    for change in once(changes):
        if change.post is None:
            del rows[change.table, change.key]
        else:
            rows[change.table, change.key] = change.post
    return rows
