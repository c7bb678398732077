"""Tiny stand-ins for the files that published tables need: corpora, word vectors, name lists, a BERT.

The text is that of the toy corpora, written in each corpus' own format; the numbers are random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ner_experiments.data import toy
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import convert, spans

SIZES: dict[toy.Split, int] = {"train": 40, "dev": 10, "test": 10}
CHINESE = ("msra", "weibo", "ontonotes4")
VECTORS = {
    "senna/senna.txt": 50,
    "glove/glove.6B.100d.txt": 100,
    "glove/glove.6B.300d.txt": 300,
    "glove/glove.840B.300d.txt": 300,
    "twitter/word2vec_twitter_model.bin": 400,
}
"""Files under the data folder, and how many numbers they have for a word."""


def write_corpus(data: Mapping[str, Any]) -> None:
    """The files that a choice of conf/data names, where it names them."""
    language: toy.Language = "zh" if data["name"] in CHINESE else "en"
    for split, file in data["files"].items():
        sentences = toy.sentences(language, split, SIZES[split])
        reader = data["_target_"].rpartition(".")[2]
        path = gold_conll_path(data, split) if reader == "GoldConllFiles" else Path(data["folder"]) / file
        lines = FORMATS[reader](data, sentences)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def columns(data: Mapping[str, Any], sentences: list[Sentence]) -> Iterator[str]:
    for sentence in sentences:
        pos = [part_of_speech(word) for word in sentence.words]
        words = [word + "0" * data.get("first_character", False) for word in sentence.words]
        mentions = data.get("task", "mentions") == "mentions"
        known = {
            "word": words,
            "pos": pos,
            "chunk": ["O" if tag == "." else "I-NP" for tag in pos],
            "tag": convert(sentence.tags, data["scheme"]) if mentions else pos,
        }
        order = sorted(data["columns"], key=data["columns"].get)
        yield from (" ".join(fields) for fields in zip(*(known[name] for name in order), strict=True))
        yield ""


def part_of_speech(word: str) -> str:
    return "." if not word[0].isalnum() else "NNP" if word[0].isupper() else "NN"


def gold_conll_path(data: Mapping[str, Any], split: str) -> Path:
    """A path that fits the pattern of the split."""
    folder = {"dev": "development"}.get(split, split)
    return Path(data["folder"]) / folder / "data/english/annotations/nw/toy/toy.gold_conll"


def gold_conll(data: Mapping[str, Any], sentences: list[Sentence]) -> Iterator[str]:
    """Names in brackets in the eleventh of twelve columns."""
    yield "#begin document (toy); part 000"
    for sentence in sentences:
        names = ["*"] * len(sentence)
        for start, end, kind in spans(sentence.tags):
            names[start] = f"({kind}*"
            names[end - 1] = f"({kind})" if end - start == 1 else "*)"
        for number, (word, name) in enumerate(zip(sentence.words, names, strict=True)):
            tag = part_of_speech(word)
            yield f"toy 0 {number} {word} {tag} * - - - - {name} -"
        yield ""
    yield "#end document"


def conllu(data: Mapping[str, Any], sentences: list[Sentence]) -> Iterator[str]:
    """Both columns of tags alike."""
    for sentence in sentences:
        for number, word in enumerate(sentence.words, start=1):
            tag = part_of_speech(word)
            yield "\t".join([str(number), word, "_", tag, tag, *5 * "_"])
        yield ""


FORMATS = {"ColumnFiles": columns, "GoldConllFiles": gold_conll, "ConlluFiles": conllu}


def write_vectors(data_dir: Path) -> None:
    """For two words in three, the rest being unknown."""
    words = dict.fromkeys(word for sentence in english() for word in sentence.words)
    rng = np.random.default_rng(0)
    for name, dim in VECTORS.items():
        path = data_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for number, word in enumerate(words):
                if number % 3:
                    numbers = " ".join(f"{value:.3f}" for value in rng.normal(size=dim))
                    file.write(f"{word} {numbers}\n")


def write_gazetteer(data_dir: Path) -> None:
    """The names of train, a list for each of their types."""
    folder = data_dir / "gazetteer"
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, list[str]] = {kind: [] for kind in toy.TYPES}
    for sentence in toy.sentences("en", "train", SIZES["train"]):
        for start, end, kind in spans(sentence.tags):
            names[kind].append(" ".join(sentence.words[start:end]))
    for kind, found in names.items():
        (folder / f"{kind}.txt").write_text("".join(f"{name}\n" for name in found), encoding="utf-8")


def write_bert(folder: Path) -> None:
    """One layer, a piece for each character of the toy corpora. Needs transformers."""
    from transformers import BertConfig, BertModel

    texts = [*english(), *toy.sentences("zh", "train", SIZES["train"])]
    letters = sorted({character for sentence in texts for word in sentence.words for character in word})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def english() -> list[Sentence]:
    return [sentence for split, count in SIZES.items() for sentence in toy.sentences("en", split, count)]
