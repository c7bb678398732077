"""Where corpora come from: files that lie elsewhere or are missing, their checksums, and conf/data."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest
from corpus_files import DEV, TEST, TRAIN, columns, tags
from omegaconf import OmegaConf
from places import CONF

from ner_experiments.config.stand_ins import build_part
from ner_experiments.data.corpus import Source, ToyCorpus, load
from ner_experiments.data.files import ColumnFiles, GoldConllFiles

DATA = os.environ.get("NER_DATA_DIR")
SOURCES = CONF / "data"


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST})
    (tmp_path / "train.txt").unlink()
    (tmp_path / "test.txt").unlink()
    start = f"mine: not found in {tmp_path}: train.txt, test.txt"
    place = f"Put it there, or set NER_DATA_DIR to the folder that holds {tmp_path.name}/"
    get = "To download it there: ner-experiments data get mine"
    about = {"source": "My names, https://example.org", "licence": "CC0"}
    for told, message in (
        ({}, start),
        (about, f"{start}. This is My names, https://example.org. Licence: CC0. {place}"),
        (
            about | {"url": "https://x"},
            f"{start}. This is My names, https://example.org. Licence: CC0. {get}",
        ),
    ):
        with pytest.raises(ValueError, match="not found") as caught:
            ColumnFiles(
                name="mine", folder=str(tmp_path), files=source.files, columns=source.columns, **told
            ).read()
        assert str(caught.value) == message


def test_files_may_lie_elsewhere_and_be_absent(tmp_path: Path) -> None:
    (tmp_path / "far.txt").write_text(TRAIN)
    files = {"train": str(tmp_path / "far.txt"), "dev": None, "test": None}
    source = ColumnFiles(
        name="mine", folder="elsewhere", files=files, columns={"word": 0, "tag": -1}, held_out=0.5
    )
    assert tags(load(source)) == {"train": ["S-ORG O S-MISC"], "dev": ["B-PER E-PER S-PER"]}


def test_gold_conll_is_a_tree_in_a_fixed_order(tmp_path: Path) -> None:
    documents = {
        "train/data/english/annotations/nw/wsj/00/b.v4_gold_conll": ("Rome", "(GPE)"),
        "train/data/english/annotations/bc/cnn/00/a.gold_conll": ("Ada", "(PERSON)"),
        "train/data/english/annotations/pt/nt/40/c.gold_conll": ("verily", "*"),
        "train/data/chinese/annotations/nw/x/00/d.gold_conll": ("罗马", "(GPE)"),
        "development/data/english/annotations/wb/x/00/e.gold_conll": ("rain", "*"),
        "test/data/english/annotations/tc/x/00/f.gold_conll": ("Eve", "(PERSON)"),
        "conll-2012-test/data/english/annotations/tc/x/00/f.gold_conll": ("Eve", "(PERSON)"),
        "train/data/english/annotations/nw/wsj/00/b.v4_gold_skel": ("[WORD]", "(GPE)"),
    }
    for name, (word, names) in documents.items():
        path = tmp_path / "ontonotes5" / "any" / "depth" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x 0 0 {word} NN (TOP*) - - - - {names} -\n\n", encoding="utf-8")
    source = described("ontonotes5", tmp_path)
    assert isinstance(source, GoldConllFiles)
    read = {split: [" ".join(s.words) for s in sentences] for split, sentences in source.read().items()}
    assert read == {"train": ["Ada", "Rome"], "dev": ["rain"], "test": ["Eve"]}
    assert tags(load(source)) == {"train": ["S-PERSON", "S-GPE"], "dev": ["O"], "test": ["S-PERSON"]}


def test_patterns_of_gold_conll_may_be_absolute_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.gold_conll"
    path.write_text("x 0 0 Ada NN (TOP*) - - - - (PERSON) -\n\n")
    for pattern in (path, tmp_path.parent / "*" / "a.gold*"):
        source = GoldConllFiles(name="mine", folder="elsewhere", files={"train": str(pattern)})
        assert path in source.paths()["train"]
    for pattern in ("", "**x", "."):
        source = GoldConllFiles(name="mine", folder=str(tmp_path), files={"train": pattern})
        rule = f"expected a path or a pattern such as train/**/*_gold_conll, got {pattern!r}"
        with pytest.raises(ValueError, match=f"^{re.escape(f'mine: data.files: {rule}')}$"):
            source.paths()


def test_docstart_lines_are_counted_apart(tmp_path: Path) -> None:
    docstart = "-DOCSTART- O\n\n"
    source = columns(tmp_path, {"train": "\ufeff" + docstart + TRAIN + "\n" + docstart + DEV, "dev": DEV})
    assert source.docstart_blocks() == {"train": 2}
    assert {split: len(sentences) for split, sentences in source.read().items()} == {"train": 3, "dev": 1}


def test_the_checksum_is_of_split_name_and_content(tmp_path: Path) -> None:
    texts = {"train": TRAIN, "dev": DEV}
    here, there, other = (tmp_path / name for name in ("here", "there", "other"))
    for folder in (here, there, other):
        folder.mkdir()
    lines = (
        f"{split} {split}.txt {hashlib.sha256(text.encode()).hexdigest()}\n" for split, text in texts.items()
    )
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert load(columns(here, texts)).checksum == expected
    assert columns(there, texts, max_sentences=1).checksum() == expected
    assert columns(other, {"train": TRAIN, "dev": TEST}).checksum() != expected
    swapped = ColumnFiles(
        name="mine",
        folder=str(here),
        files={"train": "dev.txt", "dev": "train.txt"},
        columns={"word": 0, "tag": 1},
    )
    assert swapped.checksum() != expected


def test_files_that_differ_from_the_published_ones_are_reported(tmp_path: Path) -> None:
    published = {
        split: hashlib.sha256(text.encode()).hexdigest() for split, text in (("train", TRAIN), ("dev", DEV))
    }
    source = columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST}, sha256=published)
    assert source.unofficial() == ["test"]
    assert load(source).notes == ("test: the checksum is not that of the published file",)
    assert columns(tmp_path, {"train": TRAIN, "dev": DEV}, sha256=published).unofficial() == []
    assert columns(tmp_path, {"train": TRAIN}).unofficial() is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_toys_are_the_same_every_time(language: str) -> None:
    def toy(**sizes: int) -> ToyCorpus:
        return ToyCorpus(name="toy", language=language, sentences=sizes)

    corpus = load(toy(train=30, dev=10, test=10))
    assert {split: len(sentences) for split, sentences in corpus.splits.items()} == {
        "train": 30,
        "dev": 10,
        "test": 10,
    }
    assert corpus.notes == ()
    assert toy(train=30, dev=10, test=10).checksum() == corpus.checksum
    assert toy(train=31, dev=10, test=10).checksum() != corpus.checksum
    assert toy(train=30, dev=10, test=10).unofficial() is None
    with pytest.raises(ValueError, match=r"^toy: sentences\.dev must be at least 1, got 0$"):
        toy(train=1, dev=0).read()


def described(name: str, folder: str | Path) -> Source:
    """Source described by conf/data/NAME.yaml, with its files under `folder`."""
    cfg = OmegaConf.create({"data_dir": str(folder), "data": OmegaConf.load(SOURCES / f"{name}.yaml")})
    if OmegaConf.is_missing(cfg.data, "name"):  # a format, for a corpus that the user names
        cfg.data.name = name
    return build_part(cfg.data)


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_yaml_describes_a_source_of_its_name(path: Path) -> None:
    source = described(path.stem, "anywhere")
    assert source.name == path.stem
    assert source.max_sentences is None
    assert path.read_text(encoding="utf-8").startswith("# ")
    if not isinstance(source, ToyCorpus):
        with pytest.raises(ValueError, match=f"^{path.stem}: no"):
            source.read()
