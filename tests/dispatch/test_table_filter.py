"""TiDB's table filter: golden vectors, then a test per rule."""

import pickle

import pytest

from support import jsonl
from tidemark.dispatch import TableFilter, TableFilterError

VECTORS = jsonl("dispatch/table_filter.jsonl")


@pytest.mark.parametrize("case", [case for case in VECTORS if "error" not in case])
def test_vector(case):
    exact = TableFilter(case["rules"], case_sensitive=True)
    folded = TableFilter(case["rules"], case_sensitive=False)
    assert exact.matches(case["schema"], case["table"]) == case["match"]
    assert folded.matches(case["schema"], case["table"]) == case["match_case_insensitive"]
    assert exact.matches_schema(case["schema"]) == case["match_schema"]


@pytest.mark.parametrize(
    "case", [case for case in VECTORS if "error" in case], ids=lambda case: str(case["rules"])
)
def test_vector_error(case):
    with pytest.raises(TableFilterError) as caught:
        TableFilter(case["rules"])
    assert str(caught.value).lower() == case["error"].lower()


def taken(rules, *names, case_sensitive=True):
    made = TableFilter(rules, case_sensitive=case_sensitive)
    return [name for name in names if made.matches(*name.split("|"))]


def test_no_rule_takes_no_table():
    assert taken([], "a|b") == taken(None, "a|b") == taken(["", "# x", " \t"], "a|b") == []


def test_the_last_rule_that_matches_wins():
    assert taken(
        ["db*.*", "!*.cfg*", "*.cfgsample"], "x|t", "db1|t", "db1|cfg1", "db1|cfgsample", "y|cfgsample"
    ) == [
        "db1|t",
        "db1|cfgsample",
        "y|cfgsample",
    ]


def test_wildcards():
    assert taken(["a?b*.t[0-9]"], "axb|t1", "axbyy|t9", "ab|t1", "axb|t10", "axb|ta") == [
        "axb|t1",
        "axbyy|t9",
    ]


def test_character_classes_may_be_inverted_and_hold_a_caret():
    assert taken(["[!a-z].[^a-z]"], "!|z", "!|^", "!|9", "a|z", "1|^") == ["!|z", "!|^", "1|^"]


def test_wildcards_take_line_breaks_and_the_whole_name():
    assert taken(["a*.b?"], "a\nx|b\n", "a|b1\n") == ["a\nx|b\n"]


def test_quotes_take_everything_literally():
    assert taken(
        ['"some ""quoted""".`a``?`'], 'some "quoted"|a`?', 'some "quoted"|a`x', 'some ""quoted""|a`?'
    ) == ['some "quoted"|a`?']


def test_escapes():
    assert taken([r"\\\..*"], r"\.|a", r"\\\.|a", r"\a|a") == [r"\.|a"]
    assert taken([r"a\-b*.\*"], "a-bc|*", "a-bc|x") == ["a-bc|*"]
    assert taken([r"\表*.x"], "表1|x") == ["表1|x"]


def test_special_characters_of_regexp_are_literal_in_wildcards():
    assert taken(["a$*.b"], "a$c|b", "a|b") == ["a$c|b"]


def test_regular_expressions_match_anywhere():
    assert taken(["/b/./^c$/"], "abc|c", "abc|cc", "ac|c", "abc|c\n") == ["abc|c"]


def test_a_slash_inside_a_regular_expression_is_escaped():
    assert taken([r"/a\/b/.x"], "a/b|x", "ab|x") == ["a/b|x"]


def test_case_does_not_count_when_asked():
    assert taken(["BAR.*", "!/^Foo/./x$/", "`Q`.T"], "bar|a", "Bar|a", "q|t", case_sensitive=False) == [
        "bar|a",
        "Bar|a",
        "q|t",
    ]
    assert taken(["*.*", "!/FOO/.[A-C]"], "foo1|b", "foo1|d", case_sensitive=False) == ["foo1|d"]


