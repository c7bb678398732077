"""The interaction of past and future in a token's tag scores, of any model and of a trained run on its own corpus.

Scores come in fours: `scores[n, i, j]` are the tag scores of one token with past i and future j, both in {0, 1}. If
they are a sum, s(p, f) = a(p) + c(f) (Li, Fu & Ma 2020, section 3.3), the mixed second difference is 0 for each tag,
whatever the weights:

    s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2) = 0

If past and future interact, it is not 0 for at least one pair of contexts. Scores are those before the softmax or
CRF, since a CRF adds the same to all four.

In a corpus, a token (past p1, future f1) is paired with another one that supplies p2 and f2, both different: one of
20 drawn occurrences of the same word, else one of 20 drawn tokens with the same gold tag. The sentences p1 w f1,
p1 w f2, p2 w f1 and p2 w f2 give the four scores; only the first need occur in the corpus. A token is measured with
one partner only, so interaction with other contexts may go unnoticed. Tokens without a partner are left out and
counted.

Direct features of n-grams that span the token make past and future interact in any model.
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

BUDGET = TokenBudget(4096)
PAIRS_AT_ONCE = 2000
DRAWS_OF_PARTNERS = 20


class Token(NamedTuple):
    """A token and its position in a sentence."""

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
    """A token, and another one that supplies a second past and future."""

    token: Token
    other: Token

    def contexts(self) -> list[Token]:
        """The token in its four contexts: (p1, f1), which is the token itself, (p1, f2), (p2, f1) and (p2, f2)."""
        ends = (self.token, self.other)
        return [between(past, self.token, future) for past in ends for future in ends]


def between(past: Token, token: Token, future: Token) -> Token:
    """`token` after the past of one token and before the future of another, with tags and columns."""

    def joined(first: Sequence[str], middle: Sequence[str], last: Sequence[str]) -> tuple[str, ...]:
        return (*first[: past.place], middle[token.place], *last[future.place + 1 :])

    sources = (past.sentence, token.sentence, future.sentence)
    sentence = Sentence(
        words=joined(*(source.words for source in sources)),
        tags=joined(*(source.tags for source in sources)),
        columns={name: joined(*(source.columns[name] for source in sources)) for name in sources[1].columns},
    )
    return Token(sentence, past.place)


@dataclass
class Measurement:
    """Measurement of a run.

    pairs: the measured tokens with their partners. left_out: number of tokens without a partner.
    tags: [pairs] the best tag of each token in its own context.
    interactions, decided, xor: [pairs] results of `interaction`, `decided` and `tags_form_xor`.
    """

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
        """Masks of the pairs: all tokens, and those inside and outside gold mentions."""
        inside = np.array([pair.token.tag != "O" for pair in self.pairs])
        by_mention = {"in mentions": inside, "outside": ~inside} if self.task == "mentions" else {}
        return {"all tokens": np.ones_like(inside)} | by_mention

    def record(self) -> dict[str, Any]:
        """Content for JSON. `decided`, `xor` and `same_word` (a partner of the same word) are shares of the tokens."""
        return {
            "corpus": self.name,
            "split": self.split,
            "left_out": self.left_out,
            **{
                name.replace(" ", "_"): self.summary(mask)
                for name, mask in self.groups().items()
                if mask.any()
            },
        }

    def summary(self, mask: np.ndarray) -> dict[str, int | float]:
        same = np.array([pair.token.word == pair.other.word for pair in self.pairs])
        median, high, largest = np.quantile(self.interactions[mask], [0.5, 0.9, 1]).tolist()
        return {
            "tokens": int(mask.sum()),
            "same_word": float(same[mask].mean()),
            "interaction_median": median,
            "interaction_90": high,
            "interaction_largest": largest,
            "decided": float(self.decided[mask].mean()),
            "xor": float(self.xor[mask].mean()),
        }

    def write(self, path: Path) -> None:
        """Write one line per token, in descending order of interaction."""
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


def measure_run(folder: Path, *, num_sentences: int) -> Measurement:
    """Measure the tokens of randomly drawn sentences of test, or of dev if there is no test.

    Raises ValueError or OSError as `build.load_with_corpus` does, and ValueError if no token has a partner.
    """
    tagger, encoder, corpus = load_with_corpus(folder)
    split = "test" if "test" in corpus.splits else "dev"
    rng = np.random.default_rng(0)
    pairs, left_out = choose_pairs(corpus.splits[split], num_sentences, rng)
    if not pairs:
        raise ValueError(f"{folder}: no token of {split} has another token with a different past and future")
    parts = [
        measures(crossed_scores(tagger, encoder, pairs[first : first + PAIRS_AT_ONCE]))
        for first in range(0, len(pairs), PAIRS_AT_ONCE)
    ]
    interactions, by_interaction, xor, best = (np.concatenate(column) for column in zip(*parts, strict=True))
    tags = [encoder.labels[tag] for tag in best]
    return Measurement(
        corpus.name, corpus.task, split, pairs, left_out, tags, interactions, by_interaction, xor
    )


def measures(scores: Tensor) -> tuple[np.ndarray, ...]:
    """[pairs] each: interaction, `decided`, `tags_form_xor`, and the best tag of the token in its own context."""
    return (
        interaction(scores).numpy(),
        decided(scores).numpy(),
        tags_form_xor(scores).numpy(),
        scores[:, 0, 0].argmax(1).numpy(),
    )


def choose_pairs(
    sentences: Sequence[Sentence], num_sentences: int, rng: np.random.Generator
) -> tuple[list[Pair], int]:
    """Pairs of a token and a partner, and the number of tokens without a partner.

    Tokens are those of `num_sentences` random sentences; partners may be in any sentence.
    """
    by_word, by_tag = defaultdict(list), defaultdict(list)
    for sentence in sentences:
        for place in range(len(sentence)):
            token = Token(sentence, place)
            by_word[token.word].append(token)
            by_tag[token.tag].append(token)
    drawn = rng.permutation(len(sentences))[:num_sentences]
    tokens = [Token(sentences[n], place) for n in drawn for place in range(len(sentences[n]))]
    partners = [partner(token, (by_word[token.word], by_tag[token.tag]), rng) for token in tokens]
    pairs = [Pair(token, other) for token, other in zip(tokens, partners, strict=True) if other is not None]
    return pairs, partners.count(None)


def partner(token: Token, choices: Sequence[Sequence[Token]], rng: np.random.Generator) -> Token | None:
    """A random token whose past and future both differ, from the first group of choices, else the next; else None."""
    for tokens in choices:
        for number in rng.integers(len(tokens), size=DRAWS_OF_PARTNERS):
            other = tokens[number]
            if other.past != token.past and other.future != token.future:
                return other
    return None


def crossed_scores(tagger: Tagger, encoder: Encoder, pairs: Sequence[Pair]) -> Tensor:
    """Scores [pairs 2 2 tags] in float64: `scores[n, i, j]` are those of token n with past i and future j.

    Leaves the tagger in float64 and in evaluation mode.
    """
    tagger.double().eval()
    contexts = [context for pair in pairs for context in pair.contexts()]
    places = torch.tensor([context.place for context in contexts])
    encoded = encoder.encode([context.sentence for context in contexts], torch.device("cpu"))
    scores = torch.empty(len(contexts), len(encoder.labels), dtype=torch.float64)
    with torch.inference_mode():
        for numbers in BUDGET.in_order(encoded.lengths):
            rows = torch.from_numpy(numbers)
            scores[rows] = tagger(encoded.batch(numbers))[torch.arange(len(rows)), places[rows]]
    return scores.view(len(pairs), 2, 2, -1)


def second_difference(scores: Float[Tensor, "pairs 2 2 tags"]) -> Float[Tensor, "pairs tags"]:
    """s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2)."""
    return scores[:, 0, 0] - scores[:, 0, 1] - scores[:, 1, 0] + scores[:, 1, 1]


def interaction(scores: Float[Tensor, "pairs 2 2 tags"]) -> Float[Tensor, " pairs"]:
    """Largest absolute second difference over tags, relative to the largest absolute score; at most 4."""
    size = scores.abs().amax((1, 2, 3)).clamp(min=torch.finfo(scores.dtype).tiny)
    return second_difference(scores).abs().amax(1) / size


def decided(scores: Float[Tensor, "pairs 2 2 tags"]) -> Bool[Tensor, " pairs"]:
    """Whether the best tag of (p1, f1) is due to interaction: an additive model would choose another one.

    An additive model with the same three other scores has s(p1, f1) = s(p1, f2) + s(p2, f1) - s(p2, f2).
    """
    additive = scores[:, 0, 1] + scores[:, 1, 0] - scores[:, 1, 1]
    return scores[:, 0, 0].argmax(1) != additive.argmax(1)


def tags_form_xor(scores: Float[Tensor, "pairs 2 2 tags"]) -> Bool[Tensor, " pairs"]:
    """Whether the four best tags form an XOR: one tag for (p1, f1) and (p2, f2), another for the other two.

    No sum of past and future yields this pattern; every other pattern is possible with some sum.
    """
    best = scores.argmax(3)
    same = (best[:, 0, 0] == best[:, 1, 1]) & (best[:, 0, 1] == best[:, 1, 0])
    return same & (best[:, 0, 0] != best[:, 0, 1])
