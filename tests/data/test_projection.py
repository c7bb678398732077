"""Mentions projected between two cuts of a text: by hand, and against sets of characters in plain loops."""

import os
import random
from pathlib import Path

import pytest
from read_files import WORD_TAG, read_columns

from ner_experiments.data import projection
from ner_experiments.data.projection import OtherTextError, project
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import convert, encode, spans

DATA = Path(os.environ.get("NER_DATA_DIR", "data"))
FILLER = [["and", "so", "on", str(number), *["with", "other", "words"] * 4] for number in range(20)]
"""Sentences without mentions, so that a difference of a few characters is a small share."""


def gold(*sentences: str) -> list[Sentence]:
    """Sentences such as `Ann/B-PER works`, with O for tokens without a tag, and the filler."""
    rows = [[token.partition("/")[::2] for token in sentence.split()] for sentence in sentences]
    tagged = [Sentence(tuple(w for w, _ in row), tuple(tag or "O" for _, tag in row)) for row in rows]
    return [*tagged, *(Sentence(tuple(words), ("O",) * len(words)) for words in FILLER)]


def projected(words: list[str], *sentences: str) -> tuple[list[tuple[str, ...]], list[tuple[int, int]], int]:
    """The tags on these sentences, the unclear tokens, and the number of mentions without a place."""
    found = project([*map(str.split, words), *FILLER], gold(*sentences))
    assert {tag for tags in found.tags[len(words) :] for tag in tags} <= {"O"}
    return [*found.tags[: len(words)]], sorted(found.unclear), found.left_out


CUTS = {
    "the same tokens": (
        "Ann works in New York",
        "Ann/B-PER works in New/B-LOC York/I-LOC",
        "B-PER O O B-LOC I-LOC",
        [],
        0,
    ),
    "merged tokens": ("SKIING-WORLD CUP", "SKIING - WORLD/B-MISC CUP/I-MISC", "O O", [(0, 0), (0, 1)], 1),
    "split tokens": ("S K I", "SKI/B-MISC", "B-MISC I-MISC I-MISC", [], 0),
    "a merged mention": ("in U.S.", "in U/B-LOC ./I-LOC S/I-LOC ./I-LOC", "O B-LOC", [], 0),
    "a split sentence": ("Ann|works", "Ann/B-PER works", "B-PER|O", [], 0),
    "merged sentences": ("Ann works", "Ann/B-PER|works", "B-PER O", [], 0),
    "a mention across the end of a sentence": (
        "New|York",
        "New/B-LOC York/I-LOC",
        "O|O",
        [(0, 0), (1, 0)],
        1,
    ),
    "characters that the text lacks": ("in Lndon now", "in London/B-LOC now", "O O O", [(0, 1)], 1),
    "characters that gold lacks": ("in London now", "in Lndon/B-LOC now", "O O O", [(0, 1)], 1),
    "a mention that the text lacks": ("in now", "in Oslo/B-LOC now", "O O", [], 1),
    "a token that gold lacks": ("Ann now works", "Ann/B-PER works", "B-PER O O", [(0, 1)], 0),
}


@pytest.mark.parametrize("name", CUTS)
def test_mentions_keep_their_characters_or_have_no_place(name: str) -> None:
    words, sentences, tags, unclear, left_out = CUTS[name]
    expected = [tuple(it.split()) for it in tags.split("|")]
    assert projected(words.split("|"), *sentences.split("|")) == (expected, unclear, left_out)


def test_predictions_on_unclear_tokens_are_left_out() -> None:
    words = ["Ann in X-DENVER now", "Bob"]
    found = project([*map(str.split, words), *FILLER], gold("Ann/B-PER in X - DENVER/B-LOC now", "Bob/B-PER"))
    predicted = [("I-PER", "O", "B-ORG", "I-ORG"), ("S-PER",), *(("O",) * len(it) for it in FILLER)]
    tags, left_out = found.clear(predicted)
    assert tags[:2] == [("B-PER", "O", "O", "O"), ("B-PER",)]
    assert left_out == 1


