"""Scores are those of `predict`: gold decides no token of dev and test, and no gold mention is dropped.

An oracle: F1 by characters of what the run's tagger finds in the raw texts, against the offsets of the files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from annotated_files import lines_of
from conlleval import count
from hydra.utils import instantiate
from tiny_runs import finished

import ner_experiments
from ner_experiments.analysis.archive import run_errors
from ner_experiments.config.compose import compose
from ner_experiments.data.corpus import load
from ner_experiments.data.formats.registry import FORMATS
from ner_experiments.runs import predictions
from ner_experiments.runs.run import open_run

Record = tuple[str, list[tuple[int, int, str]]]
"""A text, and its mentions by characters."""

PEOPLE, CITIES = ("Ada", "Bob Katz", "Cleo", "Dan"), ("Oslo", "Lima", "Paris", "New Bern")
SETTINGS = ["data.name=made", "data.misaligned=split", "trainer.max_epochs=5", "chars=none"]


def made(seed: int, count: int) -> list[Record]:
    """Texts in which some mentions are parts of a token, and some cross what `predict` takes for a sentence's end."""
    rng = random.Random(seed)
    records = []
    for number in range(count):
        person, city = rng.choice(PEOPLE), rng.choice(CITIES)
        parts: list[str | tuple[str, str]] = [(person, "PER"), " visits ", (city, "LOC"), " today."]
        if number % 4 == 1:
            parts = ["The pre-", (city, "LOC"), " talks of ", (person, "PER"), " end."]
        if number % 8 == 2:
            parts = [(person, "PER"), " saw ", ("Who? What?", "WORK"), " in ", (city, "LOC"), "."]
        text, mentions = "", []
        for part in parts:
            word, type_ = part if isinstance(part, tuple) else (part, "")
            if type_:
                mentions.append((len(text), len(text) + len(word), type_))
            text += word
        records.append((text, mentions))
    return records


SPLITS = {"train": made(0, 100), "dev": made(1, 24), "test": made(2, 40)}


def write_brat(path: Path, records: Sequence[Record]) -> Path:
    path.mkdir()
    for number, (text, mentions) in enumerate(records):
        (path / f"{number:03}.txt").write_text(text)
        lines = [f"T{n}\t{t} {a} {b}\t{text[a:b]}\n" for n, (a, b, t) in enumerate(mentions, 1)]
        (path / f"{number:03}.ann").write_text("".join(lines))
    return path


def write_parquet(path: Path, records: Sequence[Record]) -> Path:
    pytest.importorskip("datasets")
    from pyarrow import Table, parquet

    keys = ("start", "end", "label")
    rows = [{"text": t, "entities": [dict(zip(keys, it, strict=True)) for it in m]} for t, m in records]
    path = path.with_suffix(".parquet")
    parquet.write_table(Table.from_pylist(rows), path)
    return path


def in_json(make: Callable[[str, list[Any]], Any]) -> Callable[[Path, Sequence[Record]], Path]:
    return lambda path, records: lines_of(
        path.with_suffix(".jsonl"), *(make(t, [[*it] for it in m]) for t, m in records)
    )


def label_studio(text: str, mentions: list[Any]) -> Any:
    values = [{"start": a, "end": b, "text": text[a:b], "labels": [t]} for a, b, t in mentions]
    results = [{"type": "labels", "value": value} for value in values]
    return {"data": {"text": text}, "annotations": [{"result": results}]}


WRITERS: Mapping[str, tuple[str, Callable[[Path, Sequence[Record]], Path]]] = {
    "jsonl_text": ("jsonl", in_json(lambda text, found: {"text": text, "entities": found})),
    "doccano": ("jsonl", in_json(lambda text, found: {"text": text, "label": found})),
    "spacy": ("jsonl", in_json(lambda text, found: [text, {"entities": found}])),
    "label_studio": ("jsonl", in_json(label_studio)),
    "brat": ("brat", write_brat),
    "hf": ("hf", write_parquet),
}
"""Kinds of files whose tokens the suite makes -> the config that reads them, and a writer of its own."""


def test_every_format_without_tokens_is_tried() -> None:
    assert {name for name, it in FORMATS.items() if not it.has_tokens} <= {*WRITERS}


def f1_by_characters(run: Path, records: Sequence[Record]) -> tuple[float, int, int, int]:
    tagger = ner_experiments.load(run)
    correct = predicted = gold = 0
    for text, mentions in records:
        found = {(m.start, m.end, m.type) for it in tagger.tag(text) for m in it.mentions}
        correct, predicted, gold = (
            correct + len(found & {*mentions}),
            predicted + len(found),
            gold + len(mentions),
        )
    return 2 * correct / (predicted + gold), correct, predicted, gold


