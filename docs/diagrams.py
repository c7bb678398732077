"""`python docs/diagrams.py [FOLDER]`: draw every architecture of conf/model as docs/diagrams/NAME.svg. Needs Graphviz.

An architecture is built as `python run.py paper=... model=NAME` builds it, but small, and run on two sentences whose
tensors carry the numbers of the blocks that they come from, so the diagram shows what the code computes. A module
without submodules is a block, and so is an operation of the model itself; stacking, splitting and reversing tensors
only decide who reads what. `blocks_of` lists the blocks of layers that run several parts at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial, singledispatch
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra.utils import get_class, instantiate
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import CONF
from ner_experiments.models.attention import SelfAttention
from ner_experiments.models.parallel import Concat, Mean
from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.recurrent import PeepholeLSTM, UniRNN
from ner_experiments.modules.units import BiLSTMUnits
from ner_experiments.modules.variational_lstm import VariationalLSTMs

FOLDER = CONF.parent / "docs/diagrams"
INPUT_SIZE = 5
LENGTHS = (4, 3)
SMALL = {"hidden_size": 4, "dense_size": 8, "unit_size": 2, "num_units": 3}
"""Replaces the paper's sizes, which are not drawn, and leaves few enough units to draw."""
NUM_LAYERS = {"yang2020": 3}
"""Number of layers that shows the repeated part; 2 for papers not listed."""
PAPERS = {"Huang": "huang2015", "Zukov-Gregoric": "zukov2018", "Yang": "yang2020", "Li": "li2020"}
DECODERS = {"CRF": "CRF", "Softmax": "softmax"}
COLORS = {
    "input": ("#dff0f7", "#4f8ba6"),
    "forward": ("#cfe2ff", "#3b76d6"),
    "backward": ("#ffe0c2", "#d9822b"),
    "join": ("#e6e6e6", "#858585"),
    "sum": ("#d3f1d6", "#3f9a4f"),
    "dense": ("#e7dbfb", "#8a5cd0"),
    "head": ("#fff1b8", "#bd9a00"),
    "decoder": ("#ffd9df", "#cf4f69"),
}
"""Fill and outline, legible on light and on dark pages."""
OTHER_COLORS = ("#f3eefb", "#a58cd3")
GAP = 0.3
"""Inches between neighbors."""
STYLE = """rankdir=BT bgcolor=transparent nodesep=0.3 ranksep=0.3 ordering=in
node [shape=box style="rounded,filled" fontname="Helvetica,Arial,sans-serif" fontsize=12 height=0.36 margin="0.12,0.05"]
edge [color="#8a8a8a" arrowsize=0.6]"""
UNCHANGED = {"flatten", "reshape", "view", "view_as", "squeeze", "contiguous"}
"""Operations that only reshape."""
SYMBOLS = {"mul": "×", "__mul__": "×", "sub": "−", "__sub__": "−", "linear": "dense"}

Reads = tuple[int, ...]


class Block(NamedTuple):
    """A box of the diagram; `reads` are the indices of the blocks whose outputs it reads."""

    kind: str
    label: str
    reads: Reads = ()


def main(folder: Path = FOLDER) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(path.stem for path in (CONF / "model").glob("*.yaml")):
        (folder / f"{name}.svg").write_text(svg(name, blocks(name)), encoding="utf-8")
    return 0


def svg(name: str, blocks: list[Block]) -> str:
    """The layout by Graphviz. Joins and the input are as wide as what they join or feed, so that arrows run upright."""
    lines, widths, ranks = [f'digraph "{name}" {{', STYLE], list[float](), list[int]()
    for number, block in enumerate(blocks):
        title, _, note = block.label.partition("\n")
        label = f'<{title}<br/><font point-size="10">{note}</font>>' if note else f'"{title}"'
        fill, outline = COLORS.get(block.kind, OTHER_COLORS)
        width = 0.085 * max(len(title), 0.85 * len(note)) + 0.25
        if block.kind == "join":
            width = max(width, sum(widths[read] + GAP for read in block.reads) - GAP)
        elif block.kind == "input":
            width = max(width, 2 * GAP * sum(0 in other.reads for other in blocks))
        shape = " shape=circle margin=0 width=0.3" if block.label == "+" else f" width={width:.2f}"
        widths.append(width)
        ranks.append(1 + max((ranks[read] for read in block.reads), default=-1))
        lines.append(f'{number} [label={label} fillcolor="{fill}" color="{outline}"{shape}]')
        for read in block.reads:
            skips = ranks[number] - ranks[read] > 1
            lines.append(f"{read} -> {number} [weight={0 if skips else 10}]")
    source = "\n".join([*lines, "}"])
    return subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=True).stdout


