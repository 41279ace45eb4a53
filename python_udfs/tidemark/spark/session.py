"""The Spark session of a process, with Tidemark's UDFs and data sources in it; and a second one on the same tables, which reads CTEs in another way."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidemark.errors import TidemarkError
from tidemark.spark import fast_start, formats
from tidemark.spark.catalog import Catalog, is_read
from tidemark.spark.fast_start import class_archive, uses
from tidemark.spark.fast_start.inlining import inlining_clone
from tidemark.spark.java import provide_java
from tidemark.spark.state import StateLock

# Frames are big: a batch is bounded in bytes, not only in records.
ARROW_BATCH_BYTES = 16 * 1024 * 1024
IN_MEMORY = "in-memory"
_IMPLEMENTATION = "spark.sql.catalogImplementation"


class SparkNotStarted(TidemarkError):
    """The embedded Spark did not come up."""


_guard = threading.Lock()
_session = None
_inlining = None
# The Java side, and its class of sessions.
_java_sessions: tuple[Any, Any] | None = None
_catalog: Catalog | None = None
_lock: StateLock | None = None
# The session that is active for a thread: to ask Java each time takes longer than what most callers want of it.
_thread = threading.local()


def session(state_dir: Path, settings: Mapping[str, str], say: Callable[[str], None] = lambda message: None):
    """The session of this process, started on the first call. `settings` are Spark properties that win over ours."""
    global _session, _inlining, _catalog, _lock
    with _guard:
        if _lock is not None and _lock.path.parent != state_dir:
            raise SparkNotStarted(
                f"this process already runs with the state folder {_lock.path.parent}; {state_dir} needs a process of its own"
            )
        if _lock is None:
            lock = StateLock(state_dir)
            lock.acquire(say)
            _lock = lock
        # To ask Java whether its side runs takes a hundred times as long.
        if _session is None or _session.sparkContext._jsc is None:
            if settings.get(_IMPLEMENTATION, IN_MEMORY) == IN_MEMORY:
                _refuse_other_catalog(state_dir)
            _session, _catalog = _start(state_dir, settings)
            _inlining = None
        _make_active(_session)
        return _session


def inlining_session():
    """The second session, for queries whose CTEs may be put in place as they are read (fast_start/inlining.py); `session` was called before."""
    global _inlining
    with _guard:
        if _inlining is None:
            _inlining = inlining_clone(_session) if uses("ctes") else _session
        _make_active(_inlining)
        return _inlining


def forget_inlining_session() -> None:
    """The next one has the settings and temporary views that the session has by then."""
    global _inlining
    with _guard:
        _inlining = None


def forget_files(spark) -> None:
    """A session remembers the files of the tables that it has read, and does not know what another one writes."""
    spark._jsparkSession.sessionState().catalog().invalidateAllCachedTables()


def announce_change(schema: str | None, name: str | None) -> None:
    """The calling thread's next statement changes this table or view and no other; without a schema, nothing that outlives the session."""
    _thread.announced = (schema, name)


def forget_announced_change() -> None:
    """The statement has failed, and the next one is another."""
    _thread.announced = None


def note_statement(statement: str) -> None:
    """What a statement has changed of the catalog outlives the process from here on."""
    announced, _thread.announced = getattr(_thread, "announced", None), None
    if _catalog is None or is_read(statement):
        _thread.announced = announced
    elif announced is None:
        _catalog.write_changes()
    elif announced[0]:
        _catalog.write([announced])


def note_changes() -> None:
    """Whatever has changed of the catalog outlives the process from here on."""
    if _catalog is not None:
        _catalog.write_changes()


def catalog_entry(schema: str | None, name: str) -> dict[str, Any] | None:
    """What is written down of a table or view; None also where Spark's own catalog keeps it."""
    return _catalog.entry(schema, name) if _catalog is not None else None


def keeps_catalog() -> bool:
    """Whether the catalog is written down here, and not in a metastore."""
    return _catalog is not None


def cancel_jobs() -> None:
    """End what Spark is doing, in all threads."""
    if _session is not None:
        _session.sparkContext.cancelAllJobs()


def stop() -> None:
    """End the session and give the state folder back; the next call of `session` starts anew."""
    global _session, _inlining, _catalog, _lock
    with _guard:
        if _session is not None:
            _session.stop()
            _session = _inlining = _catalog = None
        if _lock is not None:
            _lock.release()
            _lock = None


