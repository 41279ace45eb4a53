"""Where the server is, and a session on it.

    target := {mysql|tidb}[+ssl]://[user[:password]@]host[:port]/?time-zone=…&ssl-ca=…&ssl-cert=…&ssl-key=…&password-env=NAME&allow-non-tidb=true

The password is the value of the variable that password-env names, else the one in the URI (TiCDC's users have it there), else
TIDEMARK_SINK_PASSWORD, else MYSQL_PWD. It is in no message, no repr and no log. User and port default to root and 4000, as in TiCDC.

The driver is PyMySQL; what it raises becomes `ServerSaid`. Rows go through prepared statements (`execute_prepared`), which PyMySQL has no
function for: two commands of the protocol, sent over its connection.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import ModuleType
from typing import Any

from tidemark.config import Settings
from tidemark.sinks.mysql.errors import BadConnectionSetting, DriverMissing, NotTiDb
from tidemark.sinks.mysql.prepared import EXECUTE, PREPARED

DEFAULT_USER, DEFAULT_PORT = "root", 4000
PASSWORD_VARIABLES = ("TIDEMARK_SINK_PASSWORD", "MYSQL_PWD")
_CHARSET = "utf8mb4"
# What upstream accepted must be accepted again: zero and invalid dates, and 0 for AUTO_INCREMENT. But a value that does not fit is an error.
_SQL_MODE = "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
_STRICT = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES"
# Session variables of TiDB; older versions lack some.
_TIDB_SESSION = {
    "allow_auto_random_explicit_insert": "1",
    "tidb_enable_external_ts_read": "OFF",
    # Rows written here are not replicated onwards by a changefeed in bdr-mode.
    "tidb_cdc_write_source": "1",
}
_TIDB_ACTIVE_ACTIVE = {"tidb_translate_softdelete_sql": "OFF", "tidb_txn_mode": "pessimistic"}
_UNKNOWN_VARIABLE, _UNKNOWN_FUNCTIONS = 1193, (1305, 1128, 1046)
_TLS_FAILED = 2026
_STATEMENT_PREPARE, _STATEMENT_EXECUTE, _STATEMENT_CLOSE = 0x16, 0x17, 0x19
# Prepared statements that a connection keeps; a server has 16,382 for all its connections.
_MOST_PREPARED = 64


class ServerSaid(Exception):
    """An error of the server or the driver, before anybody knows what it means."""

    def __init__(self, code: int, said: str):
        super().__init__(code, said)
        self.code = code
        self.said = said


@dataclass(frozen=True)
class Target:
    """A server and how to log in. Printing it shows no password."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    user: str = DEFAULT_USER
    password: str = field(default="", repr=False)
    # TLS: with a certificate authority, the server must prove that it is `host`.
    tls: bool = False
    ssl_ca: str = ""
    ssl_cert: str = ""
    ssl_key: str = field(default="", repr=False)
    # Of the session: that of the changefeed, in which TIMESTAMP values are written on the wire.
    time_zone: str = "+00:00"
    connect_timeout: float = 30.0
    read_timeout: float = 120.0
    write_timeout: float = 120.0
    # A value that does not fit is an error; otherwise it is cut, as TiCDC does.
    strict: bool = True
    active_active: bool = False
    # Active-active mode: the server may be another one than TiDB.
    allow_non_tidb: bool = False

    @property
    def shown(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    @classmethod
    def from_settings(cls, settings: Settings, environ: Mapping[str, str] = os.environ) -> Target:
        uri, options = settings.uri, settings.uri.options
        if settings.sink_kind != "mysql":
            raise BadConnectionSetting(
                f"{uri.shown or 'no sink URI'}: not a database; use mysql:// or tidb://"
            )
        if (options.ssl_cert or options.ssl_key) and not (options.ssl_cert and options.ssl_key):
            raise BadConnectionSetting(
                f"{uri.shown}: ssl-cert and ssl-key are only of use together; give both"
            )
        return cls(
            host=uri.host.strip("[]") or "127.0.0.1",
            port=uri.port or DEFAULT_PORT,
            user=uri.user or DEFAULT_USER,
            password=_password(settings, environ),
            tls=uri.scheme.endswith("+ssl") or bool(options.ssl_ca or options.ssl_cert),
            ssl_ca=options.ssl_ca or "",
            ssl_cert=options.ssl_cert or "",
            ssl_key=options.ssl_key or "",
            time_zone=_zone(options.time_zone),
            connect_timeout=_seconds(options.timeout, cls.connect_timeout),
            read_timeout=_seconds(options.read_timeout, cls.read_timeout),
            write_timeout=_seconds(options.write_timeout, cls.write_timeout),
            active_active=settings.changefeed.enable_active_active,
            allow_non_tidb=options.allow_non_tidb,
        )


def _password(settings: Settings, environ: Mapping[str, str]) -> str:
    named = settings.uri.options.password_env
    if named:
        if named not in environ:
            raise BadConnectionSetting(
                f"{settings.uri.shown}: password-env names the variable {named}, which is not set"
            )
        return environ[named]
    if settings.uri.password:
        return settings.uri.password
    return next((environ[name] for name in PASSWORD_VARIABLES if environ.get(name)), "")


def _zone(name: str) -> str:
    """Servers know UTC by its name only after their time zone tables were loaded."""
    return "+00:00" if name.strip('"').upper() in ("", "UTC", "GMT", "Z", "ETC/UTC") else name.strip('"')


def _seconds(duration: timedelta | None, default: float) -> float:
    return duration.total_seconds() if duration else default


class Connection:
    """A session in a transaction that ends with `commit` or `rollback`."""

    def __init__(self, target: Target):
        self._driver = driver()
        self._errors = (self._driver.Error, OSError)
        self._prepared: OrderedDict[str, int] = OrderedDict()
        with self._translated():
            self._raw = self._driver.connect(**_arguments(target))
        try:
            self._set_session(target)
        except (ServerSaid, NotTiDb):
            self.close()
            raise

    def _set_session(self, target: Target) -> None:
        # PyMySQL goes on without TLS where the server does not offer it.
        if target.tls and not self.query("SHOW STATUS LIKE 'Ssl_cipher'")[0][1]:
            raise ServerSaid(_TLS_FAILED, "the server does not offer TLS")
        mode = f"{_SQL_MODE},{_STRICT}" if target.strict else _SQL_MODE
        self.execute(
            "SET SESSION sql_mode = %s, time_zone = %s, foreign_key_checks = 0", (mode, target.time_zone)
        )
        self.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self.is_tidb = self._has_tidb_version()
        if target.active_active and not self.is_tidb and not target.allow_non_tidb:
            version = self.query("SELECT VERSION()")[0][0]
            raise NotTiDb(
                f"{target.shown} is {version}, not TiDB: enable-active-active relies on columns that TiDB keeps; "
                "if this server is meant, add allow-non-tidb=true to the sink URI"
            )
        if self.is_tidb:
            variables = {**_TIDB_SESSION, **(_TIDB_ACTIVE_ACTIVE if target.active_active else {})}
            for name, value in variables.items():
                self._set_if_known(name, value)
        self.max_packet = int(self.query("SELECT @@max_allowed_packet")[0][0])

    def _has_tidb_version(self) -> bool:
        try:
            self.query("SELECT tidb_version()")
        except ServerSaid as error:
            if error.code in _UNKNOWN_FUNCTIONS:
                return False
            raise
        return True

    def _set_if_known(self, name: str, value: str) -> None:
        try:
            self.execute(f"SET SESSION {name} = %s", (value,))
        except ServerSaid as error:
            if error.code != _UNKNOWN_VARIABLE:
                raise

    def execute(self, sql: str, params: Sequence[Any] | None = None) -> int:
        """Rows affected, as the server counts them. Parameters are bound by the driver; their mark is %s."""
        with self._translated(), self._raw.cursor() as cursor:
            return cursor.execute(sql, params)

    def execute_prepared(self, sql: str, parameters: bytes) -> None:
        """A statement with `?` for parameters, and these as `prepared.EncodedRows` gives them. It is prepared the first time."""
        with self._translated():
            head = EXECUTE.pack(self._prepare(sql), 0, 1)
            self._raw._execute_command(_STATEMENT_EXECUTE, head + parameters)
            self._raw._read_query_result()

    def _prepare(self, sql: str) -> int:
        if sql in self._prepared:
            self._prepared.move_to_end(sql)
            return self._prepared[sql]
        self._raw._execute_command(_STATEMENT_PREPARE, sql)
        _, number, _, parameters = PREPARED.unpack_from(self._raw._read_packet().get_all_data())
        # A description of every parameter, which says nothing, and an end mark.
        while parameters and not self._raw._read_packet().is_eof_packet():
            pass
        if len(self._prepared) >= _MOST_PREPARED:
            _, oldest = self._prepared.popitem(last=False)
            self._raw._execute_command(_STATEMENT_CLOSE, oldest.to_bytes(4, "little"))
        self._prepared[sql] = number
        return number

    def query(self, sql: str, params: Sequence[Any] | None = None) -> list[tuple]:
        with self._translated(), self._raw.cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())

    def commit(self) -> None:
        with self._translated():
            self._raw.commit()

    def rollback(self) -> None:
        with self._translated():
            self._raw.rollback()

    def close(self) -> None:
        with suppress(*self._errors):  # it may be broken already
            self._raw.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise _server_said(error, isinstance(error, self._driver.Error)) from None


