"""Gradient norms, against vector-Jacobian products of a loop over the layers; measuring them changes nothing."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ner_experiments.config.compose import compose
from ner_experiments.models.residual import ResidualBiLSTM
from ner_experiments.models.residual_types import TypeA, TypeB, TypeD
from ner_experiments.models.stacked import StackedBiLSTM
from ner_experiments.modules.lstm import reverse
from ner_experiments.train import train
from ner_experiments.training.callbacks import StepSeeds
from ner_experiments.training.gradients import COLUMNS, LayerRecorder, subpart_of, weight_norms

SIZES: dict[str, Any] = {"input_size": 3, "num_layers": 4, "hidden_size": 2, "dropout": 0.0}
LENGTHS = torch.tensor([5, 3])
Steps = Callable[[list[nn.Module], Tensor], tuple[list[Tensor], list[Tensor], Tensor]]
"""From layers and input to the outputs h^1 ... h^n, the inputs of layers 2 ... n, and the stack's output."""


def plain(blocks: list[nn.Module], x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    outputs, read = [], []
    for block in blocks:
        read.append(x)
        x = block(x, LENGTHS)
        outputs.append(x)
    return outputs, read[1:], x


def local(blocks: list[nn.Module], x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Eq. 7: r^l = h^{l-1} + h^l."""
    h, read = [blocks[0](x, LENGTHS)], []
    r = h[0]
    for block in blocks[1:]:
        read.append(r)
        h.append(block(r, LENGTHS))
        r = h[-2] + h[-1]
    return h, read, r


def as_resnets(blocks: list[nn.Module], x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Type A: every layer reads the sum of all outputs below it, and the top is the sum of all."""
    h, read = [blocks[0](x, LENGTHS)], []
    for block in blocks[1:]:
        read.append(torch.stack(h).sum(0))
        h.append(block(read[-1], LENGTHS))
    return h, read, torch.stack(h).sum(0)


def addition_before(blocks: list[nn.Module], x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Type B: as type A, but the top is the highest layer alone."""
    h, read, _ = as_resnets(blocks, x)
    return h, read, h[-1]


def expected(blocks: list[nn.Module], x: Tensor, steps: Steps, upstream: Tensor) -> list[dict[str, Tensor]]:
    """dL/dh of each layer, in total and through the next block alone, from that block's own Jacobian."""
    h, read, top = steps(blocks, x)
    whole = torch.autograd.grad(top, h, upstream, retain_graph=True)
    found = [{"norm": gradient} for gradient in whole]
    for layer, block in enumerate(blocks[1:]):
        alone = read[layer].detach().requires_grad_()
        (through,) = torch.autograd.grad(block(alone, LENGTHS), alone, whole[layer + 1])
        found[layer] |= {"through_block": through, "by_shortcut": whole[layer] - through}
    return found


def measured(model: nn.Module, x: Tensor, upstream: Tensor) -> dict[int, dict[str, Tensor]]:
    layers = LayerRecorder(model)
    layers.recording = True
    found = layers.norms((model(x, LENGTHS) * upstream).sum())
    layers.remove()
    return dict(enumerate(found, start=1))


CASES = {
    "stacked": (StackedBiLSTM, plain),
    "residual_a": (TypeA, as_resnets),
    "residual_b": (TypeB, addition_before),
    "residual_d": (TypeD, local),
    "residual": (lambda **sizes: ResidualBiLSTM(dense_size=5, **sizes), local),
}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_through_a_block_and_by_its_shortcut_is_what_autograd_says(name: str) -> None:
    make, steps = CASES[name]
    model = make(**SIZES).double()
    x, upstream = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    if name == "residual_d":  # two stacks of one direction, of which the second reads backwards
        ahead = expected([*model.left_to_right], x, steps, upstream[..., :2])
        back = expected(
            [*model.right_to_left], reverse(x, LENGTHS), steps, reverse(upstream[..., 2:], LENGTHS)
        )
        right = [{it: torch.cat([a[it], b[it]], -1) for it in a} for a, b in zip(ahead, back, strict=True)]
    else:
        right = expected([*model.blocks], x, steps, upstream)
    found = measured(model, x, upstream)
    assert list(found) == [1, 2, 3, 4]
    for layer, gradients in enumerate(right, start=1):
        norms = {it: float(gradient.norm()) for it, gradient in gradients.items()}
        assert {it: float(norm) for it, norm in found[layer].items()} == pytest.approx(
            norms, rel=1e-5, abs=1e-7
        )
    assert "by_shortcut" not in found[4]
    if name == "stacked":
        assert all(found[layer]["by_shortcut"] == 0 for layer in (1, 2, 3))
    elif name == "residual_b":  # the sum that layer 4 reads goes nowhere else
        assert found[3]["by_shortcut"] < 1e-6 < found[2]["by_shortcut"]
    else:
        assert all(found[layer]["by_shortcut"] > 1e-3 for layer in (1, 2, 3))


def test_without_recording_nothing_is_stored() -> None:
    model, x = TypeA(**SIZES), torch.randn(2, 5, 3)
    layers = LayerRecorder(model)
    model(x, LENGTHS).sum().backward()
    assert not layers.recorded


def test_weights_are_taken_together_by_part() -> None:
    names = {
        "inputs.words.embedding.weight": "words",
        "direct.spelling.weights.weight": "direct.spelling",
        "model.blocks.2.rnn.left_to_right.cell.weight_ih_l0": "model.blocks.2",
        "model.layer.left_to_right.cell.weight_ih_l0": "model.layer",
        "model.bilstm.layers.1.input_weights": "model.bilstm.layers.1",
        "output.weight": "output",
        "decoder.transitions": "decoder",
    }
    assert {name: subpart_of(name) for name in names} == names
    module = nn.ModuleDict(
        {"output": nn.Linear(2, 1), "decoder": nn.EmbeddingBag(5, 2, mode="sum", sparse=True)}
    )
    module["output"](torch.tensor([[3.0, 4.0]])).sum().backward()
    module["decoder"](torch.tensor([[1, 1, 2]])).sum().backward()
    found = {name: float(norm) for name, norm in weight_norms(module).items()}
    assert found == pytest.approx({"output": 26**0.5, "decoder": (2 * 2**2 + 2 * 1) ** 0.5})


SMALL = ["data=toy_zh", "data.max_sentences=60", "model.hidden_size=6", "runtime.progress=false"]


def trained(output: Path, *overrides: str) -> dict[str, Any]:
    return train(compose([*SMALL, "trainer.max_epochs=2", f"output_dir={output}", *overrides]))


@pytest.mark.parametrize("model", ["residual", "stacked"])
def test_a_run_that_measures_has_the_weights_of_one_that_does_not(model: str, tmp_path: Path) -> None:
    one = trained(tmp_path / "one", f"model={model}", "layers=3")
    other = trained(tmp_path / "other", f"model={model}", "layers=3", "audit.gradients=1")
    assert one["identity"] == other["identity"]
    weights = [(Path(run["folder"]) / "model.safetensors").read_bytes() for run in (one, other)]
    assert weights[0] == weights[1]
    assert "gradients.csv" in other["files"]
    assert not (Path(one["folder"]) / "gradients.csv").exists()
    with (Path(other["folder"]) / "gradients.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == set(COLUMNS)
    layers = [row for row in rows if row["kind"] == "layer" and row["epoch"] == "2"]
    assert [row["part"] for row in layers] == ["1", "2", "3"]
    shares = [float(row["share"]) for row in layers[:2]]
    assert all(share == 0 for share in shares) if model == "stacked" else 0 < shares[0] < 1
    assert layers[2]["share"] == ""
    assert {row["steps"] for row in rows} == {str(int(rows[0]["steps"]))}


def test_a_norm_is_that_before_clipping(tmp_path: Path) -> None:
    runs = [
        trained(
            tmp_path / clip, "audit.gradients=1", f"trainer.gradient_clip={clip}", "trainer.train_batches=1"
        )
        for clip in ("0.0", "0.001")
    ]
    first = [(Path(run["folder"]) / "gradients.csv").read_text().split("\n2,")[0] for run in runs]
    assert first[0] == first[1]


def test_clipping_shortens_the_gradient_to_the_norm_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one vector of all weights, whose direction stays."""
    steps: list[Tensor] = []

    def note(callback: StepSeeds, trainer: Any, module: nn.Module, *_: Any) -> None:
        weights = [weight.grad for weight in module.parameters() if weight.grad is not None]
        steps.append(torch.cat([gradient.flatten() for gradient in weights]))

    monkeypatch.setattr(StepSeeds, "on_train_batch_end", note)
    for clip in (0.0, 0.01):
        trained(tmp_path / f"{clip}", f"trainer.gradient_clip={clip}", "trainer.train_batches=1")
    whole, _, clipped, _ = steps  # of two epochs each
    assert whole.norm() > 0.02
    torch.testing.assert_close(clipped, 0.01 * whole / whole.norm())


def test_a_negative_interval_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^audit\.gradients must be at least 0, got -1"):
        trained(tmp_path, "audit.gradients=-1")
