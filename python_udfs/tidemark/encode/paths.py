"""Where a storage sink keeps what: pure functions from names and numbers to paths below the prefix.

    data    {schema}/{table}/{version}[/{partition}][/{date}]/CDC{number}.{extension}
    index   the same folder, meta/CDC.index
    schema  {schema}[/{table}]/meta/schema_{version}_{hash}.json
    with table-id paths, {table id} instead of {schema}/{table} and no partition folder; with tables across nodes,
    CDC_{dispatcher}_{number} and meta/CDC_{dispatcher}.index

Names. A schema or table name is one folder whatever it is called, and the name can be read back from it: `/`, `\\`, `%`, control characters
and bytes that are no UTF-8 are written as %XX, and a name of dots only as %2E each. So nothing leaves the prefix and no two names share a
folder. With `compat: ticdc` names are written as TiCDC writes them, as they are; those that would leave their place (empty, `.`, `..` as a
folder, a leading or double `/`, NUL) are refused. Folder names above 255 bytes, which no file system takes, are refused too. A schema that is called
like something else that stands at the top of a tree (`metadata`, the sink's work folder; never mind the case) is written with its first character as %XX, and
refused with `compat: ticdc`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from urllib.parse import unquote_to_bytes

from tidemark.encode.errors import InvalidFileName, UnsafePath

METADATA = "metadata"
# Where a writer keeps what is not part of the tree yet.
WORK = ".tidemark-staging"
# What Tidemark has published (sinks/storage/record.py). Consumers look for names that end in .csv or .json.
RECORD = ".tidemark-published"
# The schemas of Avro messages, where the sink URI names no registry.
REGISTRY = ".tidemark-registry"
MIN_INDEX_DIGITS = 6
MAX_FOLDER_BYTES = 255

_META = "meta"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\%\udc80-\udcff]")
# Bytes that are no UTF-8 are U+DC80 to U+DCFF here; the other halves stand for nothing.
_HALF_PAIR = re.compile(r"[\ud800-\udc7f\udd00-\udfff]")
_DATE_FORMATS = {"none": "", "year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d"}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The low bits of a ts count within a millisecond.
_TS_LOGICAL_BITS = 18

_FILE_NAME = re.compile(
    rf"CDC(?:_(?P<dispatcher>[^/]+)_)?(?P<index>\d{{{MIN_INDEX_DIGITS},}})(?P<extension>\.[^/.]+)", re.ASCII
)
_SCHEMA_FILE = re.compile(r"(?:^|/)meta/schema_(?P<version>\d+)_(?P<checksum>\d{10})\.json$", re.ASCII)


@dataclass(frozen=True)
class DataFolder:
    """The folder of the data files of one table version (and partition, and date)."""

    schema: str
    table: str
    version: int
    # Physical table id of a partition, when partitions have folders of their own.
    partition: int | None = None
    date: str = ""
    # Takes the place of schema, table and partition.
    table_id: int | None = None


@dataclass(frozen=True)
class FileName:
    index: int
    # "" unless tables are written across nodes.
    dispatcher: str
    extension: str


def folder_name(name: str, *, encode: bool = True) -> str:
    """A schema or table name as a folder; `encode=False` as TiCDC does."""
    where = f"the name {name!r:.80}"
    if not name:
        raise UnsafePath("an empty schema or table name cannot be a folder")
    if _HALF_PAIR.search(name):
        raise UnsafePath(f"{where} has half of a surrogate pair, which is no text; use a table filter")
    if encode:
        folder = _UNSAFE.sub(_percent, name)
        folder = folder.replace(".", "%2E") if not folder.strip(".") else folder
    else:
        folder = name
        if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
            raise UnsafePath(
                f"{where} would leave its folder; use compat design, which encodes it, or a table filter"
            )
    if max(len(part.encode("utf-8", "surrogateescape")) for part in folder.split("/")) > MAX_FOLDER_BYTES:
        raise UnsafePath(f"{where} takes more than {MAX_FOLDER_BYTES} bytes as a folder; use table-id paths")
    return folder


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "surrogateescape"))


def _schema_folder(schema: str, encode: bool) -> str:
    folder = folder_name(schema, encode=encode)
    if folder.casefold() not in (METADATA, WORK, RECORD, REGISTRY):
        return folder
    if not encode:
        raise UnsafePath(
            f"schema {schema!r} is called like a part of the tree itself; use compat design, which encodes it, or a table filter"
        )
    return f"%{ord(folder[0]):02X}{folder[1:]}"


def name_of_folder(folder: str) -> str:
    """The schema or table name that `folder_name` made this folder of."""
    return unquote_to_bytes(folder).decode("utf-8", "surrogateescape")


def date_folder(commit_ts: int, separator: str, zone: tzinfo = timezone.utc) -> str:
    """The date of a commit ts: `2023`, `2023-05`, `2023-05-09` or nothing."""
    if not _DATE_FORMATS[separator]:
        return ""
    moment = _EPOCH + timedelta(milliseconds=commit_ts >> _TS_LOGICAL_BITS)
    return moment.astimezone(zone).strftime(_DATE_FORMATS[separator])


def data_folder(folder: DataFolder, *, encode: bool = True) -> str:
    parts = _table_folder(folder.schema, folder.table, folder.table_id, encode)
    parts.append(str(folder.version))
    if folder.partition is not None and folder.table_id is None:
        parts.append(str(folder.partition))
    if folder.date:
        parts.append(folder.date)
    return "/".join(parts)


def data_file(
    folder: DataFolder, index: int, extension: str, digits: int, dispatcher: str = "", *, encode: bool = True
) -> str:
    """The path of data file number `index`; `dispatcher` with tables across nodes."""
    return f"{data_folder(folder, encode=encode)}/{file_name(index, extension, digits, dispatcher)}"


def index_file(folder: DataFolder, dispatcher: str = "", *, encode: bool = True) -> str:
    """The path of the file that holds the name of the last data file."""
    name = f"CDC_{_checked(dispatcher)}.index" if dispatcher else "CDC.index"
    return f"{data_folder(folder, encode=encode)}/{_META}/{name}"


def file_name(index: int, extension: str, digits: int, dispatcher: str = "") -> str:
    number = f"{index:0{digits}d}{extension}"
    return f"CDC_{_checked(dispatcher)}_{number}" if dispatcher else f"CDC{number}"


def _checked(dispatcher: str) -> str:
    if "/" in dispatcher or "\0" in dispatcher:
        raise UnsafePath(f"dispatcher id {dispatcher!r:.80} cannot be part of a file name")
    return dispatcher


def parse_file_name(name: str, extension: str) -> FileName:
    """What a data file's name says."""
    match = _FILE_NAME.fullmatch(name)
    if match is None or match["extension"] != extension:
        raise InvalidFileName(
            f"{name!r:.120} is not the name of a data file; expected CDC{'0' * (MIN_INDEX_DIGITS - 1)}1{extension}"
        )
    return FileName(int(match["index"]), match["dispatcher"] or "", extension)


