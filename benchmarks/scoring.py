"""Span F1 of 50,000 sentences: ours, seqeval's strict mode, and a loop over tokens as conlleval's.

    python benchmarks/scoring.py [--threads N] [--rounds N] [--output FILE]

All score the same tags, and are first checked to return the same counts. Ours reads tensors, in the batches of an
evaluation, as the decoder returns them; the others read lists of strings. The making of the input is not counted.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import timing
import torch
from tables import Result, at_most, ratio, spread, table
from torch import Tensor

from ner_experiments.data.batches import EVALUATION
from ner_experiments.metrics import SpanF1

MEASURES = ("metrics",)

SENTENCES, TYPES = 50_000, ("LOC", "MISC", "ORG", "PER")
LABELS = ("O", *(f"{prefix}-{kind}" for kind in TYPES for prefix in "BIES"))
WRONG = 0.05
"""Probability that a token's predicted tag is drawn at random."""

Tags = list[list[str]]


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    gold = made_up(100 if arguments.tiny else SENTENCES)
    predicted = changed(gold)
    runs: dict[str, Callable[[], tuple[int, int, int]]] = {
        "ours": partial(ours, batches(gold, predicted)),
        "seqeval, strict": partial(seqeval, gold, predicted),
        "a loop over tokens": partial(loop, gold, predicted),
    }
    counts = {name: run() for name, run in runs.items()}
    assert len(set(counts.values())) == 1, counts
    times = timing.measure(runs, arguments.rounds)
    timing.say(f"{len(gold)} sentences", times)
    result = {
        "rounds": arguments.rounds,
        "sentences": len(gold),
        "tokens": sum(map(len, gold)),
        "mentions": counts["ours"][2],
        "scorers": times,
        "ratios": {name: timing.ratios([times], name) for name in times},
    }
    timing.write("scoring", result, arguments.output)


def made_up(sentences: int) -> Tags:
    """Legal BIOES tags: mentions of one to four tokens, with zero to five other tokens before each."""
    draws = random.Random(0)

    def sentence(length: int) -> list[str]:
        tags: list[str] = []
        while len(tags) < length:
            tags += ["O"] * draws.randint(0, 5)
            kind, size = draws.choice(TYPES), draws.choice((1, 1, 2, 3, 4))
            inner = ["B", *["I"] * (size - 2), "E"] if size > 1 else ["S"]
            tags += [f"{prefix}-{kind}" for prefix in inner]
        return tags

    return [sentence(draws.randint(3, 26)) for _ in range(sentences)]


def changed(gold: Tags) -> Tags:
    draws = random.Random(1)
    return [[draws.choice(LABELS) if draws.random() < WRONG else tag for tag in tags] for tags in gold]


def batches(gold: Tags, predicted: Tags) -> list[tuple[Tensor, Tensor, Tensor]]:
    ids = {label: number for number, label in enumerate(LABELS)}

    def padded(sentences: Sequence[list[str]]) -> Tensor:
        rows = [torch.tensor([ids[tag] for tag in tags]) for tags in sentences]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    lengths = np.array([len(tags) for tags in gold])
    made = []
    for plan in EVALUATION.in_order(lengths):
        padded_tags = padded([predicted[number] for number in plan])
        mask = torch.arange(padded_tags.shape[1]) < torch.from_numpy(lengths[plan])[:, None]
        made.append((padded_tags, padded([gold[number] for number in plan]), mask))
    return made


def ours(made: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[int, int, int]:
    metric = SpanF1(LABELS)
    for batch in made:
        metric.update(*batch)
    report = metric.compute()
    return report["correct"], report["predicted"], report["gold"]


def seqeval(gold: Tags, predicted: Tags) -> tuple[int, int, int]:
    from seqeval.metrics.v1 import precision_recall_fscore_support
    from seqeval.scheme import IOBES

    precision, recall, _, support = precision_recall_fscore_support(
        gold, predicted, average="micro", scheme=IOBES
    )
    correct = round(float(recall) * int(support))
    return correct, round(correct / float(precision)), int(support)


def loop(gold: Tags, predicted: Tags) -> tuple[int, int, int]:
    """Numbers of correct, predicted and gold mentions. A mention is B I* E of one type, or a single S."""
    correct = num_predicted = num_gold = 0
    for sentence, tags in zip(gold, predicted, strict=True):
        gold_mentions, predicted_mentions = mentions(sentence), mentions(tags)
        num_gold += len(gold_mentions)
        num_predicted += len(predicted_mentions)
        correct += len(gold_mentions & predicted_mentions)
    return correct, num_predicted, num_gold


def mentions(tags: list[str]) -> set[tuple[int, int, str]]:
    found = set()
    start, kind = -1, ""
    for place, tag in enumerate(tags):
        prefix, _, type_ = tag.partition("-")
        if prefix == "S":
            found.add((place, place, type_))
        elif prefix == "E" and start >= 0 and type_ == kind:
            found.add((start, place, kind))
        if prefix == "B":
            start, kind = place, type_
        elif not (prefix == "I" and type_ == kind):
            start, kind = -1, ""
    return found


def tables(result: Result) -> list[str]:
    scorers = result["scorers"]
    rows = [[name, spread(found), ratio(found, scorers["ours"])] for name, found in scorers.items()]
    title = f"{result['sentences']:,} sentences, {result['tokens']:,} tokens, {result['mentions']:,} mentions"
    return [table(title, "seconds", "times ours", rows=rows)]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    yield at_most("span F1 of 50,000 sentences", 0.5, " s", results["scoring"]["scorers"]["ours"]["median"])


if __name__ == "__main__":
    main()