def test_lower_case_is_rune_by_rune_as_in_go():
    assert taken(["`ΑΣ`.x"], "ας|x", "ασ|x", case_sensitive=False) == ["ασ|x"]


def test_schema_is_refused_only_when_all_its_tables_are():
    made = TableFilter(["*.*", "!a.*", "!b.t", "!FOO*.*"], case_sensitive=False)
    assert [made.matches_schema(name) for name in ("a", "A", "b", "foo1", "c")] == [
        False,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "/^t((?!_copy).)*$/.*",
            "invalid pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
        ),
        (
            "/^t(?=copy)/.*",
            "invalid pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
        ),
        ("a%b.c", "unexpected special character '%'"),
        (r"a\tb.c", r"cannot escape a letter or number (\t), it is reserved for future extension"),
        ("[].*", "syntax error: failed to parse character class"),
        ("[!].*", "invalid pattern: error parsing regexp: missing closing ]"),
        ("[.*", "syntax error: failed to parse character class"),
        (r"[\d\D].*", "syntax error: failed to parse character class"),
        ("[z-a].*", "invalid pattern: error parsing regexp: invalid character class range: `z-a`"),
        ("[[:alpha:]].*", "unexpected special character ']'"),
        ("[[:alpha:].*", "invalid pattern: error parsing regexp: missing closing ]"),
        ("db.", "syntax error: missing pattern"),
        ("!", "syntax error: missing pattern"),
        ("`db`*.*", "syntax error: missing '.' between schema and table patterns"),
        ("/db.*", "syntax error: incomplete regexp"),
        ("//.x", "syntax error: incomplete regexp"),
        ("/a\\/", "invalid pattern: error parsing regexp: trailing backslash at end of expression"),
        ("`db.*", "syntax error: incomplete quoted identifier"),
        ('"db.*', "syntax error: incomplete quoted identifier"),
        ('"".x', "syntax error: incomplete quoted identifier"),
        ("db\\", "syntax error: cannot place \\ at end of line"),
        ("db.tbl#not comment", "unexpected special character '#'"),
    ],
)
def test_bad_rules(rule, message):
    with pytest.raises(ValueError, match="at <cmdline>:1: ") as caught:
        TableFilter([rule])
    assert str(caught.value).removeprefix("at <cmdline>:1: ").startswith(message)


def test_rule_files(tmp_path):
    first, second = tmp_path / "1.txt", tmp_path / "2.txt"
    first.write_bytes(b"\n\t\tdb?.tbl?\r\n# comment\n\tdb02.tbl02")
    second.write_text("db03.tbl03\n!db4.tbl4\n")
    rules = [f"@{first}", f"@{second}", "db04.tbl04"]
    assert taken(rules, "db1|tbl1", "db4|tbl4", "db01|tbl01", "db02|tbl02", "db03|tbl03", "db04|tbl04") == [
        "db1|tbl1",
        "db02|tbl02",
        "db03|tbl03",
        "db04|tbl04",
    ]


def test_rule_files_name_file_and_line_of_an_error(tmp_path):
    inner, outer, bad = tmp_path / "3.txt", tmp_path / "4.txt", tmp_path / "5.txt"
    inner.write_text("db1.tbl1")
    outer.write_text(f"# comment\n\n@{inner}")
    bad.write_text("a.b\nc")
    with pytest.raises(
        TableFilterError, match=r"4\.txt:3: importing filter files recursively is not allowed"
    ):
        TableFilter([f"@{outer}"])
    with pytest.raises(TableFilterError, match=r"5\.txt:2: wrong table pattern"):
        TableFilter([f"@{bad}"])
    with pytest.raises(TableFilterError, match=r"<cmdline>:1: cannot open filter file: open .*6\.txt"):
        TableFilter([f"@{tmp_path}/6.txt"])


def test_a_filter_travels_to_another_process():
    made = pickle.loads(pickle.dumps(TableFilter(["a*.b", "!/x$/.y"])))
    assert made.matches("ab", "b")
