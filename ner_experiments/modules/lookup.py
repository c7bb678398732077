"""Weight tables of which a batch looks up few rows."""

import torch
from torch import nn


class Lookup(nn.Module):
    """Base class of modules that look up rows of a weight table.

    With `sparse`, the table's gradient has rows only for what the batch looks up, so that a step of SGD or Adagrad does
    not visit all weights. The result is the same. Adam, weight decay and gradient clipping do not support such
    gradients, and momentum collects them without end (torch 2.13).
    """

    sparse = False


def set_sparse(tagger: nn.Module) -> None:
    """Give all tables of a tagger sparse gradients."""
    for module in tagger.modules():
        if isinstance(module, Lookup):
            module.sparse = True
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]  # left open, Adagrad warns
