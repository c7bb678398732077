"""When two runs were scored on one test set: by its gold and not by the files that were read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import finished

from ner_experiments.data.sentence import Sentence, gold_digest
from ner_experiments.runs.run import Run, open_run
from ner_experiments.tables.pairs import pairs_of
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.tables.spec import Row, Table
from ner_experiments.tables.table_view import TableView


@dataclass(frozen=True)
class Counted(Run):
    """A run with these counts of correct, predicted and gold mentions by sentence."""

    rows: Sequence[tuple[int, int, int]] = field(default=())

    def counts(self) -> np.ndarray:
        return np.array(self.rows)


def scored(*golds: int, task: str = "mentions", **data: str) -> Counted:
    test = {"f1": 0.5, "accuracy": 0.5}
    metrics = {"task": task, "data": {"name": "toy", "checksum": "abc", **data}, "test": test}
    return Counted(Path("anywhere"), metrics, [(0, 1, gold) for gold in golds])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (scored(1, 2, gold="a", checksum="x"), scored(1, 2, gold="a", checksum="y"), True),
        (scored(1, 2, gold="a"), scored(1, 2, gold="b"), False),
        # made before the gold was recorded
        (scored(1, 2), scored(1, 2), True),
        (scored(1, 2, gold="a"), scored(1, 2), True),
        (scored(1, 2), scored(1, 2, checksum="y"), False),
        (scored(1, 2), scored(2, 1), False),
        (scored(1, 2), scored(1), False),
        (scored(1, 2), scored(1, 2, task="tags"), False),
    ],
)
def test_a_test_set_is_its_gold(one: Run, other: Run, same: bool) -> None:
    assert one.shares_test_set(other) is same
    assert other.shares_test_set(one) is same


def sentence(words: str, tags: str, **more: Any) -> Sentence:
    return Sentence(tuple(words.split()), tuple(tags.split()), **more)


def test_the_digest_is_of_tokens_gold_and_task_alone() -> None:
    gold = [sentence("Ada met", "S-PER O"), sentence("Rome", "S-LOC")]
    digest = gold_digest(gold, "mentions")
    elsewhere = [sentence("Ada met", "S-PER O", columns={"pos": ("X", "Y")}, line=7), gold[1]]
    assert gold_digest(elsewhere, "mentions") == digest
    others = [
        gold_digest(gold, "tags"),
        gold_digest(gold[::-1], "mentions"),
        gold_digest(gold[:1], "mentions"),
        gold_digest([sentence("Ada met Rome", "S-PER O S-LOC")], "mentions"),
        gold_digest([sentence("Ada sah", "S-PER O"), gold[1]], "mentions"),
        gold_digest([sentence("Ada met", "S-ORG O"), gold[1]], "mentions"),
    ]
    assert len({digest, *others}) == 1 + len(others)


def page_of(*runs: Run) -> Page:
    rows = [Row(label=f"row {number}", run=(f"layers={number}",)) for number in range(len(runs))]
    results = (Result(row, {1: run.score}, {1: run}) for row, run in zip(rows, runs, strict=True))
    return Page(Table(name="mine", title="", source="", rows=tuple(rows), overrides=("a",)), tuple(results))


def test_rows_on_other_test_sets_of_one_file_stand_beside_each_other() -> None:
    """As of `data.max_sentences=2,3`, and of `data.tag=xpos,upos`."""
    page = page_of(
        scored(1, 2, gold="a"), scored(1, 2, 1, gold="b"), scored(2, 1, gold="c"), scored(1, 2, gold="a")
    )
    assert [[it.row.label[-1] for it in group] for group in groups(page.results)] == [
        ["0", "3"],
        ["1"],
        ["2"],
    ]
    assert [pair.labels for pair in pairs_of(page)] == [("row 0", "row 3")]
    assert "row 3 - row 0" in TableView(page).answer() or "row 0 - row 3" in TableView(page).answer()


def test_a_run_records_the_gold_of_its_test_set(toy_run: Path, tmp_path: Path) -> None:
    run = open_run(toy_run)
    fewer = open_run(finished(tmp_path, "data=toy_en", "data.max_sentences=39"))
    as_many = open_run(finished(tmp_path, "data=toy_en", "data.max_sentences=40", "trainer.max_epochs=1"))
    assert not fewer.shares_test_set(run)
    assert as_many.shares_test_set(run)  # with a part of train
