"""The reader of columns: text written here, with every flaw that real files have."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from fuzz.oracle import mentions
from hostile_corpora import columns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_files import WORD_TAG, message_of, pairs, read_columns, read_untagged, written

from ner_experiments.data.corpus import load
from ner_experiments.data.files import Files
from ner_experiments.data.sentence import Sentence


@pytest.fixture
def file(tmp_path):
    return partial(written, tmp_path)


def test_columns_of_conll2003(file):
    text = (
        "-DOCSTART- -X- O O\n\nMia NNP I-NP I-PER\nsleeps VBZ I-VP O\n\nNone NN I-NP I-ORG\n\n"
        '-DOCSTART- -X- -X- O\n\n" " O O\nNA NNP I-NP B-ORG\n\n\n'
    )
    columns = {"word": 0, "pos": 1, "chunk": 2, "tag": 3}
    assert list(read_columns(file(text), columns=columns)) == [
        Sentence(("Mia", "sleeps"), ("I-PER", "O"), {"pos": ("NNP", "VBZ"), "chunk": ("I-NP", "I-VP")}, 3),
        Sentence(("None",), ("I-ORG",), {"pos": ("NN",), "chunk": ("I-NP",)}, 6),
        Sentence(('"', "NA"), ("O", "B-ORG"), {"pos": ('"', "NNP"), "chunk": ("O", "I-NP")}, 10),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a O\nb B-X\n\nc O\n",
        "a O\nb B-X\n\nc O",  # no final line end
        "a O\nb B-X\n\nc O\n\n\n\n",
        "\n\na O\nb B-X\n\n\n\nc O\n",
        "a\tO\nb\tB-X\n\t\nc\tO\n",  # WNUT's sentence end: a single tab
        "a O\nb B-X\n \t \nc O\n",
        "a   O\n b  B-X \n\nc O\n",
        "a O\nb\tB-X\n\nc O\n",
        "-DOCSTART- O\na O\nb B-X\n-DOCSTART- O\nc O\n",  # documents without blank lines
        "-DOCSTART-\n\na O\nb B-X\n\n-DOCSTART- -X- -X- O\n\nc O\n-DOCSTART-",
    ],
)
def test_the_same_sentences_however_they_are_laid_out(file, text):
    sentences = list(read_columns(file(text), columns=WORD_TAG))
    assert pairs(sentences) == [[("a", "O"), ("b", "B-X")], [("c", "O")]]


@pytest.mark.parametrize(
    "word",
    [
        *("\u00a0", "a\u00a0b", "\u3000", "\u200b", "a\u200bb", "a\ufeff", "\ufe0f", "\u2028", "a\u2029"),
        *("\u0085", "\x0b", "\x0c", "\x1c", "\x1e", "#", "# a", "#begin", "😀", "e\u0301", "x" * 195),
    ],
)
def test_only_space_and_tab_separate_and_nothing_comments(file, word):
    for joint in ("\t", "  ")[: 1 if " " in word else 2]:
        path = file(f"{word}{joint}O\nb{joint}B-X\n")
        assert pairs(read_columns(path, columns=WORD_TAG)) == [[(word, "O"), ("b", "B-X")]]


def test_a_byte_order_mark_is_dropped_once_and_only_at_the_start(file):
    path = file("\ufeff\ufeffa O\n\ufeffb O\n")
    assert pairs(read_columns(path, columns=WORD_TAG)) == [[("\ufeffa", "O"), ("\ufeffb", "O")]]


def test_line_is_that_of_the_first_token(file):
    path = file("\ufeff\n-DOCSTART- O\na O\nb O\n\n\nc O\n")
    assert [sentence.line for sentence in read_columns(path, columns=WORD_TAG)] == [3, 7]


LINES = st.text(alphabet="ab \t", min_size=1, max_size=6).filter(lambda line: line.strip(" \t"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(LINES, min_size=1, max_size=3))
def test_the_lines_of_a_file_are_split_alike(file, lines):
    path = file("\n".join(lines))
    at_tabs = [line.split("\t") for line in lines]
    at_spaces = [[field for field in line.replace("\t", " ").split(" ") if field] for line in lines]
    widths = [Counter(map(len, rows)).most_common(1)[0] for rows in (at_tabs, at_spaces)]
    rows = at_tabs if all("\t" in line for line in lines) else at_spaces
    if any("\t" in line for line in lines) and rows is at_spaces:
        of_tabs, of_spaces = ((width > 1, number) for width, number in widths)
        rows = at_tabs if of_tabs >= of_spaces else at_spaces
    width = Counter(map(len, rows)).most_common(1)[0][0]
    layers = {"word": 0, "last": -1}
    if others := [number for number, row in enumerate(rows) if len(row) != width]:
        shown = [
            f"corpus.txt:{number + 1}: expected {width} columns, got {len(rows[number])}: {lines[number]!r}"
            for number in others
        ]
        assert message_of(read_untagged, path, columns=layers, empty_word="_") == (
            f"{len(shown)} faults: {'; '.join(shown)}" if len(shown) > 1 else shown[0]
        )
        return
    (sentence,) = read_untagged(path, columns=layers, empty_word="_")
    assert sentence.words == tuple(row[0] or "_" for row in rows)
    assert sentence.columns == {"last": tuple(row[-1] for row in rows)}


def test_columns_in_any_order_and_empty_fields_between_tabs(file):
    path = file("1\tB-X\t\tMia\n2\tO\tVBZ\tsleeps\n")
    assert list(read_columns(path, columns={"word": -1, "tag": 1, "pos": 2})) == [
        Sentence(("Mia", "sleeps"), ("B-X", "O"), {"pos": ("", "VBZ")}, 1)
    ]


def test_read_columns_reads_no_further_than_asked(file):
    sentences = read_columns(file("a O\n\nb O\n\nbroken\n"), columns=WORD_TAG)
    assert [next(sentences).words, next(sentences).words] == [("a",), ("b",)]
    with pytest.raises(ValueError, match="expected 2 columns, got 1"):
        next(sentences)


def test_first_character_keeps_one_code_point_per_line(file):
    path = file(
        "中0\tB-GPE.NAM\n国1\tI-GPE.NAM\np10\tO\n10\tO\n\ufffd\ufffd0\tO\n\ue41c0\tO\n\ufe0f0\tO\n😀0\tO\n"
    )
    (sentence,) = read_columns(path, columns=WORD_TAG, first_character=True)
    assert sentence.words == ("中", "国", "p", "1", "\ufffd", "\ue41c", "\ufe0f", "😀")


def test_an_empty_tag_is_read_as_the_configured_tag(file):
    (sentence,) = read_columns(file("0\t\n1\tB-X\n2\t\n"), columns=WORD_TAG, empty_tag="O")
    assert (sentence.words, sentence.tags) == (("0", "1", "2"), ("O", "B-X", "O"))


def test_tokens_and_tags_that_recur_are_one_object(file):
    first, second = read_columns(file("中国\tB-X\n\n中国\tB-X\n"), columns=WORD_TAG)
    assert first.words[0] is second.words[0]
    assert first.tags[0] is second.tags[0]


def read(source: Files, split: str = "train") -> list[tuple[list[str], list[tuple[int, int, str]]]]:
    """Words and mentions of each sentence as the models get them, read by the fuzzer's own oracle."""
    return [(list(it.words), mentions(list(it.tags))) for it in load(source).splits[split]]


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
