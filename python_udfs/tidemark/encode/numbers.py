"""Numbers as text, columnar: Go's two notations of floats, and decimals.

Arrow prints the same shortest digits as Go but changes to an exponent at other magnitudes:

    Arrow     plain for 1e-6 <= |x| < 1e10, else d.ddde[+-]x
    Go %v     plain for 1e-4 <= |x| < 1e6,  else d.ddde[+-]xx     (at least two digits in the exponent)
    Go 'f'    always plain

Values inside the narrower of the two ranges keep Arrow's text; only the others are rewritten, as columns of digits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# A digit narrower than Arrow's own limits.
_ARROW_PLAIN = (1e-5, 1e9)
_GO_PLAIN = (1e-4, 1e6)
_PARTS = r"^-?(?P<whole>\d+)(?:\.(?P<fraction>\d+))?(?:e(?P<exponent>[+-]?\d+))?$"
# Arrow prints a decimal with an exponent once its first digit may stand further right than this.
_ARROW_DECIMAL_SCALE = 6


def float_text(array: pa.Array) -> pa.StringArray:
    """Go's %v: `1e+10`, `0.1`, `1.5e-07`."""
    return _rewritten(array, _GO_PLAIN, _scientific)


def plain_float_text(array: pa.Array) -> pa.StringArray:
    """Go's 'f' with the shortest digits: `10000000000`, `0.1`, `0.00000015`."""
    return _rewritten(array, _ARROW_PLAIN, _positional)


def decimal_text(array: pa.Array) -> pa.StringArray:
    """All digits of the scale, never an exponent."""
    precision, scale = array.type.precision, array.type.scale
    if scale <= _ARROW_DECIMAL_SCALE:
        return array.cast(pa.string())
    make = pa.decimal128 if pa.types.is_decimal128(array.type) else pa.decimal256
    unscaled = pa.Array.from_buffers(make(precision, 0), len(array), array.buffers(), offset=array.offset)
    text = unscaled.cast(pa.string())
    negative = pc.starts_with(text, "-")
    digits = pc.ascii_lpad(pc.utf8_ltrim(text, characters="-"), scale + 1, padding="0")
    magnitude = pc.binary_replace_slice(digits, start=-scale, stop=-scale, replacement=".")
    if not pc.any(negative).as_py():
        return magnitude
    return pc.binary_join_element_wise(pc.if_else(negative, "-", ""), magnitude, "")


def _rewritten(
    array: pa.Array, plain: tuple[float, float], form: Callable[[pa.Array, pa.Array, np.ndarray], pa.Array]
) -> pa.StringArray:
    text = array.cast(pa.string())
    values = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    size = np.abs(values)
    special = ((size < plain[0]) & (size > 0)) | ~(size < plain[1])
    if not special.any():
        return text
    finite = np.isfinite(values)
    if not finite.all():
        words = np.where(np.isnan(values), "NaN", np.where(values > 0, "+Inf", "-Inf"))[~finite]
        text = pc.replace_with_mask(text, pa.array(~finite), pa.array(words.tolist(), pa.string()))
        special &= finite
    chosen = pa.array(special)
    sign = pa.array(np.where(values[special] < 0, "-", "").tolist(), pa.string())
    return pc.replace_with_mask(text, chosen, form(sign, *_digits(text.filter(chosen))))


def _digits(text: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """(significant digits, decimal exponent of the first) of non-zero numbers in Arrow's notation."""
    parts = pc.extract_regex(text, _PARTS)
    whole, fraction = parts.field("whole"), parts.field("fraction")
    exponent = pc.if_else(pc.equal(parts.field("exponent"), ""), "0", parts.field("exponent"))
    exponent = pc.utf8_ltrim(exponent, characters="+").cast(pa.int64()).to_numpy()
    digits = pc.binary_join_element_wise(whole, fraction, "")
    significant = pc.utf8_ltrim(digits, characters="0")
    zeros = pc.binary_length(digits).to_numpy() - pc.binary_length(significant).to_numpy()
    first = exponent + pc.binary_length(whole).to_numpy() - 1 - zeros
    return pc.utf8_rtrim(significant, characters="0"), first


def _scientific(sign: pa.Array, digits: pa.Array, exponent: np.ndarray) -> pa.Array:
    head = pc.utf8_slice_codeunits(digits, 0, 1)
    tail = pc.utf8_slice_codeunits(digits, 1)
    point = pc.if_else(pc.equal(tail, ""), "", ".")
    power = pc.ascii_lpad(pa.array(np.abs(exponent)).cast(pa.string()), 2, padding="0")
    mark = pc.if_else(pa.array(exponent < 0), "e-", "e+")
    return pc.binary_join_element_wise(sign, head, point, tail, mark, power, "")


def _positional(sign: pa.Array, digits: pa.Array, exponent: np.ndarray) -> pa.Array:
    plain = pa.nulls(len(digits), pa.string())
    for power in np.unique(exponent).tolist():
        mask = pa.array(exponent == power)
        some = digits.filter(mask)
        if power < 0:
            some = pc.binary_join_element_wise(pa.scalar("0." + "0" * (-power - 1)), some, "")
        else:
            whole = pc.ascii_rpad(pc.utf8_slice_codeunits(some, 0, power + 1), power + 1, padding="0")
            tail = pc.utf8_slice_codeunits(some, power + 1)
            point = pc.if_else(pc.equal(tail, ""), "", ".")
            some = pc.binary_join_element_wise(whole, point, tail, "")
        plain = pc.replace_with_mask(plain, mask, some)
    return pc.binary_join_element_wise(sign, plain, "")
