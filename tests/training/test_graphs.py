"""Training steps as CUDA graphs: batches of few shapes, nothing that waits for the device, and replays in a run.

A processor shows all but the recording itself: there a replay computes the step again, on the same tensors in place.
"""

import csv
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from tiny_bert import fitted, random_text, save
from tiny_runs import TINY
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ner_experiments import train as training
from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import names
from ner_experiments.config.values import check_experiment
from ner_experiments.data.corpus import load
from ner_experiments.data.encoder import Batch, EncodedSplit
from ner_experiments.data.frozen import FrozenPieces
from ner_experiments.data.indexed_text import EXACT, ROUNDED, Multiples
from ner_experiments.data.pieces import Pieces
from ner_experiments.experiment_data import make_encoder
from ner_experiments.modules.kernels import cuda
from ner_experiments.modules.lookup import WithoutWaiting
from ner_experiments.training import graphs
from ner_experiments.training.graphs import Graphs, repeated
from ner_experiments.training.module import LightningTagger

TOY = ["data=toy_en", "data.sentences={train: 40, dev: 5, test: 5}"]
SMALL = {"hidden_size": 6, "dense_size": 8, "unit_size": 4, "num_layers": 2}
RANDOM = ["words=random", "words.module.dim=8"]
PAPERS = {
    "huang2015": [*RANDOM, "direct=spelling"],
    "li2020": [*RANDOM, "model=attention"],
    "yang2020_en": RANDOM,
    "zukov2018": RANDOM,
}
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def made(*overrides: str, device: str = "cpu") -> tuple[LightningTagger, EncodedSplit]:
    """A small tagger and the train split."""
    cfg = compose([*TOY, *overrides])
    small = [f"model.{name}={size}" for name, size in SMALL.items() if isinstance(cfg.model.get(name), int)]
    cfg = compose([*TOY, *overrides, *small])
    corpus, encoder = load(instantiate(cfg.data)), make_encoder(cfg)
    encoder.fit(corpus)
    torch.manual_seed(1)
    tagger = training.build_for_training(cfg, encoder).to(device)
    return tagger, encoder.encode(corpus.splits["train"], torch.device(device))


def loss_and_gradients(tagger: LightningTagger, batch: Batch) -> list[Tensor | None]:
    loss = tagger.losses(batch)["loss"]
    return [loss, *torch.autograd.grad(loss, tagger.trained(), allow_unused=True)]


CHOICES = [*(f"{part}={name}" for part in ("model", "decoder", "chars") for name in names(part))]
CHOICES += ["direct=context", "direct=spelling"]


@pytest.mark.parametrize("choice", CHOICES)
def test_fillers_and_padding_change_no_loss_and_no_gradient(choice: str) -> None:
    tagger, split = made(*RANDOM, *choice.split())
    tagger.double().eval()  # without dropout, whose masks depend on the shape
    exact, more = (
        split.batch(np.array([3, 0, 8, 5, 9]), multiples=each)
        for each in (EXACT, Multiples(sentences=4, time=3, rows=7))
    )
    assert len(more.lengths) == 8
    assert more.mask.shape[1] % 3 == len(more.inputs["words"]) % 7 == 0
    expected = loss_and_gradients(tagger, exact)
    torch.testing.assert_close(loss_and_gradients(tagger, more), expected, rtol=1e-10, atol=1e-13)
    with WithoutWaiting():
        torch.testing.assert_close(loss_and_gradients(tagger, more), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", [Pieces, partial(FrozenPieces, cache=None)], ids=["tuned", "frozen"])
def test_the_rounded_input_of_a_bert_has_the_same_rows_for_the_same_tokens(
    kind: Callable[..., Any], tmp_path: Path
) -> None:
    text = random_text(3, 30, 7)
    input = fitted(kind(path=str(save(tmp_path / "bert")), max_length=16, overlap=4), text)
    tags = np.zeros(len(text.tokens), dtype=np.int64)
    split = EncodedSplit(text, tags, {"words": input}, torch.device("cpu"))

    def of_tokens(multiples: Multiples) -> Tensor:
        batch = split.batch(np.arange(3), multiples=multiples)
        rows = batch.inputs["words"]
        first = rows.pieces if isinstance(rows, tuple) else rows
        assert len(first) % (multiples.sentences if isinstance(rows, tuple) else multiples.rows) == 0
        vectors = first.flatten() if isinstance(rows, tuple) else rows
        return batch.spread("words", vectors)[batch.mask][: text.lengths.sum()]

    assert torch.equal(of_tokens(Multiples(sentences=4, time=3, rows=7)), of_tokens(EXACT))


class NothingMoved(TorchDispatchMode):
    """Fail for an operation that has tensors on a processor and elsewhere: to move them there, it waits."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **kwargs or {})
        copies = "copy" in str(operation)  # any other may take a number on the processor
        found = [x for x in tree_leaves([args, kwargs, result]) if isinstance(x, Tensor)]
        places = {x.device.type for x in found if x.ndim or copies}
        assert len(places) < 2, f"{operation} moves a tensor"
        return result


@pytest.fixture
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the device "meta", take the paths of a GPU, without its kernels. A tensor there has a shape but no values.

    Whatever needs a value raises an error there: item(), tolist(), bool(), nonzero, unique, a mask as an index.
    """
    monkeypatch.setattr(cuda, "supports_crf", lambda scores: True)
    monkeypatch.setattr(cuda, "supports_lstm", lambda weights, by_step: by_step or weights.shape[-1] <= 4)
    for name in ("launch_crf", "launch_lstm"):
        monkeypatch.setattr(cuda, name, lambda *_, **__: None)
    for name in ("crf_kernels", "lstm_kernels"):
        monkeypatch.setattr(cuda, name, Mock)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # does not know the device
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)


