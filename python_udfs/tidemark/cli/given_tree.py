"""The storage tree that a command is given: by its prefix, by a sink URI, or by both."""

from __future__ import annotations

import dataclasses

from tidemark.config.settings import Settings
from tidemark.sinks.storage.filesystem import Store, open_store, store_of

# Two schemes of one store.
_SAME = {"gs": "gcs", "azure": "azblob"}


def given_tree(prefix: str | None, settings: Settings | None) -> Store:
    """The tree at the prefix, opened with the access options of the sink URI if that is one of the same store; else the tree of the URI."""
    if prefix is None:
        return store_of(settings)
    scheme, _, rest = prefix.partition("://")
    if settings is None or not rest or _store(scheme) != _store(settings.uri.scheme):
        return open_store(prefix)
    bucket, slash, path = rest.partition("/")
    uri = dataclasses.replace(settings.uri, scheme=scheme, hosts=(bucket,), host=bucket, path=slash + path)
    return store_of(dataclasses.replace(settings, uri=uri))


def _store(scheme: str) -> str:
    return _SAME.get(scheme, scheme)
