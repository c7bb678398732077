"""Order of tokens and weights in memory for the LSTM kernels."""

import numpy as np
import pytest
import torch

from ner_experiments.modules.kernels import cpu
from ner_experiments.modules.kernels.cpu import Tokens


def test_tokens_are_ordered_by_step_then_by_decreasing_length() -> None:
    tokens = Tokens(torch.tensor([2, 3, 1]), 4, (False, True))
    x = torch.arange(12.0).view(1, 3, 4, 1)
    places = [[4, 0, 8, 5, 1, 6], [6, 1, 8, 5, 0, 4]]
    assert tokens.pack(x).flatten(1).tolist() == places
    both = torch.cat([x, 12 + x])
    assert tokens.pack(both).flatten(1).tolist() == [places[0], [12 + place for place in places[1]]]
    assert tokens.pad(tokens.pack(both))[0].flatten().tolist() == [0, 1, 0, 0, 4, 5, 6, 0, 8, 0, 0, 0]
    summed = tokens.pad(tokens.pack(both), inputs=1)
    assert summed.flatten().tolist() == [12, 14, 0, 0, 20, 22, 24, 0, 28, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [5, 16, 37])
def test_matrices_are_packed_as_the_products_read_them(size: int, dtype: type) -> None:
    kernels = cpu.kernels().lstm
    matrices = np.random.default_rng(0).normal(size=(2, 4, size, size)).astype(dtype)
    lanes = cpu.kernels().ops.VECTOR // matrices.itemsize
    wide = -(-size // lanes) * lanes
    columns = np.pad(matrices.swapaxes(2, 3), ((0, 0), (0, 0), (0, 0), (0, wide - size)))
    ahead = [columns[:, :, :, a : a + lanes].swapaxes(1, 2).reshape(2, -1) for a in range(0, wide, lanes)]
    assert np.array_equal(kernels.pack_forward(matrices), np.concatenate(ahead, axis=1).reshape(-1))
    padded = np.pad(matrices, ((0, 0), (0, 0), (0, 0), (0, wide - size)))
    back = [padded[..., a : a + 2 * lanes].reshape(2, -1) for a in range(0, wide, 2 * lanes)]
    assert np.array_equal(kernels.pack_backward(matrices), np.concatenate(back, axis=1).reshape(-1))
