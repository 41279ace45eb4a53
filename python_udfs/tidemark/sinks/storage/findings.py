"""What can be wrong with a tree, in words that the doctor and a writer that refuses to go on share. doctor.py lists the codes."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.encode import paths
from tidemark.sinks.storage.errors import DamagedTree
from tidemark.sinks.storage.filesystem import Store

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Finding:
    code: str
    level: str
    path: str
    text: str

    def refusal(self, store: Store, what_to_do: str) -> DamagedTree:
        """The error of a writer that must not go on."""
        return DamagedTree(
            f"{store.shown}/{self.path} {self.text} [{self.code}]; nothing was published and the checkpoint has not moved: {what_to_do}"
        )


def last_file_missing(index_path: str, named: str, level: str = ERROR) -> Finding:
    return Finding("checkpoint-beyond-data", level, index_path, f"names {named}, which is not there")


def no_metadata(published: int | None) -> Finding:
    """`published`: the checkpoint up to which Tidemark has published, where it has."""
    if published is None:
        return Finding(
            "metadata-missing", WARNING, paths.METADATA, "is missing: there are data files, but no checkpoint"
        )
    return Finding(
        "metadata-missing", ERROR, paths.METADATA, f"is missing: Tidemark has published up to {published}"
    )


def went_back(checkpoint: int, published: int) -> Finding:
    return Finding(
        "checkpoint-went-back",
        ERROR,
        paths.METADATA,
        f"says {checkpoint}, but Tidemark has published up to {published}",
    )
