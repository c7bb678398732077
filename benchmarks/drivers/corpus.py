"""The corpus of the end-to-end benchmark, generated from a seed, with sentence lengths as in CoNLL-2003 and five types.

Word frequencies are Zipfian. Each type has words of its own, so that there is something to learn.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

TYPES = ("DATE", "LOC", "MISC", "ORG", "PER")
LONGEST = 113
"""Largest number of tokens. Sentence lengths are distributed about as in CoNLL-2003; their mean is 14.5."""
LETTERS = "etaoinshrdlcumwfgypbvkjxqz"
SHARE = 0.12
"""Probability that a mention begins at a position where one can."""


class Pool(NamedTuple):
    """The words of a type, or those without a type (tag ""), and the probability of each."""

    tag: str
    words: list[str]
    weights: np.ndarray


def write(folder: Path, *, sentences: int, forms: int, dim: int, seed: int = 0) -> int:
    """Write train.conll and decode.conll, with `sentences` sentences each, and vectors.txt.

    The vectors are random, `dim` numbers for each of `forms` words. Returns the number of tokens, which is the same in
    both splits.
    """
    rng = np.random.default_rng(seed)
    words = vocabulary(rng, forms)
    others, *names = pools(words)
    drawn = lengths(rng, sentences)
    for split in ("train", "decode"):
        with (folder / f"{split}.conll").open("w", encoding="utf-8") as file:
            for length in rng.permutation(drawn).tolist():
                file.write("".join(f"{word} {tag}\n" for word, tag in sentence(rng, others, names, length)))
                file.write("\n")
    with (folder / "vectors.txt").open("w", encoding="utf-8") as file:
        for word, vector in zip(words, rng.normal(scale=dim**-0.5, size=(forms, dim)), strict=True):
            file.write(f"{word} {' '.join(f'{number:.5f}' for number in vector)}\n")
    return int(drawn.sum())


def lengths(rng: np.random.Generator, sentences: int) -> np.ndarray:
    drawn = 1 + rng.gamma(shape=1.5, scale=9.3, size=sentences).astype(int)
    drawn[0] = LONGEST
    return drawn.clip(max=LONGEST)


def vocabulary(rng: np.random.Generator, forms: int) -> list[str]:
    """Distinct words, from frequent and short to rare and long. One in ten is a number; names begin with a capital."""
    frequencies = 1 / (np.arange(len(LETTERS)) + 4)
    words: dict[str, None] = {}
    while len(words) < forms:
        rank = len(words)
        length = 1 + rng.poisson(1 + 0.6 * np.log1p(rank))
        if rank % 10 == 9:
            word = "".join(rng.choice(list("0123456789"), size=length))
        else:
            word = "".join(rng.choice(list(LETTERS), size=length, p=frequencies / frequencies.sum()))
        words.setdefault(word.capitalize() if type_of(rank) else word)
    return list(words)


def type_of(rank: int) -> str:
    """Type of a name; empty for other words."""
    return TYPES[rank // 6 % len(TYPES)] if rank % 6 == 5 else ""


def pools(words: list[str]) -> list[Pool]:
    """Pools of words: first the one without a type, then one per type."""
    ranks = {name: [rank for rank in range(len(words)) if type_of(rank) == name] for name in ("", *TYPES)}
    return [
        Pool(name, [words[rank] for rank in chosen], shares(np.array(chosen)))
        for name, chosen in ranks.items()
    ]


def shares(ranks: np.ndarray) -> np.ndarray:
    weights = 1 / (ranks + 2.7)
    return weights / weights.sum()


def sentence(rng: np.random.Generator, others: Pool, names: list[Pool], length: int) -> list[tuple[str, str]]:
    """Words with their BIOES tags."""
    tokens = list(zip(rng.choice(others.words, size=length, p=others.weights), ["O"] * length, strict=True))
    first = 0
    while first < length:
        size = 1
        if rng.random() < SHARE:
            size = min(int(rng.geometric(0.6)), length - first)
            name = names[rng.integers(len(names))]
            prefixes = ["B", *"I" * (size - 2), "E"] if size > 1 else ["S"]
            words = rng.choice(name.words, size=size, p=name.weights)
            tokens[first : first + size] = [
                (word, f"{prefix}-{name.tag}") for word, prefix in zip(words, prefixes, strict=True)
            ]
        first += size
    return tokens
