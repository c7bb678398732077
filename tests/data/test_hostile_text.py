"""Hostile files that are read correctly: each layout and each invisible character, one by one."""

from pathlib import Path

import pytest
from fuzz.oracle import mentions
from hostile_corpora import GOOD, LONG, columns

from ner_experiments.data.corpus import load
from ner_experiments.data.files import Files

READ = [(["Mia", "Roe", "sleeps"], [(0, 2, "PER")]), (["Oslo"], [(0, 1, "LOC")])]


def read(source: Files, split: str = "train") -> list[tuple[list[str], list[tuple[int, int, str]]]]:
    """Words and mentions of each sentence as the models get them, read by the fuzzer's own oracle."""
    return [(list(it.words), mentions(list(it.tags))) for it in load(source).splits[split]]


SAME = {
    "no final newline": GOOD.removesuffix("\n"),
    "CRLF": GOOD.replace("\n", "\r\n"),
    "CRLF here and there": GOOD.replace("R-PER\n", "R-PER\r\n").replace("O\n", "O\r\n"),
    "CR at the very end": GOOD.removesuffix("\n") + "\r",
    "byte order mark": "\ufeff" + GOOD,
    "byte order mark and CRLF": "\ufeff" + GOOD.replace("\n", "\r\n"),
    "a tab ends sentences": GOOD.replace("\n\n", "\n\t\n"),
    "blanks end sentences": GOOD.replace("\n\n", "\n   \n") + " \t \n",
    "tabs and spaces by turns": GOOD.replace("Roe ", "Roe\t").replace("Oslo ", "Oslo   "),
    "blank lines at both ends": "\n \n\t\n" + GOOD + "\n\n\r\n",
    "documents": "-DOCSTART- -X- O\n" + GOOD + "-DOCSTART-\n",
}


@pytest.mark.parametrize("case", SAME)
def test_no_layout_changes_what_is_read(case: str, tmp_path: Path) -> None:
    assert read(columns(tmp_path, {"train": SAME[case]})) == READ


@pytest.mark.parametrize(
    "word",
    [
        *(
            "\u200b",
            "a\u200bb",
            "\u200d",
            "\u2060",
            "\ufeffx",
            "\u200e",
            "\u200f",
            "\u202eabc\u202c",
            "\u2066a\u2069",
        ),
        *(
            "\u00a0",
            "\u3000",
            "\u2028",
            "\u2029",
            "\x85",
            "\x0b",
            "\x0c",
            "\x1c",
            "\x1f",
            "\x7f",
            "e\u0301",
            "\ufe0f",
        ),
    ],
    ids=ascii,
)
def test_invisible_characters_stay_in_their_word(word: str, tmp_path: Path) -> None:
    text = f"Mia O\n{word} B-PER\n{word} I-PER\n"
    assert read(columns(tmp_path, {"train": text})) == [(["Mia", word, word], [(1, 3, "PER")])]
    assert read(columns(tmp_path, {"train": text.replace(" ", "\t")})) == [
        (["Mia", word, word], [(1, 3, "PER")])
    ]


def test_a_token_of_a_million_characters_is_a_token(tmp_path: Path) -> None:
    word = "x" * LONG
    assert read(columns(tmp_path, {"train": f"a O\n{word} B-PER\n"})) == [(["a", word], [(1, 2, "PER")])]


def test_a_sentence_of_a_hundred_thousand_tokens_keeps_its_mentions(tmp_path: Path) -> None:
    ((words, found),) = read(columns(tmp_path, {"train": "a B-PER\nb I-PER\nc O\nd B-PER\n" * 25_000}))
    assert len(words) == 100_000
    assert found == [
        span
        for start in range(0, 100_000, 4)
        for span in ((start, start + 2, "PER"), (start + 3, start + 4, "PER"))
    ]


@pytest.mark.parametrize("scheme", ["auto", "iob1", "iob2", "bioes", "bmes"])
@pytest.mark.parametrize(
    ("text", "found"),
    [("Mia S-PER\n", [(["Mia"], [(0, 1, "PER")])]), ("a O\nb O\n\nc O\n", [(["a", "b"], []), (["c"], [])])],
    ids=["one sentence", "only O"],
)
def test_a_corpus_may_be_one_sentence_or_hold_no_mention(
    text: str, found: object, scheme: str, tmp_path: Path
) -> None:
    text = text.replace("S-", "I-" if scheme == "iob1" else "B-" if scheme == "iob2" else "S-")
    source = columns(tmp_path, dict.fromkeys(("train", "dev", "test"), text), scheme=scheme)
    assert read(source, "train") == read(source, "dev") == read(source, "test") == found


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_type_that_occurs_only_in_dev_or_test_is_not_dropped(split: str, tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": "Mia B-PER\n", split: "Oslo B-LOC\n"})
    assert read(source, split) == [(["Oslo"], [(0, 1, "LOC")])]


@pytest.mark.parametrize("style", ["B-{}", "B_{}", "{}-B", "{}_B"])
def test_a_mention_on_a_docstart_line_is_not_dropped(style: str, tmp_path: Path) -> None:
    text = "Mia -DOCSTART- {}\nx -DOCSTART- O\n-DOCSTART- X {}\n-DOCSTART- X O\ny X {}\n"
    text = text.format(*map(style.format, ("PER", "ORG", "LOC")))
    assert read(columns(tmp_path, {"train": text})) == [
        (["Mia", "x", "-DOCSTART-"], [(0, 1, "PER"), (2, 3, "ORG")]),
        (["y"], [(0, 1, "LOC")]),
    ]