def _server_said(error: Exception, from_driver: bool) -> ServerSaid:
    args = error.args
    code = args[0] if from_driver and args and isinstance(args[0], int) else 0
    said = str(args[1] if len(args) > 1 else error) or type(error).__name__
    # PyMySQL reports a failed TLS handshake as a server that cannot be reached.
    if code in (2002, 2003, 2013) and ("SSL" in said or "certificate" in said.lower()):
        code = _TLS_FAILED
    return ServerSaid(code, said)


def driver() -> ModuleType:
    try:
        import pymysql
    except ImportError:
        raise DriverMissing(
            "writing to MySQL or TiDB needs a driver: run `make setup`, or pip install '.[mysql]' in the folder of Tidemark"
        ) from None
    return pymysql


def _arguments(target: Target) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "host": target.host,
        "port": target.port,
        "user": target.user,
        "password": target.password,
        "charset": _CHARSET,
        "connect_timeout": max(1, round(target.connect_timeout)),
        "read_timeout": max(1, round(target.read_timeout)),
        "write_timeout": max(1, round(target.write_timeout)),
    }
    return {**arguments, "ssl": _tls_context(target)} if target.tls else arguments


def _tls_context(target: Target) -> Any:
    import ssl

    try:
        context = ssl.create_default_context(cafile=target.ssl_ca or None)
        if target.ssl_cert:
            context.load_cert_chain(target.ssl_cert, target.ssl_key)
    except OSError as error:
        problem = error.strerror or error.args[-1]
        raise BadConnectionSetting(
            f"{target.shown}: the TLS files cannot be read ({problem}); ssl-ca, ssl-cert and ssl-key are paths of PEM files"
        ) from None
    if not target.ssl_ca:
        # As +ssl in TiCDC: encrypted, but nobody said whom to trust.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
