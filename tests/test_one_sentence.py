"""A test sentence that holds much of what is scored: told on the page; scores without it are seqeval's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from seqeval.metrics import f1_score

from ner_experiments import one_sentence, table_page, tables
from ner_experiments.analysis.predictions import read_file
from ner_experiments.data.sentence import Sentence
from ner_experiments.paper_pages import Measured
from ner_experiments.results import write_predictions
from ner_experiments.runs import Run
from ner_experiments.table_scores import Page, Result
from ner_experiments.tables import Row

LIST = 57
"""Where the sentence with many names stands, from 0."""
NAME = Sentence(("Ada", "in", "York"), ("S-PER", "O", "S-LOC"))
NAMES = Sentence(("Ada",) * 40, ("S-PER",) * 40)
TEST = [NAMES if number == LIST else NAME for number in range(120)]


def run(folder: Path, of_list: int, of_others: int) -> Run:
    """Found so many names of the list, and those of the first so many sentences."""
    predicted = [
        ["S-PER"] * of_list + ["O"] * (40 - of_list) if it is NAMES else list(it.tags) for it in TEST
    ]
    for number, tags in enumerate(predicted):
        if number >= of_others and number != LIST:
            tags[0] = "O"
    write_predictions(folder / "predictions" / "test.conll", "mentions", TEST, predicted)
    data = {"name": "made_up", "checksum": "abc"}
    return Run(
        folder, {"task": "mentions", "data": data, "seconds": 6.0, "epochs": 3, "parameters": 12, "test": {}}
    )


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """By all of test the first row is ahead, without the list the second."""
    results = []
    for label, of_list, of_others in (("first", 40, 60), ("second", 5, 80)):
        (tmp_path / label).mkdir()
        own = run(tmp_path / label, of_list, of_others)
        results.append(Result(Row(label=label, published=50.0), {1: by_seqeval(own)}, {1: own}))
    return Page(replace(tables.load("yang2020_table12"), notes=()), tuple(results))


def by_seqeval(own: Run, left_out: int | None = None) -> float:
    sentences = read_file(own.folder / "predictions" / "test.conll")
    kept = [sentence for number, sentence in enumerate(sentences) if number != left_out]
    return 100 * float(f1_score([list(it.gold) for it in kept], [list(it.predicted) for it in kept]))


def test_a_page_says_that_one_sentence_has_many_of_the_mentions(page: Page) -> None:
    said = "One sentence of made_up's test, number 58, has 40 of its 278 mentions."
    assert one_sentence.remarks(page) == [said]
    assert f"\n- {said}\n" in table_page.markdown(page)


@pytest.mark.parametrize(
    ("gold", "number"),
    [
        ([1] * 100, None),
        ([1] * 99 + [6], 100),  # 6 of 105
        ([1] * 99 + [5], None),  # 5 of 104
        ([50] + [1] * 98, None),  # a small test set
        ([0] * 100, None),
        ([], None),
    ],
)
def test_a_sentence_is_spoken_of_if_it_has_more_than_a_twentieth(gold: list[int], number: int | None) -> None:
    assert one_sentence.heavy(np.array(gold, dtype=np.int64)) == number


def test_scores_without_a_sentence_are_those_of_seqeval(page: Page) -> None:
    fewer = one_sentence.without(page, LIST + 1)
    for whole, result in zip(page.results, fewer.results, strict=True):
        assert result.scores == {1: pytest.approx(by_seqeval(whole.runs[1], LIST))}
        assert result.runs[1].score == result.scores[1]
        assert len(result.runs[1].counts()) == len(TEST) - 1


def test_a_template_has_gaps_with_and_without_it(page: Page, tmp_path: Path) -> None:
    whole = Measured(page, tmp_path, "table")
    without = whole.without(LIST + 1)
    assert (
        float(whole.gap("first", "second").split()[0]) > 0 > float(without.gap("first", "second").split()[0])
    )
    assert whole.p("first", "second") != without.p("first", "second")
    assert float(without.p("first", "second").removeprefix("< ")) < 0.05
    assert float(without.difference("first", "second")) == pytest.approx(
        round(without.of("first").scores[1] - without.of("second").scores[1], 2)
    )
    assert (whole.part, without.part) == ("", "-without-58")


@pytest.mark.parametrize("number", [0, 121])
def test_a_sentence_that_test_does_not_have_is_refused(page: Page, number: int) -> None:
    with pytest.raises(ValueError, match=f"first: expected a sentence from 1 to 120, got {number}"):
        one_sentence.without(page, number)
