"""Corpora made in the layout of the real files: words, mentions, counts and a training, without licensed files."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_corpora
import pytest
from made_corpora import Gold, Made
from places import CONF

from ner_experiments.config.compose import compose
from ner_experiments.config.stand_ins import build_part
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import spans
from ner_experiments.main import cli
from ner_experiments.runs import predictions
from ner_experiments.train import train

MADE = [
    *(pytest.param(name, layout, id=name) for name, layout in made_corpora.LAYOUTS.items()),
    pytest.param("ontonotes5", made_corpora.ontonotes5_v4, id="ontonotes5 as in the shared task"),
]
made = pytest.mark.parametrize(("name", "layout"), MADE)


def gold_of(sentences: list[Sentence], task: str) -> list[Gold]:
    return [
        Gold(it.words, tags=it.tags) if task == "tags" else Gold(it.words, tuple(spans(it.tags)))
        for it in sentences
    ]


def plain(gold: list[Gold]) -> list[Gold]:
    return [Gold(it.words, it.mentions, it.tags) for it in gold]


def test_every_corpus_with_files_of_its_own_has_a_layout() -> None:
    own = {path.stem for path in (CONF / "data").glob("*.yaml") if "folder: ${data_dir}/" in path.read_text()}
    assert own == set(made_corpora.LAYOUTS)


@made
def test_what_is_read_is_what_was_made(name: str, layout: Callable[[], Made], tmp_path: Path) -> None:
    gold = layout().write(tmp_path / name)
    source = build_part(compose([f"data={name}", f"data_dir={tmp_path}"]).data)
    read = source.read()
    assert {split: gold_of(read[split], source.task) for split in read} == {
        split: plain(sentences) for split, sentences in gold.items()
    }
    illegal = sum(len(it.illegal) for sentences in gold.values() for it in sentences)
    assert (illegal > 0) is (name in ("conll2003", "weibo"))


@made
def test_data_check_counts_what_was_made(
    name: str,
    layout: Callable[[], Made],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path))
    gold = layout().write(tmp_path / name)
    assert cli(["data", "check", name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["splits"].keys() == gold.keys()
    for split, sentences in gold.items():
        counted = report["splits"][split]
        assert counted["sentences"] == len(sentences)
        assert counted["tokens"] == sum(len(it.words) for it in sentences)
        assert counted["mentions_by_type"] == Counter(kind for it in sentences for _, _, kind in it.mentions)
        assert counted["illegal_tags"] == sum(len(it.illegal) for it in sentences)
        assert Counter(counted.get("tags")) == Counter(tag for it in sentences for tag in it.tags)
        documents = (len(sentences) + 3) // 4 if name == "conll2003" else 0
        assert counted.get("sentences_with_docstart", len(sentences)) == len(sentences) + documents
    assert report["remarks"] == (
        ["empty tags read as O: 5 (first: msra_train_bio:10: '0\\t')"] if name == "msra" else []
    )


@made
def test_a_made_corpus_is_trained_on_and_its_gold_is_unchanged(
    name: str, layout: Callable[[], Made], tmp_path: Path
) -> None:
    gold = layout().write(tmp_path / name)
    small = ["model.hidden_size=4", "chars=none", "trainer.max_epochs=1", "runtime.progress=false"]
    places = [f"data_dir={tmp_path}", f"output_dir={tmp_path / 'runs'}", "runtime.accelerator=cpu"]
    result: dict[str, Any] = train(compose([f"data={name}", *small, *places]))
    predicted = predictions.read(Path(result["folder"]))
    found = [Sentence(it.words, it.gold) for it in predicted]
    task = "tags" if gold["test"][0].tags else "mentions"
    assert gold_of(found, task) == plain(gold["test"])
    assert result["test"]["gold"] == sum(len(it.tags or it.mentions) for it in gold["test"])
    assert ("dev" in gold) is not any("has no development set" in note for note in result["data"]["notes"])
