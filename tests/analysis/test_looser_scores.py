"""Mean F1 of the types and looser matches, compared with seqeval and nervaluate."""

import random
from collections.abc import Iterator

import pytest
import random_tags
from analyzed import errors_of
from nervaluate import Evaluator
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2

from ner_experiments.analysis.error_grids import bar, bar_cells, bars_of_kinds, looser_grid
from ner_experiments.analysis.looser_scores import ANY_OVERLAP, ANY_TYPE, MACRO, PARTIAL, looser_scores
from ner_experiments.analysis.row_errors import Mean
from ner_experiments.analysis.statistics import summarize
from ner_experiments.data.tags import Span, encode, spans
from ner_experiments.runs.predictions import Predicted

OF_NERVALUATE = {ANY_TYPE: "exact", ANY_OVERLAP: "ent_type", PARTIAL: "partial"}


def scores(sentences: list[Predicted]) -> dict[str, float]:
    return looser_scores(errors_of(sentences, None))


def overlapping(mentions: list[Span], others: list[Span]) -> Iterator[int]:
    """For each mention, the number of others that it overlaps."""
    for start, end, _ in mentions:
        yield sum(start < other_end and other_start < end for other_start, other_end, _ in others)


def is_clear(sentence: Predicted) -> bool:
    """Whether no mention overlaps two, so that there is one way to match them."""
    gold, predicted = spans(sentence.gold), spans(sentence.predicted)
    return max([0, *overlapping(gold, predicted), *overlapping(predicted, gold)]) < 2


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_over_types_is_that_of_seqeval(seed: int) -> None:
    sentences = random_tags.sentences(seed, 60)
    gold, predicted = [[*it.gold] for it in sentences], [[*it.predicted] for it in sentences]
    expected = f1_score(gold, predicted, average="macro", mode="strict", scheme=IOB2)
    assert scores(sentences)[MACRO] == pytest.approx(expected)


def by_nervaluate(sentences: list[Predicted]) -> dict[str, float]:
    gold, predicted = [[*it.gold] for it in sentences], [[*it.predicted] for it in sentences]
    found = Evaluator(gold, predicted, tags=[*random_tags.TYPES], loader="list").evaluate()["overall"]
    return {name: found[strategy].f1 for name, strategy in OF_NERVALUATE.items()}


@pytest.mark.parametrize("seed", range(5))
def test_looser_matches_are_those_of_nervaluate(seed: int) -> None:
    sentences = [it for it in random_tags.sentences(seed, 200) if is_clear(it)]
    assert len(sentences) > 50
    found, expected = scores(sentences), by_nervaluate(sentences)
    for name in OF_NERVALUATE:
        assert found[name] == pytest.approx(expected[name])


@pytest.mark.parametrize(
    ("gold", "predicted", "ours", "theirs"),
    [
        ([(0, 2, "LOC"), (2, 5, "PER")], [(0, 5, "LOC")], 0.0, 2 / 3),
        ([(0, 4, "PER")], [(0, 1, "LOC"), (1, 4, "PER")], 2 / 3, 0.0),
    ],
    ids=["theirs prefers the type", "theirs goes from left to right"],
)
def test_a_mention_that_overlaps_two_is_matched_by_overlap_and_by_nervaluate_in_turn(
    gold: list[Span], predicted: list[Span], ours: float, theirs: float
) -> None:
    """The exact difference; other scores are equal."""
    sentence = Predicted(tuple("abcdef"), encode(gold, 6, "iob2"), encode(predicted, 6, "iob2"))
    found, expected = scores([sentence]), by_nervaluate([sentence])
    assert (found[ANY_OVERLAP], expected[ANY_OVERLAP]) == (pytest.approx(ours), pytest.approx(theirs))
    assert [found[name] for name in (ANY_TYPE, PARTIAL)] == [expected[name] for name in (ANY_TYPE, PARTIAL)]


def test_a_mention_that_overlaps_two_matches_one_of_them() -> None:
    """Gold mentions are tokens 0 to 2 and 2 to 5, the predicted one 1 to 5: one match, which overlaps."""
    gold, predicted = [(0, 2, "PER"), (2, 5, "LOC")], [(1, 5, "LOC")]
    words = tuple("abcdef")
    found = scores([Predicted(words, encode(gold, 6, "iob2"), encode(predicted, 6, "iob2"))])
    assert found == {MACRO: 0.0, ANY_TYPE: 0.0, ANY_OVERLAP: 2 / 3, PARTIAL: 1 / 3}


def test_right_mentions_score_1_and_a_corpus_of_single_tags_has_no_such_scores() -> None:
    rng = random.Random(1)
    tags = [encode(random_tags.mentions(rng, 8), 8, "iob2") for _ in range(9)]
    sentences = [Predicted(tuple("abcdefgh"), it, it) for it in tags]
    assert set(scores(sentences).values()) == {1.0}
    assert looser_scores(errors_of(sentences, None, "tags")) == {}


def test_scores_of_one_run_have_no_column_of_intervals() -> None:
    one, three = summarize([0.5]), summarize([0.4, 0.5, 0.6])
    grid = looser_grid({MACRO: one})
    assert ([*grid.headings], grid.lines) == (["score", "%"], [[MACRO, "50.00"]])
    assert [*looser_grid({MACRO: three}).headings] == ["score", "%", "95 % over seeds"]


def test_an_interval_of_shares_is_shown_within_its_scale() -> None:
    """Spurious mentions may be more than there are gold ones, and their interval may end there at any mean."""
    assert bar_cells(bar("F1", Mean(0.9, -0.2, 1.3, 2, "seeds"))) == ["F1", "90.00", "0.00 to 100.00"]
    mean = Mean(0.9, -0.2, 2.0, 2, "seeds")
    missing, spurious = map(bar_cells, bars_of_kinds({"missing": mean, "spurious": mean}))
    assert (missing[2], spurious[2]) == ("0.00 to 100.00", "0.00 to 200.00")
