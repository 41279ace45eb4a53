"""Go's regular expressions where they differ from Python's."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.dispatch.go_regexp import GoRegexp
from tidemark.dispatch.go_regexp_parser import RegexpError


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "x", True),
        ("a|", "", True),
        ("^$", "", True),
        ("a$", "a\n", False),
        (r"a\z", "a", True),
        (r"\Aa", "ba", False),
        ("(?m)^b$", "a\nb\nc", True),
        ("^b$", "a\nb\nc", False),
        (".", "\n", False),
        ("(?s).", "\n", True),
        (r"\d", "٣", False),
        (r"^\w+$", "é", False),
        (r"\s", "\v", False),
        (r"\bfoo\b", "a foo b", True),
        (r"\bfoo\b", "éfoo", True),
        (r"\Bo", "foo", True),
        ("a{2,3}$", "aaaa", True),
        ("^a{2,3}$", "aaaa", False),
        ("^(a{2}){2}$", "aaaa", True),
        ("^a{,2}$", "a{,2}", True),
        ("a{", "a{", True),
        ("^a{02}$", "aa", False),
        ("^a{0}b{1,}$", "bbb", True),
        ("^(?:ab)+?c$", "ababc", True),
        ("(?i)straSSe", "STRASSE", True),
        ("(?i)k", "\u212a", True),
        ("(?i)[k-l]", "\u212a", True),
        ("(?i)s", "\u017f", True),
        ("(?i)i", "\u0131", False),
        ("(?i)[^a]", "A", False),
        ("(?i:a)b", "Ab", True),
        ("(?i:a)b", "AB", False),
        ("a(?i)b|c", "C", True),
        ("(?i)a(?-i)b", "AB", False),
        (r"[\d_]", "_", True),
        (r"[^\d]", "5", False),
        ("[]a]", "]", True),
        ("[^]a]", "]", False),
        ("[a-]", "-", True),
        ("[-a]", "-", True),
        ("[[:alpha:]]", "x", True),
        ("[[:^alpha:]]", "x", False),
        (r"[\x41-\x{43}]", "B", True),
        (r"\x{1F600}", "😀", True),
        (r"\101", "A", True),
        (r"\0", "\0", True),
        (r"\Qa.b\E+", "a.bb", True),
        (r"\Qa.b", "axb", False),
        (r"\pL", "表", True),
        (r"\p{Lu}", "a", False),
        (r"\PL", "5", True),
        (r"[\p{Nd}x]", "٣", True),
        ("(?P<n>a)(?<m>b)", "ab", True),
        ("^(a|b)*c$", "ababc", True),
        (r"a\/b", "a/b", True),
        (r"\_", "_", True),
        ("[a-c-e]", "-", True),
        ("[a-c-e]", "d", False),
        ("a(?)b", "ab", True),
        (r"(?i)\W", "k", False),
        (r"(?i)[\W]", "\u212a", False),
        (r"\W", "\u212a", True),
        (r"(?i)\PL", "a", False),
        ("(?i)[[:^upper:]]", "a", False),
    ],
)
def test_match(pattern, text, expected):
    assert GoRegexp(pattern).search(text) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[a", "[b-a]", "[a-\\d]", "*", "+a", "a**", "a*+", "a++", "a{2}{3}", "a{1001}", "a{" + "9" * 5000 + "}", "a{3,2}", "(a{100}){100}",
        r"\1", r"(a)\1", "\\", r"\Z", r"\y", r"\8", r"\x", r"\x{110000}", r"\pX", r"\p{Klingon}", "(?=a)", "(?!a)", "(?<=a)", "(?>a)",
        "(?#c)", "(?x)a", "(?-)", "(?P<>a)", "(?P<a-b>c)", "(?P<n>a)(?P<n>b)", "[[:foo:]]", "(" * 500,
    ],
)  # fmt: skip
def test_what_go_refuses(pattern):
    with pytest.raises(RegexpError):
        GoRegexp(pattern)


def test_ignore_case_covers_the_whole_pattern():
    assert GoRegexp("^foo|BAR$", ignore_case=True).search("xbar")
    assert not GoRegexp("^foo|BAR$").search("xbar")


def test_no_pattern_takes_exponential_time():
    assert not GoRegexp("^(a+)+$").search("a" * 64 + "b")
    assert not GoRegexp("(a?){30}b").search("a" * 64)


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "(?:a|b)", "(?:ab)", "^", "$"])
PATTERNS = st.lists(st.tuples(ATOMS, st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}"])), max_size=6)


@given(PATTERNS, st.text(alphabet="abc", max_size=8))
@settings(max_examples=300, deadline=None)
def test_same_answer_as_python_where_the_languages_agree(parts, text):
    # Python refuses to repeat an anchor.
    pattern = "".join(atom if atom in "^$" else atom + repeat for atom, repeat in parts)
    assert GoRegexp(pattern).search(text) == (re.search(pattern.replace("$", r"\Z"), text) is not None)
