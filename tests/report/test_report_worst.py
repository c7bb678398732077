"""The sentences with most errors on a row's page: as in a logger's table, but over all runs of the row."""

from pathlib import Path

import pytest
from toy_rows import TEST, TOY, finish

from ner_experiments.analysis.row_errors import RowErrors
from ner_experiments.loggers import final
from ner_experiments.report import row_page
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run, open_run
from ner_experiments.view.mentions import Segment, Tagging, in_brackets


def runs(folder: Path, *num_wrong: int) -> dict[int, Run]:
    """Runs of one experiment. Each misses all names in so many sentences of test, and finds all others."""
    row = ["paper=yang2020", *TOY, f"output_dir={folder}", "model=stacked", "layers=2"]
    return {seed: open_run(finish(row, seed, wrong)) for seed, wrong in enumerate(num_wrong, start=1)}


@pytest.mark.parametrize("most", [50, 4])
def test_of_one_run_they_are_what_loggers_show(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_page, "MAX_SENTENCES", most)
    monkeypatch.setattr(row_page, "MAX_OF_KIND", 0)
    own = runs(tmp_path, 20)
    expected = [
        (f"Sentence {number}, errors: {errors}", gold, predicted)
        for number, errors, gold, predicted in final.predictions(own[1].folder, "test", "mentions", most)
        if errors
    ]
    assert len(expected) == min(most, sum("B-" in " ".join(it.tags) for it in TEST[:20]))
    section = row_page.worst_section(RowErrors("", own))
    assert section is not None
    found = []
    for sentence in section.sentences:
        gold, predicted = sentence.taggings
        assert (predicted.label, predicted.correct) == ("predicted", False)
        title = sentence.title.removesuffix(" (missing)")
        found.append((title, in_brackets(gold.segments), in_brackets(map(unmarked, predicted.segments))))
    assert found == expected


def unmarked(it: Segment) -> Segment:
    """The segment as the run tagged it: these runs miss what they get wrong."""
    return Segment(it.text) if it.wrong else it


class TokensTagged(Run):
    """A run that tagged a corpus of four tokens, token by token."""

    def predicted(self) -> list[Predicted]:
        gold = (("DT", "NN"), ("NN", "VB"))
        return [
            Predicted(("a", "b"), tags, tuple(mine))
            for tags, mine in zip(gold, self.metrics["tags"], strict=True)
        ]


def test_errors_are_counted_over_seeds_and_each_way_of_tagging_is_shown() -> None:
    tagged = {1: ["DT NN", "VB NN"], 2: ["DT VB", "NN NN"], 4: ["DT VB", "NN VB"]}
    made = {
        seed: TokensTagged(Path(), {"task": "tags", "tags": [it.split() for it in of_seed]})
        for seed, of_seed in tagged.items()
    }
    section = row_page.worst_section(RowErrors("", made))
    assert section is not None
    assert section.texts[0].startswith("2 of 2 test sentences have errors; 2 are shown: those with most.")
    second, first = section.sentences
    assert (second.title, first.title) == ("Sentence 2, errors: 1", "Sentence 1, errors: 0.7")
    wrong = [Segment("a "), Segment("b", "VB", "gold NN", True)]
    assert first.taggings[1:] == [
        Tagging("predicted, seed 1", [Segment("a b")], True),
        Tagging("predicted, seed 2, 4", wrong, False),
    ]
    assert [it.label for it in second.taggings[1:]] == [f"predicted, seed {seed}" for seed in (1, 2, 4)]


def test_archived_runs_and_runs_without_errors_show_no_sentences(tmp_path: Path) -> None:
    own = runs(tmp_path, 0, 20)
    archived = {seed: ArchivedRun(run.folder, run.metrics, {}) for seed, run in own.items()}
    assert row_page.worst_section(RowErrors("", archived)) is None
    assert row_page.worst_section(RowErrors("", {1: own[1]})) is None
    alone = row_page.worst_section(RowErrors("", {2: own[2]}))
    both = row_page.worst_section(RowErrors("", {1: archived[1], 2: own[2]}))
    assert alone == both