def defaults(state_dir: Path) -> dict[str, str]:
    """The Spark properties of an embedded run, all of them in one place."""
    cores = os.cpu_count() or 2
    return {
        "spark.master": "local[*]",
        "spark.app.name": "tidemark",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        # Not the extraJavaOptions, which are the user's and come behind these: they win.
        "spark.driver.defaultJavaOptions": " ".join(
            [
                "-XX:+UseSerialGC",
                # Runs are short and the heavy work is in Python: the quick compiler alone starts twice as fast. With it alone
                # Java reserves too little room for compiled code, and stops compiling when that is full.
                "-XX:TieredStopAtLevel=1",
                "-XX:ReservedCodeCacheSize=256m",
                "-Duser.timezone=UTC",
                f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}",
                f"-Dtidemark.spark.log={spark_log(state_dir)}",
                *(class_archive.java_options() if uses("classes") else []),
            ]
        ),
        "spark.local.dir": str(state_dir / "scratch"),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.warehouse.dir": str(state_dir / "warehouse"),
        # Written down by us (catalog.py).
        _IMPLEMENTATION: IN_MEMORY,
        # Hadoop starts a process for every file and folder that it makes, to set its mode: no files of checksums, and no marks of success.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # The text of every plan is for the UI, which is off: a short one will do.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.sources.default": "parquet",
        # Re-planning after every stage costs more than it saves on one machine.
        "spark.sql.adaptive.enabled": "false",
        # A run has some hundreds of pieces of generated code, many of them alike: Spark would keep a hundred and compile the others again.
        "spark.sql.codegen.cache.maxEntries": "2000",
        # A partition is replaced as a whole by the run that writes it, the others are left alone.
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BATCH_BYTES),
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        "spark.python.worker.reuse": "true",
    }


def spark_log(state_dir: Path) -> Path:
    """Where Spark's own log goes."""
    return state_dir / "spark.log"


# Holds the start-up file of Spark's Python processes.
WORKER_SITE = Path(__file__).parent / "fast_start" / "worker_site"


def _start(state_dir: Path, settings: Mapping[str, str]):
    fast_start.check()
    if refusal := formats.refusal(settings):
        raise SparkNotStarted(refusal)
    # Workers run the driver's interpreter, whatever `python3` on the PATH is.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(provide_java(state_dir / "java"))
    if uses("workers"):
        _put_first_on_the_path_of_workers(WORKER_SITE)
    for folder in ("warehouse", "scratch"):
        (state_dir / folder).mkdir(parents=True, exist_ok=True)

    from pyspark.errors import PySparkRuntimeError
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from tidemark.spark.registration import register_all

    # It would print every failed query with Java's stack trace; dbt says what failed, and the rest is in Spark's log.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder
    for key, value in {**defaults(state_dir), **formats.implied(settings), **settings}.items():
        builder = builder.config(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        packages = settings.get("spark.jars.packages")
        raise SparkNotStarted(
            f"Spark's Java process ended at once ({error.getCondition() or error}); its own words are above or in {spark_log(state_dir)}. "
            f"JAVA_HOME is {os.environ['JAVA_HOME']}; check {f'whether {packages} can be fetched, ' if packages else ''}spark.driver.memory and the `spark_settings` of the profile"
        ) from None
    except Exception as error:  # py4j wraps every Java failure in one class
        raise SparkNotStarted(_start_up_reason(str(error))) from None
    if missing := formats.missing_class(spark, settings):
        spark.stop()
        raise SparkNotStarted(missing)
    formats.open_catalogs(spark, settings)
    # Spark has put its own in place, whatever was there.
    if (
        threading.current_thread() is threading.main_thread()
        and on_interrupt is not signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, on_interrupt)
    register_all(spark)
    catalog = None
    if spark.conf.get(_IMPLEMENTATION) == IN_MEMORY:
        catalog = Catalog(spark, state_dir / "catalog")
        catalog.restore()
    return spark, catalog


def _put_first_on_the_path_of_workers(folder: Path) -> None:
    others = [
        path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(folder))
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *others])


def _start_up_reason(text: str) -> str:
    """One sentence from a Java stack trace."""
    if "BindException" in text or "Address already in use" in text:
        port = re.search(r"[Pp]ort[ =:]+(\d+)", text)
        which = f"port {port.group(1)} is" if port else "a port it was told to use is"
        return (
            f"Spark did not start: {which} taken by another program. Stop that program, or change or remove "
            f"spark.driver.port / spark.ui.port in the `spark_settings` of the profile"
        )
    first = next(
        (line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")),
        text,
    )
    return f"Spark did not start: {first}"


def _refuse_other_catalog(state_dir: Path) -> None:
    if (state_dir / "metastore").exists() and not (state_dir / "catalog").exists():
        raise SparkNotStarted(
            f"{state_dir} has a Hive metastore, and no catalog of Tidemark's own. If a profile keeps its tables there, use its target; a version before 0.1.0 made such a folder, too, "
            "whose tables this one does not read: then choose another state_dir, and build the tables from the logs again"
        )


def _make_active(spark) -> None:
    """dbt runs models in threads of its own; Spark looks the session up by thread."""
    global _java_sessions
    if getattr(_thread, "session", None) is not spark:
        # Each part of its name is a question to Java.
        if _java_sessions is None or _java_sessions[0] is not spark._jvm:
            _java_sessions = spark._jvm, spark._jvm.org.apache.spark.sql.classic.SparkSession
        _java_sessions[1].setActiveSession(spark._jsparkSession)
        _thread.session = spark
