"""How numba is to compile the kernels, and the exponentials that all of them are made of."""

import hashlib
import math
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
from numba import njit, types
from numba.extending import overload

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


single = np.float32
_, C1, C2, C3, C4, C5, C6, C7 = (single(1 / math.factorial(k)) for k in range(8))
BOUND, LOG2_E, ROUNDING = single(87), single(1.4426950408889634), single(1.5 * 2**23)
LN2, LN2_REST = single(0.693359375), single(-2.12194440e-4)


def power(x: Any) -> Any:
    """e^x, for callers IN_ORDER; in float32 for |x| <= 87 to 2e-7, beyond as at that bound; NaN stays NaN."""
    raise NotImplementedError("compiled code only")


@overload(power)
@no_type_check
def compile_power(x):
    return single_power if x == types.float32 else math_power


@no_type_check
def math_power(x):
    return np.exp(x)


@no_type_check
def single_power(x):
    """x = n ln 2 + r, e^r by its Taylor series, and 2^n by its bits; adding 1.5 * 2^23 rounds to n."""
    x = -BOUND if x < -BOUND else x
    x = BOUND if x > BOUND else x
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    r = (x - n * LN2) - n * LN2_REST
    p = C7
    p = p * r + C6
    p = p * r + C5
    p = p * r + C4
    p = p * r + C3
    p = p * r + C2
    p = p * r + C1
    p = p * r + C1
    bits = np.int32((np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23))
    return p * bits.view(np.float32)


@njit(**IN_ORDER)
@no_type_check
def exp(x):
    """e^x for x <= 0, and 0 below -87; unlike math.exp, it is vectorised, and never subnormal."""
    return falling(x)


def falling(x: Any) -> Any:
    raise NotImplementedError("compiled code only")


@overload(falling)
@no_type_check
def compile_falling(x):
    return single_exp if x == types.float32 else double_exp


@no_type_check
def single_exp(x):
    return single(0) if x < -BOUND else power(x)


@no_type_check
def double_exp(x):
    """As `single_power`, to 1e-16."""
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
    power_of_2 = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if x < -87.0 else p * power_of_2
