"""The toy corpora: the same everywhere, legally tagged, and hard in the ways that they claim."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

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


def corpus(language: str) -> dict[str, list[Sentence]]:
    return {split: sentences(language, split, size) for split, size in SIZES.items()}


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


def surfaces(split: Iterable[Sentence]) -> list[tuple[tuple[str, ...], str]]:
    return [(s.words[start:end], type_) for s in split for start, end, type_ in read_mentions(s)]


def majority(pairs: Iterable[tuple[Hashable, str]]) -> dict[Hashable, str]:
    """The most frequent type of each key."""
    counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for key, type_ in pairs:
        counts[key][type_] += 1
    return {key: types.most_common(1)[0][0] for key, types in counts.items()}


def types_of_surfaces(split: Iterable[Sentence]) -> dict[tuple[str, ...], set[str]]:
    types = defaultdict(set)
    for surface, type_ in surfaces(split):
        types[surface].add(type_)
    return types


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
def test_sentences_have_3_to_35_tokens_and_legal_tags(language):
    for split in corpus(language).values():
        for sentence in split:
            assert 3 <= len(sentence.words) == len(sentence.tags) <= 35
            assert all(word and not word.isspace() for word in sentence.words)
            read_mentions(sentence)
            if language == "zh":
                assert all(len(word) == 1 for word in sentence.words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_list_of_names_does_not_suffice(language):
    """The longest known names, each with its most frequent type in train: below 70 F1."""
    splits = corpus(language)
    names = majority(surfaces(splits["train"]))
    correct = predicted = gold = 0
    for sentence in splits["test"]:
        found, start = set(), 0
        while start < len(sentence):
            ends = range(len(sentence), start, -1)
            end = next((end for end in ends if sentence.words[start:end] in names), None)
            if end is not None:
                found.add((start, end, names[sentence.words[start:end]]))
            start = end or start + 1
        mentions = set(read_mentions(sentence))
        correct += len(found & mentions)
        predicted += len(found)
        gold += len(mentions)
    assert 0.2 < 2 * correct / (predicted + gold) < 0.7


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_neighbouring_words_do_not_suffice(language):
    """Shared names where they stand, typed by the words next to them: wrong in every fifth even on train."""
    train = sentences(language, "train", SIZES["train"])
    shared = {surface for surface, types in types_of_surfaces(train).items() if len(types) > 1}
    pairs = []
    for sentence in train:
        padded = ("", *sentence.words, "")
        for start, end, type_ in read_mentions(sentence):
            if sentence.words[start:end] in shared:
                pairs.append(((padded[start], padded[end + 1]), type_))
    by_neighbours = majority(pairs)
    assert sum(by_neighbours[key] == type_ for key, type_ in pairs) < 0.8 * len(pairs)


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
