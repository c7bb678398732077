"""Hostile files that are refused, with the place, the rule and the offending text."""

import re
from pathlib import Path

import pytest
from hostile_corpora import CUT, GOOD, LONG, columns, refusal

from ner_experiments.data.files import ColumnFiles, ConlluFiles, Files, GoldConllFiles

REFUSED = {
    "CR": (
        "a O\rb B-PER\r",
        "train:1: carriage return inside a line (lines end in LF or CRLF): 'a O\\rb B-PER'",
    ),
    "CR CR LF": ("a O\r\r\n", "train:1: carriage return inside a line (lines end in LF or CRLF): 'a O\\r'"),
    "NUL": ("a O\nb\0 O\n", "train:2: NUL byte: 'b\\x00 O'"),
    "UTF-16 unmarked": ("a O\n".encode("utf-16-le"), "train:1: NUL byte: 'a\\x00 \\x00O\\x00'"),
    "Latin-1": (
        "a O\ncaf\xe9 O\n".encode("latin-1"),
        "train:2: not UTF-8 (invalid continuation byte at byte 4 of the line): 'caf\ufffd O' "
        "(to read it: data.encoding=cp1252)",
    ),
    "a surrogate": (
        b"\xed\xa0\x80 O\n",
        "train:1: not UTF-8 (invalid continuation byte at byte 1 of the line): '\ufffd\ufffd\ufffd O' "
        "(to read it: data.encoding=cp1252)",
    ),
    "empty": ("", "mine: train has no sentence: train"),
    "only a byte order mark": ("\ufeff", "mine: train has no sentence: train"),
    "only blank lines": ("\n \t\n", "mine: train has no sentence: train"),
    "only documents": ("-DOCSTART- O\n\n", "mine: train has no sentence: train"),
    "a column comes": ("a O\nb X O\n", "train:2: expected 2 columns, got 3: 'b X O'"),
    "a column goes": (
        "a X O\n\nb O\n",
        "train:3: expected 3 columns, got 2: 'b O' (to read it: data.bad_lines=skip)",
    ),
    "a word without tag": ("a O\nb\n", "train:2: expected 2 columns, got 1: 'b'"),
    "no tags at all": (
        "a\nb\n",
        "train:1: word and tag are both column 0 of 1 (columns are split at tabs and spaces): 'a'",
    ),
    "a line of an ideographic space": ("a O\n\u3000\nb O\n", "train:2: expected 2 columns, got 1: '\\u3000'"),
    "a line of a zero-width space": ("a O\n\u200b\nb O\n", "train:2: expected 2 columns, got 1: '\\u200b'"),
    "an empty word": (
        "a\tO\n\tO\n",
        "train:2: empty word (set empty_word to the word that it stands for): '\\tO' (to read it: data.empty_word=_)",
    ),
    "an empty tag": (
        "a\tO\nb\t\n",
        "train:2: empty tag (set empty_tag to the tag that it stands for): 'b\\t' (to read it: data.empty_tag=O)",
    ),
    "BILOU and BIOES": (
        "a B-PER\nb E-PER\nc L-PER\n",
        "train:2: not a tag of bilou: tag 'E-PER' is neither O nor one of B-, I-, L-, U- followed by a type (bilou was "
        "detected from 'L-PER' in train:3; where files differ, state the scheme of each split)",
    ),
    "two schemes": (
        "a B-PER\nb M-PER\nc I-PER\n",
        "train:3: not a tag of bmes: tag 'I-PER' is neither O nor one of B-, M-, E-, S- followed by a type (bmes was "
        "detected from 'M-PER' in train:2; where files differ, state the scheme of each split)",
    ),
    "a zero-width space in a tag": (
        "a B-PER\nb I-PER\u200b\n",
        "train:2: tag 'I-PER\\u200b' contains an invisible character: 'b I-PER\\u200b'",
    ),
    "a bidirectional mark in a tag": (
        "a B-\u202ePER\n",
        "train:1: tag 'B-\\u202ePER' contains an invisible character: 'a B-\\u202ePER'",
    ),
    "a space after a tag": (
        "a\tB-PER\nb\tI-PER \n",
        "train:2: tag 'I-PER ' contains an invisible character: 'b\\tI-PER '",
    ),
    "a no-break space after O": (
        "a O\u00a0\n",
        "train:1: tag 'O\\xa0' contains an invisible character: 'a O\\xa0'",
    ),
    "a tag of a million characters": (
        f"a B-PER\nb {'x' * LONG}\n",
        f"train:2: not a tag of iob2: tag '{CUT}' is neither O nor one of B-, I- followed by a type",
    ),
    "a line of a million characters": (
        f"a O\n{'x' * LONG}\n",
        f"train:2: expected 2 columns, got 1: '{CUT}'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_right_is_refused_in_a_line(case: str, tmp_path: Path) -> None:
    content, message = REFUSED[case]
    assert refusal(columns(tmp_path, {"train": content})) == message


@pytest.mark.parametrize(("scheme", "tag"), [("iob2", "S-PER"), ("bioes", "M-PER"), ("bmes", "I-PER")])
def test_a_tag_of_another_scheme_than_is_stated_is_refused(scheme: str, tag: str, tmp_path: Path) -> None:
    message = refusal(columns(tmp_path, {"train": f"a O\nb {tag}\n"}, scheme=scheme))
    assert re.match(rf"train:2: not a tag of {scheme}: tag '{tag}' is neither O nor one of ", message)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_an_empty_split_is_refused_by_its_name(split: str, tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": GOOD, "test": GOOD} | {split: "\n"})
    assert refusal(source) == f"mine: {split} has no sentence: {split}"


def test_one_sentence_cannot_be_held_out_of(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("Mia B-PER\n", encoding="utf-8")
    source = ColumnFiles(
        name="mine",
        folder=str(tmp_path),
        files={"train": "train"},
        columns={"word": 0, "tag": -1},
        held_out=0.1,
    )
    assert refusal(source) == (
        "mine: there is no development set, and held_out=0.1 of train's 1 sentences leaves dev empty; "
        "set data.files.dev to a file, or hold out more (data.held_out)"
    )


CONLLU = "1\tMia\t_\tPROPN\tNNP\t_\t_\t_\t_\t_\n"
GOLD = "a 0 0 Mia NNP * - - - - (PERSON) -\n"


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (
            ConlluFiles,
            CONLLU.replace("NNP", "NNP\u200b"),
            "train:1: tag 'NNP\\u200b' contains an invisible",
        ),
        (ConlluFiles, CONLLU.replace("1", "x" * LONG, 1), f"train:1: expected word 1, got '{CUT}': '"),
        (ConlluFiles, 2 * CONLLU.replace("\n", "\r"), "train:1: carriage return inside a line"),
        (ConlluFiles, "# nothing\n", "mine: train has no sentence: train"),
        (
            GoldConllFiles,
            GOLD.replace(" ", "\t").replace("Mia", ""),
            "train:1: empty word: 'a\\t0\\t0\\t\\tNNP",
        ),
        (
            GoldConllFiles,
            GOLD.replace("PERSON", "PER\u200fSON"),
            "train:1: tag 'B-PER\\u200fSON' contains an invisible",
        ),
        (
            GoldConllFiles,
            GOLD.replace("(PERSON)", f"({'x' * LONG}"),
            "train:1: expected an entity as (TYPE*, *, *)",
        ),
        (GoldConllFiles, GOLD.replace("PERSON)", f"{'x' * LONG}*"), f"train:1: entity '{CUT}' is not closed"),
    ],
    ids=["hidden", "number", "CR", "comments", "word", "hidden name", "name", "open"],
)
def test_other_formats_refuse_in_a_line_too(
    kind: type[Files], content: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "train").write_text(content, encoding="utf-8", newline="")
    (tmp_path / "dev").write_text(CONLLU if kind is ConlluFiles else GOLD, encoding="utf-8")
    found = refusal(kind(name="mine", folder=str(tmp_path), files={"train": "train", "dev": "dev"}))
    assert found.startswith(message)
    assert len(found) < 300
