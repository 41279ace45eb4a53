"""A session on a server that may be busy, restart or cut connections.

`Session.run` does one transaction. If it fails for a temporary reason it is rolled back and done again as a whole, on a new connection if the old one
broke, with growing pauses and not forever. Whether a commit whose answer was lost took place nobody knows: work that may be done
twice is done again, other work ends with UnknownOutcome.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tidemark.sinks.mysql.connection import Connection, ServerSaid, Target
from tidemark.sinks.mysql.errors import LOST_CONNECTION, MysqlError, UnknownOutcome, explain, is_temporary

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Retry:
    """`attempts` per transaction; pauses double from `first_pause` to `longest_pause` seconds, each shortened at random."""

    attempts: int = 10
    first_pause: float = 0.1
    longest_pause: float = 10.0
    sleep: Callable[[float], object] = time.sleep

    def pause(self, attempt: int) -> None:
        """Sessions that met in a deadlock must not meet again: the pauses are random."""
        whole = min(self.longest_pause, self.first_pause * 2 ** (attempt - 1))
        self.sleep(whole * random.uniform(0.5, 1.0))


@dataclass
class Doing:
    """What a transaction is about to do, kept up to date by the work itself, for messages and for whether it may be repeated."""

    table: str = ""
    statement: str = ""
    # Set before the commit of something that must not be done twice.
    is_last_chance: bool = False


class Session:
    """One connection at a time, opened when it is needed."""

    def __init__(
        self,
        target: Target,
        retry: Retry = Retry(),  # noqa: B008 - frozen
        connect: Callable[[Target], Connection] = Connection,
    ):
        self._target, self._retry, self._connect = target, retry, connect
        self._connection: Connection | None = None

    def open(self) -> Connection:
        """A server that restarts is waited for; a wrong password is told at once."""
        return self.run(lambda connection, _: connection)[0]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def run(self, work: Callable[[Connection, Doing], _Result]) -> tuple[_Result, int]:
        """(what the work returns, how often it was done again). The work commits."""
        attempt = 1
        while True:
            doing = Doing(statement=self._connecting())
            try:
                return work(self._ready(), doing), attempt - 1
            except ServerSaid as error:
                self._clean_up(error)
                problem = self._problem(error, doing, attempt)
            if problem is not None:
                raise problem
            self._retry.pause(attempt)
            attempt += 1

    def _ready(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect(self._target)
        return self._connection

    def _connecting(self) -> str:
        return f"connecting to {self._target.shown}"

    def _clean_up(self, error: ServerSaid) -> None:
        if error.code in LOST_CONNECTION:
            self.close()
        elif self._connection is not None:
            try:
                self._connection.rollback()
            except ServerSaid:
                self.close()

    def _problem(self, error: ServerSaid, doing: Doing, attempt: int) -> MysqlError | None:
        """Why the work cannot be done again; None if it can."""
        what = {"table": doing.table, "statement": doing.statement}
        if doing.is_last_chance and error.code in LOST_CONNECTION:
            message = (
                f"{doing.statement} on {doing.table}: the connection broke during the commit (MySQL {error.code}), and the table has no key "
                "by which to see whether it took place; compare the table with its source, and give it a primary key"
            )
            return UnknownOutcome(message, code=error.code, **what)
        if is_temporary(error.code) and attempt < self._retry.attempts:
            return None
        return explain(error.code, error.said, attempts=attempt, **what)
