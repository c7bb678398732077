"""Seeds until it is decided: the replay of looks on runs of the toy corpus whose scores are known."""

import json
import re
from dataclasses import replace

import pytest
from toy_rows import TOY, finish

from ner_experiments.analysis.sequential import levels
from ner_experiments.tables import sweeps
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.looks import at_looks, decide
from ner_experiments.tables.scores import Page
from ner_experiments.tables.table_view import TableView

pytestmark = pytest.mark.usefixtures("elsewhere")
LOOKS = [3, 4, 5]
SWEEP = ["model=residual", "layers=2,3,4", *TOY]


def finish_seeds(layers: int, num_wrong: list[int], first: int = 1) -> None:
    for seed, wrong in enumerate(num_wrong, start=first):
        finish(["model=residual", f"layers={layers}", *TOY, "output_dir=outputs"], seed, wrong)


def page() -> Page:
    table, overrides = sweeps.requested(SWEEP, unrecorded=True)
    return collect(replace(table, looks=tuple(LOOKS)), overrides)


def test_the_first_look_needs_its_seeds_of_every_row() -> None:
    decision = decide(page(), LOOKS)
    assert decision.to_run == {f"layers={layers}": [1, 2, 3] for layers in (2, 3, 4)}
    assert (decision.pairs, decision.history) == ({}, [])


def test_a_decided_row_gets_no_more_seeds_and_the_others_do() -> None:
    finish_seeds(2, [28, 28, 28])  # nearly all wrong
    finish_seeds(3, [2, 4, 3])
    finish_seeds(4, [3, 2, 4])
    decision = decide(page(), LOOKS)
    verdicts = {labels: pair.verdict for labels, pair in decision.pairs.items()}
    assert verdicts["layers=3", "layers=4"] == "undecided"
    assert verdicts["layers=2", "layers=3"] == verdicts["layers=2", "layers=4"] == "behind"
    assert decision.to_run == {"layers=3": [4], "layers=4": [4]}
    (line,) = decision.history
    assert re.fullmatch(
        r"Look at 3 seeds \(level 0\.0\d+\): 2 of 3 pairs decided; no more seeds for layers=2, .*", line
    )


def test_seeds_that_a_look_does_not_have_do_not_count() -> None:
    """With eight finished seeds, the first look still sees three."""
    for layers, wrong in ((2, [28, 28, 28]), (3, [2, 4, 3]), (4, [3, 2, 4])):
        finish_seeds(layers, wrong)
    before = decide(page(), LOOKS)
    finish_seeds(3, [5, 1, 7], first=5)
    after = decide(page(), LOOKS)
    assert (after.to_run, after.history) == (before.to_run, before.history)
    assert [pair.record() for pair in after.pairs.values()] == [
        pair.record() for pair in before.pairs.values()
    ]


def test_a_page_has_the_seeds_of_its_looks_and_says_so_of_the_others() -> None:
    """An ordinary sweep has added seeds later: means and differences are of the same runs, at the look's level."""
    for layers, wrong in ((2, [28, 28, 29]), (3, [2, 4, 3]), (4, [13, 12, 14])):
        finish_seeds(layers, wrong)
    finish_seeds(3, [30, 30], first=4)
    every = page()
    shown = at_looks(every)
    assert {it.row.label: [*it.scores] for it in shown.results} == {
        f"layers={n}": [1, 2, 3] for n in (2, 3, 4)
    }
    assert [it.remark for it in shown.results] == [
        "",
        "the verdict is made without seeds 4 and 5, which no look has",
        "",
    ]
    means = {it.row.label: it.measured.mean for it in shown.results if it.measured}
    pairs = json.loads(TableView(shown).json())["pairs"]
    level = levels(LOOKS, 0.05)[0]
    for pair in pairs:
        assert pair["difference"] == pytest.approx(means[pair["a"]] - means[pair["b"]])
        assert (pair["level"], pair["seeds"]) == (level, [3, 3])
    remark = "layers=3: the verdict is made without seeds 4 and 5, which no look has."
    assert remark in TableView(shown).answer()
    text = TableView(shown).markdown()
    assert f"p corrected is at most the level of the look, {level:.4f}; equal" in text
    assert "at most 5 %; equal" not in text
    assert text.count(remark) == 1


def test_before_the_first_look_a_page_has_all_seeds() -> None:
    finish_seeds(2, [28, 28])
    assert at_looks(page()) == page()


def test_the_last_look_ends_the_sweep_whatever_is_open() -> None:
    for layers in (2, 3, 4):
        finish_seeds(layers, [2 + layers % 2, 4, 3, 2, 4])
    decision = decide(page(), LOOKS)
    assert decision.to_run == {}
    assert len(decision.history) == 3
    assert decision.history[-1].endswith("the sweep ends, as this was its last look.")
    assert {pair.verdict for pair in decision.pairs.values()} == {"undecided"}
    assert all(len(pair.a.runs) == 5 for pair in decision.pairs.values())
