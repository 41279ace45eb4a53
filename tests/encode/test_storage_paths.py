"""Paths below the prefix: those of the reference, and names that try to leave it."""

from datetime import timedelta, timezone
from pathlib import PurePosixPath

import pytest

from support import jsonl
from tidemark.encode import paths
from tidemark.encode.errors import InvalidFileName, UnsafePath

CASES = jsonl("storage/path_cases.jsonl")
HOSTILE = [
    "../x",
    "..",
    ".",
    "...",
    "/",
    "/etc",
    "a/b",
    "a//b",
    "a\0b",
    "a\\b",
    "%2e%2e",
    "a%b",
    "a\nb",
    "\x7f",
    "é日本",
    "meta",
    "a b",
    "CDC.index",
]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["fn"] == "parse_file_name"], ids=lambda case: case["name"]
)
def test_file_names_are_read_as_the_reference_does(case):
    if "error" in case:
        with pytest.raises(InvalidFileName):
            paths.parse_file_name(case["name"], case["extension"])
    else:
        parsed = paths.parse_file_name(case["name"], case["extension"])
        assert (parsed.index, parsed.dispatcher) == (int(case["index"]), case["dispatcher"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["fn"] == "dml_path"], ids=lambda case: case["path"]
)
def test_data_and_index_paths_are_those_of_the_reference(case):
    folder = paths.DataFolder(
        case["schema"],
        case["table"],
        int(case["version"]),
        case["partition"] or None,
        case["date"],
        case["table_id"] if case["table_id_path"] else None,
    )
    index, width, dispatcher = int(case["index"]), case["width"], case["dispatcher"]
    assert paths.data_file(folder, index, ".csv", width, dispatcher, encode=False) == case["path"]
    assert paths.index_file(folder, dispatcher, encode=False) == case["index_path"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["fn"] == "is_schema_file"], ids=lambda case: case["path"]
)
def test_schema_files_are_told_from_others(case):
    assert paths.is_schema_file(case["path"]) == case["result"]


@pytest.mark.parametrize("name", HOSTILE)
def test_every_name_is_one_folder_that_can_be_read_back(name):
    folder = paths.folder_name(name)
    assert "/" not in folder
    assert "\0" not in folder
    assert folder not in (".", "..")
    assert paths.name_of_folder(folder) == name


def test_no_two_names_share_a_folder():
    assert len({paths.folder_name(name) for name in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("schema", HOSTILE)
@pytest.mark.parametrize("table", ["../../x", "t"])
def test_no_path_leaves_the_prefix(schema, table):
    folder = paths.DataFolder(schema, table, 5)
    for path in (
        paths.data_file(folder, 1, ".csv", 6),
        paths.index_file(folder),
        paths.schema_file(schema, table, 5, 1),
    ):
        parts = PurePosixPath(path).parts
        assert not path.startswith("/")
        assert ".." not in parts
        assert parts[:2] == (paths.folder_name(schema), paths.folder_name(table))


@pytest.mark.parametrize("name", ["../x", "..", ".", "/", "/etc", "a//b", "a/../b", "a/", "a\0b", ""])
def test_ticdc_names_that_would_leave_their_folder_are_refused(name):
    with pytest.raises(UnsafePath):
        paths.folder_name(name, encode=False)


def test_ordinary_names_stay_as_they_are():
    for name in ("orders", "a b", "日本", "a.b", "$x-1", ".hidden"):
        assert paths.folder_name(name) == paths.folder_name(name, encode=False) == name


def test_names_that_no_file_system_takes_are_refused():
    for encode in (True, False):
        assert paths.folder_name("x" * 255, encode=encode)
        with pytest.raises(UnsafePath, match="255"):
            paths.folder_name("é" * 128, encode=encode)
    with pytest.raises(UnsafePath):
        paths.folder_name("/" * 86)


def test_names_that_are_no_utf8_are_encoded():
    name = b"a\xff".decode("utf-8", "surrogateescape")
    assert paths.folder_name(name) == "a%FF"
    assert paths.name_of_folder("a%FF") == name


@pytest.mark.parametrize("encode", [True, False])
@pytest.mark.parametrize("name", ["\ud800", "a\udbff", "\ude00b"])
def test_half_of_a_surrogate_pair_is_refused(name, encode):
    with pytest.raises(UnsafePath, match="surrogate pair"):
        paths.folder_name(name, encode=encode)


def test_the_date_is_that_of_the_commit_ts():
    ts = 1_700_000_000_000 << 18  # 2023-11-14 22:13:20 UTC
    assert [paths.date_folder(ts, separator) for separator in ("none", "year", "month", "day")] == [
        "",
        "2023",
        "2023-11",
        "2023-11-14",
    ]
    assert paths.date_folder(ts, "day", timezone(timedelta(hours=8))) == "2023-11-15"


def test_table_id_paths_have_no_schema_and_no_partition():
    assert paths.data_folder(paths.DataFolder("s", "t", 9, 13, "2023", 77)) == "77/9/2023"
    assert paths.schema_file("s", "t", 9, 1, 77) == "77/meta/schema_9_0000000001.json"
    assert paths.schema_file("s", "", 9, 1, 77) == "s/meta/schema_9_0000000001.json"


def test_a_schema_file_path_is_read_back():
    assert paths.parse_schema_file("s/t/meta/schema_9_0000000123.json") == (9, 123)
    with pytest.raises(InvalidFileName):
        paths.parse_schema_file("s/t/schema_9_0000000123.json")


@pytest.mark.parametrize("dispatcher", ["../x", "a/b", "a\0"])
def test_a_dispatcher_id_cannot_lead_elsewhere(dispatcher):
    with pytest.raises(UnsafePath):
        paths.file_name(1, ".csv", 6, dispatcher)
