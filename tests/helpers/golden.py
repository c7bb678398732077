"""Golden curves: figures of a short training in tests/golden/, and whether a run of the present code has them still.

`NER_GOLDEN=write python -m pytest -q tests/test_golden.py` rewrites the lines whose figures differ.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from ner_experiments import train
from ner_experiments.tagger import part_of

FOLDER = Path(__file__).parents[1] / "golden"
REWRITE = os.environ.get("NER_GOLDEN") == "write"
TOLERANCE = 1e-6
"""Relative. Measured between AVX-512 and AVX2: 4e-10; and without vector instructions, on two threads: 2e-7."""


class Recorder(Callback):
    """Weights before and after training, outputs of the parts in the first step, and the loss of every step.

    Training is in float64. In float32, Adam turns the rounding of gradients near 0 into steps as large as any other,
    and after ten of them the losses of two processors differ by 5e-4; AdamW and Adam differ by less.
    """

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        module.double()  # weights that were drawn in float32
        for part in module.inputs.values():
            part.register_forward_hook(lambda _, __, vectors: vectors.double())  # those of a frozen BERT

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self.initial, self.outputs, self.steps = weights(module), {}, []

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, number: int) -> None:
        self.hooks = []
        if self.steps:
            return
        parts = {**module.inputs, "model": module.model, "output": module.output}
        parts |= {f"direct.{name}": part for name, part in module.direct.items()}

        def watch(name: str, part: nn.Module) -> Any:
            def record(_: nn.Module, __: Any, output: Tensor) -> None:
                is_padded = output.shape[:2] == batch.mask.shape
                self.outputs[name] = norm([output[batch.mask] if is_padded else output])

            return part.register_forward_hook(record)

        self.hooks = [watch(name, part) for name, part in parts.items()]

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
        for hook in self.hooks:
            hook.remove()
        self.steps.append((float(outputs["loss"]), int(batch.lengths.sum())))

    def on_train_end(self, trainer: Any, module: Any) -> None:
        pairs = {name: zip(last, self.initial[name], strict=True) for name, last in weights(module).items()}
        self.changes = {name: [last - first for last, first in pair] for name, pair in pairs.items()}


def weights(module: nn.Module) -> dict[str, list[Tensor]]:
    """Copies of the weights of each part."""
    parts: dict[str, list[Tensor]] = {}
    for name, weight in module.named_parameters():
        parts.setdefault(part_of(name), []).append(weight.detach().double().clone())
    return parts


def norm(tensors: Sequence[Tensor]) -> float:
    """Euclidean norm of all numbers in the tensors."""
    return float(torch.stack([tensor.detach().double().norm() for tensor in tensors]).norm())


def recorded(cfg: DictConfig) -> Recorder:
    """Figures of a run that is trained as by the command, but in float64; of two stages, those of the second."""
    recorder, monitoring = Recorder(), train.monitoring_callbacks
    with (
        pytest.MonkeyPatch.context() as patch,
        TemporaryDirectory() as folder,
    ):  # a finished run is not trained
        patch.setattr(train, "monitoring_callbacks", lambda *parts: [*monitoring(*parts), recorder])
        train.train(OmegaConf.merge(cfg, {"output_dir": folder}))
    return recorder


def curve(cfg: DictConfig) -> Iterator[tuple[str, str]]:
    """Figures by name, in the order in which a run computes them: the first that differs names what changed."""
    found = recorded(cfg)
    for name, tensors in found.initial.items():
        yield f"initial weights of {name}", f"norm {norm(tensors):.8g}"
    for name, value in found.outputs.items():
        yield f"output of {name} in step 1", f"norm {value:.8g}"
    for number, (loss, tokens) in enumerate(found.steps, start=1):
        yield f"step {number}", f"loss {loss:.8g} of {tokens} tokens"
    for name, tensors in found.changes.items():
        yield f"change of {name} in all steps", f"norm {norm(tensors):.8g}"


def in_one_line(cfg: DictConfig) -> str:
    """The figures of all parts together."""
    found = recorded(cfg)
    initial, change = (
        norm([tensor for tensors in parts.values() for tensor in tensors])
        for parts in (found.initial, found.changes)
    )
    steps = ", ".join(f"{loss:.8g} of {tokens}" for loss, tokens in found.steps)
    return f"initial {initial:.8g}, losses {steps} tokens, change {change:.8g}"


def check(name: str, figures: Mapping[str, str]) -> None:
    """Fail if the figures are not those of the file, within the tolerance; or rewrite the lines that differ."""
    path = FOLDER / f"{name}.txt"
    golden = dict(line.split(": ") for line in path.read_text().splitlines()) if path.exists() else {}
    golden = {key: figure.strip() for key, figure in golden.items()}
    same = {key: golden[key] for key in figures if key in golden and agree(golden[key], figures[key])}
    if REWRITE:
        width = max(map(len, figures)) + 1
        lines = [f"{f'{key}:':<{width}} {same.get(key, figure)}\n" for key, figure in figures.items()]
        path.write_text("".join(lines))
        return
    differing = [
        f"{key}: {golden.get(key, 'missing')}, now {figures.get(key, 'missing')}"
        for key in {**figures, **golden}
        if key not in same
    ]
    if differing:
        text = f"{path.name}: {len(differing)} of {len({**figures, **golden})} figures differ:"
        pytest.fail("\n".join([text, *differing]), pytrace=False)


def agree(one: str, other: str) -> bool:
    """Whether both have the same words, and numbers that are equal within the tolerance."""
    pairs = [*zip(one.split(), other.split(), strict=False)]
    return len(one.split()) == len(other.split()) and all(close(*pair) for pair in pairs)


def close(one: str, other: str) -> bool:
    try:
        return float(one.rstrip(",")) == pytest.approx(float(other.rstrip(",")), rel=TOLERANCE, abs=1e-12)
    except ValueError:
        return one == other
