"""Schema registries: the Confluent API, an embedded one in a file, and ids without any."""
