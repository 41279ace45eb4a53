"""An embedded registry behind HTTP: the part of the Confluent REST API that clients of Avro need. For tests and trials, not for the open net.

    GET  /                                              POST /compatibility/subjects/{subject}/versions[/{version}][?verbose=true]
    GET  /subjects                                      GET, PUT /config
    GET  /subjects/{subject}/versions                   GET, PUT /config/{subject}[?defaultToGlobal=true]
    POST /subjects/{subject}/versions                   GET  /schemas/types
    GET  /subjects/{subject}/versions/{version}[/schema]            GET  /schemas/ids/{id}[/versions]
    POST /subjects/{subject}

An error is {"error_code":…,"message":…} with the numbers of that API.
"""

from __future__ import annotations

import hmac
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tidemark.registry.embedded import EmbeddedRegistry
from tidemark.registry.errors import (
    InvalidSchema,
    RegistryError,
    SchemaNotFound,
    Unauthorized,
)
from tidemark.registry.state import SubjectVersion

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_MAX_BODY = 16 * 1024 * 1024
# How long closing may take.
_POLL_SECONDS = 0.05


class RegistryServer:
    """Serves until it is closed; use it in a `with` statement. `url` has the port that was taken."""

    def __init__(
        self,
        registry: EmbeddedRegistry,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        credentials: str | None = None,
        tls: ssl.SSLContext | None = None,
    ):
        """`credentials` is user:password."""
        handler = type("Handler", (_Handler,), {"registry": registry, "credentials": credentials})
        self._server = ThreadingHTTPServer((host, port), handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://{host}:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS}, daemon=True
        )

    def __enter__(self) -> RegistryServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _NoSuchPath(RegistryError):
    code, status = 404, 404


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: EmbeddedRegistry
    credentials: str | None

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_PUT(self) -> None:
        self._answer(self._put)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self, handle: Callable[[list[str], dict[str, str]], Any]) -> None:
        split = urlsplit(self.path)
        path = [unquote(part) for part in split.path.split("/") if part]
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        try:
            self._check_credentials()
            status, result = 200, handle(path, query)
        except RegistryError as problem:
            message = f"Subject '{problem.subject}': {problem.reason}" if problem.subject else problem.reason
            status, result = problem.status, {"error_code": problem.code, "message": message}
        data = json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _check_credentials(self) -> None:
        if self.credentials is None:
            return
        wanted = "Basic " + b64encode(self.credentials.encode()).decode()
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted.encode()):
            self.close_connection = True
            raise Unauthorized("User cannot access the resource")

    def _get(self, path: list[str], query: dict[str, str]) -> Any:
        registry = self.registry
        match path:
            case []:
                return {}
            case ["subjects"]:
                return registry.subjects()
            case ["subjects", subject, "versions"]:
                return registry.versions(subject)
            case ["subjects", subject, "versions", version]:
                return _document(registry.version(subject, version))
            case ["subjects", subject, "versions", version, "schema"]:
                return json.loads(registry.version(subject, version).schema)
            case ["schemas", "types"]:
                return ["AVRO"]
            case ["schemas", "ids", schema_id]:
                return {"schema": registry.schema(_id(schema_id))}
            case ["schemas", "ids", schema_id, "versions"]:
                return [
                    {"subject": use.subject, "version": use.version} for use in registry.uses(_id(schema_id))
                ]
            case ["config"]:
                return {"compatibilityLevel": registry.compatibility()}
            case ["config", subject]:
                own = query.get("defaultToGlobal") != "true"
                return {"compatibilityLevel": registry.compatibility(subject, own=own)}
        raise _NoSuchPath("HTTP 404 Not Found")

    def _post(self, path: list[str], query: dict[str, str]) -> Any:
        body, registry = self._body(), self.registry
        match path:
            case ["subjects", subject, "versions"]:
                return {"id": registry.register(subject, _schema(body))}
            case ["subjects", subject]:
                return _document(registry.lookup(subject, _schema(body)))
            case ["compatibility", "subjects", subject, "versions", *version]:
                found = registry.incompatibilities(subject, _schema(body), version[0] if version else None)
                answer: dict[str, Any] = {"is_compatible": not found}
                if query.get("verbose", "").lower() == "true":
                    answer["messages"] = [str(mismatch) for mismatch in found]
                return answer
        raise _NoSuchPath("HTTP 404 Not Found")

    def _put(self, path: list[str], query: dict[str, str]) -> Any:
        level = str(self._body().get("compatibility", ""))
        match path:
            case ["config"]:
                self.registry.set_compatibility(level)
            case ["config", subject]:
                self.registry.set_compatibility(level, subject)
            case _:
                raise _NoSuchPath("HTTP 404 Not Found")
        return {"compatibility": level}

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_BODY:
            self.close_connection = True
            raise InvalidSchema(f"the request has {length or 'no'} bytes; at most {_MAX_BODY} are read")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise InvalidSchema("the request is not a JSON object")
        return body


def _schema(body: dict[str, Any]) -> str:
    schema = body.get("schema")
    if not isinstance(schema, str) or not schema:
        raise InvalidSchema("Empty schema")
    if body.get("schemaType", "AVRO") != "AVRO" or body.get("references"):
        raise InvalidSchema("only Avro schemas without references are taken")
    return schema


def _id(text: str) -> int:
    if not text.isdecimal():
        raise SchemaNotFound(f"Schema {text} not found")
    return int(text)


def _document(found: SubjectVersion) -> dict[str, Any]:
    return {"subject": found.subject, "version": found.version, "id": found.id, "schema": found.schema}
