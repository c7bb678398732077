"""Scores: against seqeval (strict), a regular expression, and plain loops. conlleval: test_evaluation_protocol.py."""

import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import classification_report
from seqeval.scheme import IOBES, Entities

from ner_experiments.metrics import METRICS, SpanF1, TagAccuracy
from ner_experiments.runs.artifacts import scores_of

Tags = Sequence[str]
Pairs = list[tuple[Tags, Tags]]
"""Sentences: gold tags and predicted ones."""

TYPES = ("A", "creative-work", "PER.NOM")
LABELS = ("O", *(f"{prefix}-{kind}" for kind in TYPES for prefix in "BIES"))
seeded = settings(derandomize=True, deadline=None, max_examples=60)

sentence = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=7)
pairs = st.lists(sentence.map(lambda tokens: tuple(zip(*tokens, strict=True))), min_size=1, max_size=6)


def padded(sentences: Pairs, labels: Tags = LABELS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Predicted and gold ids and the mask, with noise for padding."""
    lengths = torch.tensor([len(gold) for gold, _ in sentences])
    shape = (len(sentences), int(lengths.max()))
    predicted, gold = torch.randint(len(labels), shape), torch.randint(len(labels), shape)
    for row, (gold_tags, tags) in enumerate(sentences):
        predicted[row, : len(tags)] = torch.tensor([labels.index(tag) for tag in tags])
        gold[row, : len(tags)] = torch.tensor([labels.index(tag) for tag in gold_tags])
    return predicted, gold, torch.arange(shape[1]) < lengths[:, None]


def score(*batches: Pairs, labels: Tags = LABELS) -> dict[str, Any]:
    metric = SpanF1(labels)
    for batch in batches:
        metric.update(*padded(batch, labels))
    return metric.compute()


def mentions(tags: Tags) -> list[tuple[int, int, str]]:
    """By definition: each stretch that is S, or B I* E, of one type."""
    stretches = itertools.combinations(range(len(tags) + 1), 2)
    return [
        (start, end - 1, tags[start][2:])
        for start, end in stretches
        if re.fullmatch("S|BI*E", "".join(tag[0] for tag in tags[start:end]))
        and len({tag[2:] for tag in tags[start:end]}) == 1
    ]


def check_against_seqeval(sentences: Pairs, report: dict[str, Any]) -> None:
    gold, predicted = ([list(tags) for tags in side] for side in zip(*sentences, strict=True))
    of_gold, of_predicted = (
        {(e.sent_id, e.start, e.end, e.tag) for found in Entities(tags, IOBES).entities for e in found}
        for tags in (gold, predicted)
    )
    counts = [of_gold & of_predicted, of_predicted, of_gold]
    assert [report[name] for name in ("correct", "predicted", "gold")] == list(map(len, counts))
    nothing = dict.fromkeys(("precision", "recall", "f1-score", "support"), 0)
    theirs = {"micro avg": nothing}
    if of_gold | of_predicted:
        strict = {"mode": "strict", "scheme": IOBES, "zero_division": 0}
        theirs = classification_report(gold, predicted, output_dict=True, **strict)
    for kind in (None, *TYPES):
        ours = report["types"][kind] if kind else report
        expected = theirs.get(kind, nothing) if kind else theirs["micro avg"]
        for name, of_seqeval in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
            assert ours[name] == pytest.approx(float(expected[of_seqeval]), abs=1e-12), (kind, name)
        assert ours["gold"] == expected["support"]
        if kind:
            found = [sum(entity[3] == kind for entity in entities) for entities in counts]
            assert [ours[name] for name in ("correct", "predicted", "gold")] == found


def legal(length: int, kinds: Tags) -> list[tuple[str, ...]]:
    """All legal BIOES taggings, cut by cut."""
    if length == 0:
        return [()]
    found = [("O", *rest) for rest in legal(length - 1, kinds)]
    for end, kind in itertools.product(range(1, length + 1), kinds):
        letters = "S" if end == 1 else "B" + "I" * (end - 2) + "E"
        mention = tuple(f"{letter}-{kind}" for letter in letters)
        found += [(*mention, *rest) for rest in legal(length - end, kinds)]
    return found


@pytest.mark.parametrize(("kinds", "longest"), [(TYPES[:1], 5), (TYPES[:2], 4)])
def test_mentions_of_all_short_sequences(kinds: Tags, longest: int) -> None:
    labels = ("O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BIES"))
    sequences = [
        tags for length in range(1, longest + 1) for tags in itertools.product(labels, repeat=length)
    ]
    tokens = torch.tensor([labels.index(tag) for tags in sequences for tag in tags])
    starts = torch.tensor([0, *map(len, sequences)]).cumsum(0)
    first = torch.zeros(len(tokens), dtype=torch.bool)
    first[starts[:-1]] = True
    metric = SpanF1(labels)
    heads, tails, types = (found.tolist() for found in metric.mentions(tokens, first))
    ours = set(zip(heads, tails, (metric.types[kind] for kind in types), strict=True))
    assert len(ours) == len(heads)
    offsets = starts.tolist()
    assert ours == {
        (offset + start, offset + end, kind)
        for offset, tags in zip(offsets, sequences, strict=False)
        for start, end, kind in mentions(tags)
    }
    of_seqeval = Entities([list(tags) for tags in sequences], IOBES).entities
    assert ours == {
        (offsets[e.sent_id] + e.start, offsets[e.sent_id] + e.end - 1, e.tag) for s in of_seqeval for e in s
    }


@seeded
@given(pairs)
def test_seqeval_strict_on_any_tags(sentences: Pairs) -> None:
    check_against_seqeval(sentences, score(sentences))


def test_seqeval_strict_on_likely_tags() -> None:
    """Long ragged batches, mostly right: legal gold tags, and a tenth of them replaced."""
    draw = random.Random(0)
    pieces = [tags for length in (1, 2, 3, 4) for tags in legal(length, TYPES)]
    sentences = []
    for _ in range(300):
        gold = [tag for piece in draw.choices(pieces, k=draw.randint(1, 12)) for tag in piece]
        sentences.append((gold, [draw.choice(LABELS) if draw.random() < 0.1 else tag for tag in gold]))
    report = score(*(sentences[first : first + 32] for first in range(0, 300, 32)))
    assert 0.5 < report["f1"] < 0.95
    check_against_seqeval(sentences, report)


@seeded
@given(pairs)
def test_illegal_tags_are_those_outside_any_mention(sentences: Pairs) -> None:
    inside = sum(end - start + 1 for _, tags in sentences for start, end, _ in mentions(tags))
    tagged = sum(tag != "O" for _, tags in sentences for tag in tags)
    assert score(sentences)["illegal_tags"] == tagged - inside


def test_legal_predictions_have_no_illegal_tag() -> None:
    assert score([(tags, tags) for tags in legal(4, TYPES)])["illegal_tags"] == 0
    assert score([(["O"] * 5, ["I-A", "S-A", "B-A", "E-PER.NOM", "O"])])["illegal_tags"] == 3


@seeded
@given(pairs, st.integers(1, 5))
def test_how_batches_are_cut_makes_no_difference(sentences: Pairs, size: int) -> None:
    cut = [sentences[first : first + size] for first in range(0, len(sentences), size)]
    assert score(*cut) == score(sentences) == score(*reversed(cut))


@pytest.mark.parametrize("kind", METRICS.values())
def test_what_is_no_score_is_named_as_such(kind: type[SpanF1] | type[TagAccuracy]) -> None:
    metric = kind(["O", "S-PER"])
    metric.update(torch.tensor([[1]]), torch.tensor([[1]]), torch.tensor([[True]]))
    report = metric.compute()
    for it in (report, *report["types"].values()):
        assert scores_of(it) == [name for name, value in it.items() if isinstance(value, float)]


@pytest.mark.parametrize("metric", [SpanF1, TagAccuracy])
def test_two_processes_add_up_to_one(metric: type[SpanF1] | type[TagAccuracy]) -> None:
    batches = [padded([(LABELS, random.Random(seed).choices(LABELS, k=len(LABELS)))]) for seed in range(4)]
    whole, first, second = metric(LABELS), metric(LABELS), metric(LABELS)
    for number, batch in enumerate(batches):
        whole.update(*batch)
        (first if number < 3 else second).update(*batch)
    others = iter([getattr(second, name) for name in first.metric_state])
    first.distributed_available_fn = lambda: True
    first.dist_sync_fn = lambda state, group: [state, next(others)]
    assert first.compute() == whole.compute() != second.compute()


def test_types_only_in_gold_or_only_predicted() -> None:
    report = score([(["S-A", "O", "S-PER.NOM"], ["S-A", "S-creative-work", "O"])])
    counts = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "correct": 0}
    assert report["types"] == {
        "A": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "correct": 1, "predicted": 1, "gold": 1},
        "PER.NOM": {**counts, "predicted": 0, "gold": 1},
        "creative-work": {**counts, "predicted": 1, "gold": 0},
    }
    assert (report["precision"], report["recall"], report["f1"]) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("labels", [("O",), LABELS])
def test_nothing_to_find_and_nothing_found(labels: Tags) -> None:
    report = score([(["O"] * 3, ["O"] * 3), (["O"], ["O"])], labels=labels)
    del report["types"]
    assert set(report.values()) == {0}


@seeded
@given(pairs, st.integers(1, 3))
def test_tag_accuracy_against_a_loop(sentences: Pairs, size: int) -> None:
    metric = TagAccuracy(LABELS)
    for first in range(0, len(sentences), size):
        metric.update(*padded(sentences[first : first + size]))
    report = metric.compute()
    correct, gold = Counter(), Counter()
    for gold_tags, tags in sentences:
        for right, guess in zip(gold_tags, tags, strict=True):
            gold[right] += 1
            correct[right] += right == guess
    assert (report["correct"], report["gold"]) == (correct.total(), gold.total())
    assert report["accuracy"] == pytest.approx(correct.total() / gold.total(), abs=1e-15)
    assert report["types"] == {
        tag: {"accuracy": correct[tag] / max(gold[tag], 1), "correct": correct[tag], "gold": gold[tag]}
        for tag in LABELS
    }
