"""Groups of mentions against seqeval, against loops that count one group at a time, and the intervals."""

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import random_tags
from analyzed import errors_of
from conlleval import count as conlleval
from scipy.stats import bootstrap as scipys
from seqeval.metrics import classification_report

from ner_experiments.analysis import bootstrap, disagreements
from ner_experiments.analysis.breakdown import (
    FREQUENCIES,
    SENTENCE_LENGTHS,
    Bucket,
    dimensions,
    f1_by,
    marked,
)
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span, spans
from ner_experiments.runs.predictions import Predicted, read, write_predictions

TEST, TRAIN = random_tags.sentences(0, 300), random_tags.train(1, 40)
Choice = Callable[[tuple[str, ...], Span], bool]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Bucket]]:
    return errors_of(TEST, TRAIN).breakdown


def test_types_are_seqevals_and_conllevals(found: dict[str, dict[str, Bucket]]) -> None:
    gold, predicted = ([list(tags) for tags in column] for column in columns(TEST))
    report = classification_report(gold, predicted, output_dict=True, zero_division=0)
    counts = conlleval(zip(it.gold, it.predicted, strict=True) for it in TEST)
    assert list(found["type"]) == ["LOC", "ORG", "PER"]
    for kind, bucket in found["type"].items():
        scores = (bucket.precision, bucket.recall, bucket.f1, bucket.gold)
        names = ("precision", "recall", "f1-score", "support")
        assert scores == pytest.approx([float(report[kind][name]) for name in names])
        assert (bucket.correct, bucket.predicted, bucket.gold) == (
            *(counts.correct[kind], counts.predicted[kind], counts.gold[kind]),
        )


