"""What models need beyond SQL: the settings of sinks, a storage tree that is theirs while they run, and trees that are read."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.tidemark.connections import project_state_dir
from tidemark.config import load
from tidemark.config.secrets import expand_environment
from tidemark.errors import TidemarkError
from tidemark.sinks.storage.filesystem import open_store, store_of
from tidemark.sinks.storage.publish import OpenTree, open_tree, planned_position
from tidemark.sinks.storage.report import read_report, take_report
from tidemark.sinks.storage.tree_log import write_tree_log
from tidemark.spark.sink_settings import settings_option

logger = AdapterLogger("Tidemark")


class SinkMethods(metaclass=AdapterMeta):
    """Part of the adapter class."""

    # The tree that the model of this thread writes to.
    _open = threading.local()

    @available
    def sink_settings(self) -> str:
        """The option `settings` of a sink's data source."""
        values = self.sink_values()
        return settings_option(
            values.get("changefeed"), values.get("sink_uri"), values.get("compat") or "design"
        )

    @available
    def storage_position(self) -> dict[str, Any]:
        """How far the tree of the sink URI is, without touching it: its checkpoint, and how much of the logs it has, where that is known."""
        with explained():
            checkpoint, position = planned_position(store_of(self._settings()))
        known = asdict(position) if position else dict.fromkeys(("batch_id", "log_row_count"))
        return {"checkpoint_ts": checkpoint, **known}

    @available
    def open_storage_tree(self, model: str) -> dict[str, Any]:
        """Take the lease until the model ends, and finish what an interrupted run has begun."""
        with explained():
            tree = open_tree(store_of(self._settings()), f"the dbt model {model}")
        self._open.tree = tree
        return {"checkpoint": tree.checkpoint, "lease": tree.lease.token}

    @available
    def storage_report(self) -> dict[str, Any] | None:
        """What the model of this thread has published: after_ts, up_to_ts, rows and files."""
        tree: OpenTree | None = getattr(self._open, "tree", None)
        with explained():
            report = read_report(tree.store) if tree else None
        return asdict(report) if report else None

    @available
    def tree_log(self, upstream_id: str, tree: str, changefeed: str | None = None) -> str:
        """The folder of the event log that a storage tree was turned into, with what the tree has now."""
        with explained():
            uri = expand_environment(tree, os.environ)
            settings = load(changefeed, uri) if "://" in uri else None
            store = store_of(settings) if settings else open_store(uri)
            name = f"{upstream_id}-{hashlib.sha256(store.shown.encode()).hexdigest()[:12]}"
            done = write_tree_log(
                store, settings, project_state_dir(self.config) / "tree-logs" / quote(name, safe="")
            )
        for warning in done.warnings:
            logger.warning(warning)
        return str(done.folder)

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Called when a model ends, however it ends."""
        super().post_model_hook(config, context)  # type: ignore[misc]
        tree: OpenTree | None = getattr(self._open, "tree", None)
        if tree is not None:
            self._open.tree = None
            with tree, explained():
                report = take_report(tree.store)
                for warning in report.warnings if report else ():
                    logger.warning(warning)


@contextmanager
def explained() -> Iterator[None]:
    """Errors of Tidemark's libraries as dbt shows them: one sentence, no stack trace."""
    try:
        yield
    except TidemarkError as error:
        raise DbtRuntimeError(str(error)) from None