def scores(metrics: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(metrics[name] for name in ("f1", "correct", "predicted", "gold"))


def files_of(kind: str, folder: Path) -> list[str]:
    """Settings of a corpus of this kind, which is written into the folder."""
    config, write = WRITERS[kind]
    splits = [f"data.files.{split}={write(folder / split, it)}" for split, it in SPLITS.items()]
    return [f"data={config}", *SETTINGS, *splits]


@pytest.mark.parametrize("kind", sorted({*WRITERS} - {"doccano"}))
def test_every_kind_of_file_has_the_same_sentences(kind: str, tmp_path: Path) -> None:
    def sentences(kind: str) -> list[list[tuple[Any, ...]]]:
        (tmp_path / kind).mkdir()
        corpus = load(instantiate(compose(files_of(kind, tmp_path / kind)).data))
        return [[(it.words, it.tags, it.unreachable) for it in split] for split in corpus.splits.values()]

    assert sentences(kind) == sentences("doccano")


def test_f1_is_that_of_predict_on_the_raw_texts(tmp_path: Path) -> None:
    run = finished(tmp_path, *files_of("doccano", tmp_path))
    metrics = json.loads((run / "metrics.json").read_text())
    for split in ("dev", "test"):
        expected = f1_by_characters(run, SPLITS[split])
        assert 0.3 < expected[0] < 0.95
        assert scores(metrics[split]) == expected
    assert metrics["data"]["notes"][-4:] == [
        "dev: 6 of 51 gold mentions start or end inside a token; they count as missing",
        "dev: 3 of 51 gold mentions cross the end of a sentence; they count as missing",
        "test: 10 of 85 gold mentions start or end inside a token; they count as missing",
        "test: 5 of 85 gold mentions cross the end of a sentence; they count as missing",
    ]
    of_work = metrics["test"]["types"]["WORK"]
    assert (of_work["recall"], of_work["correct"], of_work["gold"]) == (0, 0, 5)
    every_count_is_that_of_the_metric(run, expected)


def every_count_is_that_of_the_metric(folder: Path, expected: tuple[float, int, int, int]) -> None:
    run = open_run(folder)
    f1, *counts = expected
    assert run.counts().sum(axis=0).tolist() == counts
    assert predictions.seqeval_f1(folder / "predictions/test.conll") == pytest.approx(f1, abs=1e-12)
    by_conlleval = count(zip(it.gold, it.predicted, strict=True) for it in run.predicted())
    assert [by_conlleval.correct.total(), by_conlleval.predicted.total(), by_conlleval.gold.total()] == counts
    errors = run_errors(run)
    for dimension, buckets in errors.breakdown.items():
        of_groups = np.sum([(it.correct, it.predicted, it.gold) for it in buckets.values()], axis=0)
        assert of_groups.tolist() == counts, dimension
    assert errors.kinds["missing"].count >= 15
    assert errors.confusion is not None
    assert sum(row[-1] for row in errors.confusion.counts) == errors.kinds["missing"].count
    assert [len(tags) for tags in run.predicted_tags()] == [it.num_tokens for it in run.predicted()]


def test_dev_held_out_from_train_is_scored_as_predicted(tmp_path: Path) -> None:
    records = made(0, 120)
    path = WRITERS["doccano"][1](tmp_path / "train", records)
    run = finished(tmp_path, "data=jsonl", *SETTINGS, f"data.files.train={path}", "data.held_out=0.2")
    metrics = json.loads((run / "metrics.json").read_text())
    assert scores(metrics["dev"]) == f1_by_characters(run, records[-24:])
    assert metrics["data"]["notes"][-2:] == [
        "dev: 6 of 51 gold mentions start or end inside a token; they count as missing",
        "dev: 3 of 51 gold mentions cross the end of a sentence; they count as missing",
    ]


def test_lines_that_are_sentences_in_the_corpus_are_sentences_for_predict(tmp_path: Path) -> None:
    records = [(text.replace(" today.", "\ntoday."), found) for text, found in made(3, 60)]
    path = WRITERS["doccano"][1](tmp_path / "train", records)
    files = [f"data.files.{split}={path}" for split in ("train", "dev", "test")]
    run = finished(tmp_path, "data=jsonl", *SETTINGS, *files, "data.lines=true")
    metrics = json.loads((run / "metrics.json").read_text())
    assert scores(metrics["test"]) == f1_by_characters(run, records)
