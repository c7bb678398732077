"""The toy corpora: the same everywhere, and, where both sides of a name decide, neither side alone does."""

import hashlib
from collections import defaultdict

import pytest

from ner_experiments.data.sentence import Sentence
from ner_experiments.data.toy import SPLITS, Split, sentences

SIZES: dict[Split, int] = {"train": 1000, "dev": 250, "test": 250}
"""Sentences per split that a small BiLSTM-CRF learns from in a few epochs."""
LANGUAGES = ("en", "zh")
CHECKSUMS = {
    ("en", "train"): "a3e95c35dc71a694",
    ("en", "dev"): "554a3007623852ea",
    ("en", "test"): "9a8ea0676f6e68b2",
    ("zh", "train"): "0b5f2fa5f24c5a09",
    ("zh", "dev"): "3cf1db282c96e31b",
    ("zh", "test"): "89339d9c73a1d4c2",
}
XOR_CUES = {
    "en": ((("Lot",), ("Bid",), "opened", "closed"), (("Arrived",), ("Sailed",), "cargo", "papers")),
    "zh": (((*"拍品",), (*"出价",), "开", "成"), ((*"到港",), (*"离港",), "货", "文")),
}

Mention = tuple[int, int, str]


def read_mentions(sentence: Sentence) -> list[Mention]:
    """S, or B I* E of one type; anything else is a failure."""
    found, start, inside = [], 0, None
    for position, tag in enumerate(sentence.tags):
        letter, _, type_ = tag.partition("-")
        assert inside == (type_ if letter in "IE" else None), sentence
        if letter in "BS":
            start = position
        if letter in "ES":
            found.append((start, position + 1, type_))
        inside = type_ if letter in "BI" else None
    assert inside is None, sentence
    return found


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", SPLITS)
def test_each_split_is_the_same_everywhere(language, split):
    lines = [f"{' '.join(s.words)}\t{' '.join(s.tags)}\n" for s in sentences(language, split, SIZES[split])]
    assert hashlib.sha256("".join(lines).encode()).hexdigest()[:16] == CHECKSUMS[language, split]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_smaller_split_is_the_beginning_of_a_larger_one(language):
    assert sentences(language, "dev", 20) == sentences(language, "dev", 60)[:20]
    assert sentences(language, "dev", 0) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_comes_twice_in_one_split_or_in_two(language):
    words = [s.words for split in ("train", "dev", "test") for s in sentences(language, split, 900)]
    assert len(set(words)) == len(words) == 2700


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pair", [0, 1])
def test_both_sides_together_decide_like_exclusive_or(language, pair):
    *lefts, right, other_right = XOR_CUES[language][pair]
    types = defaultdict(set)
    names = defaultdict(set)
    for sentence in sentences(language, "train", SIZES["train"]):
        for left in lefts:
            if sentence.words[: len(left)] == left:
                ((start, end, type_),) = read_mentions(sentence)
                (cue,) = {right, other_right} & set(sentence.words[end:])
                types[left, cue].add(type_)
                names[left, cue].add(sentence.words[start:end])
    a, b = lefts
    assert types[a, right] == types[b, other_right] != types[a, other_right] == types[b, right]
    assert [len(found) for found in types.values()] == [1, 1, 1, 1]
    assert min(map(len, names.values())) >= 5


@pytest.mark.parametrize(("language", "split"), [("fr", "train"), ("en", "eval")])
def test_what_is_no_language_or_split_is_refused(language, split):
    with pytest.raises(ValueError, match="toy corpora: ") as error:
        sentences(language, split, 10)
    assert str(error.value) == (
        "toy corpora: language must be one of en, zh and split one of train, dev, test, "
        f"got {language!r} and {split!r}"
    )
