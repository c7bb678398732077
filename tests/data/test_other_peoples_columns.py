"""Column files as other people write them: comments, headers, encodings, empty fields, and other spellings of tags."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from corpus_files import columns, data_command, tags
from in_process import Ner
from read_files import WORD_TAG, pairs, read_columns, written

from ner_experiments.data.corpus import load
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tag_styles import detect_style, labels, to_standard
from ner_experiments.data.tags import encode, spans

GERMEVAL = (
    "#\thttp://a.de\t[2009-10-17]\n1\tDie\tO\n2\tBank\tB-ORG\n\n#\tb.de\t[2005-02-26]\n1\tBonn\tB-LOC\n"
)


# Encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "gb18030"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    word = "中国" if encoding == "gb18030" else "Zürich"
    content = f"{word} B-LOC\r\n\r\nb O\n".encode(encoding)
    assert pairs(read_columns(written(tmp_path, content), columns=WORD_TAG, encoding=encoding)) == [
        [(word, "B-LOC")],
        [("b", "O")],
    ]
    packed = written(tmp_path, gzip.compress(content))
    assert pairs(read_columns(packed, columns=WORD_TAG, encoding=encoding))[0] == [(word, "B-LOC")]


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"a O\n" * 99)[:-9])
    with pytest.raises(ValueError, match=r"corpus\.txt: not a whole gzip file \("):
        list(read_columns(path, columns=WORD_TAG))


# Tags


@pytest.mark.parametrize(
    ("written_as", "style"),
    [
        ("B-PER I-PER O B-LOC", "B-ORG"),
        ("b-PER i-PER o b-LOC", "B-ORG"),
        ("B_PER I_PER O B_LOC", "B_ORG"),
        ("PER-B PER-I O LOC-B", "ORG-B"),
        ("PER_b PER_i o LOC_b", "ORG_B"),
        ("PER PER O LOC", "ORG"),
    ],
)
def test_every_style_of_tags_is_detected_and_said(written_as: str, style: Any, tmp_path: Path) -> None:
    text = "".join(f"w {tag}\n" for tag in written_as.split())
    source = columns(tmp_path, {"train": text, "dev": text}, scheme="auto")
    corpus = load(source)
    assert tags(corpus)["train"] == ["B-PER E-PER O S-LOC"]
    remarks = Remarks()
    source.read(remarks)
    if written_as.startswith("B-"):
        assert remarks.counts() == []
    else:
        (remark,) = remarks.counts()
        assert remark.startswith(f"tags are written in another style, detected as {style}: ")
        assert remark in corpus.notes
    assert tags(
        load(columns(tmp_path, {"train": text, "dev": text}, scheme="auto", tag_style=style))
    ) == tags(corpus)


@pytest.mark.parametrize(
    "found",
    [{"NN", "VBZ"}, {"O", "B-PER", "PER"}, {"B-PER", "b-LOC"}, {"O", "o", "PER"}, {"O", "B_PER", "B-PER"}],
)
def test_tags_of_no_single_style_are_left_to_be_refused(found: set[str]) -> None:
    assert detect_style(found) is None


def test_a_type_may_contain_what_joins_it() -> None:
    assert detect_style({"O", "B-WORK_OF_ART", "I-creative-work"}) == "B-ORG"
    assert to_standard("WORK_OF_ART_B", "ORG_B") == "B-WORK_OF_ART"
    assert to_standard("creative-work-I", "ORG-B") == "I-creative-work"


def test_bilou(tmp_path: Path) -> None:
    text = "a B-X\nb I-X\nc L-X\nd U-X\ne U-Y\nf O\n"
    corpus = load(columns(tmp_path, {"train": text, "dev": text}, scheme="auto"))
    assert tags(corpus)["train"] == ["B-X I-X E-X S-X S-Y O"]
    assert corpus.notes == ("tags read as bilou, detected from their letters",)
    mentions = [(0, 1, "X"), (1, 4, "X"), (5, 7, "Y")]
    assert encode(mentions, 8, "bilou") == ("U-X", "B-X", "I-X", "L-X", "O", "B-Y", "L-Y", "O")
    assert spans(encode(mentions, 8, "bilou")) == mentions


def test_several_labels_in_one_tag_are_refused_by_name_or_the_first_is_read(tmp_path: Path) -> None:
    text = "a O\nb B-ORG,B-GPE\nc I-ORG,I-GPE\n"
    with pytest.raises(ValueError) as error:  # noqa: PT011
        columns(tmp_path, {"train": text}).read()
    assert str(error.value).endswith(
        "train.txt:3: a tag with several labels (multi_label: first keeps the first): 'I-ORG,I-GPE' "
        "(to read it: data.multi_label=first)"
    )
    remarks = Remarks()
    splits = columns(tmp_path, {"train": text}, multi_label="first").read(remarks)
    assert splits["train"][0].tags == ("O", "B-ORG", "I-ORG")
    assert remarks.with_places() == [
        "tags of which the first label was kept: 2 (first: train.txt:2: 'B-ORG,B-GPE')"
    ]
    assert labels("B-A+B") == ["B-A+B"]
    assert labels("PER-B|O") == ["PER-B", "O"]


def test_schemes_may_differ_between_splits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"train": "a I-X\nb B-X\n", "dev": "a B-X\nb E-X\n"}
    source = columns(tmp_path, texts, scheme={"train": "iob1"})
    corpus = load(source)
    assert tags(corpus) == {"train": ["S-X S-X"], "dev": ["B-X E-X"]}
    assert corpus.notes == ("tags read as iob1 in train, bioes in dev, detected from their letters",)
    assert data_command(["check", "mine"], source) == 0
    assert "mine (mentions, iob1 in train, bioes in dev)" in capsys.readouterr().out
    assert data_command(["check", "mine", "--json"], source) == 0
    assert json.loads(capsys.readouterr().out)["scheme"] == {"train": "iob1", "dev": "bioes"}


def test_the_error_says_which_file_decided_the_scheme(tmp_path: Path) -> None:
    texts = {"train": "a B-X\nb I-X\n", "dev": "a O\n\nb B-X\nc M-X\nd E-X\n"}
    with pytest.raises(ValueError) as error:  # noqa: PT011
        columns(tmp_path, texts, scheme="auto").read()
    assert str(error.value).endswith(
        "train.txt:2: not a tag of bmes: tag 'I-X' is neither O nor one of B-, M-, E-, S- followed by a type "
        "(bmes was detected from 'M-X' in dev.txt:4; where files differ, state the scheme of each split) "
        "(to read it: 'data.scheme={train: auto, dev: auto}')"
    )


def test_docstart_lines_without_a_blank_line_after_them_are_part_of_a_sentence(tmp_path: Path) -> None:
    text = "-DOCSTART- -DOCSTART- O\na X O\n\nb X O\n\n-DOCSTART- -DOCSTART- O\nc X O\n\n"
    source = columns(tmp_path, {"train": text}, columns={"word": 0, "tag": 2})
    assert source.docstart_blocks() == {}
    assert len(source.read()["train"]) == 3


# data check


def test_check_takes_columns_settings_and_standard_input(
    tmp_path: Path, ner: Ner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(GERMEVAL.encode()))))
    out = ner("data", "check", "--format", "conll", "data.columns.word=1", "data.columns.tag=2", "-")
    assert "lines skipped as comments: 2 (first: <stdin>:1: " in out
    assert ["mentions", "2"] in [line.split() for line in out.splitlines()]

    path = written(tmp_path, "Zürich B-LOC,B-GPE\n".encode("latin-1"))
    arguments = ["check", "--format", "conll", "data.encoding=latin-1", str(path)]
    assert "a tag with several labels" in ner.error("data", *arguments)
    assert "tags of which the first label was kept: 1" in ner("data", *arguments, "data.multi_label=first")
    assert "did you mean 'data.multi_label'?" in ner.error("data", *arguments, "data.multi_lable=first")


def test_check_composes_the_overrides_of_train(tmp_path: Path, ner: Ner) -> None:
    path = written(tmp_path, "1 Mia PER-B\n")
    overrides = ["data=conll", f"data.files.train={path}", "data.columns.word=1", "data.name=mine"]
    out = ner("data", "check", *overrides)
    assert out.startswith(
        "mine (mentions, iob2)\nread as: space-separated, 3 columns, word 1, tag 2, iob2\n"
        "tags are written in another style, detected as ORG-B: "
    )
    assert ner.json("data", "check", "toy_en", "data.sentences.train=7")["splits"]["train"]["sentences"] == 7
