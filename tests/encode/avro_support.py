"""Settings, encoders and an independent reader (fastavro) for the Avro tests."""

from __future__ import annotations

import io
import json
from urllib.parse import quote

import fastavro
from encode_support import TEXT, column, table_of

from tidemark.config import load
from tidemark.encode.avro import FRAME, AvroEncoder
from tidemark.registry.recorded import Recorded
from tidemark.registry.sequential import SequentialIds
from tidemark.wire import types

NOT_NULL = {"flag": types.NOT_NULL}
KEY = column("id", types.INT, flag=types.NOT_NULL | types.PRIMARY_KEY)
PER_TABLE = {"sink": {"dispatchers": [{"matcher": ["*.*"], "topic": "{schema}_{table}"}]}}


def avro_settings(
    query: str = "",
    changefeed: dict | None = None,
    compat: str = "design",
    registry: str = "http://127.0.0.1:1?retries=0",
):
    uri = f"kafka://127.0.0.1:9092/t?protocol=avro&schema-registry={quote(registry, safe='')}{query}"
    return load(PER_TABLE if changefeed is None else changefeed, uri, compat)


class Reader:
    """Encodes with Tidemark and reads back with fastavro."""

    def __init__(self, settings=None, registry=None):
        self.registry = Recorded(registry or SequentialIds())
        self.encoder = AvroEncoder(settings or avro_settings(), registry=self.registry)
        self._schemas: dict[int, dict] = {}

    def schemas(self) -> dict[str, dict]:
        """The last schema of each subject."""
        return dict(self._taken())

    def rows(self, batch) -> list[tuple[dict | None, dict | None]]:
        messages = self.encoder.encode_rows(batch)
        assert messages.error.null_count == len(messages), messages.error.to_pylist()
        list(self._taken())
        return [
            (self._read(key), self._read(value))
            for key, value in zip(messages.key.to_pylist(), messages.value.to_pylist(), strict=True)
        ]

    def _taken(self):
        for made in self.registry.take():
            self._schemas[made.id] = fastavro.parse_schema(json.loads(made.schema))
            yield made.subject, json.loads(made.schema)

    def _read(self, message: bytes | None) -> dict | None:
        if message is None:
            return None
        magic, schema_id = FRAME.unpack_from(message)
        assert magic == 0
        data = io.BytesIO(message[FRAME.size :])
        found = fastavro.schemaless_reader(data, self._schemas[schema_id], None)
        assert data.read() == b"", "bytes behind the datum"
        return found


def simple_table(*more, **names):
    return table_of(KEY, column("name", types.VARCHAR, **TEXT), *more, **names)
