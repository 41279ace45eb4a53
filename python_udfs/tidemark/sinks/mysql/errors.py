"""What can go wrong on the server, by MySQL error code.

A code is either temporary (`is_temporary`: the same transaction may succeed a moment later), or it is one row of `_CODES`: the class of
the error and what to do about it. A message names the table, the kind of statement and the code. It never repeats parameters, which are
user data; the server's own sentence is kept, since it names the column and the row of the statement.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.errors import TidemarkError


class MysqlError(TidemarkError):
    """A statement failed. `code` is MySQL's (0: none), `table` and `statement` say what was being written."""

    def __init__(self, message: str, *, code: int = 0, table: str = "", statement: str = ""):
        super().__init__(message)
        self.code = code
        self.table = table
        self.statement = statement


class MissingColumn(MysqlError):
    """The downstream table lacks a column of the upstream table."""


class MissingTable(MysqlError):
    """The downstream has no such table or database."""


class RejectedValue(MysqlError):
    """A value does not fit into its downstream column."""


class DuplicateKey(MysqlError):
    """A unique key of the downstream table that the upstream table does not have."""


class AccessDenied(MysqlError):
    """The user may not log in, or may not do this."""


class ServerFull(MysqlError):
    """No room: the disk, the table or the table space is full."""


class TooLarge(MysqlError):
    """A row or a transaction is larger than the server takes."""


class ServerUnavailable(MysqlError):
    """The server cannot be reached, or temporary errors did not stop."""


class BadConnectionSetting(MysqlError):
    """A setting of the connection that the server or the driver does not take."""


class NotTiDb(MysqlError):
    """Active-active mode with a server that is not TiDB, and nobody said that this is meant."""


class DriverMissing(MysqlError):
    """PyMySQL is not installed."""


class MissingHiddenColumn(TidemarkError):
    """An active-active table without one of its hidden columns."""


class UnknownOutcome(MysqlError):
    """The connection broke during a commit that must not be repeated."""


# Connecting or talking failed; a server that restarts looks like this for a while.
# 1040 too many connections, 1053 shutting down, 1927 killed, 2002/2003 cannot connect, 2006 gone away, 2013 lost, 2055 lost during read.
LOST_CONNECTION = frozenset(
    {0, 1040, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006, 2013, 2055}
)
# The server rolled back or refused for now. 1205 lock wait, 1213 deadlock, 1020/1412/1615 changed meanwhile; TiDB: 8002/8022/9007 conflict, 8005 write
# conflict, 8027/8028/8029 schema changed or out of date, 9001-9006 and 9010-9013 PD or TiKV busy, 8229 transaction aborted, 8252 conflict.
_TRY_AGAIN = frozenset(
    {
        1020,
        1205,
        1213,
        1412,
        1614,
        1615,
        8002,
        8005,
        8022,
        8027,
        8028,
        8029,
        8229,
        8252,
        9001,
        9002,
        9003,
        9004,
        9005,
        9006,
        9007,
        9008,
        9010,
        9011,
        9012,
        9013,
    }
)


def is_temporary(code: int) -> bool:
    return code in LOST_CONNECTION or code in _TRY_AGAIN


class _Meaning(NamedTuple):
    error: type[MysqlError]
    what: str
    advice: str


