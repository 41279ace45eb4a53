"""The vars that say how long something is kept."""

import pytest

from tidemark.config.project_vars import check_project_vars


@pytest.mark.parametrize("name", ["keep_row_changes", "keep_events"])
@pytest.mark.parametrize("value", ["all", "30d", "0s", "12h", "90m", "2w"])
def test_a_time_to_keep_is_all_or_a_number_with_a_unit(name, value):
    assert check_project_vars({}, {name: value}, {}) == []


@pytest.mark.parametrize("value", ["30", 30, "d", "1.5d", "-1d", "30 d", "30D", "forever", "", "30d "])
def test_any_other_time_is_refused_by_name(value):
    (finding,) = check_project_vars({}, {"keep_row_changes": value}, {})
    assert finding.key == "keep_row_changes"
    assert "all, or a whole number with s, m, h, d or w, such as 30d" in str(finding)


@pytest.mark.parametrize("value", ["file:///tree", [1], {"a": "b"}])
def test_retired_sinks_are_a_list_of_texts(value):
    (finding,) = check_project_vars({}, {"retired_sinks": value}, {})
    assert finding.key == "retired_sinks"


def test_a_slip_in_a_name_is_pointed_out():
    (finding,) = check_project_vars({}, {"keep_row_change": "1d"}, {})
    assert "keep_row_changes" in str(finding)
