"""Floating point numbers as text, the way Go prints them.

`go_g` is Go's `%g` with the fewest digits that read back: an exponent of at least two digits when the decimal exponent is below -4 or above 5.
`go_f` is Go's 'f' format: never an exponent. `go_json` is that of Go's JSON: an exponent below 1e-6 and from 1e21 on. All take whole arrays.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Decimal exponents of float64: 5e-324 to 1.8e308.
_LOWEST, _HIGHEST = -324, 308
_NOT_FINITE = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}


def go_g(array: pa.Array) -> pa.StringArray:
    text, size = _shortest(array)
    odd = ((size < array.type.to_pandas_dtype()(1e-4)) | (size >= 1e6)) & (size != 0)
    return _replace(text, odd, _scientific) if odd.any() else text


def go_f(array: pa.Array) -> pa.StringArray:
    text, size = _shortest(array)
    return _positional_only(text, np.ones(len(size), bool))


def _positional_only(text: pa.StringArray, which: np.ndarray) -> pa.StringArray:
    """The same numbers without an exponent, where `which` is set."""
    odd = which & pc.fill_null(pc.match_substring(text, "e"), False).to_numpy(zero_copy_only=False)
    return _replace(text, odd, _positional) if odd.any() else text


def go_json(array: pa.Array) -> pa.StringArray:
    text, size = _shortest(array)
    odd = ((size < array.type.to_pandas_dtype()(1e-6)) | (size >= 1e21)) & (size != 0)
    plain = _positional_only(text, ~odd)
    return _replace(plain, odd, _scientific) if odd.any() else plain


def _shortest(array: pa.Array) -> tuple[pa.StringArray, np.ndarray]:
    """Arrow's shortest text, and absolute values with 0 for NULL and for what is not finite."""
    text = pc.cast(array, pa.string())
    size = np.abs(array.fill_null(0).to_numpy(zero_copy_only=False))
    finite = np.isfinite(size)
    if not finite.all():
        text = _replace(
            text, ~finite, lambda words: pa.array([_NOT_FINITE[word] for word in words.to_pylist()])
        )
        size = np.where(finite, size, 0)
    return text, size


def _replace(text: pa.StringArray, which: np.ndarray, form) -> pa.StringArray:
    mask = pa.array(which)
    return pc.replace_with_mask(text, mask, form(text.filter(mask)))


def _parts(text: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray, np.ndarray]:
    """(sign, significant digits, decimal exponent) of numbers that are not zero."""
    pieces = pc.extract_regex(
        text, r"^(?P<sign>-?)(?P<before>\d+)(?:\.(?P<after>\d+))?(?:e\+?(?P<exponent>-?\d+))?$"
    )
    before, after = pieces.field("before"), pieces.field("after")
    exponent = pc.cast(
        pc.if_else(pc.equal(pieces.field("exponent"), ""), "0", pieces.field("exponent")), pa.int32()
    )
    digits = pc.binary_join_element_wise(before, after, "")
    significant = pc.ascii_ltrim(digits, "0")
    leading_zeros = _lengths(digits) - _lengths(significant)
    place = exponent.to_numpy() + _lengths(before) - 1 - leading_zeros
    return pieces.field("sign"), pc.ascii_rtrim(significant, "0"), place


@cache
def _exponents() -> pa.StringArray:
    return pa.array(
        [f"e{'-' if number < 0 else '+'}{abs(number):02d}" for number in range(_LOWEST, _HIGHEST + 1)]
    )


def _scientific(text: pa.StringArray) -> pa.StringArray:
    sign, digits, exponent = _parts(text)
    rest = pc.utf8_slice_codeunits(digits, 1)
    point = pc.if_else(pc.equal(rest, ""), "", ".")
    suffix = _exponents().take(pa.array(exponent - _LOWEST))
    return pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(digits, 0, 1), point, rest, suffix, "")


def _positional(text: pa.StringArray) -> pa.StringArray:
    sign, digits, exponent = _parts(text)
    # Zeros that bring the point next to the digits: 0.000ddd before, ddd000 behind.
    before = pc.if_else(
        pa.array(exponent < 0), pc.binary_join_element_wise("0.", _zeros(-exponent - 1), ""), ""
    )
    behind = _zeros(exponent + 1 - _lengths(digits))
    return pc.binary_join_element_wise(sign, before, _with_point(digits, exponent), behind, "")


def _with_point(digits: pa.StringArray, exponent: np.ndarray) -> pa.StringArray:
    """Digits with the point among them, where it falls between two."""
    inside = (exponent >= 0) & (_lengths(digits) > exponent + 1)
    for place in np.unique(exponent[inside]).tolist():
        mask = pa.array(inside & (exponent == place))
        pointed = pc.binary_replace_slice(
            digits.filter(mask), start=place + 1, stop=place + 1, replacement="."
        )
        digits = pc.replace_with_mask(digits, mask, pointed)
    return digits


def _zeros(counts: np.ndarray) -> pa.StringArray:
    return pc.binary_repeat(pa.array(["0"] * len(counts)), pa.array(np.maximum(counts, 0)))


def _lengths(text: pa.StringArray) -> np.ndarray:
    return pc.binary_length(text).to_numpy()