_COLUMN = "add the column downstream (the upstream DDL may not have been applied there), then run again"
_NO_COMMIT_TS = (
    "only a TiDB that has ACTIVE_ACTIVE tables keeps it: on any other server give the table a column of another name, such as "
    "`local_commit_ts` BIGINT UNSIGNED NULL, and name it in the sink URI: commit-ts-column=local_commit_ts"
)
_VALUE = "make the downstream column as wide as the upstream one, then run again"
_TYPE = "give the downstream column the type and character set of the upstream one, then run again"
_LOGIN = "check user and password (the variable named by password-env, TIDEMARK_SINK_PASSWORD or MYSQL_PWD)"
_RIGHTS = "grant the user SELECT, INSERT, UPDATE and DELETE on the table, and CREATE on tidb_cdc for the progress table"
_ROOM = "free space on the server, then run again: what was not committed is written then"
_CODES = {
    1054: _Meaning(MissingColumn, "the downstream table lacks a column", _COLUMN),
    1136: _Meaning(MissingColumn, "the downstream table has other columns", _COLUMN),
    1146: _Meaning(
        MissingTable,
        "the table does not exist downstream",
        "create it there with the schema of the upstream table, then run again",
    ),
    1049: _Meaning(MissingTable, "the database does not exist downstream", "create it there, then run again"),
    1406: _Meaning(RejectedValue, "a value is too long for its column", _VALUE),
    1264: _Meaning(RejectedValue, "a number is out of the range of its column", _VALUE),
    1265: _Meaning(
        RejectedValue,
        "a value does not fit into its column",
        _VALUE + "; an ENUM without a member (number 0) needs a session that is not strict",
    ),
    1366: _Meaning(RejectedValue, "a value is not one of its column's type or character set", _TYPE),
    1292: _Meaning(RejectedValue, "a date or number is not one of its column's type", _TYPE),
    1048: _Meaning(
        RejectedValue,
        "NULL for a column that is NOT NULL downstream",
        "allow NULL downstream as upstream does, then run again",
    ),
    1364: _Meaning(
        RejectedValue,
        "a downstream column without default that the upstream table does not have",
        "give the column a default, then run again",
    ),
    3140: _Meaning(RejectedValue, "text that is not JSON for a JSON column", _TYPE),
    4025: _Meaning(
        RejectedValue,
        "a check constraint of the downstream table refuses a row",
        "drop the constraint downstream, then run again",
    ),
    3819: _Meaning(
        RejectedValue,
        "a check constraint of the downstream table refuses a row",
        "drop the constraint downstream, then run again",
    ),
    1062: _Meaning(
        DuplicateKey,
        "a unique key refuses a row",
        "drop unique keys downstream that the upstream table does not have, then run again",
    ),
    1044: _Meaning(AccessDenied, "the user may not use the database", _RIGHTS),
    1045: _Meaning(AccessDenied, "access denied", _LOGIN),
    1698: _Meaning(AccessDenied, "access denied", _LOGIN),
    1142: _Meaning(AccessDenied, "the user may not do this", _RIGHTS),
    1143: _Meaning(AccessDenied, "the user may not do this", _RIGHTS),
    1227: _Meaning(AccessDenied, "the user may not do this", _RIGHTS),
    1290: _Meaning(
        AccessDenied, "the server is read-only", "write to the primary server, or switch read-only off"
    ),
    1836: _Meaning(
        AccessDenied, "the server is read-only", "write to the primary server, or switch read-only off"
    ),
    1021: _Meaning(ServerFull, "the server's disk is full", _ROOM),
    1026: _Meaning(ServerFull, "the server cannot write its files", _ROOM),
    1041: _Meaning(ServerFull, "the server is out of memory", _ROOM),
    1114: _Meaning(ServerFull, "the table is full", _ROOM),
    1153: _Meaning(
        TooLarge,
        "a statement is larger than max_allowed_packet",
        "raise max_allowed_packet on the server, then run again",
    ),
    2020: _Meaning(
        TooLarge,
        "a statement is larger than max_allowed_packet",
        "raise max_allowed_packet on the server, then run again",
    ),
    1461: _Meaning(
        TooLarge,
        "the server has no room for another prepared statement",
        "raise max_prepared_stmt_count on the server, or lower worker-count in the sink URI, then run again",
    ),
    8004: _Meaning(
        TooLarge, "the transaction is too large for TiDB", "lower max-txn-row in the sink URI, then run again"
    ),
    8025: _Meaning(
        TooLarge, "a row is too large for TiDB", "raise txn-entry-size-limit on TiDB, then run again"
    ),
    1298: _Meaning(
        BadConnectionSetting,
        "the server does not know the time zone",
        "load the time zone tables on the server, or give an offset such as %2B08:00",
    ),
    1115: _Meaning(BadConnectionSetting, "the server does not know utf8mb4", "use a newer server"),
    2026: _Meaning(
        BadConnectionSetting,
        "TLS failed",
        "check ssl-ca, ssl-cert and ssl-key, and that the certificate names this host",
    ),
}
# Codes that mean something else when the server names the hidden column of active-active tables.
_OF_COMMIT_TS = {
    1054: _Meaning(MissingColumn, "the downstream table has no column _tidb_commit_ts", _NO_COMMIT_TS),
    1060: _Meaning(
        MissingColumn,
        "the downstream table has a column of its own called _tidb_commit_ts, which the server keeps for itself",
        f"rename it; {_NO_COMMIT_TS}",
    ),
}
# As storage engines and file functions say it (28 is ENOSPC).
_FULL_DEVICE = ("no space left", "error 28 ", "errcode: 28")


def explain(code: int, said: str, *, table: str = "", statement: str = "", attempts: int = 1) -> MysqlError:
    """The typed error for what the server or the driver said."""
    where = f"{statement or 'statement'} on {table}" if table else statement or "connection"
    if is_temporary(code):
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        message = f"{where}: gave up{tried}, the last error was MySQL {code} ({said}); run again when the server answers: nothing that was committed is lost"
        return ServerUnavailable(message, code=code, table=table, statement=statement)
    meaning = _CODES.get(code) or _Meaning(MysqlError, "the server refuses it", "see the server's message")
    if "_tidb_commit_ts" in said:
        meaning = _OF_COMMIT_TS.get(code, meaning)
    if any(word in said.lower() for word in _FULL_DEVICE):
        meaning = _CODES[1021]
    message = f"{where}: {meaning.what} (MySQL {code}: {said}); {meaning.advice}"
    return meaning.error(message, code=code, table=table, statement=statement)
