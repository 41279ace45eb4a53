"""A registry by its URL: `file:///folder` is an embedded one, `http://` and `https://` are servers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from tidemark.encode.paths import REGISTRY
from tidemark.registry.confluent import ConfluentRegistry, parse_address, split_url
from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import RegistryError

if TYPE_CHECKING:
    from tidemark.config import Settings

Registry = ConfluentRegistry | EmbeddedRegistry


def open_registry(settings: Settings) -> Registry:
    """The registry of the settings; for files in a local folder one in that folder, unless they name another."""
    uri = settings.uri
    if uri.options.schema_registry:
        return open_url(uri.options.schema_registry)
    if uri.scheme == "file":
        return EmbeddedRegistry(f"{uri.host}{uri.path}/{REGISTRY}")
    raise RegistryError(
        "Avro needs a schema registry; add schema-registry=http://… or file:///… to the sink URI"
    )


def open_url(url: str) -> Registry:
    folder = check_url(url)
    return ConfluentRegistry(url) if folder is None else EmbeddedRegistry(folder)


def check_url(url: str) -> str | None:
    """The folder of an embedded registry, None for a server; an error where the URL is neither. Nothing is contacted."""
    if not url.startswith("file:"):
        parse_address(url)
        return None
    split = split_url(url)
    if split.netloc not in ("", "localhost") or not split.path.strip("/"):
        raise RegistryError(f"schema-registry {url!r}: write file:///folder, with three slashes")
    return unquote(split.path)
