"""Weight tables of which a batch looks up few rows."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


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


class WithoutWaiting(TorchFunctionMode):
    """Context in which all lookups are `index_select`, whose gradient adds rows up without waiting for the device.

    A CUDA graph can therefore hold it. The gradients of PyTorch's embeddings wait above 3,072 ids (pytorch#82886), and
    sparse ones with a padding row do for any number.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is nn.functional.embedding:
            return rows_of(*args[:3], **kwargs or {})
        if function is nn.functional.embedding_bag:
            assert (kwargs or {})["mode"] == "sum"
            return rows_of(*args, **kwargs or {}).sum(1)
        return function(*args, **kwargs or {})


def rows_of(ids: Tensor, table: Tensor, padding_idx: int | None = None, **_: Any) -> Tensor:
    """Rows of the table; that of `padding_idx` is 0 and not trained."""
    rows = table.index_select(0, ids.flatten()).view(*ids.shape, -1)
    return rows if padding_idx is None else rows.masked_fill((ids == padding_idx)[..., None], 0)
