"""The report of a corpus, which `ner-experiments data check` prints: the counts are those of the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from corpus_files import data_command
from in_process import Ner
from read_files import source
from rich.console import Console

from ner_experiments.data.corpus_report import corpus_report, print_report
from ner_experiments.data.files import ColumnFiles, ConlluFiles

TRAIN = """\
-DOCSTART- -X- O

Ada NN B-PER
Lovelace NN I-PER
Eve NN B-PER

It PRP O
rains VBZ O

-DOCSTART- -X- O

Rome NN I-LOC
[x] NN B-[x]
"""
TEST = "It PRP B-LOC\nrains VBZ O\n\nRome NN O\n[x] NN O\n\nit PRP O\nrains VBZ O\n\nIt NN O\nrains NN O\n"


@pytest.fixture
def mine(tmp_path: Path) -> ColumnFiles:
    (tmp_path / "a.train").write_text(TRAIN)
    (tmp_path / "a.test").write_text(TEST)
    return ColumnFiles(
        name="mine",
        folder=str(tmp_path),
        files={"train": "a.train", "dev": None, "test": "a.test"},
        columns={"word": 0, "tag": 2},
        scheme="iob2",
        sha256={"train": hashlib.sha256(TRAIN.encode()).hexdigest(), "test": "0" * 64},
        held_out=0.5,
        max_sentences=1,
    )


def test_the_counts_are_of_the_files_as_they_are(mine: ColumnFiles) -> None:
    assert corpus_report(mine) == {
        "name": "mine",
        "task": "mentions",
        "scheme": "iob2",
        "splits": {
            "train": {
                "sentences": 3,
                "sentences_with_docstart": 5,
                "tokens": 7,
                "longest_sentence": 3,
                "mentions": 4,
                "mentions_by_type": {"LOC": 1, "PER": 2, "[x]": 1},
                "illegal_tags": 1,
                "first_illegal_tag": "a.train:12: 'I-LOC'",
            },
            "test": {
                "sentences": 4,
                "tokens": 8,
                "longest_sentence": 2,
                "mentions": 1,
                "mentions_by_type": {"LOC": 1},
                "illegal_tags": 0,
            },
        },
        "duplicates": {"train/test": 3},
        "checksum": mine.checksum(),
        "official": False,
        "unofficial": ["test"],
        "remarks": [],
    }


def test_a_header_and_skipped_sentences_do_not_count_as_docstart_lines(tmp_path: Path) -> None:
    text = "token ner\n\n-DOCSTART- O\n\nAda B-PER\nsang O\n\nbroken\n\nrain O\n\n"
    skipping = source(
        "conll", tmp_path, {"train": text}, columns={"word": "auto", "tag": "auto"}, bad_lines="skip"
    )
    counts = corpus_report(skipping)["splits"]["train"]
    assert (counts["sentences"], counts["sentences_with_docstart"]) == (2, 3)


def test_text_and_json_say_the_same(mine: ColumnFiles, capsys: pytest.CaptureFixture[str]) -> None:
    assert data_command(["check", "mine", "--json"], mine) == 0
    assert json.loads(capsys.readouterr().out) == corpus_report(mine)
    assert data_command(["check", "mine"], mine) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.strip(" ─")] == [
        "mine (mentions, iob2)",
        "train test",
        "sentences 3 4",
        "with DOCSTART lines 5",
        "tokens 7 8",
        "longest sentence 3 2",
        "mentions 4 1",
        "illegal tags 1 0",
        "LOC 1 1",
        "PER 2 0",
        "[x] 1 0",
        "first illegal tag of train: a.train:12: 'I-LOC'",
        "3 sentences of test also occur in train",
        "SHA-256 differs from the published files: test",
        f"checksum {mine.checksum()}",
    ]


def test_one_sentence_occurs(tmp_path: Path, ner: Ner) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("Ada B-PER\nsang O\n")
    printed = ner("data", "check", str(tmp_path / "a"), str(tmp_path / "b"))
    assert "\n1 sentence of b also occurs in a\n" in printed


def test_parts_of_speech_are_counted_as_tags(tmp_path: Path, ner: Ner) -> None:
    row = "{}\t{}\tx\t{}\t{}" + "\t_" * 5 + "\n"
    text = row.format(1, "It", "PRON", "PRP") + row.format(2, "rains", "VERB", "VBZ")
    text += "\n" + row.format(1, "it", "PRON", "PRP")
    (tmp_path / "a.conllu").write_text(text)
    source = ConlluFiles(name="ud", folder=str(tmp_path), files={"train": "a.conllu"})
    assert corpus_report(source)["splits"] == {
        "train": {
            "sentences": 2,
            "tokens": 3,
            "longest_sentence": 2,
            "mentions": 0,
            "mentions_by_type": {},
            "illegal_tags": 0,
            "tags": {"PRP": 2, "VBZ": 1},
        }
    }
    assert (corpus_report(source)["official"], corpus_report(source)["scheme"]) == (None, None)
    text = ner("data", "check", "--format", "conllu", str(tmp_path / "a.conllu"), "data.tag=upos")
    printed = [line.split() for line in text.splitlines()]
    assert ["different", "tags", "2"] in printed
    assert ["PRON", "2"] in printed
    assert not any("mentions" in line for line in printed)


@pytest.mark.parametrize("count", [2, 9])
def test_the_text_fits_80_columns(count: int, tmp_path: Path) -> None:
    paths = [tmp_path / f"a-rather-long-file-name-of-number-{number}.conll" for number in range(count)]
    for path in paths:
        path.write_text("Ada B-PER\n" * 1_234)
    source = ColumnFiles(
        name="conll", folder="", files={path.name: str(path) for path in paths}, columns={"word": 0, "tag": 1}
    )
    with open(tmp_path / "out", "w+", encoding="utf-8") as out:
        print_report(
            corpus_report(source), Console(file=out, width=80, markup=False, emoji=False, highlight=False)
        )
        out.seek(0)
        lines = out.read().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("1,234") for line in lines) == 4 * count  # tokens, longest, mentions, PER
    assert sum("number" in line or "conll" in line for line in lines) >= count // 4
