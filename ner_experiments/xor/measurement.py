"""How far a token's tag scores are from a sum of its past and its future: the mixed second difference.

Scores come in fours, `scores[n, i, j]`: the tag scores of one token with past i and future j, i and j in
{0, 1}. If they are a sum, s(p, f) = a(p) + c(f) (Li, Fu & Ma 2020, section 3.3), then

    s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2) = 0

for each tag, whatever the weights; for one pair of contexts or more it is not 0 if past and future interact.
Scores are those before the softmax or CRF: what a CRF adds is the same in all four.

A token between the pasts and futures of two sentences, and its scores in all four.

A trained tagger on its own corpus: how much of each tag is due to past and future together.

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
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ner_experiments.build import load_with_corpus
from ner_experiments.data.batches import TokenBudget
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.tagger import Tagger

ROUNDING = 1e-9
"""In float64 a sum's interaction stays orders of magnitude below this, and other models' above."""


def second_difference(scores: Float[Tensor, "pairs 2 2 tags"]) -> Float[Tensor, "pairs tags"]:
    """s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2)."""
    return scores[:, 0, 0] - scores[:, 0, 1] - scores[:, 1, 0] + scores[:, 1, 1]


def interaction(scores: Float[Tensor, "pairs 2 2 tags"]) -> Float[Tensor, " pairs"]:
    """The largest second difference of any tag, relative to the largest of all scores; at most 4."""
    size = scores.abs().amax((1, 2, 3)).clamp(min=torch.finfo(scores.dtype).tiny)
    return second_difference(scores).abs().amax(1) / size


def decided(scores: Float[Tensor, "pairs 2 2 tags"]) -> Bool[Tensor, " pairs"]:
    """Whether the best tag of (p1, f1) is due to interaction: a sum would make it another.

    A sum that has the other three scores has s(p1, f2) + s(p2, f1) - s(p2, f2) here.
    """
    additive = scores[:, 0, 1] + scores[:, 1, 0] - scores[:, 1, 1]
    return scores[:, 0, 0].argmax(1) != additive.argmax(1)


def tags_form_xor(scores: Float[Tensor, "pairs 2 2 tags"]) -> Bool[Tensor, " pairs"]:
    """Whether the four best tags are an XOR: i for (p1, f1) and (p2, f2), another one for the other two.

    No sum can have these, and some sum has any other four tags.
    """
    best = scores.argmax(3)
    same = (best[:, 0, 0] == best[:, 1, 1]) & (best[:, 0, 1] == best[:, 1, 0])
    return same & (best[:, 0, 0] != best[:, 0, 1])


BATCHES = TokenBudget(4096)


class Token(NamedTuple):
    """A token where it stands."""

    sentence: Sentence
    place: int

    @property
    def word(self) -> str:
        return self.sentence.words[self.place]

    @property
    def tag(self) -> str:
        return self.sentence.tags[self.place]

    @property
    def past(self) -> tuple[str, ...]:
        return self.sentence.words[: self.place]

    @property
    def future(self) -> tuple[str, ...]:
        return self.sentence.words[self.place + 1 :]


class Pair(NamedTuple):
    """A token, and another one that lends its past and its future."""

    token: Token
    other: Token

    def contexts(self) -> list[Token]:
        """The token itself, which is (p1, f1); then with (p1, f2), (p2, f1) and (p2, f2)."""
        ends = (self.token, self.other)
        return [between(past, self.token, future) for past in ends for future in ends]


def between(past: Token, token: Token, future: Token) -> Token:
    """`token` after the past of one token and before the future of another, columns and all."""

    def joined(first: Sequence[str], middle: Sequence[str], last: Sequence[str]) -> tuple[str, ...]:
        return (*first[: past.place], middle[token.place], *last[future.place + 1 :])

    sources = (past.sentence, token.sentence, future.sentence)
    sentence = Sentence(
        words=joined(*(source.words for source in sources)),
        tags=joined(*(source.tags for source in sources)),
        columns={name: joined(*(source.columns[name] for source in sources)) for name in sources[1].columns},
    )
    return Token(sentence, past.place)


def crossed_scores(tagger: Tagger, encoder: Encoder, pairs: Sequence[Pair]) -> Tensor:
    """[pairs 2 2 tags]: `scores[n, i, j]` of the token of pair n with past i and future j, in float64.

    The tagger is left in float64 and in evaluation mode.
    """
    tagger.double().eval()
    contexts = [context for pair in pairs for context in pair.contexts()]
    places = torch.tensor([context.place for context in contexts])
    encoded = encoder.encode([context.sentence for context in contexts], torch.device("cpu"))
    scores = torch.empty(len(contexts), len(encoder.labels), dtype=torch.float64)
    with torch.inference_mode():
        for numbers in BATCHES.in_order(encoded.lengths):
            rows = torch.from_numpy(numbers)
            scores[rows] = tagger(encoded.batch(numbers))[torch.arange(len(rows)), places[rows]]
    return scores.view(len(pairs), 2, 2, -1)


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

    def summary(self, chosen: np.ndarray) -> dict[str, int | float]:
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
