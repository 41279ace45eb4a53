"""The Java classes of a run in one file, which Java maps into memory instead of finding, reading and checking each of them in hundreds of jars.

    python -m tidemark.spark.fast_start.class_archive      writes the file for this environment; `make setup` does that once

Java checks that the file fits its own version and the jars, and goes on without it where it does not.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tidemark.errors import TidemarkError

_QUIET = "-Xlog:cds*=off"


class ArchiveNotWritten(TidemarkError):
    """Java left no archive of its classes."""


def archive_path() -> Path:
    """Where the archive of this environment is, once it is written."""
    return Path(sys.prefix) / "share" / "tidemark" / "java-classes.jsa"


def java_options() -> list[str]:
    path = archive_path()
    return [f"-XX:SharedArchiveFile={path}", _QUIET] if path.exists() else []


def write_archive(path: Path) -> None:
    """Run what every run does, and let Java note the classes that it loads."""
    from tidemark.spark import session

    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)
        # Java takes either an archive to use or one to write.
        used, options = java_options(), session.defaults(state_dir)["spark.driver.defaultJavaOptions"]
        options = " ".join(option for option in options.split() if option not in used)
        settings = {
            "spark.driver.defaultJavaOptions": f"{options} -XX:ArchiveClassesAtExit={beside} {_QUIET}"
        }
        spark = session.session(state_dir, settings)
        for statement in _STATEMENTS:
            spark.sql(statement).collect()
        gateway = spark.sparkContext._gateway
        session.stop()
        gateway.shutdown()
        # Java ends when its input does, and writes the archive then.
        gateway.proc.stdin.close()
        gateway.proc.wait()
    if not beside.exists():
        raise ArchiveNotWritten(
            f"Java wrote no archive of its classes to {path.parent}; Tidemark works without it"
        )
    beside.replace(path)


# The kinds of statements that the models are made of: tables by partition, views, aggregates, joins, windows, functions of ours.
_STATEMENTS = (
    "create schema if not exists warm",
    "create table warm.numbers using parquet partitioned by (batch_id) as "
    "select cast(id as string) as name, array(struct(id, 'x' as text)) as items, id as batch_id from range(2)",
    "insert overwrite table warm.numbers partition (batch_id) select name, items, batch_id + 1 from warm.numbers",
    "alter table warm.numbers add if not exists partition (batch_id = 9)",
    "create or replace view warm.shown tblproperties ('version' = '1') as select * from warm.numbers",
    "show partitions warm.numbers",
    "show tblproperties warm.shown",
    "show tables in warm like 'n*'",
    "describe table extended warm.numbers",
    "show table extended in warm like '*'",
    "select tidemark_header(cast('x' as binary), 1L) as header",
    "select name, max(struct(batch_id, items)) as latest, row_number() over (order by name) as place from warm.shown "
    "left join (select name as other, collect_set(batch_id) as ids from warm.shown group by name) on name = other "
    "where batch_id = (select max(batch_id) from warm.shown) group by name",
    "select filter(transform(items, item -> item.id), id -> id > 0), explode(items), from_json('{}', 'a int') from warm.shown",
    "drop view warm.shown",
    "drop table warm.numbers",
)


if __name__ == "__main__":
    try:
        write_archive(archive_path())
    except TidemarkError as error:
        sys.exit(str(error))
