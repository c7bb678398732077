"""The tagger as a plain PyTorch module: embed -> encode -> score -> decode. Also counts its parameters.

`training.module` makes a LightningModule of it; tagging text needs no Lightning.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.data.encoder import Batch
from ner_experiments.data.indexed_text import apply_in_chunks
from ner_experiments.modules.decoding import Decoder, Scores


@runtime_checkable
class Architecture(Protocol):
    """Interface of the architectures in models/: from token vectors to token states of size `output_size`."""

    output_size: int

    def __call__(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]: ...


@runtime_checkable
class Penalty(Protocol):
    """Interface of the terms in modules/penalty.py, which are added to the loss."""

    def check(self, model: Architecture) -> None:
        """Raise ValueError for a model whose penalty cannot be computed."""
        ...

    def __call__(self, model: Architecture) -> Float[Tensor, ""]: ...


MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class Tagger(nn.Module):
    """Word vectors of all inputs side by side, an encoder, one linear layer to tag scores, and a decoder.

    Direct features are added to the tag scores (Huang, Xu & Yu 2015, section 3.3). The names in `inputs` and `direct`
    are those of the batch's inputs.
    """

    def __init__(
        self,
        *,
        inputs: dict[str, nn.Module],
        direct: dict[str, nn.Module],
        model: Architecture,
        decoder: Decoder,
        penalty: Penalty | None,
        optimizer: MakeOptimizer,
    ) -> None:
        super().__init__()
        self.inputs = nn.ModuleDict(inputs)
        self.direct = nn.ModuleDict(direct)
        self.model = model
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")  # a CRF on features alone
            self.output = nn.Linear(model.output_size, decoder.num_tags)
        self.decoder = decoder
        self.penalty = penalty
        self.make_optimizer = optimizer
        self.shared: dict[str, Tensor] = {}

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.output.weight.device

    def forward(self, batch: Batch) -> Scores:
        """Score of every tag at every token."""
        states = of_its_size(self.model, self.model(self.embed(batch), batch.lengths), *batch.mask.shape)
        scores = self.output(states)
        for name, module in self.direct.items():
            scores = scores + batch.spread(name, self.rows(name, module, batch))
        return scores

    def embed(self, batch: Batch) -> Float[Tensor, "batch time size"]:
        """Concatenated vectors of all inputs, of size 0 if there are none."""
        vectors = [
            batch.spread(name, of_its_size(module, self.rows(name, module, batch), None))
            for name, module in self.inputs.items()
        ]
        if not vectors:
            return torch.zeros(*batch.mask.shape, 0).to(self.output.weight)
        return torch.cat(vectors, dim=-1)

    def rows(self, name: str, module: nn.Module, batch: Batch) -> Tensor:
        """The module's output for its input, computed once per evaluation if all batches of the split share it."""
        if name not in batch.shared:
            return module(batch.inputs[name])
        if name not in self.shared:
            self.shared[name] = apply_in_chunks(module, batch.inputs[name])
        return self.shared[name]

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """Context that drops at its end the outputs that its batches shared (`rows`): later weights may differ."""
        try:
            yield
        finally:
            self.shared.clear()

    @contextmanager
    def extended(self, rows: Mapping[str, np.ndarray]) -> Iterator[None]:
        """Context in which the tables of these inputs have further rows (`Encoder.extended`). They are not trained."""
        parts = [self.inputs if name in self.inputs else self.direct for name in rows]
        own: list[Any] = [part[name] for part, name in zip(parts, rows, strict=True)]
        try:
            for part, module, (name, more) in zip(parts, own, rows.items(), strict=True):
                part[name] = module.extended(torch.from_numpy(more))
            yield
        finally:
            for part, module, name in zip(parts, own, rows, strict=True):
                part[name] = module

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The config's optimizer of the weights that are trained."""
        return self.optimizer_of(self.trained())

    def trained(self) -> list[nn.Parameter]:
        """The weights that are trained."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def optimizer_of(self, weights: list[nn.Parameter]) -> torch.optim.Optimizer:
        """The config's optimizer of these weights.

        On a CPU, Adam uses PyTorch's fused loop unless the config sets `fused` or `foreach`. Its steps are equal up to
        rounding and several times as fast.
        """
        optimizer = self.make_optimizer(weights)
        adam = isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW)
        if adam and all(weight.is_cpu for weight in weights):
            for group in optimizer.param_groups:
                if group["fused"] is None and group["foreach"] is None:
                    # not in the constructor: Lightning would then refuse to clip with bf16-mixed
                    group["fused"] = True
        return optimizer


def of_its_size(module: Any, output: Any, *sizes: int | torch.SymInt | None) -> Tensor:
    """The output of a module. ValueError unless it is a tensor of these sizes, None for any, and its `output_size`."""
    wanted, found = (*sizes, module.output_size), output.shape if isinstance(output, Tensor) else ()
    pairs = zip(wanted, found, strict=False)
    if len(found) != len(wanted) or any(size is not None and size != own for size, own in pairs):
        axes = "batch, time" if len(sizes) == 2 else "rows"
        own_sizes = ", ".join("any" if size is None else str(size) for size in wanted)
        got = (
            f"a tensor of shape {tuple(found)}"
            if isinstance(output, Tensor)
            else f"a {type(output).__name__}"
        )
        raise ValueError(
            f"{type(module).__module__}.{type(module).__name__}: expected it to return a tensor of shape "
            f"({own_sizes}), which are {axes} and its output_size, got {got}"
        )
    return cast(Tensor, output)


def count_parameters(tagger: nn.Module) -> dict[str, Any]:
    """Number of trained parameters: total, per part, and the weights of `model` without biases.

    The last is what Zukov-Gregoric et al. (2018) count: 4(nm + n^2) per LSTM and direction.
    """
    parts: Counter[str] = Counter()
    weights = 0
    for name, parameter in tagger.named_parameters():
        part = part_of(name)
        if parameter.requires_grad:
            parts[part] += parameter.numel()
            weights += parameter.numel() * (part == "model" and "bias" not in name)
    return {"parameters": parts.total(), "parameters_of": dict(parts), "model_weights": weights}


def part_of(name: str) -> str:
    """Name of the part that a parameter belongs to: words, direct.spelling, model, output, decoder."""
    places = name.split(".")
    if places[0] == "inputs":
        return places[1]
    return ".".join(places[: 2 if places[0] == "direct" else 1])


def describe(counts: dict[str, Any]) -> str:
    """The numbers of `count_parameters` as one line of text."""
    parts = ", ".join(f"{name} {number:,}" for name, number in counts["parameters_of"].items())
    weights = f"{counts['model_weights']:,} of the model without biases"
    return f"{counts['parameters']:,} parameters ({parts}; {weights})"
