"""Which blocks an architecture is made of and what each reads, found by running it.

The model runs on two sentences as it always does, but on tensors that know which blocks they come from. A
module without parts is a block. Of layers whose parts run together, and only of these, `blocks_of` says what
they hold. What a model does to tensors itself is a block too; but to stack them, to take them apart again, or
to turn sentences back to front only says who reads what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import Any

import torch
from torch import Tensor, nn

from ner_experiments.models.attention import SelfAttention
from ner_experiments.models.parallel import Concat, Mean
from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.lstm import reverse
from ner_experiments.modules.recurrent import PeepholeLSTM, UniRNN
from ner_experiments.modules.units import BiLSTMUnits
from ner_experiments.modules.variational import VariationalLSTMs

INPUT_SIZE = 5
LENGTHS = (4, 3)
AHEAD, BACK = "ahead", "back"
"""Kinds of block: recurrent layers from left to right, and from right to left."""
AS_THEY_ARE = {"flatten", "reshape", "view", "view_as", "squeeze", "contiguous"}
NAMES = {"mul": "×", "__mul__": "×", "sub": "−", "__sub__": "−", "linear": "dense"}


@dataclass(frozen=True)
class Block:
    """`reads` are the numbers of the blocks that it reads, in their order."""

    kind: str
    label: str
    reads: tuple[int, ...] = ()
    value: Tensor = field(default_factory=lambda: torch.empty(0), compare=False, repr=False)
    """What it gave for the two sentences, "batch time size"."""


class Traced(Tensor):
    """A tensor that knows the blocks whose outputs it holds side by side, or one behind the other."""

    parts: tuple[int, ...]
    turned: bool
    """Whether the sentences stand back to front."""
    drawing: Drawing

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        traced = [each for each in flat(args) if isinstance(each, Traced)]
        if isinstance(result, tuple) and all(isinstance(each, Tensor) for each in result):
            return taken_apart(result, traced[0])
        return (
            traced[0].drawing.after(func.__name__, result, traced) if isinstance(result, Tensor) else result
        )


def flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from flat(value) if isinstance(value, list | tuple) else [value]


def taken_apart(pieces: tuple[Tensor, ...], whole: Traced) -> list[Traced]:
    assert len(pieces) == len(whole.parts), "only what was put together is taken apart"
    drawing = whole.drawing
    return [
        drawing.traced(piece, (part,), whole.turned) for piece, part in zip(pieces, whole.parts, strict=True)
    ]


def leaves(module: nn.Module) -> Iterator[nn.Module]:
    """The modules that are blocks, or that `blocks_of` knows what they hold."""
    children = [*module.children()]
    if type(module) in blocks_of.registry or not children:
        yield module
    else:
        for child in children:
            yield from leaves(child)


class Drawing:
    """Takes down the blocks of one model while it runs."""

    def __init__(self, model: nn.Module) -> None:
        self.blocks: list[Block] = []
        for child in model.children():
            for module in leaves(child):
                module.forward = partial(self.leaf, module, module.forward)

    def add(self, kind: str, label: str, reads: tuple[int, ...], value: Tensor) -> tuple[int]:
        self.blocks.append(Block(kind, label, reads, value))
        return (len(self.blocks) - 1,)

    def traced(self, tensor: Tensor, parts: tuple[int, ...], turned: bool = False) -> Traced:
        result = tensor.as_subclass(Traced)
        result.parts, result.turned, result.drawing = parts, turned, self
        return result

    def leaf(self, module: nn.Module, forward: Any, x: Traced, *args: Any, **kwargs: Any) -> Any:
        """A module is run with plain tensors, and its output said to come from its blocks."""
        result = forward(x.as_subclass(Tensor), *args, **kwargs)
        value, *others = result if isinstance(result, tuple) else (result,)
        backwards = x.turned != kwargs.get("backwards", False)
        parts = blocks_of(module, self, x.parts, front_to_back(value, x.turned), backwards)
        output = self.traced(value, parts, x.turned)
        return (output, *others) if isinstance(result, tuple) else output

    def after(self, name: str, result: Tensor, operands: list[Traced]) -> Traced:
        """What an operation made of others' outputs."""
        first = operands[0]
        if name == "zeros_like":
            return self.traced(result, ())
        if name in AS_THEY_ARE:
            return self.traced(result, first.parts, first.turned)
        if name == "index_select":
            return self.traced(result, first.parts, not first.turned)
        turned = first.turned
        assert all(operand.turned == turned for operand in operands), "both orders of words at once"
        parts = tuple(part for operand in operands for part in operand.parts)
        if name == "stack" or (len(parts) == 1 and name in ("add", "__add__", "cat")):
            return self.traced(result, parts, turned)
        value = front_to_back(result, turned)
        if name == "cat":
            return self.traced(result, self.add("join", "concatenate", parts, value), turned)
        kind, label = ("sum", "+") if name in ("add", "__add__") else ("other", NAMES.get(name, name))
        return self.traced(result, self.add(kind, label, parts, value), turned)


