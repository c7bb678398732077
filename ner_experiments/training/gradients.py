"""Gradient norms during training, for the weights of each part and for the output of each layer by path.

Yang & Xu (2020), eq. 2 and 4, write the gradient of a layer as a sum over the paths from the loss to it. This measures
where the paths first part: let h be a layer's output, and x = h + ... the next block's input. Then dL/dh = b + s, where
b = dL/dx through that block alone, and s is the rest, which bypasses it by a shortcut. s is zero in a stack without
shortcuts. In types A and B it flows through the running sum; in C, D and the paper's model, through the one addition
above. The top layer has no block above it and therefore no such decomposition.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, TypeGuard

import torch
from lightning.pytorch import Callback, Trainer
from torch import Tensor, nn

from ner_experiments.modules.recurrent import Block
from ner_experiments.runs.artifacts import GRADIENTS
from ner_experiments.tagger import part_of
from ner_experiments.utils.files import write_csv

COLUMNS = ("epoch", "steps", "kind", "part", "norm", "by_shortcut", "through_block", "share")
WEIGHTS, LAYER = "weights", "layer"
NORM, SHORTCUT, BLOCK = "norm", "by_shortcut", "through_block"
Row = dict[str, float | str | int]


class LayerRecorder:
    """Input and output of every layer in a model's stacks of `Block`s, recorded while `recording`."""

    def __init__(self, model: nn.Module) -> None:
        self.recording = False
        self.stacks = [list(part) for part in model.modules() if is_stack(part)]
        self.recorded: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self.handles = [block.register_forward_hook(self.record) for stack in self.stacks for block in stack]

    def record(self, block: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        if self.recording:
            self.recorded[block] = arguments[0], output

    def norms(self, loss: Tensor) -> list[dict[str, Tensor]]:
        """Gradient norms of each layer, where type D's two directions count as one layer. Clears the record.

        The graph is retained unchanged: the backward pass that follows adds the same terms in the same order.
        """
        squares: list[dict[str, Tensor]] = []
        for stack in self.stacks:
            outputs = [self.recorded[block][1] for block in stack]
            whole = torch.autograd.grad(loss, outputs, retain_graph=True)
            for layer, gradient in enumerate(whole):
                parts = {NORM: gradient}
                if layer + 1 < len(stack):
                    x, h = self.recorded[stack[layer + 1]]
                    (through,) = torch.autograd.grad(h, x, whole[layer + 1], retain_graph=True)
                    parts |= {SHORTCUT: gradient - through, BLOCK: through}
                if layer == len(squares):
                    squares.append({})
                for name, part in parts.items():
                    squares[layer][name] = squares[layer].get(name, 0) + part.float().square().sum()
        self.recorded.clear()
        return [{name: square.sqrt() for name, square in layer.items()} for layer in squares]

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


class Gradients(Callback):
    """Means over each epoch in gradients.csv, measured every `every` steps.

    Norms are measured before clipping. With several processes rank 0 writes: for layers the norm of the gradient on its
    own share of the batch, for weights that of the gradient averaged over all processes. The column `share` is
    by_shortcut / (by_shortcut + through_block).
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.path, self.every = folder / GRADIENTS, every
        self.rows: list[Row] = []
        self.steps = 0
        self.sums: dict[tuple[str, str], dict[str, Tensor]] = defaultdict(dict)

    def state_dict(self) -> dict[str, Any]:
        sums = {"\n".join(key): dict(values) for key, values in self.sums.items()}
        return {"rows": self.rows, "steps": self.steps, "sums": sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self.steps = list(state["rows"]), state["steps"]
        for key, values in state["sums"].items():
            kind, part = key.split("\n")
            self.sums[kind, part] = dict(values)

    def on_fit_start(self, trainer: Trainer, module: Any) -> None:
        self.layers = LayerRecorder(module.model)

    def on_fit_end(self, trainer: Trainer, module: Any) -> None:
        self.layers.remove()

    def on_train_batch_start(self, trainer: Trainer, module: Any, batch: Any, number: int) -> None:
        self.layers.recording = trainer.global_step % self.every == 0
        if module.graphs is not None:
            module.graphs.eager = self.layers.recording

    def on_before_backward(self, trainer: Trainer, module: Any, loss: Tensor) -> None:
        if not self.layers.recording:
            return
        for layer, norms in enumerate(self.layers.norms(loss), start=1):
            if BLOCK in norms:
                both = norms[SHORTCUT] + norms[BLOCK]
                norms["share"] = norms[SHORTCUT] / both.clamp_min(torch.finfo(both.dtype).tiny)
            self.add(LAYER, str(layer), norms)

    def on_before_optimizer_step(self, trainer: Trainer, module: Any, optimizer: Any) -> None:
        """Measure the weights' gradients; Lightning clips them after this hook."""
        if not self.layers.recording:
            return
        self.layers.recording = False
        self.steps += 1
        for part, norm in weight_norms(module).items():
            self.add(WEIGHTS, part, {NORM: norm})

    def add(self, kind: str, part: str, norms: dict[str, Tensor]) -> None:
        """Add to the epoch's sums on the device, so that no step waits for it."""
        sums = self.sums[kind, part]
        for name, norm in norms.items():
            before = sums[name].to(norm.device) if name in sums else 0
            sums[name] = norm.double() + before

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        epoch = trainer.current_epoch + 1
        for (kind, part), sums in self.sums.items():
            means = {name: float(total) / self.steps for name, total in sums.items()}
            self.rows.append({"epoch": epoch, "steps": self.steps, "kind": kind, "part": part, **means})
        self.sums.clear()
        self.steps = 0
        if trainer.is_global_zero and self.rows:
            write_csv(self.path, COLUMNS, self.rows)

    def scalars(self, epoch: int) -> dict[str, float]:
        """The epoch's means by their names in loggers: gradient/model.blocks.0, gradient_layer/1, shortcut/1."""
        means: dict[str, float] = {}
        for row in self.rows:
            if row["epoch"] == epoch:
                prefix = "gradient" if row["kind"] == WEIGHTS else "gradient_layer"
                means[f"{prefix}/{row['part']}"] = float(row[NORM])
                if "share" in row:
                    means[f"shortcut/{row['part']}"] = float(row["share"])
        return means


def is_stack(module: nn.Module) -> TypeGuard[nn.ModuleList]:
    return isinstance(module, nn.ModuleList) and {*map(type, module)} == {Block}


def weight_norms(tagger: nn.Module) -> dict[str, Tensor]:
    """Euclidean norm of each part's gradients, taken as one vector. Omits parts without a gradient in this step."""
    squares: dict[str, Tensor] = {}
    for name, parameter in tagger.named_parameters():
        if (gradient := parameter.grad) is not None:
            numbers = gradient.coalesce().values() if gradient.is_sparse else gradient
            part = subpart_of(name)
            squares[part] = squares.get(part, 0) + numbers.detach().float().square().sum()
    return {part: square.sqrt() for part, square in squares.items()}


def subpart_of(name: str) -> str:
    """Part of a parameter as in `part_of`, but with the model split into its submodules and lists into layers."""
    places = name.split(".")[:-1]
    if places[:1] != ["model"]:
        return part_of(name)
    numbers = [place for place, word in enumerate(places) if word.isdigit()]
    return ".".join(places[: numbers[0] + 1 if numbers else 2])
