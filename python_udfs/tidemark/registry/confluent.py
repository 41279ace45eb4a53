"""A registry server with the Confluent REST API, through confluent-kafka's client.

    url := http[s]://[user:password@]host:port[/path][,http[s]://…][?option=value&…]

Options: `ca`, `cert`, `key` and `key-password` for TLS, `timeout` in seconds, `retries` (how often a request is repeated when there is no answer, or an
answer such as 503; the waits grow and are random). Of several servers the next one is asked when one does not answer. Secrets are never
part of an error text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from tidemark.registry.errors import (
    BY_CODE,
    IncompatibleSchema,
    InvalidSchema,
    RegistryError,
    RegistryUnreachable,
    Unauthorized,
)
from tidemark.registry.state import LATEST, SubjectVersion

_T = TypeVar("_T")
_TLS = {
    "ca": "ssl.ca.location",
    "cert": "ssl.certificate.location",
    "key": "ssl.key.location",
    "key-password": "ssl.key.password",
}
_BY_STATUS = {401: Unauthorized, 403: Unauthorized, 409: IncompatibleSchema, 422: InvalidSchema}
_NO_URL = "schema-registry is not a URL such as http://host:8081 or file:///folder"
_TIMEOUT_SECONDS = 10.0
_RETRIES = 4
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 200, 5_000


@dataclass(frozen=True, repr=False)
class Address:
    # Without user and password.
    urls: tuple[str, ...]
    configuration: dict[str, Any]


class ConfluentRegistry:
    def __init__(self, url: str):
        address = parse_address(url)
        self._shown = ", ".join(address.urls)
        try:
            from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
            from confluent_kafka.schema_registry.error import SchemaRegistryError
        except ImportError as problem:
            raise RegistryError(
                f"{self._shown}: the client is not installed ({problem.name}); run `make setup`, or pip install '.[kafka]' in the folder of Tidemark"
            ) from None
        self._schema, self._error = Schema, SchemaRegistryError
        try:
            self._client = SchemaRegistryClient(address.configuration)
        except (ValueError, TypeError, OSError) as problem:
            raise RegistryError(f"{self._shown}: {problem}") from None

    def register(self, subject: str, schema: str) -> int:
        return self._ask(lambda: self._client.register_schema(subject, self._avro(schema)), subject)

    def lookup(self, subject: str, schema: str) -> SubjectVersion:
        found = self._ask(lambda: self._client.lookup_schema(subject, self._avro(schema)), subject)
        return SubjectVersion(subject, found.version, found.schema_id, schema)

    def schema(self, schema_id: int) -> str:
        return self._ask(lambda: self._client.get_schema(schema_id), schema_id=schema_id).schema_str

    def subjects(self) -> list[str]:
        return sorted(self._ask(self._client.get_subjects))

    def versions(self, subject: str) -> list[int]:
        return self._ask(lambda: self._client.get_versions(subject), subject)

    def version(self, subject: str, version: int | str = LATEST) -> SubjectVersion:
        found = self._ask(lambda: self._client.get_version(subject, version), subject)
        return SubjectVersion(subject, found.version, found.schema_id, found.schema.schema_str)

    def compatibility(self, subject: str | None = None, *, own: bool = False) -> str:
        """The level of a subject, else that of the registry. `own`: an error where the subject has none of its own."""
        if subject is None or own:
            return self._ask(lambda: self._client.get_compatibility(subject), subject or "")
        # Without this option Apicurio says NONE for a subject without a level, and the client's own methods cannot give it.
        path, option = f"config/{quote(subject, safe='')}", {"defaultToGlobal": "true"}
        try:
            answer = self._ask(lambda: self._client._rest_client.get(path, option), subject)
            return answer["compatibilityLevel"]
        except RegistryError as problem:
            if problem.code // 100 != 404:
                raise
            return self.compatibility()

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        self._ask(lambda: self._client.set_compatibility(subject, level), subject or "")

    def is_compatible(self, subject: str, schema: str, against: int | str = LATEST) -> bool:
        avro = self._avro(schema)
        return self._ask(lambda: self._client.test_compatibility(subject, avro, against), subject)

    def close(self) -> None:
        self._client.close()

    def _avro(self, schema: str) -> Any:
        return self._schema(schema, "AVRO")

    def _ask(self, question: Callable[[], _T], subject: str = "", schema_id: int | None = None) -> _T:
        try:
            return question()
        except self._error as problem:
            code, status = problem.error_code, problem.http_status_code
            kind = BY_CODE.get(code) or _BY_STATUS.get(status, RegistryError)
            known = code if isinstance(code, int) and code > 0 else status
            reason = f"{self._shown} answered: {problem.error_message}"
            raise kind(reason, subject=subject, schema_id=schema_id, code=known) from None
        except Exception as problem:
            # The client passes on what its HTTP library raises, and that library differs between versions.
            reason = f"{self._shown} gives no answer: {str(problem) or type(problem).__name__}"
            raise RegistryUnreachable(reason, subject=subject, schema_id=schema_id) from None


def split_url(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        # An address in brackets that is none of IPv6. What stands there may hold a password: it is not shown.
        raise RegistryError(_NO_URL) from None


def parse_address(url: str) -> Address:
    urls, configuration = [], {}
    for part in url.split(","):
        split = split_url(part.strip())
        try:
            port = split.port
        except ValueError:
            raise RegistryError("schema-registry: the port is not a number") from None
        if split.scheme not in ("http", "https") or not split.hostname:
            raise RegistryError(_NO_URL)
        host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
        address = host if port is None else f"{host}:{port}"
        urls.append(urlunsplit((split.scheme, address, split.path.rstrip("/"), "", "")))
        if split.username is not None:
            configuration["basic.auth.user.info"] = (
                f"{unquote(split.username)}:{unquote(split.password or '')}"
            )
        for name, value in parse_qsl(split.query, keep_blank_values=True):
            configuration |= _option(name, value)
    defaults = {
        "timeout": _TIMEOUT_SECONDS,
        "max.retries": _RETRIES,
        "retries.wait.ms": _FIRST_WAIT_MS,
        "retries.max.wait.ms": _LONGEST_WAIT_MS,
    }
    return Address(tuple(urls), {"url": ",".join(urls), **defaults, **configuration})


def _option(name: str, value: str) -> dict[str, Any]:
    if name in _TLS:
        return {_TLS[name]: value}
    kinds = {"timeout": ("timeout", float, 0.001), "retries": ("max.retries", int, 0)}
    if name not in kinds:
        allowed = ", ".join([*_TLS, *kinds])
        raise RegistryError(f"schema-registry: {name!r} is not an option; allowed: {allowed}")
    key, kind, least = kinds[name]
    try:
        number = kind(value)
    except ValueError:
        number = None
    if number is None or not least <= number < float("inf"):
        raise RegistryError(f"schema-registry: {name} cannot be {value!r}")
    return {key: number}
