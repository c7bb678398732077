"""Figures of ten steps of each paper's setting, and of three steps of every choice of every part.

They say whether a change of the code changed a number (CONTRIBUTING.md). Whether a number is right is for the tests of
its part to say.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import golden
import pytest
import torch
import yaml
from omegaconf import DictConfig, OmegaConf
from places import CONF

from ner_experiments import train
from ner_experiments.commands.smoke import write_bert, write_corpus, write_gazetteer, write_vectors
from ner_experiments.config.compose import compose, resolved
from ner_experiments.config.config_dirs import names
from ner_experiments.data.encoder import Batch
from ner_experiments.data.indexed_text import EXACT
from ner_experiments.training import graphs
from ner_experiments.training.graphs import Graphs, Losses, shape_of

TOY = ["data.sentences={train: 40, dev: 4, test: 4}"]
TEN_STEPS = ["trainer.max_epochs=2", "trainer.train_batches=5"]
PAPERS = {
    "huang2015": ["data=conll2003", "words=senna", "direct=ner_gazetteer"],
    "li2020": ["data=toy_en", *TOY],
    "yang2020": ["data=toy_zh", *TOY],
    "yang2020_bert": ["data=toy_zh", *TOY, *(f"init_from.{item}" for item in TEN_STEPS)],
    "yang2020_en": ["data=toy_en", *TOY],
    "zukov2018": ["data=toy_en", *TOY],
}
NO_PARTS = {"data", "data_trainer", "logger", "paper", "search", "trainer"}
PARTS = sorted({path.name for path in CONF.iterdir() if path.is_dir()} - NO_PARTS)
THREE_STEPS = ["data=conll2003", "trainer.max_epochs=1", "trainer.train_batches=3"]
SMALL = {
    "model": {"num_layers": 3, "hidden_size": 6, "dense_size": 8, "unit_size": 4},
    "words.module": {"dim": 8},
    "batches": {"tokens": 60, "sentences": 6},
}
BERT, VECTORS = "words.input.path={folder}/bert", "words.input.path={folder}/data/glove/glove.6B.100d.txt"
NEEDED = {
    "paper=yang2020_bert": BERT,
    "penalty=orthogonality": "model=parallel",
    "words=bert": BERT,
    "words=bert_frozen": BERT,
    "words=bert_frozen_live": BERT,
    "words=vectors": VECTORS,
}
"""The settings that a choice requires."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with stand-ins for the files that the settings read."""
    folder = tmp_path_factory.mktemp("golden")
    write_vectors(folder / "data")
    write_gazetteer(folder / "data")
    torch.manual_seed(0)  # its weights are random
    write_bert(folder / "bert")
    write_corpus(resolved(("data=conll2003", f"data_dir={folder}/data"))["data"])
    return folder


def test_each_paper_has_a_curve() -> None:
    assert [*PAPERS] == [name for name in names("paper") if name != "none"]


REPLAYED = pytest.param("replayed", marks=pytest.mark.slow)


@pytest.fixture
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Steps as they are, and recorded and replayed, each in the shape of its own batch."""
    if request.param == "eager":
        yield
        return
    replayed = []

    class Replayed(Graphs):
        def step(self, batch: Batch) -> Losses:
            self.recorded.setdefault(shape_of(batch), None)  # without a first step that is eager
            losses = super().step(batch)
            replayed.append(not losses["loss"].requires_grad)
            return losses

    monkeypatch.setattr(train, "uses_graphs", lambda cfg: True)
    monkeypatch.setattr(train, "ROUNDED", EXACT)
    monkeypatch.setattr(graphs, "Graphs", Replayed)
    yield
    assert replayed
    assert all(replayed)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("steps", ["eager", "replayed"], indirect=True)
@pytest.mark.parametrize("paper", PAPERS)
def test_ten_steps_of_a_paper_give_its_golden_curve(paper: str, folder: Path) -> None:
    cfg = composed([f"paper={paper}", *PAPERS[paper], *TEN_STEPS], folder)
    golden.check(paper, dict(golden.curve(cfg)))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("steps", ["eager", REPLAYED], indirect=True)
@pytest.mark.parametrize("part", PARTS)
def test_three_steps_of_each_choice_give_its_golden_line(part: str, folder: Path) -> None:
    figures = {}
    for choice in choices(part):
        cfg = composed([*choice, *THREE_STEPS], folder)
        figures[" ".join(choice)] = golden.in_one_line(cfg)
    golden.check(part, figures)


def choices(part: str) -> Iterator[list[str]]:
    """Overrides for each choice of a part, and for each choice of a group below it that is not its default."""
    for name in names(part):
        yield [f"{part}={name}"]
        content = yaml.safe_load((CONF / part / f"{name}.yaml").read_text())
        for item in content.get("defaults", ()):
            for group, default in item.items() if isinstance(item, dict) else ():
                others = set(names(f"{part}/{group}")) - {default}
                yield from ([f"{part}={name}", f"{part}/{group}={other}"] for other in sorted(others))


def composed(overrides: Sequence[str], folder: Path) -> DictConfig:
    """The config of a run of small parts, which reads the files in the folder."""
    needed = NEEDED.get(overrides[0], "").format(folder=folder)
    places = [f"data_dir={folder}/data", f"cache_dir={folder}/cache"]
    quiet = ["runtime.progress=false", "runtime.accelerator=cpu", "audit.test=false"]
    cfg = compose([*overrides, *filter(None, [needed]), *places, *quiet]).copy()
    OmegaConf.set_readonly(cfg, False)
    for place, sizes in SMALL.items():
        have = OmegaConf.select(cfg, place) or {}
        have.update({key: size for key, size in sizes.items() if key in have})
    return cfg