def schema_file(
    schema: str, table: str, version: int, checksum: int, table_id: int | None = None, *, encode: bool = True
) -> str:
    """The path of a schema file; `table` is "" for a database. With `table_id`, a table's file is below its id."""
    if not schema or version <= 0:
        raise UnsafePath(f"a schema file needs a schema name and a version, not {schema!r} and {version}")
    parts = _table_folder(schema, table, table_id, encode) if table else [_schema_folder(schema, encode)]
    return "/".join([*parts, _META, schema_file_name(version, checksum)])


def schema_file_name(version: int, checksum: int) -> str:
    return f"schema_{version}_{checksum:010d}.json"


def _table_folder(schema: str, table: str, table_id: int | None, encode: bool) -> list[str]:
    if table_id is None:
        return [_schema_folder(schema, encode), folder_name(table, encode=encode)]
    if table_id <= 0:
        raise UnsafePath(f"table id {table_id} cannot be a folder")
    return [str(table_id)]


def is_schema_file(path: str) -> bool:
    return _SCHEMA_FILE.search(path) is not None


def parse_schema_file(path: str) -> tuple[int, int]:
    """(version, checksum) of a schema file's path."""
    match = _SCHEMA_FILE.search(path)
    if match is None:
        raise InvalidFileName(
            f"{path!r:.200} is not the path of a schema file; expected …/meta/schema_VERSION_HASH.json"
        )
    return int(match["version"]), int(match["checksum"])
