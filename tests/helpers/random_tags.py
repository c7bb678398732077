"""Random sentences with gold and predicted mentions, for tests of counts."""

import random

from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span, encode
from ner_experiments.runs.predictions import Predicted

TYPES = ("LOC", "ORG", "PER")


def mentions(rng: random.Random, length: int) -> list[Span]:
    found, place = [], 0
    while place < length:
        size = rng.choice([1, 1, 1, 2, 2, 3, 4, 6])
        if rng.random() < 0.4 and place + size <= length:
            found.append((place, place + size, rng.choice(TYPES)))
        place += size
    return found


def disturbed(rng: random.Random, gold: list[Span], length: int) -> list[Span]:
    """Mentions with random errors: missing, of another type, with another boundary, or spurious."""
    found, last = [], 0
    for start, end, kind in gold:
        chance = rng.random()
        if chance < 0.15:
            continue
        if chance < 0.3:
            kind = rng.choice(TYPES)
        if 0.25 < chance < 0.4:
            start = rng.randint(last, end - 1)
        if 0.35 < chance < 0.45 and start > last:
            found.append((last, start, rng.choice(TYPES)))
        found.append((start, end, kind))
        last = end
    return found


def sentences(seed: int, number: int, letters: str = "abcdefgh") -> list[Predicted]:
    """Random sentences of one-letter words, so that some mentions occur in train and others do not."""
    rng = random.Random(seed)
    found = []
    for _ in range(number):
        length = rng.choice([1, 3, 5, 8, 10, 11, 14, 21, 33, 55])
        gold = mentions(rng, length)
        words = tuple(rng.choice(letters) for _ in range(length))
        predicted = encode(disturbed(rng, gold, length), length, "iob2")
        found.append(Predicted(words, encode(gold, length, "iob2"), predicted))
    return found


def train(seed: int, number: int) -> list[Sentence]:
    """A train split without the letters g and h."""
    return [Sentence(it.words, it.gold) for it in sentences(seed, number, "abcdef")]