def front_to_back(value: Tensor, turned: bool) -> Tensor:
    return reverse(value, torch.tensor(LENGTHS)) if turned else value


Parts = tuple[int, ...]


@singledispatch
def blocks_of(module: nn.Module, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    """Adds the blocks of a module that reads the outputs `x`; the numbers of those that it ends in."""
    name = type(module).__name__
    kind = "activation" if type(module).__module__ == "torch.nn.modules.activation" else "other"
    return drawing.add(kind, name, x, value)


@blocks_of.register
def _(module: nn.Identity, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    return x


@blocks_of.register
def _(module: nn.Linear, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    return drawing.add("dense", "dense", x, value)


@blocks_of.register
def _(module: nn.LayerNorm, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    return drawing.add("norm", "layer norm", x, value)


@blocks_of.register(nn.Dropout)
@blocks_of.register(VariationalDropout)
def _(module: Any, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    label = "dropout\none mask per sentence" if isinstance(module, VariationalDropout) else "dropout"
    return drawing.add("dropout", label, x, value) if module.p else x


@blocks_of.register
def _(module: UniRNN, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    peepholes = isinstance(module.cell, PeepholeLSTM)
    cell, note = ("LSTM", "\nwith peepholes") if peepholes else (type(module.cell).__name__, "")
    layers = len(module.cell.layers) if peepholes else module.cell.num_layers
    for layer in range(layers):
        given = value if layer == layers - 1 else torch.empty(0)
        x = drawing.add(BACK if backwards else AHEAD, recurrent(cell, backwards, note), x, given)
    return x


def recurrent(cell: str, backwards: bool, note: str) -> str:
    return f"← {cell}{note}" if backwards else f"{cell} →{note}"


@blocks_of.register
def _(module: VariationalLSTMs, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    """One for each direction, each with a mask on what it reads and one on the h that it carries over."""
    note = "\ndropout on h" if module.units.dropout.p else ""
    ends: Parts = ()
    for back, below in enumerate(x):
        read = blocks_of(module.dropout, drawing, (below,), torch.empty(0), False)
        ends += drawing.add(BACK if back else AHEAD, recurrent("LSTM", bool(back), note), read, value[back])
    return ends


@blocks_of.register
def _(module: BiLSTMUnits, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    note = "\ndropout on h" if module.dropout.p else ""
    ends: Parts = ()
    for unit in range(module.recurrent_weights.shape[1]):
        ahead, back = value[:, :, unit].chunk(2, dim=-1)
        both = drawing.add(AHEAD, recurrent("LSTM", False, note), x, ahead)
        both += drawing.add(BACK, recurrent("LSTM", True, note), x, back)
        ends += drawing.add("join", f"unit {unit + 1}", both, value[:, :, unit])
    return ends


@blocks_of.register
def _(module: Concat, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    return drawing.add("join", "concatenate", x, value)


@blocks_of.register
def _(module: Mean, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    return drawing.add("sum", "mean", x, value)


@blocks_of.register
def _(module: SelfAttention, drawing: Drawing, x: Parts, value: Tensor, backwards: bool) -> Parts:
    heads = enumerate(value.split(module.head_size, dim=-1), start=1)
    return tuple(part for head, c in heads for part in drawing.add("head", f"head {head}", x, c))


def trace(model: nn.Module) -> list[Block]:
    """From the input to what the model gives, each block behind those that it reads."""
    drawing = Drawing(model.eval())
    x = torch.randn(len(LENGTHS), max(LENGTHS), INPUT_SIZE, requires_grad=True)
    first = drawing.add("input", "word vectors x", (), x)
    output = model(drawing.traced(x, first), torch.tensor(LENGTHS))
    assert len(output.parts) == 1, "a model gives one tensor"
    assert output.parts == (len(drawing.blocks) - 1,), "nothing is made that the output does not come from"
    return drawing.blocks
