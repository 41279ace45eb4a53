"""Joining parts: literals, coded words, columns and split numbers give what Python's own formatting gives."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tidemark.encode.parts import Coded, integers, joined, picked, quoted, runs, split_decimal, split_float
from tidemark.wire.floats import go_f, go_g


def rows(parts, count):
    return joined(parts, "NULL").to_pylist() if count else []


def test_literals_are_absorbed_wherever_they_stand():
    chance = random.Random(5)
    for _ in range(200):
        count = chance.randrange(1, 6)
        parts, want = [], [""] * count
        for _ in range(chance.randrange(1, 7)):
            kind = chance.choice("luca")
            if kind == "l":
                part = values = chance.choice(["", ",", '","', "é"])
                values = [part] * count
            elif kind == "u":
                values = [f"{chance.randrange(10**3):03d}" for _ in range(count)]
                part = pa.array(values)
            elif kind == "c":
                words = ["", "a", "bé"]
                index = [chance.randrange(3) for _ in range(count)]
                values = [words[number] for number in index]
                part = Coded(np.array(index), pa.array(words))
            else:
                values = [chance.choice([None, "", "x", "längé"]) for _ in range(count)]
                part = pa.array(values, pa.string())
            parts.append(part)
            want = [
                done + ("NULL" if value is None else value) for done, value in zip(want, values, strict=True)
            ]
        if any(not isinstance(part, str) for part in parts):
            assert rows(parts, count) == want


def test_many_rows_are_joined_in_blocks():
    count = 100_000
    numbers = np.arange(count)
    text = pa.array([None if number % 3 == 0 else f"t{number}" for number in range(count)])
    coded = [Coded(numbers % size, pa.array([f"{size}.{word}" for word in range(size)])) for size in (2, 5)]
    parts = ["<", *coded, *quoted(text, [text], "'"), "|", pa.nulls(count, pa.string()), ">"]
    assert rows(parts, count) == [
        f"<2.{n % 2}5.{n % 5}" + ("NULL" if n % 3 == 0 else f"'t{n}'") + "|NULL>" for n in range(count)
    ]


@pytest.mark.parametrize("numbers", [[0, 1, 2], [7, 7, 9_999], [0, None], [-1, 0, 1], [], [2**64 - 1]])
@pytest.mark.parametrize("times", [1, 5_000])
def test_integers_are_printed(numbers, times):
    kind = pa.uint64() if max(numbers, key=lambda number: number or 0, default=0) == 2**64 - 1 else pa.int64()
    parts = integers(pa.array(numbers * times, kind))
    assert rows(parts, len(numbers)) == ["NULL" if n is None else str(n) for n in numbers * times]


def test_sliced_columns_are_joined_from_their_own_rows():
    column = pa.array(["aa", "bb", "cc", "dd"]).slice(1, 2)
    assert rows(["<", column, ">"], 2) == ["<bb>", "<cc>"]


@pytest.mark.parametrize(("precision", "scale"), [(15, 2), (18, 1), (9, 4), (3, 3)])
def test_split_decimals_read_as_the_number(precision, scale):
    chance = random.Random(scale)
    limit = 10**precision - 1
    numbers = [0, 1, -1, limit, -limit] + [chance.randint(-limit, limit) for _ in range(4 * 10**scale)]
    values = [Decimal(number).scaleb(-scale) for number in numbers]
    array = pa.array(values, pa.decimal128(precision, scale))
    for some, want in ((array, values), (array.slice(3), values[3:])):
        split = split_decimal(some)
        if split is None:
            assert len(some) < 4 * 10**scale
            continue
        assert joined(split, "").to_pylist() == [f"{value:.{scale}f}" for value in want]


@pytest.mark.parametrize(
    "array",
    [pa.array([Decimal(1)] * 5000, pa.decimal128(19, 2)), pa.array([Decimal(1)] * 300, pa.decimal128(15, 2))],
)
def test_decimals_of_too_many_digits_or_in_too_few_rows_are_not_split(array):
    assert split_decimal(array) is None


@pytest.mark.parametrize("text", ["-1.50", "0.00", "99999.25"])
def test_split_numbers_with_null_have_no_quotes_there(text):
    decimals = pa.array([None, Decimal(text)] * 3000, pa.decimal128(15, 2))
    floats = pa.array([None, float(text)] * 3000)
    for array, split, want in (
        (decimals, split_decimal(decimals), text),
        (floats, split_float(floats), go_f(floats)[1].as_py()),
    ):
        assert rows(quoted(array, split, '"'), 2) == ["NULL", f'"{want}"'] * 3000


def test_picked_rows_of_a_column_keep_their_null():
    text = pa.array(["a", None, "c"])
    rows_wanted = np.array([2, 1, 1, 0])
    parts = ["<", *picked(quoted(text, [text], "'"), rows_wanted), ">"]
    assert rows(parts, 4) == ["<'c'>", "<NULL>", "<NULL>", "<'a'>"]


def test_split_floats_are_the_shortest_text():
    chance = random.Random(3)
    values = [0.0, -0.0, 0.001, -0.5, 999999.999, 100.0] + [
        chance.choice([-1, 1]) * chance.randrange(10**9) / 1000 for _ in range(5000)
    ]
    array = pa.array(values)
    split = joined(split_float(array), "").to_pylist()
    assert split == go_g(array).to_pylist() == go_f(array).to_pylist()


@pytest.mark.parametrize("odd", [0.0001, 1e6, 1e300, 1 / 3, float("nan"), float("inf")])
def test_floats_of_more_decimals_or_digits_are_not_split(odd):
    assert split_float(pa.array([1.5] * 5000 + [odd])) is None


def test_runs_are_found_over_several_columns():
    first, run = runs(np.array([1, 1, 2, 2, 2]), np.array([7, 7, 7, 8, 8]))
    assert first.tolist() == [0, 2, 3]
    assert run.tolist() == [0, 0, 1, 2, 2]
