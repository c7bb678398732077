"""Hostile files one by one: each is read right, or refused with its place, the rule and what stands there."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fuzz.plain import mentions
from omegaconf import OmegaConf

from ner_experiments.data.corpus import load
from ner_experiments.data.files import ColumnFiles, ConlluFiles, Files, GoldConllFiles
from ner_experiments.data.gazetteer import Gazetteer
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.text import Text
from ner_experiments.data.vector_files import read_vectors

ROOT = Path(__file__).parent.parent
GOOD = "Mia B-PER\nRoe I-PER\nsleeps O\n\nOslo B-LOC\n"
READ = [(["Mia", "Roe", "sleeps"], [(0, 2, "PER")]), (["Oslo"], [(0, 1, "LOC")])]
LONG = 10**6


def columns(folder: Path, splits: Mapping[str, str | bytes], **settings: object) -> ColumnFiles:
    """Columns of these contents, and a dev that holds no mention where none is given."""
    contents = {"dev": "x O\n", **splits}
    for split, content in contents.items():
        (folder / split).write_bytes(content if isinstance(content, bytes) else content.encode())
    files = {split: split for split in contents}
    return ColumnFiles(
        name="mine", folder=str(folder), files=files, columns={"word": 0, "tag": -1}, **settings
    )


def read(source: Files, split: str = "train") -> list[tuple[list[str], list[tuple[int, int, str]]]]:
    """Words and mentions of each sentence as the models get them, read by the fuzzer's own oracle."""
    return [(list(it.words), mentions(list(it.tags))) for it in load(source).splits[split]]


