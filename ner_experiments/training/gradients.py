"""Gradient norms while training: of each part's weights, and of each layer by the ways on which it comes.

Yang & Xu (2020), eq. 2 and 4, write the gradient of a layer as a sum over the ways by which it comes down.
Where these ways part first is measured: let h be a layer's output, and x = h + ... what the next block reads.
Then dL/dh = b + s, where b = dL/dx through that block alone, and s is what comes past it. s is zero in a
stack without shortcuts; in types A and B it comes by the running sum, in C, D and the paper's model by the
one addition above. The highest layer has no block above, and no such sum.
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


class Layers:
    """What every layer of a model made of `Block`s has read and made, while `looking`."""

    def __init__(self, model: nn.Module) -> None:
        self.looking = False
        self.stacks = [list(part) for part in model.modules() if is_stack(part)]
        self.seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self.handles = [block.register_forward_hook(self.see) for stack in self.stacks for block in stack]

    def see(self, block: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        if self.looking:
            self.seen[block] = arguments[0], output

    def norms(self, loss: Tensor) -> list[dict[str, Tensor]]:
        """Of each layer; of type D's two directions together. Forgets what it has seen.

        The backward pass to come finds its graph as it was: it sums up what it would have, in the same order.
        """
        found: list[dict[str, Tensor]] = []
        for stack in self.stacks:
            outputs = [self.seen[block][1] for block in stack]
            whole = torch.autograd.grad(loss, outputs, retain_graph=True)
            for layer, gradient in enumerate(whole):
                parts = {NORM: gradient}
                if layer + 1 < len(stack):
                    x, h = self.seen[stack[layer + 1]]
                    (through,) = torch.autograd.grad(h, x, whole[layer + 1], retain_graph=True)
                    parts |= {SHORTCUT: gradient - through, BLOCK: through}
                if layer == len(found):
                    found.append({})
                for name, part in parts.items():
                    found[layer][name] = found[layer].get(name, 0) + part.float().square().sum()
        self.seen.clear()
        return [{name: square.sqrt() for name, square in layer.items()} for layer in found]

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


class Gradients(Callback):
    """Looks every `every` steps, and writes the means of each epoch into gradients.csv.

    Norms are those before they are clipped. Of several processes the first one writes: of the layers its own
    share of the batch, of the weights the mean of all. share: by_shortcut / (by_shortcut + through_block).
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
        self.layers = Layers(module.model)

    def on_fit_end(self, trainer: Trainer, module: Any) -> None:
        self.layers.remove()

    def on_train_batch_start(self, trainer: Trainer, module: Any, batch: Any, number: int) -> None:
        self.layers.looking = trainer.global_step % self.every == 0

    def on_before_backward(self, trainer: Trainer, module: Any, loss: Tensor) -> None:
        if not self.layers.looking:
            return
        for layer, norms in enumerate(self.layers.norms(loss), start=1):
            if BLOCK in norms:
                both = norms[SHORTCUT] + norms[BLOCK]
                norms["share"] = norms[SHORTCUT] / both.clamp_min(torch.finfo(both.dtype).tiny)
            self.add(LAYER, str(layer), norms)

    def on_before_optimizer_step(self, trainer: Trainer, module: Any, optimizer: Any) -> None:
        """Lightning clips after that."""
        if not self.layers.looking:
            return
        self.layers.looking = False
        self.steps += 1
        for part, norm in weight_norms(module).items():
            self.add(WEIGHTS, part, {NORM: norm})

    def add(self, kind: str, part: str, norms: dict[str, Tensor]) -> None:
        """On the device: nothing waits for it within an epoch."""
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
        """As a logger shows them: gradient/model.blocks.0, gradient_layer/1, shortcut/1."""
        found: dict[str, float] = {}
        for row in self.rows:
            if row["epoch"] == epoch:
                prefix = "gradient" if row["kind"] == WEIGHTS else "gradient_layer"
                found[f"{prefix}/{row['part']}"] = float(row[NORM])
                if "share" in row:
                    found[f"shortcut/{row['part']}"] = float(row["share"])
        return found


def is_stack(module: nn.Module) -> TypeGuard[nn.ModuleList]:
    return isinstance(module, nn.ModuleList) and {*map(type, module)} == {Block}


def weight_norms(tagger: nn.Module) -> dict[str, Tensor]:
    """Euclidean, of all gradients of a part together; of a part that had no gradient in this step, none."""
    squares: dict[str, Tensor] = {}
    for name, parameter in tagger.named_parameters():
        if (gradient := parameter.grad) is not None:
            numbers = gradient.coalesce().values() if gradient.is_sparse else gradient
            part = place_of(name)
            squares[part] = squares.get(part, 0) + numbers.detach().float().square().sum()
    return {part: square.sqrt() for part, square in squares.items()}


def place_of(name: str) -> str:
    """The part; of the model its own parts, and each layer of a list by itself."""
    places = name.split(".")[:-1]
    if places[:1] != ["model"]:
        return part_of(name)
    numbers = [place for place, word in enumerate(places) if word.isdigit()]
    return ".".join(places[: numbers[0] + 1 if numbers else 2])
