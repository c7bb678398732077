"""Sentence splitting and tokenization of raw text, against examples by hand and properties of any text."""

import sys
import unicodedata
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
import regex
import yaml
from hypothesis import given
from hypothesis import strategies as st
from linear_time import growth

from ner_experiments.data.sentence import Tokens
from ner_experiments.data.tokenize import TokenizedSentence, tokenize, tokenize_lines
from ner_experiments.data.word_tokens import words

MARKS = [it for it in map(chr, range(0x80, sys.maxunicode + 1)) if unicodedata.category(it)[0] in "PS"]
SENTENCE_TERMINAL = regex.compile(r"\p{STerm}")
BOTH: tuple[Tokens, ...] = ("words", "characters")

# A space between tokens, a bar between sentences.
"""Written for these tests. Turkish, Tamil, Lao and Khmer are here alone: no corpus of theirs was measured."""


def shown(found: list[TokenizedSentence]) -> str:
    return " | ".join(" ".join(sentence.words) for sentence in found)


EXAMPLES = yaml.safe_load(Path(__file__).with_name("tokenized.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("tokens", "text", "expected"), [case for cases in EXAMPLES.values() for case in cases]
)
def test_texts_of_many_scripts_are_cut_as_their_corpora_are(tokens: Tokens, text: str, expected: str) -> None:
    """Turkish, Tamil, Lao and Khmer are here alone: no corpus of theirs was measured."""
    assert shown(list(tokenize(text, tokens))) == expected


def test_what_unicode_calls_a_sentence_terminal_ends_a_sentence() -> None:
    """But the Burmese comma and the one-dot leader. The property is that of the package `regex`."""
    marks = [it for it in MARKS if SENTENCE_TERMINAL.match(it)]
    found = [it for it in marks if shown(list(tokenize(f"ა{it} ბ", "words"))) == f"ა {it} | ბ"]
    assert set(marks) - set(found) == set("၊․")
    assert len(found) > 100


def test_punctuation_is_no_part_of_a_word_in_any_script() -> None:
    """But apostrophes, hyphens, and signs of accent and abbreviation."""
    whole = {it for it in MARKS if len(list(words(f"ა{it}ა"))) == 1}
    assert whole == set("’°՚՛՜՞՟־׳״॰૰‐‑‿")


def test_a_full_stop_of_the_script_anywhere_before_counts_for_a_document_alone() -> None:
    document = "राम गया।\nश्याम आया. वह गया."
    assert shown(list(tokenize(document, "words"))) == "राम गया । | श्याम आया . वह गया ."
    assert shown(list(tokenize(document.splitlines()[1], "words"))) == "श्याम आया . | वह गया ."


PIECES_OF_SCRIPTS = (
    "a e\u0301 中 가 각 \u1112\u1161\u11ab \u1100\u1161 กำ สี ກຳ က္က မေ क्षे ज़ ক্ত க் ሀ א\u05b0 ب\u064e "
    "👩\u200d🔬 👩🏽 ❤\ufe0f 🇩🇪 #\u20e3 ｶﾞ 。 ।"
)
CLUSTERS = st.lists(st.sampled_from([*PIECES_OF_SCRIPTS.split(), " "])).map("".join)


@given(CLUSTERS)
def test_characters_are_the_grapheme_clusters_of_the_package_regex(text: str) -> None:
    expected = [it.strip() for it in regex.findall(r"\X", text) if it.strip()]
    assert [word for it in tokenize(text, "characters") for word in it.words] == expected


def test_with_lines_each_line_is_a_sentence_and_nothing_else_ends_one() -> None:
    assert shown(list(tokenize("a. B\nc\n\n d", "words", lines=True))) == "a . B | c | d"
    assert shown(list(tokenize("一。二\n三", "characters", lines=True))) == "一 。 二 | 三"


def test_offsets_count_the_document_and_lines_from_one() -> None:
    text = "  Ann ran.\r\n\nShe  won."
    first, second = tokenize(text, "words")
    assert (first.text, first.start, first.line) == ("Ann ran.", 2, 1)
    assert (second.text, second.start, second.line) == ("She  won.", 13, 3)
    assert second.offsets == ((13, 16), (18, 21), (21, 22))


TEXTS = st.text(
    st.sampled_from("aB1 中。\n\r\t.,!?'’\"()-/:$%&;#@*=<>_\u200b\ufeff\u00a0\u2028\x0b😀é…"), max_size=60
) | st.text(
    st.sampled_from(
        "aBl'’\"·.:!?,1 \nमे\u094d।॥،۔؟٫אצ\u05b0״፡።ա:։Բ한中!。」ก็ำ၊။—👩\u200d🔬\ufe0f🇩🇪\U0001e95e"
    ),
    max_size=60,
)


@given(text=TEXTS | st.text(max_size=60), tokens=st.sampled_from(BOTH), lines=st.booleans())
def test_tokens_stand_where_they_say_and_leave_out_only_white_space(
    text: str, tokens: Tokens, lines: bool
) -> None:
    found = list(tokenize(text, tokens, lines=lines))
    places = [place for sentence in found for place in sentence.offsets]
    for sentence in found:
        assert text[sentence.start : sentence.start + len(sentence.text)] == sentence.text
        assert sentence.words == tuple(text[begin:end] for begin, end in sentence.offsets)
        assert sentence.line == text.count("\n", 0, sentence.start) + 1
        assert sentence.text == sentence.text.strip()
    assert all(begin < end for begin, end in places)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(places))
    assert "".join(text[begin:end] for begin, end in places) == "".join(text.split())
    assert not any(word.split() != [word] for sentence in found for word in sentence.words)


@given(text=TEXTS, tokens=st.sampled_from(BOTH))
def test_a_sentence_is_known_as_soon_as_the_next_one_begins(text: str, tokens: Tokens) -> None:
    """No more than a line behind that is read before a sentence comes, and the cut is that of the whole."""
    read: list[str] = []

    def lines() -> object:
        for line in StringIO(text, newline="\n"):
            read.append(line)
            yield line

    for sentence, expected in zip(tokenize_lines(lines(), tokens), tokenize(text, tokens), strict=True):
        assert sentence == expected
        end = sentence.start + len(sentence.text)
        assert not "".join(read[:-1])[end:].strip()


PIECES = "a.|'|\"|((|http://|@a|a/|1,|-|--|.|!|U.S. |:)|a'b|n't|*=|。|…”|l'|א\"|क्|के.|।|ա: |፡|👩\u200d|ᄒ|🇩"


@pytest.mark.parametrize("piece", PIECES.split("|"))
def test_time_is_linear_in_the_text(piece: str) -> None:
    """With quadratic time, 60,000 characters took half a minute."""

    def read(characters: int) -> None:
        text = piece * (characters // len(piece))
        for unit in BOTH:
            found = list(tokenize(text, unit))
            assert sum(len(word) for sentence in found for word in sentence.words) == len(text) - text.count(
                " "
            )

    assert growth(read, 2_000) < 9


def test_a_token_may_have_a_million_characters_and_a_sentence_100_000_tokens() -> None:
    (sentence,) = tokenize("x" * 10**6, "words")
    assert sentence.offsets == ((0, 10**6),)
    (sentence,) = tokenize("ab " * 100_000, "words")
    assert len(sentence.offsets) == 100_000