def blocks(name: str) -> list[Block]:
    """The blocks of an architecture, from the word vectors to the decoder."""
    cfg = config(name)
    encoder = trace(instantiate(cfg.model)(input_size=INPUT_SIZE))
    decoder = get_class(cfg.decoder._target_).__name__
    scores = Block("dense", "dense\na score for each tag", (len(encoder) - 1,))
    return [*encoder, scores, Block("decoder", DECODERS.get(decoder, decoder), (len(encoder),))]


def config(name: str) -> DictConfig:
    setting = paper(name)
    cfg = compose([f"paper={setting}", f"model={name}"]).copy()
    OmegaConf.set_readonly(cfg, False)
    cfg.layers = NUM_LAYERS.get(setting, 2)
    for key in SMALL.keys() & cfg.model.keys():
        cfg.model[key] = SMALL[key]
    return cfg


def paper(name: str) -> str:
    """The choice of conf/paper named by the first line of the model's YAML, or `none`."""
    first = (CONF / f"model/{name}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    words = first.replace(",", " ").split()
    return next((setting for author, setting in PAPERS.items() if author in words), "none")


def trace(model: nn.Module) -> list[Block]:
    """The blocks from the input to the output, each after those that it reads."""
    drawing = Drawing(model.eval())
    x = torch.randn(len(LENGTHS), max(LENGTHS), INPUT_SIZE)
    output = model(drawing.traced(x, drawing.add("input", "word vectors x", ())), torch.tensor(LENGTHS))
    assert output.parts == (len(drawing.blocks) - 1,), "the output comes from the last block alone"
    return drawing.blocks


class Drawing:
    """Records the blocks of one model while it runs."""

    def __init__(self, model: nn.Module) -> None:
        self.blocks: list[Block] = []
        for child in model.children():
            for module in leaves(child):
                module.forward = partial(self.run, module, module.forward)

    def add(self, kind: str, label: str, reads: Reads) -> Reads:
        self.blocks.append(Block(kind, label, reads))
        return (len(self.blocks) - 1,)

    def traced(self, tensor: Tensor, parts: Reads, reversed_: bool = False) -> Traced:
        result = tensor.as_subclass(Traced)
        result.parts, result.reversed, result.drawing = parts, reversed_, self
        return result

    def run(self, module: nn.Module, forward: Any, x: Traced, *args: Any, **kwargs: Any) -> Any:
        """Run a module on plain tensors, and mark its output with the blocks that it comes from."""
        result = forward(x.as_subclass(Tensor), *args, **kwargs)
        value, *others = result if isinstance(result, tuple) else (result,)
        backwards = x.reversed != kwargs.get("backwards", False)
        output = self.traced(value, blocks_of(module, self, x.parts, backwards), x.reversed)
        return (output, *others) if isinstance(result, tuple) else output

    def after(self, name: str, result: Tensor, operands: list[Traced]) -> Traced:
        """Mark the result of a PyTorch function on outputs of blocks."""
        first = operands[0]
        if name == "zeros_like":
            return self.traced(result, ())
        if name in UNCHANGED:
            return self.traced(result, first.parts, first.reversed)
        if name == "index_select":
            return self.traced(result, first.parts, not first.reversed)
        assert all(operand.reversed == first.reversed for operand in operands), "both orders of words at once"
        parts = tuple(part for operand in operands for part in operand.parts)
        adds = name in ("add", "__add__")
        if not (name == "stack" or (len(parts) == 1 and (adds or name == "cat"))):
            kind, label = ("sum", "+") if adds else ("other", SYMBOLS.get(name, name))
            parts = self.add(*(("join", "concatenate") if name == "cat" else (kind, label)), parts)
        return self.traced(result, parts, first.reversed)


class Traced(Tensor):
    """A tensor that carries the blocks whose outputs it holds, concatenated or stacked."""

    parts: Reads
    reversed: bool
    """Whether the sentences run from the last word to the first."""
    drawing: Drawing

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        operands = [each for each in flat(args) if isinstance(each, Traced)]
        first = operands[0]
        if isinstance(result, tuple) and all(isinstance(each, Tensor) for each in result):
            pairs = zip(result, first.parts, strict=True)  # only what was stacked is split
            return [first.drawing.traced(piece, (part,), first.reversed) for piece, part in pairs]
        return first.drawing.after(func.__name__, result, operands) if isinstance(result, Tensor) else result


def flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from flat(value) if isinstance(value, list | tuple) else [value]


def leaves(module: nn.Module) -> Iterator[nn.Module]:
    """The modules that are blocks, or whose blocks `blocks_of` lists."""
    children = [*module.children()]
    if type(module) in blocks_of.registry or not children:
        yield module
    else:
        for child in children:
            yield from leaves(child)


@singledispatch
def blocks_of(module: nn.Module, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    """Add the blocks of a module that reads the outputs of `x`, and return those that its output comes from."""
    kind = "norm" if isinstance(module, nn.LayerNorm) else "other"
    return drawing.add(kind, "layer norm" if kind == "norm" else type(module).__name__, x)


@blocks_of.register
def _(module: nn.Identity, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    return x


@blocks_of.register
def _(module: nn.Linear, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    return drawing.add("dense", "dense", x)


@blocks_of.register(nn.Dropout)
@blocks_of.register(VariationalDropout)
def _(module: Any, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    label = "dropout\none mask per sentence" if isinstance(module, VariationalDropout) else "dropout"
    return drawing.add("dropout", label, x) if module.p else x


@blocks_of.register
def _(module: UniRNN, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    peepholes = isinstance(module.cell, PeepholeLSTM)
    cell, note = ("LSTM", "with peepholes") if peepholes else (type(module.cell).__name__, "")
    for _ in range(len(module.cell.layers) if peepholes else module.cell.num_layers):
        x = recurrent(drawing, x, backwards, note, cell)
    return x


@blocks_of.register
def _(module: VariationalLSTMs, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    """One LSTM per direction, each with a mask on its input and one on the h that it carries over."""
    ends: Reads = ()
    for direction, below in enumerate(x):
        read = blocks_of(module.dropout, drawing, (below,), False)
        ends += recurrent(drawing, read, bool(direction), "dropout on h" if module.units.dropout.p else "")
    return ends


@blocks_of.register
def _(module: BiLSTMUnits, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    note = "dropout on h" if module.dropout.p else ""
    ends: Reads = ()
    for unit in range(module.recurrent_weights.shape[1]):
        both = recurrent(drawing, x, False, note) + recurrent(drawing, x, True, note)
        ends += drawing.add("join", f"unit {unit + 1}", both)
    return ends


@blocks_of.register
def _(module: Concat, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    return drawing.add("join", "concatenate", x)


@blocks_of.register
def _(module: Mean, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    return drawing.add("sum", "mean", x)


@blocks_of.register
def _(module: SelfAttention, drawing: Drawing, x: Reads, backwards: bool) -> Reads:
    return tuple(
        part for head in range(module.num_heads) for part in drawing.add("head", f"head {head + 1}", x)
    )


def recurrent(drawing: Drawing, x: Reads, backwards: bool, note: str, cell: str = "LSTM") -> Reads:
    label = f"← {cell}" if backwards else f"{cell} →"
    return drawing.add("backward" if backwards else "forward", f"{label}\n{note}" if note else label, x)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
