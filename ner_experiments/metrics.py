"""Exact mention F1 (strict BIOES, as in seqeval) and tag accuracy as torchmetrics Metrics.

Both accumulate counts over batches and devices, and report scores in [0, 1].
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torchmetrics import Metric

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.utils.f1 import f1_score

Mentions = tuple[Int[Tensor, " mentions"], Int[Tensor, " mentions"], Int[Tensor, " mentions"]]
"""First token, last token and type of each mention, with tokens numbered over the whole batch."""


class SpanF1(Metric):
    """Precision, recall and F1 of exact mentions: S, or B I* E of one type; anything else is no mention.

    Equals conlleval on legal tags, and seqeval with mode="strict", scheme=IOBES on any tags. `labels` are "O"
    and BIOES tags. `illegal_tags` counts predicted tags other than O outside mentions. Gold mentions that no tags
    express (`unreachable`, by a tag of their type) are missing.
    """

    primary_metric = PRIMARY_METRIC["mentions"][0]
    full_state_update = False
    correct: Tensor
    predicted: Tensor
    gold: Tensor
    illegal: Tensor
    prefixes: Tensor
    kinds: Tensor

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        self.types = sorted({label[2:] for label in labels if label != "O"})
        prefixes = torch.tensor(["OBIES".index(label[0]) for label in labels])
        kinds = torch.tensor([self.types.index(label[2:]) if label != "O" else -1 for label in labels])
        self.register_buffer("prefixes", prefixes, persistent=False)
        self.register_buffer("kinds", kinds, persistent=False)
        for name in ("correct", "predicted", "gold"):
            self.add_state(name, torch.zeros(len(self.types), dtype=torch.long), dist_reduce_fx="sum")
        self.add_state("illegal", torch.zeros((), dtype=torch.long), dist_reduce_fx="sum")

    def update(
        self,
        predicted: Int[Tensor, "batch time"],
        gold: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
        unreachable: Int[Tensor, " mentions"] | None = None,
    ) -> None:
        first = torch.zeros_like(mask)
        first[:, 0] = True
        first = first[mask]
        heads, tails, kinds = self.mentions(predicted[mask], first)
        gold_heads, gold_tails, gold_kinds = self.mentions(gold[mask], first)
        tail_of = torch.full_like(first, -1, dtype=torch.long)
        kind_of = tail_of.clone()
        tail_of[gold_heads], kind_of[gold_heads] = gold_tails, gold_kinds
        correct = (tail_of[heads] == tails) & (kind_of[heads] == kinds)
        self.correct = self.correct + self._per_type(kinds[correct])
        self.predicted = self.predicted + self._per_type(kinds)
        self.gold = self.gold + self._per_type(gold_kinds)
        if unreachable is not None:
            self.gold = self.gold + self._per_type(self.kinds[unreachable])
        tagged = (self.prefixes[predicted[mask]] > 0).sum()
        self.illegal = self.illegal + tagged - (tails - heads + 1).sum()

    def compute(self) -> dict[str, Any]:
        correct, predicted, gold = self.correct.tolist(), self.predicted.tolist(), self.gold.tolist()
        return {
            **f1_score(sum(correct), sum(predicted), sum(gold)),
            "correct": sum(correct),
            "predicted": sum(predicted),
            "gold": sum(gold),
            "illegal_tags": int(self.illegal),
            "types": {
                kind: {**f1_score(c, p, g), "correct": c, "predicted": p, "gold": g}
                for kind, c, p, g in zip(self.types, correct, predicted, gold, strict=True)
            },
        }

    def mentions(self, tags: Int[Tensor, " tokens"], first: Bool[Tensor, " tokens"]) -> Mentions:
        """Mentions of concatenated sentences; `first` marks the first token of each sentence.

        Tags are split into runs in which B or I is followed by I or E of its type. A run is a mention if it is
        a single S, or goes from B to E: everything in between can only be I.
        """
        begin, inside, end, single = range(1, 5)
        prefix, kind = self.prefixes[tags], self.kinds[tags]
        opens = (prefix == begin) | (prefix == inside)
        closes = (prefix == inside) | (prefix == end)
        linked = torch.zeros_like(first)
        linked[1:] = opens[:-1] & closes[1:] & (kind[:-1] == kind[1:]) & ~first[1:]
        heads = (~linked).nonzero().squeeze(1)
        tails = torch.cat([heads[1:] - 1, heads.new_tensor([len(tags) - 1])])
        whole = (prefix[heads] == single) | ((prefix[heads] == begin) & (prefix[tails] == end))
        return heads[whole], tails[whole], kind[heads[whole]]

    def _per_type(self, kinds: Int[Tensor, " mentions"]) -> Int[Tensor, " types"]:
        return torch.bincount(kinds, minlength=len(self.types))


class TagAccuracy(Metric):
    """Share of tokens with the correct tag, overall and per gold tag (part of speech: Huang et al. 2015)."""

    primary_metric = PRIMARY_METRIC["tags"][0]
    full_state_update = False
    correct: Tensor
    gold: Tensor

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        self.labels = list(labels)
        for name in ("correct", "gold"):
            self.add_state(name, torch.zeros(len(labels), dtype=torch.long), dist_reduce_fx="sum")

    def update(
        self,
        predicted: Int[Tensor, "batch time"],
        gold: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
        unreachable: Int[Tensor, " mentions"] | None = None,
    ) -> None:
        assert unreachable is None, "each token has a tag"
        correct = mask & (predicted == gold)
        self.correct = self.correct + torch.bincount(gold[correct], minlength=len(self.labels))
        self.gold = self.gold + torch.bincount(gold[mask], minlength=len(self.labels))

    def compute(self) -> dict[str, Any]:
        correct, gold = self.correct.tolist(), self.gold.tolist()
        return {
            "accuracy": sum(correct) / max(1, sum(gold)),
            "correct": sum(correct),
            "gold": sum(gold),
            "types": {
                label: {"accuracy": c / g if g else 0.0, "correct": c, "gold": g}
                for label, c, g in zip(self.labels, correct, gold, strict=True)
            },
        }


METRICS: dict[str, type[SpanF1] | type[TagAccuracy]] = {"mentions": SpanF1, "tags": TagAccuracy}
"""The metric of each task."""