def test_another_text_is_refused() -> None:
    words = [[f"token{number}", "of", "this", "text"] for number in range(30)]
    with pytest.raises(OtherTextError, match=r"only 246 of 500 characters are the same"):
        project(words, gold())


def test_long_differing_parts_are_not_compared_by_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "MAX_COMPARED", 5)
    assert projected(["in Lndon now"], "in London/B-LOC now") == ([("O",) * 3], [(0, 0), (0, 1), (0, 2)], 1)


def brute_force(
    words: list[list[str]], sentences: list[Sentence]
) -> tuple[set[tuple[int, int, int, str]], int]:
    """Mentions as sentence, first and last token and type, looked for by trying every pair of tokens."""
    text = [(s, t, c) for s, own in enumerate(words) for t, word in enumerate(own) for c in range(len(word))]
    candidates = {}
    for s, own in enumerate(words):
        for first in range(len(own)):
            for last in range(first, len(own)):
                chars = tuple(n for n, (a, b, _) in enumerate(text) if a == s and first <= b <= last)
                candidates[chars] = (s, first, last)
    found, lost, position = set(), 0, 0
    for sentence in sentences:
        bounds = []
        for word in sentence.words:
            bounds.append(range(position, position + len(word)))
            position += len(word)
        for start, end, type_ in spans(sentence.tags):
            chars = tuple(n for token in bounds[start:end] for n in token)
            if chars in candidates:
                found.add((*candidates[chars], type_))
            else:
                lost += 1
    return found, lost


def cut(rng: random.Random, text: str) -> list[list[str]]:
    """A text cut at random into tokens and sentences."""
    sentences: list[list[str]] = [[]]
    for char in text:
        if sentences[-1] and rng.random() < 0.4:
            sentences[-1][-1] += char
            continue
        if sentences[-1] and rng.random() < 0.15:
            sentences.append([])
        sentences[-1].append(char)
    return sentences


def test_random_cuts_agree_with_trying_every_pair_of_tokens() -> None:
    rng = random.Random(0)
    lost_in_all = 0
    for _ in range(200):
        text = "".join(rng.choice("abc") for _ in range(rng.randint(1, 40)))
        words, other = cut(rng, text), cut(rng, text)
        sentences = []
        for own in other:
            mentions, place = [], 0
            while place < len(own):
                end = min(len(own), place + rng.randint(1, 3))
                if rng.random() < 0.5:
                    mentions.append((place, end, rng.choice(["PER", "LOC"])))
                place = end
            sentences.append(Sentence(tuple(own), encode(mentions, len(own), "bioes")))
        found = project(words, sentences)
        expected, lost = brute_force(words, sentences)
        actual = {
            (s, start, end - 1, type_) for s, own in enumerate(found.tags) for start, end, type_ in spans(own)
        }
        assert (actual, found.left_out) == (expected, lost)
        lost_in_all += lost
    assert lost_in_all > 100


def test_conllpp_has_the_text_of_conll2003() -> None:
    """Wang et al. (2019) corrected tags of 186 sentences, and no token."""
    own_file, other_file = (DATA / name for name in ("conll2003/eng.testb", "conllpp/conllpp_test.txt"))
    if not (own_file.is_file() and other_file.is_file()):
        pytest.skip("the corpora are not here")
    own = list(read_columns(own_file, columns={"word": 0, "pos": 1, "chunk": 2, "tag": 3}))
    other = list(read_columns(other_file, columns=WORD_TAG))
    found = project([it.words for it in own], other)
    assert sum(len(spans(tags)) for tags in found.tags) == 5702
    assert (found.left_out, found.unclear) == (0, frozenset())
    assert sum(convert(it.tags, "iob2") != tags for it, tags in zip(own, found.tags, strict=True)) == 186
