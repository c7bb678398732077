"""The diagrams say what the architectures do: by gradients, by the XOR measurement, and in what is drawn."""

import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from itertools import combinations, pairwise

import pytest
import torch
from diagram_models import MODELS, ROOT, below, blocks, kinds, tool
from hydra.utils import instantiate

from ner_experiments.xor.measurement import ROUNDING, interaction

SVG = "{http://www.w3.org/2000/svg}"
LINEAR = {"input", "join", "sum", "dropout"}


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
