"""The diagrams say what the architectures do: by gradients, by the XOR measurement, and as the papers say."""

import importlib
import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.utils import instantiate

from ner_experiments.xor.measurement import ROUNDING, interaction

ROOT = Path(__file__).parent.parent
MODELS = sorted(path.stem for path in (ROOT / "conf/model").glob("*.yaml"))
SVG = "{http://www.w3.org/2000/svg}"
LINEAR = {"input", "join", "sum", "dropout"}


@cache
def tool(name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        return importlib.import_module(name)


@cache
def blocks(name: str) -> list[Any]:
    return tool("diagrams").blocks(name)


def kinds(name: str, *wanted: str) -> list[int]:
    return [number for number, block in enumerate(blocks(name)) if block.kind in wanted]


def plain(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Kinds and what they read, without dropout: who reads it reads what it reads."""
    found, at = [], {}
    for number, block in enumerate(blocks(name)):
        reads = tuple(at[read] for read in block.reads)
        if block.kind == "dropout":
            (at[number],) = reads
        else:
            at[number] = len(found)
            found.append((block.kind, reads))
    return found


def below(name: str, number: int) -> set[int]:
    """The blocks that a block reads, directly or not."""
    reads = {*blocks(name)[number].reads}
    return reads.union(*(below(name, read) for read in reads))


@pytest.mark.parametrize("name", MODELS)
def test_the_drawn_file_is_the_architecture(name: str) -> None:
    root = ET.parse(ROOT / f"docs/diagrams/{name}.svg").getroot()
    assert json.loads(root.findtext(f"{SVG}metadata")) == tool("diagram_svg").data(blocks(name)), (
        "make diagrams"
    )
    drawn = [group for group in root.iter(f"{SVG}g") if group.get("class") != "arrow"]
    texts = ["\n".join(text.text or "" for text in group.iter(f"{SVG}text")) for group in drawn]
    assert texts == [block.label for block in blocks(name)]
    arrows = [group for group in root.iter(f"{SVG}g") if group.get("class") == "arrow"]
    assert len(arrows) == sum(len(block.reads) for block in blocks(name))


@cache
def boxes(name: str) -> list[tuple[float, ...]]:
    found = []
    for rectangle in ET.parse(ROOT / f"docs/diagrams/{name}.svg").getroot().iter(f"{SVG}rect"):
        x, y, width, height = (float(rectangle.get(key, "")) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


@pytest.mark.parametrize("name", MODELS)
def test_no_box_covers_another_or_leaves_the_picture(name: str) -> None:
    root = ET.parse(ROOT / f"docs/diagrams/{name}.svg").getroot()
    width, height = (float(root.get(key, "")) for key in ("width", "height"))
    found = boxes(name)
    assert all(
        left >= 0 and top >= 0 and right <= width and bottom <= height for left, top, right, bottom in found
    )
    for one, two in combinations(found, 2):
        assert one[2] < two[0] or two[2] < one[0] or one[3] < two[1] or two[3] < one[1]


@pytest.mark.parametrize("name", MODELS)
def test_no_arrow_runs_through_a_box(name: str) -> None:
    """Its straight parts, each of which passes a rank, or goes from one to the next."""
    root = ET.parse(ROOT / f"docs/diagrams/{name}.svg").getroot()
    for group in root.iter(f"{SVG}g"):
        if group.get("class") != "arrow":
            continue
        path = next(group.iter(f"{SVG}path")).get("d", "")
        points = [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+) ([-\d.]+)(?=[MLC]|$)", path)]
        for (x, y), (to_x, to_y) in pairwise(points):
            if abs(x - to_x) < 0.05:
                assert not any(
                    left < x < right and top < y and bottom > to_y for left, top, right, bottom in boxes(name)
                )


@pytest.mark.parametrize("name", MODELS)
def test_an_lstm_sees_past_and_future_as_the_diagram_says(name: str) -> None:
    """By autograd: which tokens of the input the state at a token in the middle depends on."""
    (x, *_) = (block.value for block in blocks(name))
    for number in kinds(name, "ahead", "back"):
        on_the_way = {blocks(name)[each].kind for each in {number, *below(name, number)}}
        state = blocks(name)[number].value[:, 1]
        (by,) = torch.autograd.grad(state.sum(), x, retain_graph=True)
        assert (bool(by[:, :1].any()), bool(by[:, 2:].any())) == ("ahead" in on_the_way, "back" in on_the_way)


@pytest.mark.parametrize("name", MODELS)
def test_sums_and_joins_are_those_of_what_they_are_said_to_read(name: str) -> None:
    for number in kinds(name, "sum", "join"):
        block, values = (
            blocks(name)[number],
            [blocks(name)[read].value for read in blocks(name)[number].reads],
        )
        expected = sum(values) if block.kind == "sum" else torch.cat(values, dim=-1)
        torch.testing.assert_close(block.value.flatten(2), expected)


@pytest.mark.parametrize("name", MODELS)
def test_directions_meet_where_past_and_future_interact(name: str) -> None:
    """The oracle is the mixed second difference of what the model gives, which knows of no diagram."""
    meets = any(
        {"ahead", "back"} <= {blocks(name)[read].kind for read in below(name, number)}
        for number, block in enumerate(blocks(name)[:-2])
        if block.kind not in LINEAR
    )
    torch.manual_seed(0)
    model = instantiate(tool("diagrams").config(name).model)(input_size=5).double().eval()
    past, now, future = torch.randn(3, 2, 5, dtype=torch.float64)
    phrases = torch.stack([torch.stack([past[i], now[0], future[j]]) for i in range(2) for j in range(2)])
    scores = model(phrases, torch.tensor(4 * [3]))[:, 1].view(1, 2, 2, -1)
    assert meets == (interaction(scores).item() > ROUNDING)


def test_baselines_directions_never_meet_below_the_output() -> None:
    ahead, back = [("ahead", (0,)), ("ahead", (1,))], [("back", (0,)), ("back", (2,))]
    assert plain("baseline") == [
        ("input", ()),
        ahead[0],
        back[0],
        ahead[1],
        back[1],
        ("join", (3, 4)),
        ("dense", (5,)),
        ("decoder", (6,)),
    ]


def test_each_direction_of_cross_reads_both_of_the_layer_below() -> None:
    layers = [
        ("ahead", (0,)),
        ("back", (0,)),
        ("join", (1, 2)),
        ("ahead", (3,)),
        ("back", (3,)),
        ("join", (4, 5)),
    ]
    assert plain("cross") == [("input", ()), *layers, ("dense", (6,)), ("decoder", (7,))]


def test_attentions_heads_read_h_and_the_scores_read_h_beside_them() -> None:
    heads = kinds("attention", "head")
    assert len(heads) == 5
    (h,) = {read for head in heads for read in blocks("attention")[head].reads}
    assert blocks("attention")[heads[-1] + 1].reads == (h, *heads)
    below_h = [kind for kind, _ in plain("attention")[: len(plain("baseline")) - 2]]
    assert below_h == [kind for kind, _ in plain("baseline")[:-2]]


def shortcuts(name: str) -> list[tuple[int, int]]:
    """Of each sum, which outputs of layers it adds up, counted from 1; of a sum in a sum, all."""
    found = plain(name)
    layers = [number for number, (kind, _) in enumerate(found) if kind == "join"]

    def held(number: int) -> tuple[int, ...]:
        kind, reads = found[number]
        return (layers.index(number) + 1,) if kind == "join" else sum((held(read) for read in reads), ())

    return [held(number) for number, (kind, _) in enumerate(found) if kind == "sum"]


def test_the_residual_sum_carries_the_layer_before_and_never_more() -> None:
    """Yang & Xu (2020), eq. 7 and 3; C is the same without dense, norm and ReLU; A adds up all layers."""
    assert shortcuts("residual") == shortcuts("residual_c") == [(1, 2), (2, 3)]
    assert shortcuts("residual_a") == [(1, 2), (1, 2, 3)]
    assert shortcuts("stacked") == []


def test_the_block_of_residual_is_dense_norm_relu_dropout_bilstm() -> None:
    first_sum = kinds("residual", "sum")[0]
    block = [blocks("residual")[number] for number in range(first_sum + 1, first_sum + 8)]
    parts = ["dense", "norm", "activation", "dropout", "ahead", "back", "join"]
    assert [each.kind for each in block] == parts
    assert not kinds("residual_c", "norm", "activation", "dropout")


def test_type_b_adds_before_the_layer_and_its_top_is_in_no_sum() -> None:
    assert shortcuts("residual_b") == [(1, 2)]
    (added,) = kinds("residual_b", "sum")
    assert [blocks("residual_b")[number].kind for number in readers("residual_b", added)] == ["ahead", "back"]
    assert [blocks("residual_b")[-3].kind, blocks("residual_a")[-3].kind] == ["join", "sum"]


def readers(name: str, number: int) -> list[int]:
    return [reader for reader, block in enumerate(blocks(name)) if number in block.reads]


def test_type_d_is_type_c_in_each_direction_by_itself() -> None:
    (top,) = kinds("residual_d", "join")
    ahead, back = blocks("residual_d")[top].reads
    assert {blocks("residual_d")[n].kind for n in below("residual_d", ahead)} == {"input", "ahead", "sum"}
    assert {blocks("residual_d")[n].kind for n in below("residual_d", back)} == {"input", "back", "sum"}
    for direction, kind in ((ahead, "ahead"), (back, "back")):
        layers = [n for n in sorted(below("residual_d", direction)) if blocks("residual_d")[n].kind == kind]
        sums = [
            n
            for n in sorted({*below("residual_d", direction), direction})
            if blocks("residual_d")[n].kind == "sum"
        ]
        assert [blocks("residual_d")[n].reads for n in sums] == [
            (layers[0], layers[1]),
            (layers[1], layers[2]),
        ]


def test_parallel_has_k_units_that_read_the_input_alone() -> None:
    units = tool("diagrams").SMALL["num_units"]
    pairs = [("ahead", (0,)), ("back", (0,))]
    expected = [part for k in range(units) for part in [*pairs, ("join", (3 * k + 1, 3 * k + 2))]]
    ends = tuple(3 * k + 3 for k in range(units))
    top = [("join", ends), ("dense", (3 * units + 1,)), ("decoder", (3 * units + 2,))]
    assert plain("parallel") == [("input", ()), *expected, *top]


def test_on_top_stands_the_decoder_of_the_paper() -> None:
    tops = {name: blocks(name)[-1].label for name in MODELS}
    softmax = {"attention", "baseline", "cross", "parallel"}
    assert tops == {name: "softmax" if name in softmax else "CRF" for name in MODELS}


def test_what_a_model_does_itself_is_drawn_too() -> None:
    class Gated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = torch.nn.Linear(5, 5)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return self.gate(x).sigmoid() * x

    found = tool("diagram_blocks").trace(Gated())
    assert [(block.label, block.reads) for block in found[1:]] == [
        ("dense", (0,)),
        ("sigmoid", (1,)),
        ("×", (2, 0)),
    ]


def test_the_page_shows_every_architecture() -> None:
    page = (ROOT / "docs/architectures.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\(diagrams/(\w+)\.svg\)", page)) == MODELS
