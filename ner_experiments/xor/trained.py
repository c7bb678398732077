"""A trained tagger on its own corpus: how much of each tag is due to past and future together.

For a token (past p1, future f1) another token lends past p2 and future f2, both unlike the first ones: one
of 20 drawn occurrences of the same word, else one of 20 drawn tokens of the same gold tag. The four sentences
p1 w f1, p1 w f2, p2 w f1 and p2 w f2, of which only the first need be real, give the measures of
`measurement`. They are of one other token each; yet another one may show more. A token for which none was
found is left out, and counted.

Direct features of n-grams that reach over the token make past and future interact in any model.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ner_experiments.analysis.trained import load_with_corpus
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.xor.crossing import Pair, Token, crossed_scores
from ner_experiments.xor.measurement import decided, interaction, tags_form_xor

TRIES = 20
CROSSED_AT_ONCE = 2000


@dataclass
class Measured:
    """One entry per pair; `tags` are the best ones of the tokens where they stand."""

    name: str
    task: Task
    split: str
    pairs: list[Pair]
    left_out: int
    tags: list[str]
    interactions: np.ndarray
    decided: np.ndarray
    xor: np.ndarray

    def groups(self) -> dict[str, np.ndarray]:
        """Which pairs are of any token, and of those inside and outside the gold mentions."""
        inside = np.array([pair.token.tag != "O" for pair in self.pairs])
        of_mentions = {"in mentions": inside, "outside": ~inside} if self.task == "mentions" else {}
        return {"all tokens": np.ones_like(inside)} | of_mentions

    def record(self) -> dict[str, Any]:
        """As JSON: `decided` and `xor` are shares of the tokens, `same_word` of the partners."""
        return {
            "corpus": self.name,
            "split": self.split,
            "left_out": self.left_out,
            **{
                name.replace(" ", "_"): self.summary(chosen)
                for name, chosen in self.groups().items()
                if chosen.any()
            },
        }

    def summary(self, chosen: np.ndarray) -> dict[str, float]:
        same = np.array([pair.token.word == pair.other.word for pair in self.pairs])
        median, high, largest = np.quantile(self.interactions[chosen], [0.5, 0.9, 1]).tolist()
        return {
            "tokens": int(chosen.sum()),
            "same_word": float(same[chosen].mean()),
            "interaction_median": median,
            "interaction_90": high,
            "interaction_largest": largest,
            "decided": float(self.decided[chosen].mean()),
            "xor": float(self.xor[chosen].mean()),
        }

    def write(self, path: Path) -> None:
        """A line per token, the most interacting first."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, dialect="excel-tab")
            writer.writerow(["interaction", "decided", "xor", "gold", "tag", "past", "word", "future"])
            for number in np.argsort(-self.interactions, kind="stable"):
                token = self.pairs[number].token
                writer.writerow(
                    [
                        f"{self.interactions[number]:.3e}",
                        int(self.decided[number]),
                        int(self.xor[number]),
                        token.tag,
                        self.tags[number],
                        " ".join(token.past),
                        token.word,
                        " ".join(token.future),
                    ]
                )


def measure_run(folder: Path, *, num_sentences: int) -> Measured:
    """Of the tokens of that many sentences of test, or dev where there is no test, drawn at random.

    ValueError or OSError as `analysis.trained.load`.
    """
    tagger, encoder, corpus = load_with_corpus(folder)
    split = "test" if "test" in corpus.splits else "dev"
    rng = np.random.default_rng(0)
    pairs, left_out = choose_pairs(corpus.splits[split], num_sentences, rng)
    if not pairs:
        raise ValueError(f"{folder}: no token of {split} has a past and a future to cross with another's")
    parts = [
        measures(crossed_scores(tagger, encoder, pairs[first : first + CROSSED_AT_ONCE]))
        for first in range(0, len(pairs), CROSSED_AT_ONCE)
    ]
    interactions, by_interaction, xor, best = (np.concatenate(column) for column in zip(*parts, strict=True))
    tags = [encoder.labels[tag] for tag in best]
    return Measured(corpus.name, corpus.task, split, pairs, left_out, tags, interactions, by_interaction, xor)


def measures(scores: Tensor) -> tuple[np.ndarray, ...]:
    return (
        interaction(scores).numpy(),
        decided(scores).numpy(),
        tags_form_xor(scores).numpy(),
        scores[:, 0, 0].argmax(1).numpy(),
    )


def choose_pairs(
    sentences: Sequence[Sentence], num_sentences: int, rng: np.random.Generator
) -> tuple[list[Pair], int]:
    """A partner for each token of the drawn sentences, from all of them; and how many tokens have none."""
    by_word, by_tag = defaultdict(list), defaultdict(list)
    for sentence in sentences:
        for place in range(len(sentence)):
            token = Token(sentence, place)
            by_word[token.word].append(token)
            by_tag[token.tag].append(token)
    drawn = rng.permutation(len(sentences))[:num_sentences]
    tokens = [Token(sentences[n], place) for n in drawn for place in range(len(sentences[n]))]
    found = [partner(token, (by_word[token.word], by_tag[token.tag]), rng) for token in tokens]
    pairs = [Pair(token, other) for token, other in zip(tokens, found, strict=True) if other is not None]
    return pairs, found.count(None)


def partner(token: Token, choices: Sequence[Sequence[Token]], rng: np.random.Generator) -> Token | None:
    """A token of the first choice that differs in past and future, else of the second."""
    for tokens in choices:
        for number in rng.integers(len(tokens), size=TRIES):
            other = tokens[number]
            if other.past != token.past and other.future != token.future:
                return other
    return None
