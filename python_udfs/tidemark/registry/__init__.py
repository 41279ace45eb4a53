"""Schema registries: servers with the Confluent API, an embedded one in a folder, and ids without any."""

from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import RegistryError
from tidemark.registry.open import open_registry, open_url
from tidemark.registry.sequential import SequentialIds

__all__ = ["EmbeddedRegistry", "RegistryError", "SequentialIds", "open_registry", "open_url"]
