"""The adapter class: dbt-spark's, with our connections and Python models that run in this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dbt.adapters.base import PythonJobHelper
from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import SparkAdapter
from dbt.flags import get_flags
from dbt_common.clients import agate_helper
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.tidemark import interrupts
from dbt.adapters.tidemark.catalog import CatalogMethods
from dbt.adapters.tidemark.connections import TidemarkConnectionManager, project_state_dir, project_vars
from dbt.adapters.tidemark.kafka import KafkaMethods
from dbt.adapters.tidemark.messages import short_message
from dbt.adapters.tidemark.passed_tests import TestMethods
from dbt.adapters.tidemark.sinks import SinkMethods, explained
from dbt.adapters.tidemark.states import StateMethods
from dbt.adapters.tidemark.warehouse import WarehouseMethods
from tidemark.config import Settings, load
from tidemark.config.findings import ERROR, ConfigError
from tidemark.config.project_vars import check_project_vars
from tidemark.config.secrets import expand_environment, has_plain_secret, redact_uri
from tidemark.dispatch.routing import routing_document, routing_rules
from tidemark.errors import TidemarkError
from tidemark.log_check import check_logs
from tidemark.logs import LogListing
from tidemark.spark.session import note_changes

logger = AdapterLogger("Tidemark")
# How a selection names the model that plans the logs.
_LOG_MODELS = {"log_segments", "staging"}


class TidemarkAdapter(
    CatalogMethods, StateMethods, TestMethods, WarehouseMethods, SinkMethods, KafkaMethods, SparkAdapter
):
    ConnectionManager = TidemarkConnectionManager

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self._remembered: dict[str, Any] = {}
        self._listing = LogListing()
        _forget_secret(project_values(config).get("sink_uri"))
        # Wrong settings end the command here, before anything is parsed or run.
        settings = config.credentials.spark_settings
        errors = [
            finding
            for finding in check_project_vars(project_vars(config), getattr(config, "cli_vars", {}), settings)
            if finding.severity == ERROR
        ]
        if errors:
            raise DbtConfigError(str(ConfigError(errors)))
        try:
            project_state_dir(config)
            if _reads_logs(get_flags()):
                warnings = check_logs(
                    project_values(config).get("event_logs") or (),
                    Path(getattr(config, "project_root", ".")),
                    self._listing.find,
                )
                for warning in self.remember("warnings on logs", warnings):
                    logger.warning(warning)
        except TidemarkError as error:
            raise DbtConfigError(str(error)) from None

    @property
    def default_python_submission_method(self) -> str:
        return "in_process"

    @property
    def python_submission_helpers(self) -> dict[str, type[PythonJobHelper]]:
        return {"in_process": InProcessPythonJob}

    def submit_python_job(self, parsed_model: dict, compiled_code: str):
        helper = InProcessPythonJob(parsed_model, self.config.credentials)
        helper.session = self.connections.model_session()
        response = self.generate_python_submission_response(helper.submit(compiled_code))
        note_changes()
        return response

    def pre_model_hook(self, config: Any) -> Any:
        """Called before a model runs. `inline_ctes` is for SQL models that read no temporary view (tidemark.spark.fast_start.inlining)."""
        interrupts.model_begins()
        self.connections.begin_model(inlines_ctes=bool(config.get("inline_ctes")))
        return super().pre_model_hook(config)

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Called when a model ends, however it ends."""
        try:
            self.connections.end_model()
        finally:
            try:
                super().post_model_hook(config, context)
            finally:
                interrupts.model_ends()

    def sink_values(self) -> dict[str, Any]:
        """The vars that say what a sink does."""
        values = project_values(self.config)
        return {name: values.get(name) for name in ("changefeed", "sink_uri", "compat")}

    def _settings(self) -> Settings:
        values = self.sink_values()
        uri = values.get("sink_uri")
        uri = expand_environment(uri, os.environ) if uri else None
        return load(values.get("changefeed"), uri, values.get("compat") or "design")

    @available
    def dispatch_rules(self) -> list[dict[str, Any]]:
        """The dispatch rules of the changefeed, in their order."""
        return [
            {
                "rule_number": rule.index,
                "matcher": list(rule.matcher),
                "topic_expression": rule.topic,
                "partition_expression": rule.partition or rule.kind,
                "kind": rule.kind,
                "columns": list(rule.columns),
                "index_name": rule.index_name,
                "partition": rule.number,
            }
            for rule in self._settings().sink.dispatchers
        ]

    @available
    def changefeed_settings(self) -> dict[str, Any]:
        """What models need to know of the changefeed: its modes, and the compat switches that SQL decides by."""
        settings = self._settings()
        return {
            "case_sensitive": settings.changefeed.case_sensitive,
            "routing": routing_document(settings) if routing_rules(settings) else None,
            "filter_rules": list(settings.changefeed.filter_rules),
            "event_filters": [
                {
                    "matcher": list(event_filter.matcher),
                    "ignored_ops": list(event_filter.ignored_ops),
                    "ignored_columns": [name.lower() for name in event_filter.ignore_update_only_columns],
                    "value_expressions": event_filter.value_expressions,
                }
                for event_filter in settings.changefeed.filter.event_filters
            ],
            "ignored_start_ts": list(settings.changefeed.filter.ignore_txn_start_ts),
            "sink_kind": settings.sink_kind,
            "keeps_nothing": settings.uri.keeps_nothing,
            "sink_place": settings.uri.place,
            "protocol": settings.protocol,
            "has_column_selectors": bool(settings.sink.column_selectors),
            "default_topic": settings.default_topic,
            "table_id_paths": settings.uri.options.use_table_id_as_path,
            "partition_folders": settings.sink.enable_partition_separator,
            "tables_across_nodes": bool(settings.changefeed.scheduler.enable_table_across_nodes),
            "partition_count": settings.uri.options.partition_num if settings.uri is not None else None,
            "dispatch_skips_missing_columns": settings.compat.dispatch_skips_missing_columns,
            "enable_active_active": settings.changefeed.enable_active_active,
            "bdr_mode": settings.changefeed.bdr_mode,
            "progress_interval_seconds": settings.changefeed.active_active_progress_interval.total_seconds(),
            "soft_delete_from_zero": settings.compat.soft_delete_from_zero,
            "active_active_columns": list(settings.compat.active_active_columns),
        }

    @available
    def value_condition(
        self, expression: str, columns: list[dict[str, Any]], values: dict[str, str], where: str
    ) -> dict[str, Any]:
        """An expression of an event filter over the columns of a table: its SQL and the columns that it reads, or the problem."""
        from tidemark.filter_expressions import ExpressionError, condition

        try:
            made = condition(expression, columns, values, where)
        except ExpressionError as problem:
            return {"problem": f"{where}: {problem}"}
        return {"sql": made.sql, "columns": list(made.columns)}

    @available
    def log_plan(self, view: str, logs: list[dict[str, str]], positions: dict[str, list[int]]) -> list[dict]:
        """A temporary view of what the logs hold beyond `positions`, and its rows by upstream, file and place."""
        from tidemark.spark.log_plan import plan_logs

        with self.connections.exception_handler("planning the event logs"), explained():
            plan = plan_logs(logs, positions, self._listing.find).sort_by(
                [(name, "ascending") for name in ("upstream_id", "file", "segment_start")]
            )
            self._listing.forget()
            self.connections.spark_session().createDataFrame(plan).createOrReplaceTempView(view)
        return plan.to_pylist()

    @available
    def frame_schema(self) -> str:
        """The columns of `tidemark_events`."""
        from tidemark.spark.event_log import SCHEMA

        return SCHEMA

    @available
    def source_columns(self, name: str) -> list[str]:
        """The columns that one of Tidemark's data sources has without options."""
        from pyspark.sql.types import StructType

        from tidemark.spark.registration import DATA_SOURCES

        (source,) = [source for source in DATA_SOURCES if source.name() == name]
        return StructType.fromDDL(source({}).schema()).names

    @available
    def seed_table(self, seed: dict[str, Any]) -> Any:
        """The rows of a seed of this project, from its file, as dbt reads it for `dbt seed`."""
        path = Path(self.config.project_root) / seed["original_file_path"]
        settings = seed["config"]
        return agate_helper.from_csv(
            path, text_columns=settings.get("column_types", {}), delimiter=settings.get("delimiter", ",")
        )

    @available
    def remember(self, name: str, value: Any) -> Any:
        """Keep what a statement said until the command ends, for what does not change meanwhile: most of a small run is statements."""
        self._remembered[name] = value
        return value

    @available
    def remembered(self, name: str) -> Any:
        return self._remembered.get(name)

    @available
    def run_id(self) -> str:
        """A name part that no other build of a table has, and that sorts by time."""
        from datetime import datetime, timezone

        return datetime.now(timezone.utc).strftime("%Y%m%d%H%M%S%f")


