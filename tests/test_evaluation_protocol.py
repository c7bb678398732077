"""Trustworthy numbers: equal to conlleval's, reproducible, selected without test, audited for leakage."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import conlleval
import hydra
import pytest
import torch
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import load_file

from ner_experiments import experiment_data, train
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.config.config_dirs import names
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import convert
from ner_experiments.metrics import SpanF1
from ner_experiments.runs.predictions import iob2, seqeval_f1, write_predictions
from ner_experiments.tables import origin

Tags = Sequence[str]
KINDS = ("A", "B-x", "creative-work")
STORED = sorted((Path(__file__).parent / "conlleval").glob("*.conll"))
"""The suite's own text, beside each file the output of the original conlleval (Perl, version 2004-01-26)."""
NUMBERS = pytest.mark.parametrize("number", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
SMALL = ["data.max_sentences=40", "trainer.max_epochs=1", "runtime.progress=false", "runtime.accelerator=cpu"]


def configure(*overrides: str) -> DictConfig:
    with hydra_context():
        return hydra.compose(CONFIG_NAME, overrides=[*SMALL, *overrides])


def weights(result: dict[str, Any]) -> dict[str, bytes]:
    stored = load_file(Path(result["folder"]) / "model.safetensors")
    return {name: weight.numpy().tobytes() for name, weight in stored.items()}


# conlleval


def labels(letters: str, kinds: Tags = KINDS) -> list[str]:
    return ["O", *(f"{letter}-{kind}" for letter in letters for kind in kinds)]


def metric(sentences: Sequence[tuple[Tags, Tags]], kinds: Tags = KINDS) -> dict[str, Any]:
    """The suite's report for gold and predicted tags, which may be any BIOES tags."""
    ids = {label: number for number, label in enumerate(labels("BIES", kinds))}
    score = SpanF1(list(ids))
    for first in range(0, len(sentences), 2000):
        part = sentences[first : first + 2000]
        lengths = torch.tensor([len(gold) for gold, _ in part])
        longest = int(lengths.max())
        gold, predicted = (
            torch.tensor([[ids[tag] for tag in tags] + [0] * (longest - len(tags)) for tags in side])
            for side in zip(*part, strict=True)
        )
        score.update(predicted, gold, torch.arange(longest) < lengths[:, None])
    return score.compute()


def as_bioes(pairs: Iterable[Sequence[Tags]]) -> list[tuple[Tags, Tags]]:
    return [(convert(gold, "bioes"), convert(predicted, "bioes")) for gold, predicted in pairs]


def check_counts(report: dict[str, Any], expected: conlleval.Counts) -> None:
    for name in ("correct", "predicted", "gold"):
        ours = Counter({kind: counts[name] for kind, counts in report["types"].items()})
        assert +ours == +Counter({k: n for k, n in getattr(expected, name).items() if k})
    totals = (report["correct"], report["predicted"], report["gold"])
    assert conlleval.figures(*totals) == (
        f"precision: {100 * report['precision']:6.2f}%; recall: {100 * report['recall']:6.2f}%; "
        f"FB1: {100 * report['f1']:6.2f}"
    )


def random_pairs(letters: str, number: int, seed: int) -> Iterator[tuple[list[str], list[str]]]:
    """Gold and predicted tags, legal or not; predictions keep seven tenths of the gold tags."""
    draw, known = random.Random(seed), labels(letters)
    for _ in range(number):
        gold = draw.choices([*known, "O", "O"], k=draw.randint(1, 6))
        yield gold, [draw.choice(known) if draw.random() < 0.3 else tag for tag in gold]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_the_loops_that_stand_for_conlleval_print_what_it_printed(path: Path) -> None:
    text = path.read_text()
    blocks = [block.split("\n") for block in text.rstrip("\n").split("\n\n")]
    lines = [[tuple(line.split(" ")[1:]) for line in block] for block in blocks]
    printed = path.with_suffix(".txt").read_text()
    assert conlleval.printed(conlleval.count(lines)) == printed
    if path.stem != "ioe":  # a scheme that the suite does not read
        pairs = [tuple(zip(*block, strict=True)) for block in lines]
        kinds = sorted({tag[2:] for pair in pairs for tags in pair for tag in tags if tag != "O"})
        report = metric(as_bioes(pairs), kinds)
        assert f"found: {report['predicted']} phrases; correct: {report['correct']}.\n" in printed
        assert f"FB1: {100 * report['f1']:6.2f}\n" in printed


@NUMBERS
def test_pairs_of_any_iob_tags_are_scored_as_by_conlleval(number: int) -> None:
    """Tags are read as `data.tags` reads a corpus, and counted by the metric."""
    raw = list(random_pairs("BI", number, seed=1))
    report = metric(as_bioes(raw))
    assert 0.3 < report["f1"] < 0.9
    check_counts(report, conlleval.count(zip(*pair, strict=True) for pair in raw))


@NUMBERS
def test_predictions_of_any_bioes_tags_are_written_as_they_are_scored(number: int) -> None:
    """conlleval's counts on predictions/*.conll are those in metrics.json."""
    converted = (
        (convert(gold, "bioes"), predicted) for gold, predicted in random_pairs("BIES", number, seed=2)
    )
    pairs = list(converted)
    report = metric(pairs)
    assert 0.1 < report["f1"] < 0.9
    assert report["illegal_tags"] > number
    as_written = ((iob2(gold), iob2(predicted)) for gold, predicted in pairs)
    check_counts(report, conlleval.count(zip(*pair, strict=True) for pair in as_written))


def test_the_file_of_predictions_itself(tmp_path: Path) -> None:
    pairs = [(convert(gold, "bioes"), predicted) for gold, predicted in random_pairs("BIES", 300, seed=3)]
    sentences = [Sentence(("a b",) * len(gold), tuple(gold)) for gold, _ in pairs]
    path = tmp_path / "predictions" / "test.conll"
    write_predictions(path, "mentions", sentences, [predicted for _, predicted in pairs])
    blocks = path.read_text().rstrip("\n").split("\n\n")
    counts = conlleval.count([tuple(line.split(" ")[1:]) for line in block.split("\n")] for block in blocks)
    report = metric(pairs)
    check_counts(report, counts)
    assert seqeval_f1(path) == pytest.approx(report["f1"], abs=1e-12)


# The same twice


FAST = ("attention", "parallel")


@pytest.mark.parametrize(
    "model", [it if it in FAST else pytest.param(it, marks=pytest.mark.slow) for it in names("model")]
)
def test_the_same_seed_gives_every_architecture_the_same_weights_twice(model: str, tmp_path: Path) -> None:
    """Bit for bit, dropout included, and everything reported but times."""
    few = [f"data.sentences.{split}=20" for split in ("train", "dev", "test")]
    cfg = configure(f"model={model}", "trainer.train_batches=2", "chars=none", *few)
    cfg.model.update({name: 8 for name in ("hidden_size", "dense_size", "unit_size") if name in cfg.model})
    jobs = [OmegaConf.merge(cfg, {"output_dir": f"{tmp_path}/{number}"}) for number in (1, 2)]
    first, again = map(train.train, jobs)
    assert first["folder"] != again["folder"]
    assert weights(first) == weights(again)
    for result in (first, again):
        for name in ("folder", "seconds", "tokens_per_second", "peak_memory_bytes", "sha256", "files"):
            result.pop(name, None)
    assert first == again


# Chosen by dev alone


def shuffled(corpus: Corpus) -> Corpus:
    """The corpus with the tags of its test sentences shuffled over all tokens."""
    test = corpus.splits["test"]
    tags = [tag for sentence in test for tag in sentence.tags]
    random.Random(0).shuffle(tags)
    dealt = iter(tags)
    poisoned = [replace(it, tags=tuple(next(dealt) for _ in it.words)) for it in test]
    return replace(corpus, splits={**corpus.splits, "test": poisoned})


def test_with_shuffled_test_labels_weights_and_epoch_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even though test is scored after every epoch, and there are epochs to choose from."""
    overrides = [
        *("model.hidden_size=8", "chars=none", "optimizer.lr=0.05", "trainer.gradient_clip=0"),
        *(
            "data.sentences={train: 100, dev: 100, test: 100}",
            "data.max_sentences=null",
            "trainer.max_epochs=12",
            "trainer.patience=2",
            "audit.test_every_epoch=true",
        ),
    ]
    honest = train.train(configure(*overrides, f"output_dir={tmp_path}/honest"))
    monkeypatch.setattr(experiment_data, "load_corpus", lambda source: shuffled(load_corpus(source)))
    poisoned = train.train(configure(*overrides, f"output_dir={tmp_path}/poisoned"))
    assert honest["test"]["f1"] > 0.3 > 0.1 > poisoned["test"]["f1"]
    assert weights(honest) == weights(poisoned)
    for name in ("best_epoch", "epochs", "dev", "identity"):
        assert honest[name] == poisoned[name]
    assert 1 < honest["best_epoch"] < honest["epochs"]


# Leaks


def write_corpus(folder: Path) -> list[str]:
    """A corpus with two test sentences in train (one twice, with other tags), one in dev; one dev sentence in train."""
    train = ["Ann B-PER\nsat O", "a O\ncat O", "Bob B-PER\nran O\nfar O", *["so O\nit O\nwent O"] * 30]
    dev = ["Eve B-PER\nsat O", "a O\ncat O", "Eve B-PER\nran O"]
    test = ["Ann O\nsat O", "Ann O\nsat O", "Bob B-PER\nran O", "far O\nran O\nBob B-PER", "Eve B-PER\nran O"]
    files = []
    for name, sentences in (("train", train), ("dev", dev), ("test", test)):
        (folder / name).write_text("\n\n".join(sentences) + "\n")
        files.append(f"data.files.{name}={folder}/{name}")
    return ["data=conll", "data.name=conll", *files]


def test_every_result_counts_test_sentences_seen_in_train(tmp_path: Path) -> None:
    """Leaked means the same words in the same order; tags do not matter, and a longer sentence is not a leak."""
    overrides = [*write_corpus(tmp_path), "chars=none", "model.hidden_size=4", f"output_dir={tmp_path}/out"]
    result = train.train(configure(*overrides))
    audit = {"dev_in_train": 1, "test_in_train": 2, "test_in_dev": 1}
    assert json.loads((Path(result["folder"]) / "metrics.json").read_text())["data"]["leakage"] == audit
    note = "sentences that also occur in another split: 1 dev in train, 2 test in train, 1 test in dev"
    assert origin.of_data(result["data"])[1][-1] == note


def test_a_result_of_old_says_nothing_of_leaks() -> None:
    assert origin.of_data({"name": "a", "checksum": "b", "notes": ["c"]})[1] == ("c",)
