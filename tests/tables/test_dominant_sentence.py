"""A test sentence with a large share of the gold mentions: reported on the page; scores without it equal seqeval's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seqeval.metrics import f1_score

from ner_experiments.analysis.archive import Errors, run_calibration, run_errors
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.runs.archived_run import ArchivedRun, format_counts
from ner_experiments.runs.predictions import read_file, write_predictions
from ner_experiments.runs.run import Run
from ner_experiments.tables import dominant_sentence, spec
from ner_experiments.tables.paper_pages import Measured
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row
from ner_experiments.tables.table_view import TableView

LIST = 57
"""Where the sentence with many names stands, from 0."""
NAME = Sentence(("Ada", "in", "York"), ("S-PER", "O", "S-LOC"))
NAMES = Sentence(("Ada",) * 40, ("S-PER",) * 40)
TEST = [NAMES if number == LIST else NAME for number in range(120)]


def run(folder: Path, of_list: int, of_others: int, *, name: str = "made_up", task: Task = "mentions") -> Run:
    """Found so many names of the list, and those of the first so many sentences."""
    of_names = ["S-PER"] * of_list + ["O"] * (40 - of_list)
    predicted = [of_names if it is NAMES else list(it.tags) for it in TEST]
    for number, tags in enumerate(predicted):
        if number >= of_others and number != LIST:
            tags[0] = "O"
    write_predictions(folder / "predictions" / "test.conll", task, TEST, predicted)
    data = {"name": name, "checksum": name, "gold": name}
    costs = {"seconds": 6.0, "epochs": 3, "parameters": 12}
    return Run(folder, {"task": task, "seed": 1, "data": data, "test": {"precision": 0.5}, **costs})


def by_seqeval(own: Run, left_out: int | None = None) -> float:
    sentences = read_file(own.folder / "predictions" / "test.conll")
    kept = [sentence for number, sentence in enumerate(sentences) if number != left_out]
    return 100 * float(f1_score([list(it.gold) for it in kept], [list(it.predicted) for it in kept]))


def page_of(runs: dict[str, Run]) -> Page:
    results = tuple(
        Result(Row(label=label, published=50.0), {1: by_seqeval(own)}, {1: own})
        for label, own in runs.items()
    )
    return Page(replace(spec.load("yang2020_table12"), notes=()), results)


def as_archived(own: Run) -> ArchivedRun:
    content: dict[str, Any] = {
        "label": "row",
        "config": {},
        "epochs": [],
        "test_every_epoch": [0.9],
        "figures": {},
    }
    return ArchivedRun(own.folder, own.metrics, content | {"counts": format_counts(own.counts())})


def archived(page: Page) -> Page:
    results = [replace(result, runs={1: as_archived(result.runs[1])}) for result in page.results]
    return replace(page, results=tuple(results))


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """On all of test the first row is ahead; without the list, the second is."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    return page_of({"first": run(first, 40, 60), "second": run(second, 5, 80)})


def test_a_page_says_that_one_sentence_has_many_of_the_mentions(page: Page) -> None:
    said = "Sentence 58 of made_up's test set has 40 of the 278 mentions."
    assert dominant_sentence.remarks(page) == dominant_sentence.remarks(archived(page)) == [said]
    assert f"\n- {said}\n" in TableView(page).markdown()


def test_each_corpus_is_spoken_of_in_its_own_units(tmp_path: Path) -> None:
    for name in ("names", "tags"):
        (tmp_path / name).mkdir()
    names = run(tmp_path / "names", 40, 60, name="toy")
    tags = run(tmp_path / "tags", 40, 60, name="ud", task="tags")
    assert dominant_sentence.remarks(page_of({"a": names, "b": names, "c": tags})) == [
        "Sentence 58 of toy's test set has 40 of the 278 mentions.",
        "Sentence 58 of ud's test set has 40 of the 397 tags.",
    ]


@pytest.mark.parametrize(
    ("gold", "number"),
    [
        ([1] * 100, None),
        ([1] * 99 + [6], 100),  # 6 of 105
        ([1] * 98 + [6, 7], 100),  # 7 of 111, and the other has 6
        ([1] * 95 + [0] * 4 + [5], None),  # 5 of 100
        ([50] + [1] * 98, None),  # a small test set
        ([0] * 100, None),
        ([], None),
    ],
)
def test_a_sentence_is_heavy_with_more_than_a_twentieth(gold: list[int], number: int | None) -> None:
    assert dominant_sentence.dominant_sentence(np.array(gold, dtype=np.int64)) == number


def test_scores_without_the_sentence_are_those_of_seqeval(page: Page) -> None:
    fewer = dominant_sentence.drop_sentence(archived(page))
    for whole, result in zip(page.results, fewer.results, strict=True):
        assert result.scores == {1: pytest.approx(by_seqeval(whole.runs[1], LIST))}
        own = result.runs[1]
        assert own.score == result.scores[1]
        assert own.counts().tolist() == np.delete(whole.runs[1].counts(), LIST, axis=0).tolist()
        assert (set(own.metrics["test"]), own.test_every_epoch()) == ({"f1"}, [])
        assert (run_errors(own), run_calibration(own)) == (Errors(), None)


def test_a_template_has_gaps_with_and_without_it(page: Page, tmp_path: Path) -> None:
    whole = Measured(archived(page), tmp_path, "table")
    without = whole.without_dominant_sentence
    assert float(whole.difference("first", "second")) > 0 > float(without.difference("first", "second"))
    assert float(without.difference("first", "second")) == pytest.approx(
        without.of("first").scores[1] - without.of("second").scores[1], abs=0.005
    )
    assert without.difference("first", "first", whole) != "+0.00"
    p = without.p("first", "second")
    assert p.endswith(" (sentences alone)")  # one run a row
    assert float(p.removesuffix(" (sentences alone)").removeprefix("< ")) < 0.05
    assert whole.p("first", "second") != without.p("first", "second")


def test_a_test_set_without_such_a_sentence_has_none_to_leave_out(page: Page) -> None:
    (first, _) = archived(page).results
    short = replace(
        as_archived(first.runs[1]), content={"counts": format_counts(first.runs[1].counts()[:90])}
    )
    with pytest.raises(ValueError, match="first: no sentence of its test set holds more than 5% of it"):
        dominant_sentence.drop_sentence(replace(page, results=(replace(first, runs={1: short}),)))