def refusal(source: Files) -> str:
    """The one line in which the corpus is refused, without its folder."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        load(source)
    message = str(error.value)
    assert type(error.value) is ValueError
    assert message.isprintable()
    return message.replace(f"{source.place}/", "")


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
def test_what_nobody_sees_stays_in_its_word(word: str, tmp_path: Path) -> None:
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
def test_a_type_of_dev_or_test_alone_is_kept(split: str, tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": "Mia B-PER\n", split: "Oslo B-LOC\n"})
    assert read(source, split) == [(["Oslo"], [(0, 1, "LOC")])]


def test_a_mention_on_a_docstart_line_is_kept(tmp_path: Path) -> None:
    text = "Mia -DOCSTART- B-PER\nx -DOCSTART- O\n-DOCSTART- X B-ORG\n-DOCSTART- X O\ny X B-LOC\n"
    assert read(columns(tmp_path, {"train": text})) == [
        (["Mia", "x", "-DOCSTART-"], [(0, 1, "PER"), (2, 3, "ORG")]),
        (["y"], [(0, 1, "LOC")]),
    ]


CUT = "x" * 77 + "..."
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
        "train:2: not UTF-8 (invalid continuation byte at byte 4 of the line): 'caf\ufffd O'",
    ),
    "a surrogate": (
        b"\xed\xa0\x80 O\n",
        "train:1: not UTF-8 (invalid continuation byte at byte 1 of the line): '\ufffd\ufffd\ufffd O'",
    ),
    "empty": ("", "mine: train has no sentence: train"),
    "only a byte order mark": ("\ufeff", "mine: train has no sentence: train"),
    "only blank lines": ("\n \t\n", "mine: train has no sentence: train"),
    "only documents": ("-DOCSTART- O\n\n", "mine: train has no sentence: train"),
    "a column comes": ("a O\nb X O\n", "train:2: expected 2 columns, got 3: 'b X O'"),
    "a column goes": ("a X O\n\nb O\n", "train:3: expected 3 columns, got 2: 'b O'"),
    "a word without tag": ("a O\nb\n", "train:2: expected 2 columns, got 1: 'b'"),
    "no tags at all": ("a\nb\n", "train:1: word and tag are both column 0 of 1: 'a'"),
    "a line of an ideographic space": ("a O\n\u3000\nb O\n", "train:2: expected 2 columns, got 1: '\\u3000'"),
    "a line of a zero-width space": ("a O\n\u200b\nb O\n", "train:2: expected 2 columns, got 1: '\\u200b'"),
    "an empty word": ("a\tO\n\tO\n", "train:2: empty word: '\\tO'"),
    "an empty tag": ("a\tO\nb\t\n", "train:2: empty tag (set empty_tag to what it means): 'b\\t'"),
    "BILOU": (
        "a B-PER\nb L-PER\n",
        "train:2: not a tag of iob2: tag 'L-PER' is neither O nor one of B-, I- followed by a type",
    ),
    "two schemes": (
        "a B-PER\nb M-PER\nc I-PER\n",
        "train:3: not a tag of bmes: tag 'I-PER' is neither O nor one of B-, M-, E-, S- followed by a type",
    ),
    "a zero-width space in a tag": (
        "a B-PER\nb I-PER\u200b\n",
        "train:2: tag 'I-PER\\u200b' has a character that cannot be seen: 'b I-PER\\u200b'",
    ),
    "a bidirectional mark in a tag": (
        "a B-\u202ePER\n",
        "train:1: tag 'B-\\u202ePER' has a character that cannot be seen: 'a B-\\u202ePER'",
    ),
    "a space after a tag": (
        "a\tB-PER\nb\tI-PER \n",
        "train:2: tag 'I-PER ' has a character that cannot be seen: 'b\\tI-PER '",
    ),
    "a no-break space after O": (
        "a O\u00a0\n",
        "train:1: tag 'O\\xa0' has a character that cannot be seen: 'a O\\xa0'",
    ),
    "a tag of a million characters": (
        f"a {'x' * LONG}\n",
        f"train:1: not a tag of iob2: tag '{CUT}' is neither O nor one of B-, I- followed by a type",
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
        "mine: there is no development set, and held_out=0.1 of train's 1 sentences makes none"
    )


CONLLU = "1\tMia\t_\tPROPN\tNNP\t_\t_\t_\t_\t_\n"
GOLD = "a 0 0 Mia NNP * - - - - (PERSON) -\n"


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (
            ConlluFiles,
            CONLLU.replace("NNP", "NNP\u200b"),
            "train:1: tag 'NNP\\u200b' has a character that cannot",
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
            "train:1: tag 'B-PER\\u200fSON' has a character",
        ),
        (
            GoldConllFiles,
            GOLD.replace("(PERSON)", f"({'x' * LONG}"),
            "train:1: expected a name as (TYPE*, *, *)",
        ),
        (GoldConllFiles, GOLD.replace("PERSON)", f"{'x' * LONG}*"), f"train:1: name '{CUT}' is not closed"),
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


VECTORS = {
    "a header of 5,000 digits": (
        b"9" * 5000 + b" 2\na 1 2\n",
        ": cut off: the header says 999999999999999999 vectors",
    ),
    "a width of 5,000 digits": (
        b"2 " + b"9" * 5000 + b"\na 1 2\n",
        ":1: expected vectors of at most 100,000 numbers",
    ),
    "a width that asks for terabytes": (
        b"1 999999999999\na \x00\x00",
        ":1: expected vectors of at most 100,000",
    ),
    "a first line without end": (b"a" + b" 1" * LONG, ":1: a line of more than 1,048,576 bytes: b'a 1 1 1"),
    "a disk's worth of zeros": (
        b"5 3\n" + bytes(4 * LONG),
        ": vector 1: its word has more than 1,048,576 bytes",
    ),
    "a number of a million letters": (b"a 1 " + b"x" * 1000 + b"\n", ":1: expected a word and its numbers"),
    "a later number of many letters": (b"b 1 2\na 1 " + b"x" * LONG, f":2: not a number: '{CUT}'"),
    "CR": (b"a 1 2\rb 1 2\r", ":1: expected a word and its numbers"),
    "UTF-16": ("a 1 2\n".encode("utf-16"), ":1: expected a word and its numbers"),
}


@pytest.mark.parametrize("case", VECTORS)
def test_vectors_are_refused_in_a_line(case: str, tmp_path: Path) -> None:
    content, message = VECTORS[case]
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole of its beginning is compared
        read_vectors(path, {b"a"})
    assert type(error.value) is ValueError
    assert str(error.value).startswith(f"{path}{message}")
    assert len(str(error.value)) < 300 + len(str(path))


@pytest.mark.parametrize(
    "word", ["\x0b", "a\x0b5", "a\x0c", "\x1c", "\x85", "\u2028", "\u3000", "\u200b"], ids=ascii
)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_only_spaces_separate_a_word_from_its_vector(word: str, first: bool, tmp_path: Path) -> None:
    lines = [f"{word} 1 2\n", "b 3 4\n"]
    path = tmp_path / "vectors"
    path.write_text("".join(lines if first else lines[::-1]), encoding="utf-8", newline="")
    found, _ = read_vectors(path, {word.encode(), b"b"})
    assert {key: row.tolist() for key, row in found.items()} == {word.encode(): [1, 2], b"b": [3, 4]}


@pytest.mark.parametrize("word", ["a\u00a0b", "\u3000", "a\u2028", "\x85", "\x1c", "a\x0cb"], ids=ascii)
def test_a_gazetteer_cuts_names_where_corpora_cut_tokens(word: str, tmp_path: Path) -> None:
    (tmp_path / "PER.txt").write_text(f"Mia {word}\n{word}\tRoe\n", encoding="utf-8", newline="")
    text = Text.of([Sentence(("Mia", word, word, "Roe"), ("O",) * 4)])
    lists = Gazetteer(folder=str(tmp_path))
    lists.fit(text, [])
    assert lists.encode(text).table.flatten().tolist() == [1, 3, 1, 3]


def test_a_name_without_end_takes_no_time_in_a_sentence_without_end(tmp_path: Path) -> None:
    """Each place was tried with each length up to the longest name's: 10^10 attempts here."""
    (tmp_path / "PER.txt").write_text("a " * 100_000 + "b\n" + "a a\n", encoding="utf-8")
    text = Text.of([Sentence(("a",) * 100_000, ("O",) * 100_000)])
    lists = Gazetteer(folder=str(tmp_path))
    lists.fit(text, [])
    assert lists.encode(text).table.flatten().tolist() == [1, 3] * 50_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """What a sweep over hostile corpora prints, and the metrics of those that it could train on."""
    folder = tmp_path_factory.mktemp("corpora")
    word = "x" * LONG
    corpora = {
        "only_o": ["a O\nb O\n\nc O\n"] * 3,
        "one": ["Mia B-PER\n"] * 3,
        "unknown": [GOOD, "x B-DEV\n", "Mia B-PER\nx B-TEST\ny I-TEST\n\nz B-LOC\n"],
        "hidden": [
            "\ufeff" + "".join(f"{w}\tB-PER\r\n" for w in ("\u200b", "\u202ea", "\u2028", "\x85", " "))
        ]
        * 3,
        "long": [f"{GOOD}\n{word} B-PER\n"] * 3,
        "empty_test": [GOOD, GOOD, "\n"],
        "cr": [GOOD.replace("\n", "\r"), GOOD, GOOD],
    }
    for name, texts in corpora.items():
        (folder / name).mkdir()
        for split, text in zip(("train", "dev", "test"), texts, strict=True):
            (folder / name / split).write_text(text, encoding="utf-8", newline="")
    files = [f"data.files.{split}={split}" for split in ("train", "dev", "test")]
    places = ",".join(str(folder / name) for name in corpora)
    settings = ["trainer=smoke", "runtime.progress=false", f"output_dir={folder}/outputs"]
    command = [
        sys.executable,
        str(ROOT / "run.py"),
        "-m",
        "data=conll",
        *files,
        f"data.folder={places}",
        *settings,
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    metrics = {}
    for config in folder.glob("outputs/*/*/config.yaml"):
        if (config.parent / "metrics.json").exists():
            name = Path(OmegaConf.load(config).data.folder).name
            metrics[name] = json.loads((config.parent / "metrics.json").read_text(encoding="utf-8"))
    return result.stdout + result.stderr, metrics


def test_hostile_corpora_train_or_are_refused_in_a_line(
    runs: tuple[str, dict[str, dict[str, Any]]],
) -> None:
    printed, metrics = runs
    assert "2 of 7 jobs failed" in printed
    assert "conll: test has no sentence: test" in printed
    assert "/cr/train:1: carriage return inside a line (lines end in LF or CRLF): 'Mia B-PER" in printed
    assert metrics.keys() == {"only_o", "one", "unknown", "hidden", "long"}


def test_every_gold_mention_of_a_hostile_corpus_is_scored(
    runs: tuple[str, dict[str, dict[str, Any]]],
) -> None:
    _, metrics = runs
    gold = {
        name: {kind: of["gold"] for kind, of in run["test"]["types"].items()} for name, run in metrics.items()
    }
    assert gold == {
        "only_o": {},
        "one": {"PER": 1},
        "unknown": {"DEV": 0, "LOC": 1, "PER": 1, "TEST": 1},
        "hidden": {"PER": 5},
        "long": {"LOC": 1, "PER": 2},
    }
    assert metrics["only_o"]["test"]["f1"] == 0
