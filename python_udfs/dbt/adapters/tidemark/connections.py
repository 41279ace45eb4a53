"""Connections of dbt's threads to the Spark sessions of the process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionManager, SparkConnectionMethod, SparkCredentials
from dbt.adapters.spark.session import Cursor, SessionConnectionWrapper
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError
from py4j.protocol import Py4JNetworkError

from dbt.adapters.tidemark import interrupts
from dbt.adapters.tidemark.messages import short_message
from tidemark.errors import TidemarkError
from tidemark.spark.session import (
    forget_announced_change,
    forget_files,
    forget_inlining_session,
    inlining_session,
    note_statement,
    session,
)
from tidemark.spark.state import state_dir

logger = AdapterLogger("Tidemark")


@dataclass
class TidemarkCredentials(SparkCredentials):
    """A profile of `type: tidemark`. Only `schema` is needed; `spark_settings` are Spark properties that win over ours."""

    method: SparkConnectionMethod = SparkConnectionMethod.SESSION  # type: ignore[assignment]
    host: str | None = "embedded"
    schema: str | None = "tidemark"  # type: ignore[assignment]
    spark_settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method != SparkConnectionMethod.SESSION:
            raise DbtConfigError(
                f"profile `type: tidemark` has `method: {self.method}`, only `session` (the embedded Spark) is known. "
                f"For a Thrift server use `type: spark, method: thrift`"
            )
        super().__post_init__()

    @property
    def type(self) -> str:
        return "tidemark"

    def _connection_keys(self) -> tuple[str, ...]:
        return "schema", "spark_settings"


class TidemarkCursor(Cursor):
    """A cursor on the process's session; dbt-spark's own would build one with its own idea of the settings."""

    def __init__(self, spark_session) -> None:
        super().__init__()
        self._open_session = spark_session

    def execute(self, sql: str, *parameters: Any) -> None:
        if interrupts.is_ending():
            raise DbtRuntimeError("the run was interrupted")
        statement = sql % parameters if parameters else sql
        try:
            self._df = self._open_session().sql(statement)
        except BaseException:
            forget_announced_change()
            raise
        note_statement(statement)


class TidemarkHandle:
    def __init__(self, spark_session) -> None:
        self._open_session = spark_session

    def cursor(self) -> TidemarkCursor:
        return TidemarkCursor(self._open_session)


class TidemarkConnectionManager(SparkConnectionManager):
    TYPE = "tidemark"
    # dbt opens connections through a class method, but what a session needs is known per project.
    project: ClassVar[Any] = None
    # How the model of a thread runs.
    _model = threading.local()

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        type(self).project = config
        forget_inlining_session()

    @classmethod
    def spark_session(cls):
        """The session, active for the calling thread."""
        try:
            return session(
                project_state_dir(cls.project),
                {str(key): str(value) for key, value in cls.project.credentials.spark_settings.items()},
                say=logger.warning,
            )
        except TidemarkError as error:
            raise DbtRuntimeError(str(error)) from None

    @classmethod
    def model_session(cls):
        """The session for the statements of the calling thread's model."""
        return inlining_session() if getattr(cls._model, "inlines_ctes", False) else cls.spark_session()

    @classmethod
    def begin_model(cls, inlines_ctes: bool) -> None:
        """Each session forgets what the other one may have written: the second before a model that runs in it, the first after that. dbt's order of models does the rest."""
        cls._model.inlines_ctes = inlines_ctes
        if inlines_ctes:
            cls.spark_session()
            forget_files(inlining_session())

    @classmethod
    def end_model(cls) -> None:
        was_inlined = getattr(cls._model, "inlines_ctes", False)
        cls._model.inlines_ctes = False
        if was_inlined:
            forget_files(cls.spark_session())

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state != ConnectionState.OPEN:
            connection.handle = SessionConnectionWrapper(TidemarkHandle(cls.model_session))  # type: ignore[arg-type]
            connection.state = ConnectionState.OPEN
        return connection

    @contextmanager
    def exception_handler(self, sql: str):
        try:
            yield
        except DbtRuntimeError:
            raise
        except Exception as error:  # Spark raises many classes; each becomes one readable message
            if isinstance(error, (Py4JNetworkError, ConnectionError)):
                interrupts.wait_for_signal()
            logger.debug(f"Error while running:\n{sql}\n{error}")
            raise DbtDatabaseError(short_message(error)) from None

    def execute(self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None):
        # Spark runs a query when its rows are fetched, which dbt does outside its own handler.
        with self.exception_handler(sql):
            return super().execute(sql, auto_begin=auto_begin, fetch=fetch, limit=limit)


def project_vars(config: Any) -> Mapping[str, Any]:
    """The vars of dbt_project.yml as this project sees them, without those of the command line."""
    declared = config.vars.to_dict() if getattr(config, "vars", None) is not None else {}
    own = declared.get(getattr(config, "project_name", ""), {})
    return {**declared, **own} if isinstance(own, Mapping) else declared


def project_state_dir(config: Any) -> Path:
    # `dbt debug` has a profile only.
    return state_dir(
        getattr(config, "cli_vars", {}), project_vars(config), Path(getattr(config, "project_root", "."))
    )
