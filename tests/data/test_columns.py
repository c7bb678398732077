"""The reader of columns: text written here, with every flaw that real files have."""

from collections import Counter
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_files import WORD_TAG, message_of, pairs, read_columns, read_untagged, written

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
        "a O\r\nb B-X\r\n\r\nc O\r\n",
        "a O\r\nb B-X\r\n\r\nc O\r",
        "\ufeffa O\nb B-X\n\nc O\n",
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


def test_an_empty_file_has_no_sentences(file):
    for text in ("", "\n", "\ufeff", "-DOCSTART- O\n\n"):
        assert list(read_columns(file(text), columns=WORD_TAG)) == []


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a b c O\n\na b O\n", "corpus.txt:3: expected 4 columns, got 3: 'a b O'"),
        ("a\tb\tO\na\tO\n", "corpus.txt:2: expected 3 columns, got 2: 'a\\tO'"),
        ("a\tO\na\t\tO\n", "corpus.txt:2: expected 2 columns, got 3: 'a\\t\\tO'"),
        ("a O\n" + "b " * 60 + "\n", f"corpus.txt:2: expected 2 columns, got 60: '{('b ' * 39)[:77]}...'"),
        (
            "a,O\n",
            "corpus.txt:1: word and tag are both column 0 of 1 (columns are split at tabs and spaces): 'a,O'",
        ),
        ("a O\n\u3000\nb O\n", "corpus.txt:2: expected 2 columns, got 1: '\\u3000'"),
        ("a\tO\n\tO\n", "corpus.txt:2: empty word (set empty_word to the word that it stands for): '\\tO'"),
        ("a\tO\nb\t\n", "corpus.txt:2: empty tag (set empty_tag to the tag that it stands for): 'b\\t'"),
        ("a O\nb\0 O\n", "corpus.txt:2: NUL byte: 'b\\x00 O'"),
        (
            "a O\rb O\n",
            "corpus.txt:1: carriage return inside a line (lines end in LF or CRLF): 'a O\\rb O'",
        ),
        (
            b"a O\n\xe4\xb8\xad O\ncaf\xe9 O\r\n",
            "corpus.txt:3: not UTF-8 (invalid continuation byte at byte 4 of the line): 'caf\ufffd O'",
        ),
        (
            "a O\n".encode("utf-16"),
            "corpus.txt:1: not UTF-8 (invalid start byte at byte 1 of the line), "
            "but UTF-16 by its byte order mark (encoding utf-16 reads it): "
            "'\ufffd\ufffda\\x00 \\x00O\\x00'",
        ),
    ],
)
def test_a_bad_column_file_is_refused_with_its_place(file, content, message):
    assert message_of(read_columns, file(content), columns=WORD_TAG) == message


def test_bad_options_for_columns_are_refused(file):
    path = file("a b O\n")
    assert message_of(read_columns, path, columns={"word": 0, "tag": 3}) == (
        "corpus.txt:1: no column 3 for tag among 3 columns: 'a b O'"
    )
    assert message_of(read_columns, path, columns={"word": -4, "tag": 2}) == (
        "corpus.txt:1: no column -4 for word among 3 columns: 'a b O'"
    )
    for line in ("a O", "1 O", "ab O"):
        assert message_of(read_columns, file(line), columns=WORD_TAG, first_character=True) == (
            f"corpus.txt:1: first_character expects a character and its position, like 中0: '{line}'"
        )