@pytest.mark.usefixtures("_as_on_a_gpu")
@pytest.mark.parametrize("paper", PAPERS)
def test_no_step_of_a_paper_waits_for_the_device(paper: str) -> None:
    tagger, split = made(f"paper={paper}", *PAPERS[paper], device="meta")
    steps = Graphs(tagger.losses, tagger.trained(), repeated)
    batch = split.batch(np.arange(9), multiples=ROUNDED)
    with NothingMoved():
        steps.step(batch)["loss"].backward()
        steps.step(batch)
    assert steps.replays == 1


@pytest.mark.parametrize(
    "waits",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.any()),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: x.unique(),
        lambda x: torch.eye(3).to(x),
        lambda x: torch.tensor(3.0).to(x),
    ],
)
def test_what_waits_is_noticed(waits: Callable[[Tensor], object]) -> None:
    with pytest.raises((RuntimeError, NotImplementedError, AssertionError)), NothingMoved():
        waits(torch.ones(3, 3, device="meta"))


@on_gpu
@pytest.mark.parametrize("paper", PAPERS)
def test_on_a_gpu_no_step_waits_and_a_graph_computes_what_an_eager_step_does(paper: str) -> None:
    """Bits are compared by benchmarks/gpu.py, where sums have a fixed order."""
    tagger, split = made(f"paper={paper}", *PAPERS[paper], device="cuda")
    batches = [split.batch(np.arange(9) + shift, multiples=ROUNDED) for shift in (0, 1, 2)]
    batches = [batch for batch in batches if graphs.shape_of(batch) == graphs.shape_of(batches[0])]
    steps = Graphs(tagger.losses, tagger.trained(), graphs.recorder(torch.device("cuda")))
    steps.step(batches[0])["loss"].backward()
    for batch in batches:
        torch.manual_seed(5)
        with WithoutWaiting():
            expected = loss_and_gradients(tagger, batch)
        torch.manual_seed(5)
        losses = steps.step(batch)
        torch.testing.assert_close([losses["loss"], *steps.gradients], expected, rtol=1e-3, atol=1e-5)
    torch.cuda.set_sync_debug_mode("error")
    try:
        steps.step(split.batch(np.arange(9), multiples=ROUNDED))
        steps.set_gradients()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def rows_of_log(folder: Path) -> Iterator[dict[str, float]]:
    for row in csv.DictReader((folder / "log.csv").read_text().splitlines()):
        yield {name: float(value) for name, value in row.items() if "seconds" not in name and name != "epoch"}


def test_a_run_replays_its_steps_and_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fifth step is eager, as its gradients are measured."""
    seen: list[Graphs] = []

    class Watched(Graphs):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            seen.append(self)

    monkeypatch.setattr(graphs, "Graphs", Watched)
    parts = [
        "model=parallel",
        "penalty=orthogonality",
        "model.num_units=2",
        "model.unit_size=4",
        "chars=none",
    ]
    parts += [*RANDOM, "model.dropout=0.0", "words.module.replace_singletons=0.0"]
    settings = [*TINY, *TOY, *parts, "optimizer=sgd", "trainer.max_epochs=3", "audit.gradients=5"]
    folders = []
    for choice in ("true", "false"):
        cfg = compose([*settings, f"runtime.cuda_graphs={choice}", f"output_dir={tmp_path / choice}"])
        folders.append(Path(training.train(cfg)["folder"]))
    (steps,) = seen
    assert steps.replays > 10
    logs = [[*rows_of_log(folder)] for folder in folders]
    assert logs[0] == [pytest.approx(row, rel=1e-4) for row in logs[1]]
    gradients = [[*csv.DictReader((folder / "gradients.csv").read_text().splitlines())] for folder in folders]
    norms = [[float(row["norm"]) for row in rows] for rows in gradients]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)


def test_weights_without_a_gradient_have_none_after_a_replay() -> None:
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    _, split = made(*RANDOM)
    batch = split.batch(np.arange(2), multiples=ROUNDED)
    steps = Graphs(lambda batch: {"loss": (used * batch.lengths.sum()).sum()}, [used, unused], repeated)
    for _ in range(2):
        losses = steps.step(batch)
    steps.set_gradients()
    assert used.grad is not None
    assert used.grad.tolist() == [float(batch.lengths.sum())] * 2
    assert unused.grad is None
    assert losses["loss"] is not steps.step(batch)["loss"]  # what was reported is not overwritten


def test_a_step_that_cannot_be_recorded_ends_the_run_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> dict[str, Tensor]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimpleNamespace)
    monkeypatch.setattr(torch.cuda, "graph", lambda *_, **__: nullcontext())
    with pytest.raises(ValueError, match=r"not permitted .* capturing; without: runtime\.cuda_graphs=false$"):
        graphs.captured(None, refuse)


def test_auto_is_off_until_a_gpu_has_shown_that_graphs_are_right() -> None:
    assert training.uses_graphs(compose(["runtime.cuda_graphs=true"]))
    for choice in ("auto", "false"):
        assert not training.uses_graphs(compose([f"runtime.cuda_graphs={choice}"]))
    with pytest.raises(ValueError, match=r"over 2 processes; use auto or false$"):
        check_experiment(compose(["runtime.cuda_graphs=true", "trainer.devices=2"]))