def columns(sentences: Sequence[Predicted]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    return [it.gold for it in sentences], [it.predicted for it in sentences]


@pytest.mark.parametrize("name", ["length", "type"])
def test_f1_alone_is_in_percent_and_of_groups_with_a_gold_mention(
    name: str, found: dict[str, dict[str, Bucket]]
) -> None:
    assert {group: 100 * bucket.f1 for group, bucket in found[name].items()} == f1_by(TEST, name)
    sentence = Predicted(("a", "b", "c"), ("B-X", "I-X", "O"), ("O", "O", "B-Y"))
    assert f1_by([sentence], name) == {{"length": "2", "type": "X"}[name]: 0.0}


def occurrences(words: tuple[str, ...], kind: str | None = None) -> int:
    """Number of times that these words are a mention in train, counted tag by tag."""
    number = 0
    for sentence in TRAIN:
        for start in range(len(sentence.words) - len(words) + 1):
            end = start + len(words)
            first, *others = sentence.tags[start:end]
            after = sentence.tags[end] if end < len(sentence.tags) else "O"
            whole = first[0] == "B" and all(tag[0] == "I" for tag in others) and after[0] != "I"
            number += whole and sentence.words[start:end] == words and kind in (None, first[2:])
    return number


def known(words: tuple[str, ...]) -> bool:
    return all(any(word in sentence.words for sentence in TRAIN) for word in words)


GROUPS: dict[tuple[str, str], Choice] = {
    ("length", "1"): lambda words, it: len(words) == 1,
    ("length", "2"): lambda words, it: len(words) == 2,
    ("length", "3"): lambda words, it: len(words) == 3,
    ("length", "more than 3"): lambda words, it: len(words) > 3,
    ("seen", "with this type"): lambda words, it: occurrences(words, it[2]) > 0,
    ("seen", "with another type only"): lambda words, it: 0 == occurrences(words, it[2]) < occurrences(words),
    ("seen", "new, of known words"): lambda words, it: not occurrences(words) and known(words),
    ("seen", "new, unknown word"): lambda words, it: not known(words),
    ("frequency", "0"): lambda words, it: occurrences(words) == 0,
    ("frequency", "1"): lambda words, it: occurrences(words) == 1,
    ("frequency", "2 to 5"): lambda words, it: 2 <= occurrences(words) <= 5,
    ("frequency", "6 to 20"): lambda words, it: 6 <= occurrences(words) <= 20,
}


@pytest.mark.parametrize(("dimension", "name"), GROUPS)
def test_what_train_has_is_found_by_looking_through_it(
    dimension: str, name: str, found: dict[str, dict[str, Bucket]]
) -> None:
    right = predicted = gold = 0
    for sentence in TEST[:120]:
        marks, guesses = spans(sentence.gold), spans(sentence.predicted)
        chosen = GROUPS[dimension, name]
        gold += sum(chosen(sentence.words[it[0] : it[1]], it) for it in marks)
        predicted += sum(chosen(sentence.words[it[0] : it[1]], it) for it in guesses)
        right += sum(it in marks and chosen(sentence.words[it[0] : it[1]], it) for it in guesses)
    bucket = errors_of(TEST[:120], TRAIN).breakdown[dimension][name]
    assert 0 < right < gold
    assert (bucket.correct, bucket.predicted, bucket.gold) == (right, predicted, gold)
    assert (
        next(iter(found[dimension])) == {"length": "1", "seen": "with this type", "frequency": "0"}[dimension]
    )


def test_sentences_are_grouped_by_their_own_length(found: dict[str, dict[str, Bucket]]) -> None:
    limits = (1, 11, 21, 31, 51, 1000)
    for name, low, high in zip(SENTENCE_LENGTHS, limits, limits[1:], strict=False):
        group = [it for it in TEST if low <= len(it.words) < high]
        counts = conlleval(zip(it.gold, it.predicted, strict=True) for it in group)
        bucket = found["sentence length"][name]
        assert (bucket.correct, bucket.gold) == (counts.correct.total(), counts.gold.total())
        assert bucket.predicted == counts.predicted.total() > 0


def test_groups_of_a_dimension_add_up_to_the_test_set(found: dict[str, dict[str, Bucket]]) -> None:
    counts = conlleval(zip(it.gold, it.predicted, strict=True) for it in TEST)
    total = (counts.correct.total(), counts.predicted.total(), counts.gold.total())
    assert list(found) == ["type", "length", "seen", "frequency", "sentence length"]
    for groups in found.values():
        sums = np.array([(it.correct, it.predicted, it.gold) for it in groups.values()]).sum(axis=0)
        assert tuple(sums.tolist()) == total
    new = [found["seen"][name] for name in ("new, of known words", "new, unknown word")]
    assert sum(it.gold for it in new) == found["frequency"]["0"].gold


@pytest.mark.parametrize(("count", "name"), [(0, 0), (1, 1), (2, 2), (5, 2), (6, 3), (20, 3), (21, 4)])
def test_frequencies_begin_and_end_where_their_names_say(count: int, name: int) -> None:
    train = [Sentence(("York",), ("B-LOC",))] * count
    (group,) = errors_of([Predicted(("York",), ("B-LOC",), ("O",))], train).breakdown["frequency"]
    assert group == FREQUENCIES[name]


def test_without_train_there_is_less_and_a_group_without_mentions_is_none() -> None:
    sentence = Predicted(("a", "b"), ("B-X", "O"), ("O", "B-Y"))
    found = errors_of([sentence], None).breakdown
    assert list(found) == ["type", "length", "sentence length"]
    assert found["length"] == {"1": Bucket(0, 1, 1, 0.0, 0.0)}
    assert found["type"] == {"X": Bucket(0, 0, 1, 0.0, 0.0), "Y": Bucket(0, 1, 0, 0.0, 0.0)}
    assert errors_of([Predicted(("a",), ("O",), ("O",))], []).breakdown["type"] == {}


def test_a_word_with_a_space_is_the_same_in_train_and_in_predictions(tmp_path) -> None:
    sentence = Sentence(("New York", "!"), ("S-my loc", "O"))
    write_predictions(tmp_path / "predictions" / "test.conll", "mentions", [sentence], [("S-my loc", "O")])
    found = errors_of(read(tmp_path), [sentence]).breakdown
    assert [*found["seen"], *found["frequency"]] == ["with this type", "1"]


def test_tags_of_single_tokens_are_scored_token_by_token() -> None:
    """Each is a mention of one word: its F1 over all groups of frequency is the accuracy there."""
    test = [Predicted(("the", "run", "runs"), ("DT", "NN", "VB"), ("DT", "VB", "VB"))]
    train = [Sentence(("the", "run"), ("DT", "NN"))]
    found = errors_of(test, train, "tags").breakdown
    assert list(found) == ["type", "seen", "frequency", "sentence length"]
    counts = {name: (it.correct, it.predicted, it.gold) for name, it in found["type"].items()}
    assert counts == {"DT": (1, 1, 1), "NN": (0, 0, 1), "VB": (1, 2, 1)}
    seen = {name: (it.correct, it.predicted, it.gold) for name, it in found["seen"].items()}
    assert seen == {
        "with this type": (1, 1, 2),
        "with another type only": (0, 1, 0),
        "new, unknown word": (1, 1, 1),
    }
    assert {name: it.f1 for name, it in found["frequency"].items()} == {"0": 1.0, "1": 0.5}


def test_a_draw_takes_as_many_sentences_as_there_are() -> None:
    times = bootstrap.draw_multiplicities(50, 400, 0).astype(int)
    assert (times.sum(axis=1) == 50).all()
    assert times.mean(axis=0) == pytest.approx(np.ones(50), abs=0.25)
    assert times.var() == pytest.approx(1 - 1 / 50, abs=0.03)  # of the binomial distribution


def test_sums_of_a_draw_are_those_of_its_sentences() -> None:
    counts = np.random.default_rng(0).integers(9, size=(7, 2, 3))
    found = bootstrap.resampled(counts, draws=450)
    for times, sums in zip(bootstrap.draw_multiplicities(7, 450, 0), found, strict=True):
        drawn = [counts[number] for number, often in enumerate(times) for _ in range(often)]
        assert sums.tolist() == np.sum(drawn, axis=0).tolist()


def test_the_interval_is_that_of_scipys_bootstrap(found: dict[str, dict[str, Bucket]]) -> None:
    def f1(number: np.ndarray) -> float:
        right, predicted, gold = counts[number].sum(axis=0)[..., :].T
        return 2 * right / (predicted + gold)

    pairs = [(set(spans(it.gold)), set(spans(it.predicted))) for it in TEST]
    counts = np.array([[len(of_type(a & b)), len(of_type(b)), len(of_type(a))] for a, b in pairs])
    expected = scipys(
        (np.arange(len(TEST)),),
        lambda numbers, axis=-1: np.apply_along_axis(f1, axis, numbers),
        n_resamples=2000,
        method="percentile",
        rng=1,
    ).confidence_interval
    bucket = found["type"]["PER"]
    assert bucket.low < bucket.f1 < bucket.high
    assert (bucket.low, bucket.high) == pytest.approx((expected.low, expected.high), abs=0.006)


def of_type(mentions: set[Span]) -> list[Span]:
    return [mention for mention in mentions if mention[2] == "PER"]


def test_draws_without_a_mention_are_left_out() -> None:
    """The only mention is correct: F1 is 1 in each draw that contains it, and not 0 in the others."""
    without = Predicted(("a",), ("O",), ("O",))
    bucket = errors_of([Predicted(("a",), ("B-X",), ("B-X",)), *[without] * 9], None).breakdown["type"]["X"]
    assert (bucket.low, bucket.high) == (1.0, 1.0)


def test_outcomes_are_one_for_each_gold_mention_and_come_back_as_they_were() -> None:
    found = disagreements.outcomes(marked(TEST, "mentions"), dimensions(TRAIN, "mentions"))
    gold = [(it, mention) for it in TEST for mention in spans(it.gold)]
    assert found.correct.tolist() == [mention in spans(it.predicted) for it, mention in gold]
    kinds = found.groups["type"]
    assert [kinds.names[number] for number in kinds.of] == [mention[2] for _, mention in gold]
    again = disagreements.Outcomes.from_record(json.loads(json.dumps(found.record())))
    assert (again.correct == found.correct).all()
    assert again.groups.keys() == found.groups.keys()
    for name, grouped in found.groups.items():
        assert again.groups[name].names == grouped.names
        assert (again.groups[name].of == grouped.of).all()


def test_no_more_is_unpacked_than_there_should_be() -> None:
    bomb = disagreements.packed(np.zeros(10_000_000, dtype="u1"))
    assert len(bomb) < 20_000
    assert len(disagreements.unpacked(bomb, 3, "u1")) == 3
