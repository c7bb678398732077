"""What the compiled kernels are made of: exponentials, products, and how numba is to compile them.

Arrays are padded to a multiple of 16 tags where the innermost loops go along them: whole vector registers.
"""

import hashlib
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
from numba import njit

FAST = {
    "error_model": "numpy",  # 1 / 0 is inf; looking for it would keep loops from being vectorised
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},  # all but nnan and ninf: NaN is to come through
}
IN_ORDER = {**FAST, "fastmath": {"contract"}}


def called(function: Any, options: dict[str, Any] = FAST) -> Any:
    """Compiles what Python calls, with all that it calls, and keeps it in numba's cache.

    numba looks at a function's own file for changes, and names its cache's files after the function: hence
    the digest of all files in the name. Where no folder may be written to, there is no cache.
    """
    files = sorted(Path(__file__).parent.glob("*_kernels*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    function.__qualname__ += f"_{digest[:16]}"
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)


@njit(**IN_ORDER)
@no_type_check
def exp(x):
    """e^x for x <= 0, and 0 below -87; unlike math.exp, it is vectorised (0.7 ns), and never subnormal.

    x = n ln 2 + r, e^r by its Taylor series to 1e-16, and 2^n by its bits; adding 1.5 * 2^52 rounds to n.
    """
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if x < -87.0 else p * power


@njit(**FAST)
@no_type_check
def largest_of(values):
    largest = values[0]
    for j in range(values.shape[0]):
        largest = max(largest, values[j])
    return np.float64(largest)


@njit(**FAST)
@no_type_check
def exp_of(values, out):
    """out = exp(values - their largest), 0 where it is padded; returns the largest."""
    largest = largest_of(values)
    for j in range(values.shape[0]):
        out[j] = exp(values[j] - largest)
    out[values.shape[0] :] = 0
    return largest


@njit(**FAST)
@no_type_check
def add_product(x, rows, out):
    """out += x @ rows. Eight rows at once: `out` is loaded and stored an eighth as often."""
    whole = x.shape[0] // 8 * 8
    for k in range(0, whole, 8):
        a, b, c, d, e, f, g, h = x[k], x[k + 1], x[k + 2], x[k + 3], x[k + 4], x[k + 5], x[k + 6], x[k + 7]
        row = rows[k : k + 8]
        for j in range(out.shape[0]):
            out[j] += (a * row[0, j] + b * row[1, j] + c * row[2, j] + d * row[3, j]) + (
                e * row[4, j] + f * row[5, j] + g * row[6, j] + h * row[7, j]
            )
    for k in range(whole, x.shape[0]):
        for j in range(out.shape[0]):
            out[j] += x[k] * rows[k, j]


@njit(**FAST)
@no_type_check
def rescale(row, total):
    """Multiplies by the power of 2, exactly, that brings the total into [1, 2); returns minus its log."""
    exponent = (np.float64(total).view(np.int64) >> 52) - 1023
    factor = row.dtype.type(np.int64((1023 - exponent) << 52).view(np.float64))
    for j in range(row.shape[0]):
        row[j] *= factor
    return exponent * 0.6931471805599453


@njit(**FAST)
@no_type_check
def padded(size):
    return (size + 15) // 16 * 16
