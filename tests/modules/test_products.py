"""Products of the LSTM kernels, for the registers of AVX-512 and of AVX2, whichever this processor has."""

from itertools import product

import numpy as np
import pytest
from numba import njit

from ner_experiments.modules.kernels import numba_ops

LAYOUTS = [(64, 1, 8), (64, 2, 8), (64, 4, 6), (32, 1, 8), (32, 2, 6), (32, 4, 2)]


@pytest.mark.parametrize(("vector", "vectors", "most"), LAYOUTS)
def test_a_product_adds_what_plain_loops_add(
    vector: int, vectors: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba_ops, "VECTOR", vector)
    add = numba_ops.make_product(vectors, most)

    @njit
    def run(out, out_rows, out_stride, x, x_rows, x_step, x_plane, y, y_stride, depth, planes, rows):  # type: ignore[no-untyped-def]
        add(out, out_rows, 3, out_stride, x, x_rows, 1, x_step, x_plane, y, 2, y_stride, depth, planes, rows)

    rng = np.random.default_rng(0)
    for rows, depth, planes in product(range(1, 2 * most + 2), (1, 5), (1, 3)):
        lanes = vector // 4
        out_stride, y_stride = 2 * lanes, vectors * lanes + 1
        x_step, x_plane = 2, 2 * depth + 3
        width = 3 + vectors * out_stride + lanes
        out = rng.normal(size=rows * width).astype(np.float32)
        x = rng.normal(size=(1 + rows) * planes * x_plane + 1).astype(np.float32)
        y = rng.normal(size=2 + planes * depth * y_stride + vectors * lanes).astype(np.float32)
        out_rows, x_rows = np.arange(rows) * width, np.arange(rows) * planes * x_plane
        expected = out.astype(np.float64)
        for r, v, m, k in product(range(rows), range(vectors), range(planes), range(depth)):
            factor = float(x[x_rows[r] + 1 + m * x_plane + k * x_step])
            for j in range(lanes):
                value = float(y[2 + (m * depth + k) * y_stride + v * lanes + j])
                expected[out_rows[r] + 3 + v * out_stride + j] += factor * value
        run(out, out_rows, out_stride, x, x_rows, x_step, x_plane, y, y_stride, depth, planes, rows)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
