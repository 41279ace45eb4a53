"""The list of tests that have passed, and which queries give the same rows each time."""

import pytest

from dbt.adapters.tidemark.passed_tests import PassedTests
from dbt.adapters.tidemark.states import StateMethods


def test_the_last_line_of_a_test_counts(tmp_path):
    path = tmp_path / "state" / "passed_tests.jsonl"
    passed = PassedTests(path)
    passed.note("a", {"state": "1"})
    passed.note("b", {"state": "1"})
    passed.note("a", {"state": "2"})
    passed.note("b", None)
    assert passed.get("b") is None
    again = PassedTests(path)
    assert (again.get("a"), again.get("b"), again.get("c")) == ({"state": "2"}, None, None)


def test_a_line_that_was_not_finished_is_as_if_the_test_had_not_passed(tmp_path):
    path = tmp_path / "passed_tests.jsonl"
    PassedTests(path).note("a", {"state": "1"})
    path.write_text(path.read_text() + '["b", {"sta')
    passed = PassedTests(path)
    passed.note("c", {"state": "1"})
    again = PassedTests(path)
    assert [again.get(test) for test in "abc"] == [{"state": "1"}, None, {"state": "1"}]


def test_lines_that_are_damaged_are_as_if_their_tests_had_not_passed(tmp_path):
    path = tmp_path / "passed_tests.jsonl"
    PassedTests(path).note("a", {"state": "1"})
    path.write_bytes(b'\xff\xfe\n5\n"ab"\n["c", "ab"]\n[["d"], {}]\n' + path.read_bytes())
    again = PassedTests(path)
    assert [again.get(test) for test in "abcd"] == [{"state": "1"}, None, None, None]


def test_the_file_grows_with_the_tests_and_not_with_the_runs(tmp_path):
    path = tmp_path / "passed_tests.jsonl"
    for run in range(20):
        passed = PassedTests(path)
        for test in range(10):
            passed.note(str(test), None)
            passed.note(str(test), {"state": str(run)})
    assert len(path.read_text().splitlines()) < 200
    assert PassedTests(path).get("7") == {"state": "19"}


@pytest.mark.parametrize(
    ("sql", "is_steady"),
    [
        ("select 1 -- what is there now, by user", True),
        ("select unix_timestamp(written_at) from t", True),
        ("select now()", False),
        ("select current_date", False),
        ("select unix_timestamp( )", False),
        ("select timestamp'today'", False),
        ("select rand ()", False),
    ],
)
def test_a_query_that_asks_for_the_time_is_not_steady(sql, is_steady):
    assert StateMethods.is_steady(None, sql) is is_steady
