"""load(): the content of the files reaches the models, and nothing is lost without a message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from corpus_files import DEV, TEST, TRAIN, columns, tags

from ner_experiments.data import corpus as corpus_module
from ner_experiments.data.corpus import load
from ner_experiments.data.files import ColumnFiles, ConlluFiles


def test_mentions_reach_the_models_as_bioes(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST}))
    assert tags(corpus) == {
        "train": ["S-ORG O S-MISC", "B-PER E-PER S-PER"],
        "dev": ["S-LOC"],
        "test": ["O O S-LOC"],
    }
    assert list(corpus.splits) == ["train", "dev", "test"]
    assert corpus.splits["train"][1].words == ("Ada", "Lovelace", "Eve")
    assert (corpus.name, corpus.task, corpus.notes) == ("mine", "mentions", ())


def test_splits_that_hold_the_same_sentences_are_noted(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": TRAIN, "dev": TEST, "test": TEST}))
    assert corpus.notes == ("dev and test contain the same sentences, word for word",)


def test_a_test_set_inside_another_split_is_noted(tmp_path: Path) -> None:
    more = "Paris I-LOC\n\n"
    inside = load(
        columns(tmp_path, {"train": more + TEST + "\n" + TRAIN, "dev": DEV, "test": TEST + "\n" + DEV})
    )
    assert inside.notes == ("all 2 sentences of test are in train, word for word",)
    partly = load(columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST + "\n" + DEV}))
    assert partly.notes == ()


def test_the_same_content_is_read_once_and_a_changed_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, calls = ColumnFiles.read, []
    monkeypatch.setattr(ColumnFiles, "read", lambda *args: calls.append(args) or read(*args))
    texts = {"train": TRAIN, "dev": DEV, "test": TEST}
    first = load(columns(tmp_path, texts))
    assert load(columns(tmp_path, texts)) is first
    assert load(columns(tmp_path, texts, max_sentences=1)) != first
    source = columns(tmp_path, texts | {"dev": TRAIN})
    changed = load(source)
    assert (len(calls), tags(changed)["dev"]) == (3, tags(first)["train"])
    (tmp_path / "dev.txt").unlink()
    with pytest.raises(ValueError, match=r"dev\.txt"):
        load(source)


@pytest.mark.parametrize(
    ("scheme", "text"),
    [
        ("iob1", "a I-X\nb I-X\nc B-X\nd I-Y\ne O\nf I-X\n"),
        ("iob2", "a B-X\nb I-X\nc B-X\nd B-Y\ne O\nf B-X\n"),
        ("bioes", "a B-X\nb E-X\nc S-X\nd S-Y\ne O\nf S-X\n"),
        ("bmes", "a B-X\nb E-X\nc S-X\nd S-Y\ne O\nf B-X\ng M-X\nh E-X\n"),
    ],
)
@pytest.mark.parametrize("stated", [True, False])
def test_every_scheme_is_read_whether_stated_or_detected(
    scheme: str, text: str, stated: bool, tmp_path: Path
) -> None:
    corpus = load(columns(tmp_path, {"train": text, "dev": text}, scheme=scheme if stated else "auto"))
    expected = "B-X E-X S-X S-Y O " + ("B-X I-X E-X" if scheme == "bmes" else "S-X")
    assert tags(corpus) == {"train": [expected], "dev": [expected]}
    silent = stated or scheme == "iob2"
    assert corpus.notes == (() if silent else (f"tags read as {scheme}, detected from their letters",))


def test_all_splits_tell_the_scheme(tmp_path: Path) -> None:
    corpus = load(
        columns(tmp_path, {"train": "a B-X\n", "dev": "a O\nb I-X\n", "test": "a I-X\n"}, scheme="auto")
    )
    assert corpus.notes[0] == "tags read as iob1, detected from their letters"
    assert corpus.notes[1].startswith("tags that break iob1: 1 in train (first: ")


def test_illegal_gold_tags_are_mentions_as_for_conlleval(tmp_path: Path) -> None:
    text = "a O\nb I-X\nc I-Y\nd I-Y\n\ne I-X\n"
    corpus = load(columns(tmp_path, {"train": text, "dev": DEV.replace("I-", "B-")}, scheme="iob2"))
    assert tags(corpus)["train"] == ["O S-X B-Y E-Y", "S-X"]


def test_a_lost_mention_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = columns(tmp_path, {"train": TRAIN}, held_out=0.5)

    to_bioes = corpus_module._to_bioes

    def forgetful(sentences: Any, windows: Any) -> Any:
        converted = to_bioes(sentences, windows)
        tags = (tuple("S-LOC" if tag == "B-PER" else "O" for tag in it.tags) for it in converted)
        return [replace(it, tags=each) for it, each in zip(converted, tags, strict=True)]

    monkeypatch.setattr(corpus_module, "_to_bioes", forgetful)
    with pytest.raises(ValueError, match="mentions") as caught:
        load(source)
    assert str(caught.value) == (
        "mine: train has 4 mentions in its files and 1 as BIOES "
        "(lost: {'ORG': 1, 'MISC': 1, 'PER': 2}, added: {'LOC': 1})"
    )


def test_tags_that_are_no_mentions_stay_as_they_are(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": "a DT\nS-x NN\n", "dev": "b I-NP\n"}, task="tags"))
    assert corpus.task == "tags"
    assert tags(corpus) == {"train": ["DT NN"], "dev": ["I-NP"]}
    assert corpus.notes == ()


def test_conllu_gives_the_tags_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(
        "1\tIt\tit\tPRON\tPRP" + "\t_" * 5 + "\n2\truns\trun\tVERB\tVBZ" + "\t_" * 5 + "\n"
    )
    for tag, expected in (("xpos", "PRP VBZ"), ("upos", "PRON VERB")):
        files = {"train": "a.conllu", "dev": "a.conllu"}
        corpus = load(ConlluFiles(name="ud", folder=str(tmp_path), files=files, tag=tag))
        assert corpus.task == "tags"
        assert tags(corpus) == {"train": [expected], "dev": [expected]}


def numbered(count: int) -> str:
    return "".join(f"word{number} O\n\n" for number in range(count))


def test_without_dev_the_end_of_train_is_held_out(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": numbered(1995), "test": TEST}, held_out=0.1))
    words = {split: [s.words[0] for s in sentences] for split, sentences in corpus.splits.items()}
    assert list(words) == ["train", "dev", "test"]
    assert words["train"] == [f"word{number}" for number in range(1795)]
    assert words["dev"] == [f"word{number}" for number in range(1795, 1995)]  # 199.5, rounded to even
    assert corpus.notes == (
        "dev: the last 200 of train's 1,995 sentences, as the corpus has no development set",
    )


def test_dev_is_not_held_out_where_there_is_one(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": numbered(10), "dev": DEV}, held_out=0.5))
    assert [len(corpus.splits[split]) for split in ("train", "dev")] == [10, 1]
    assert corpus.notes == ()


def test_the_limit_comes_after_holding_out(tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": numbered(2000), "test": TEST}, held_out=0.5, max_sentences=999)
    corpus = load(source)
    assert {split: len(sentences) for split, sentences in corpus.splits.items()} == {
        "train": 999,
        "dev": 999,
        "test": 1,
    }
    assert corpus.splits["dev"][0].words == ("word1000",)
    assert corpus.notes[1] == "limited to the first 999 sentences of each split"
    assert all(len(source.read()[split]) == count for split, count in (("train", 2000), ("test", 1)))
