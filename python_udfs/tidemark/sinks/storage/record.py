"""What Tidemark has published, noted in the tree itself, so that a tree that was damaged since is not written on.

    .tidemark-published
    {"format": 1, "checkpoint": N, "announced": [path of an index, …], "position": {"batch_id", "log_row_count"}}

`checkpoint` is that of the last run. A `metadata` below it went back, and one that is missing is gone: a run from there would write rows a second time.

`announced` are indexes that name a file that was not there when Tidemark took the tree over. TiCDC writes an index before its data file, so by
document 002 such a number is free. Tidemark writes the data file first: any other index whose file is missing names a file that is gone.

`position`, where a model wrote the tree, says which rows of the logs these are: up to which batch, and how many. By it a run knows late rows from those that the tree has.

A tree is taken over when it has no record, or when its `metadata` is beyond the record: somebody else has written since. Then all indexes are looked at,
once. The record itself stays small, so a run costs the same however large the tree is.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from tidemark.encode import paths
from tidemark.sinks.storage.errors import StorageError
from tidemark.sinks.storage.filesystem import Store
from tidemark.sinks.storage.findings import no_metadata, went_back
from tidemark.sinks.storage.numbers import numbers_of
from tidemark.sinks.storage.tree import scan_tree

FORMAT = 1


@dataclass(frozen=True)
class Position:
    """How much of the logs is in the tree: the row changes of all batches up to one, as far as the checkpoint goes, and how many these are."""

    batch_id: int
    log_row_count: int


@dataclass(frozen=True)
class Record:
    checkpoint: int
    announced: frozenset[str] = frozenset()
    # The tree was somebody else's until now.
    is_taken_over: bool = False
    # None: the run was not one of the models'.
    position: Position | None = None

    def to_text(self) -> str:
        document = {
            "format": FORMAT,
            "checkpoint": self.checkpoint,
            "announced": sorted(self.announced),
        }
        return json.dumps(document | ({"position": asdict(self.position)} if self.position else {}))

    @classmethod
    def from_text(cls, text: str | bytes) -> Record:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']!r}")
        position = document.get("position")
        return cls(
            int(document["checkpoint"]),
            frozenset(map(str, document["announced"])),
            position=Position(**position) if position else None,
        )

    def after(self, checkpoint: int, written: set[str], position: Position | None) -> Record:
        """The record after a run that wrote these indexes."""
        return replace(self, checkpoint=checkpoint, announced=self.announced - written, position=position)


def read_record(store: Store) -> Record | None:
    content = store.read_optional(paths.RECORD)
    if content is None:
        return None
    try:
        return Record.from_text(content)
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"{store.shown}/{paths.RECORD} cannot be understood ({type(error).__name__}: {error}); put it back as it was, or "
            "look at the tree with `tidemark doctor`, remove the file and run again: the tree is then taken over as it is"
        ) from None


def check_record(store: Store, checkpoint: int) -> None:
    """Refuse a tree that does not go as far as it has been. `checkpoint`: that of `metadata`, 0 without one."""
    record = read_record(store)
    if not store.exists(paths.METADATA):
        if record is not None:
            raise no_metadata(record.checkpoint).refusal(store, _put_back(record.checkpoint))
        if any(folder.files for folder in scan_tree(store).folders.values()):
            raise no_metadata(None).refusal(
                store,
                'put `metadata` back, or use an empty prefix; `{"checkpoint-ts":0}` in it writes all rows beside the files that are there',
            )
    elif record is not None and checkpoint < record.checkpoint:
        raise went_back(checkpoint, record.checkpoint).refusal(store, _put_back(record.checkpoint))


def _put_back(checkpoint: int) -> str:
    return (
        f'write {{"checkpoint-ts":{checkpoint}}} into `metadata` if the data files are all there (`tidemark doctor` says so), '
        "else restore the tree, or write it again to another prefix"
    )


def record_of(store: Store, checkpoint: int) -> Record:
    """The record that a run from this checkpoint begins with. The caller has checked it."""
    record = read_record(store)
    if record is not None and record.checkpoint == checkpoint:
        return record
    if checkpoint == 0 and not store.exists(paths.METADATA):
        return Record(0)
    return Record(checkpoint, _dangling(store), True)


def _dangling(store: Store) -> frozenset[str]:
    """The indexes of the tree that name a file that is not there."""
    tree = scan_tree(store)
    series = [(folder, dispatcher) for folder in tree.folders.values() for dispatcher in folder.indexes]
    found = store.for_each(lambda place: numbers_of(tree, *place), series)
    return frozenset(numbers.index_path or "" for numbers in found if numbers.is_last_missing)