def project_values(config: Any) -> dict[str, Any]:
    """The vars in force."""
    return {**project_vars(config), **getattr(config, "cli_vars", {})}


def _reads_logs(flags: Any) -> bool:
    """Whether the command reads the logs for sure. Of a selection that is known only when the project is parsed; the model log_segments looks itself."""
    if getattr(flags, "WHICH", None) not in ("run", "build"):
        return False
    kinds = getattr(flags, "RESOURCE_TYPES", None) or ("model",)
    excluded = {name for text in getattr(flags, "EXCLUDE", None) or () for name in str(text).split()}
    selected = {name for text in getattr(flags, "SELECT", None) or () for name in str(text).split()}
    reads = selected & _LOG_MODELS if selected else not getattr(flags, "SELECTOR", None)
    return bool(reads) and "model" in kinds and not excluded & _LOG_MODELS


def _forget_secret(uri: Any) -> None:
    """A URI with a secret in it is refused; here it also leaves the log that dbt began before it asked us, and stays out of the rest."""
    if not isinstance(uri, str) or not has_plain_secret(uri):
        return
    os.environ["DBT_ENV_SECRET_TIDEMARK_SINK_URI"] = uri
    log = Path(get_flags().LOG_PATH or "logs") / "dbt.log"
    if log.exists():
        log.write_text(log.read_text(errors="replace").replace(uri, redact_uri(uri)))


class InProcessPythonJob(PythonJobHelper):
    """Runs the code of a Python model here, with `spark` bound to the session; the code leaves its result in a temporary view."""

    session: Any = None

    def __init__(self, parsed_model: dict, credentials: Any) -> None:
        self.name = parsed_model["alias"]

    def submit(self, compiled_code: str) -> None:
        namespace = {"__name__": f"dbt_model_{self.name}", "spark": self.session}
        try:
            exec(compile(compiled_code, f"{self.name}.py", "exec"), namespace)
        except TidemarkError as error:
            raise DbtRuntimeError(str(error)) from None
        except DbtRuntimeError:
            raise
        except Exception as error:
            line = _model_line(error, f"{self.name}.py")
            raise DbtRuntimeError(
                f"Python model {self.name}{line}: {type(error).__name__}: {short_message(error)}"
            ) from None


def _model_line(error: BaseException, file_name: str) -> str:
    trace, line = error.__traceback__, ""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file_name:
            line = f", line {trace.tb_lineno} of the compiled code"
        trace = trace.tb_next
    return line
