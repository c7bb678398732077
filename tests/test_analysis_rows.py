"""Rows of runs: means over seeds, what each two rows differ in, what results/ keeps, and the command."""

import json
import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import random_tags
from hydra.utils import instantiate
from omegaconf import OmegaConf
from scipy import stats

from ner_experiments import sealed
from ner_experiments.analysis import over_seeds, pairs
from ner_experiments.analysis.breakdown import breakdown
from ner_experiments.analysis.calibration import calibration
from ner_experiments.analysis.confusion import confusion
from ner_experiments.analysis.dimensions import dimensions, marked
from ner_experiments.analysis.kinds import kinds
from ner_experiments.analysis.outcomes import Outcomes, outcomes
from ner_experiments.analysis.predictions import Predicted
from ner_experiments.analysis.rows import compared, rows
from ner_experiments.data.corpus import load
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import encode, spans
from ner_experiments.main import cli
from ner_experiments.results import write_predictions
from ner_experiments.runs import KeptRun, Run, keep, kept
from ner_experiments.table_runs import compose

TRAIN = random_tags.train(1, 40)
CONFIG = compose(["data=toy_zh", "data.sentences={train: 60, dev: 5, test: 40}"], "test")
CORPUS = load(instantiate(CONFIG.data))
TEST = CORPUS.splits["test"]


def tagged(seed: int) -> list[Predicted]:
    """One test set, tagged by one of several taggers."""
    rng, found = random.Random(seed), []
    for it in random_tags.sentences(0, 120):
        guess = random_tags.disturbed(rng, spans(it.gold), len(it.gold))
        found.append(Predicted(it.words, it.gold, encode(guess, len(it.gold), "iob2")))
    return found


def found_by(seed: int) -> Outcomes:
    return outcomes(marked(tagged(seed), "mentions"), dimensions(TRAIN, "mentions"))


def test_means_over_seeds_have_students_interval() -> None:
    runs = [breakdown(tagged(seed), TRAIN) for seed in (1, 2, 3)]
    found = over_seeds.breakdown(runs)
    assert list(found) == list(runs[0])
    for dimension, groups in found.items():
        for name, group in groups.items():
            of_runs = [run[dimension][name] for run in runs]
            scores = [100 * it.f1 for it in of_runs]
            interval = stats.t.interval(0.95, 2, np.mean(scores), stats.sem(scores))
            assert (100 * group.f1.low, 100 * group.f1.high) == pytest.approx(interval)
            assert (group.f1.runs, group.f1.over) == (3, "seeds")
            assert group.precision == pytest.approx(np.mean([it.precision for it in of_runs]))
            assert group.recall == pytest.approx(np.mean([it.recall for it in of_runs]))
            assert group.gold == of_runs[0].gold
    errors = [kinds(tagged(seed)) for seed in (1, 2, 3)]
    for name, mean in over_seeds.kinds([{}, *errors]).items():
        assert mean.value == pytest.approx(np.mean([run[name].rate for run in errors]))


def test_one_run_has_the_interval_of_its_sentences() -> None:
    run = breakdown(tagged(1), TRAIN)
    mean = over_seeds.breakdown([{}, run])["type"]["PER"].f1
    bucket = run["type"]["PER"]
    assert (mean.value, mean.low, mean.high) == (bucket.f1, bucket.low, bucket.high)
    assert (mean.runs, mean.over) == (1, "sentences")


def test_groups_without_a_gold_mention_have_no_mean() -> None:
    run = breakdown([Predicted(("a", "b"), ("B-X", "O"), ("O", "B-Y"))], None)
    assert list(over_seeds.breakdown([run])["type"]) == ["X"]


def test_confusion_over_seeds_is_the_mean_of_the_counts() -> None:
    one = confusion([Predicted(("a",), ("B-X",), ("B-Y",))])
    other = confusion([Predicted(("a",), ("B-X",), ("B-Z",))])
    mean = over_seeds.confusion([one, None, other])
    assert mean.names == ("X", "Y", "Z", "none")
    assert mean.counts == ((0, 0.5, 0.5, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0))
    assert over_seeds.confusion([None]) is None


def test_calibration_over_seeds_has_the_bins_of_all_runs() -> None:
    right, sentence = np.array([True, False]), np.array([0, 1])
    one = calibration(np.array([0.95, 0.55]), right, sentence, 2)
    other = calibration(np.array([0.93, 0.97]), right, sentence, 2)
    mean = over_seeds.calibration([one, None, other])
    assert [(it.start, it.count) for it in mean.bins] == [(0.5, 1), (0.9, 3)]
    assert [it.mean for it in mean.bins] == pytest.approx([0.55, (0.95 + 0.93 + 0.97) / 3])
    assert [it.right.value for it in mean.bins] == [0.0, 0.75]
    assert mean.error.value == pytest.approx((one.error + other.error) / 2)
    assert over_seeds.calibration([None]) is None


@pytest.mark.parametrize(("first", "second"), [((1, 2), (1, 2)), ((1, 2), (3, 4, 5)), ((1,), (2,))])
def test_mentions_are_counted_in_pairs_of_runs(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Of one seed where both rows have the same; else in all pairs. The second row's taggers are others."""
    a, b = ({seed: tagged(seed + shift) for seed in seeds} for seeds, shift in ((first, 0), (second, 50)))
    together = [(n, n) for n in first] if first == second else list(product(first, second))
    expected = dict.fromkeys(product(("all", "LOC", "ORG", "PER"), (True, False), (True, False)), 0.0)
    for one, other in together:
        for mine, theirs in zip(a[one], b[other], strict=True):
            for mention in spans(mine.gold):
                outcome = (mention in spans(mine.predicted), mention in spans(theirs.predicted))
                expected["all", *outcome] += 1 / len(together)
                expected[mention[2], *outcome] += 1 / len(together)
    found = pairs.agreements(
        {seed: found_by(seed) for seed in first}, {seed: found_by(seed + 50) for seed in second}
    )
    assert found.pairs == len(together)
    for name, group in {"all": found.total, **found.groups["type"]}.items():
        counts = (group.both, group.first, group.second, group.neither)
        outcomes_ = product((True, False), (True, False))
        assert counts == pytest.approx([expected[name, *outcome] for outcome in outcomes_])


def test_rows_of_other_mentions_are_refused() -> None:
    one = {1: found_by(1)}
    short = outcomes(marked(tagged(1)[:50], "mentions"), dimensions(None, "mentions"))
    with pytest.raises(ValueError, match=r"expected the same gold mentions, got \[\d+, \d+\] of them"):
        pairs.agreements(one, {1: short})
    words = [Predicted(("a", *it.words[1:]), it.gold, it.predicted) for it in tagged(1)]
    other = outcomes(marked(words, "mentions"), dimensions(TRAIN, "mentions"))
    with pytest.raises(ValueError, match="rows of one test set: their gold mentions differ in seen"):
        pairs.agreements(one, {1: other})
    with pytest.raises(ValueError, match="two rows can be compared that have a run each, got one without"):
        pairs.agreements(one, {})


def test_cases_are_sentences_that_one_row_gets_right_more_often() -> None:
    first, second = [tagged(1), tagged(2)], [tagged(3)]
    found = pairs.cases(first, second)
    gaps = []
    for number, (a, b, c) in enumerate(zip(*first, *second, strict=True), start=1):
        gap = ((a.predicted == a.gold) + (b.predicted == a.gold)) / 2 - (c.predicted == a.gold)
        if gap:
            gaps.append((-abs(gap), len(a.words), number))
    assert [case.number for case in found] == [number for _, _, number in sorted(gaps)]
    assert len({gap for gap, _, _ in gaps}) == 2
    case = found[0]
    assert case.predicted == tuple(run[case.number - 1].predicted for run in (*first, *second))


def finish(folder: Path, identity: str, seed: int, checksum: str = CORPUS.checksum) -> Path:
    """What a run leaves behind, but for its weights: its tagger disturbs the gold mentions."""
    folder = folder / f"toy_zh-bilstm-crf-{identity}" / f"seed-{seed}"
    folder.mkdir(parents=True)
    rng = random.Random(f"{identity} {seed}")
    guesses = [random_tags.disturbed(rng, spans(it.tags), len(it)) for it in TEST]
    tags = [encode(guess, len(it), "bioes") for guess, it in zip(guesses, TEST, strict=True)]
    write_predictions(folder / "predictions" / "test.conll", "mentions", TEST, tags)
    metrics = {
        "identity": identity,
        "seed": seed,
        "task": "mentions",
        "data": {"name": "toy_zh", "checksum": checksum},
        "test": {"f1": 0.5},
    }
    OmegaConf.save(CONFIG, folder / "config.yaml", resolve=True)
    (folder / "log.csv").write_text("epoch,dev_f1\n1,0.5\n")
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder


def opened(folder: Path) -> Run:
    return Run(folder, sealed.read(folder / "metrics.json"))


def test_a_kept_run_has_the_errors_of_its_folder(tmp_path: Path) -> None:
    run = opened(finish(tmp_path, "a", 1))
    keep(run, tmp_path / "kept.json", "a row")
    (again,) = kept(tmp_path)
    assert "seen" in run.breakdown()
    assert again.breakdown() == run.breakdown() == breakdown(run.predicted(), CORPUS.splits["train"])
    assert again.kinds() == run.kinds() == kinds(run.predicted())
    assert again.confusion() == run.confusion() == confusion(run.predicted())
    assert (again.outcomes().right == run.outcomes().right).all()
    assert pairs.agreements({1: again.outcomes()}, {1: run.outcomes()}).total.first == 0
    text = (tmp_path / "kept.json").read_text()
    assert not any(word in text for sentence in TEST for word in sentence.words if not word.isascii())
    # weights there are none: no calibration
    assert (run.calibration(), again.calibration()) == (None, None)


def test_a_kept_calibration_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = calibration(np.array([0.95, 0.55]), np.array([True, False]), np.array([0, 1]), 2)
    monkeypatch.setattr(Run, "calibration", lambda _: found)
    keep(opened(finish(tmp_path, "a", 1)), tmp_path / "kept.json", "a row")
    (again,) = kept(tmp_path)
    assert again.calibration() == found


def test_a_run_that_was_kept_before_says_nothing() -> None:
    run = KeptRun(Path("kept.json"), {}, {})
    assert (run.breakdown(), run.kinds()) == ({}, {})
    assert (run.confusion(), run.calibration(), run.outcomes()) == (None, None, None)


def test_where_train_has_changed_what_needs_it_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = opened(finish(tmp_path, "a", 1, checksum="abc"))
    assert list(run.breakdown()) == ["type", "length", "sentence length"]
    assert "errors by what train has are left out: " in caplog.text
    assert "toy_zh has changed since: its checksum is" in caplog.text


def test_tags_of_tokens_have_no_kinds_of_errors(tmp_path: Path) -> None:
    sentences = [Sentence(("a", "b"), ("X", "Y"))]
    write_predictions(tmp_path / "predictions" / "test.conll", "tags", sentences, [["X", "X"]])
    (tmp_path / "metrics.json").write_text('{"data": {"checksum": "abc"}}')
    OmegaConf.save(CONFIG, tmp_path / "config.yaml", resolve=True)
    run = Run(tmp_path, {"task": "tags"})
    assert run.kinds() == {}
    assert {name: it.recall for name, it in run.breakdown()["type"].items()} == {"X": 1.0, "Y": 0.0}
    assert run.confusion().counts == ((1, 0, 0), (1, 0, 0), (0, 0, 0))


def cells(printed: str) -> list[list[str]]:
    """Of each line of each table."""
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_command_takes_seeds_together_and_holds_rows_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [finish(tmp_path, identity, seed) for identity, seed in (("a", 1), ("b", 1), ("a", 2))]
    keep(opened(folders[1]), tmp_path / "kept.json", "a kept row")
    assert cli(["errors", *map(str, folders), str(tmp_path / "kept.json")]) == 0
    printed = capsys.readouterr().out
    assert "## 1. toy_zh-bilstm-crf-a\n" in printed
    assert "Means over seeds; brackets are Student's 95 % intervals" in printed
    assert "Brackets are 95 % bootstrap intervals" in printed
    found = rows(folders)
    group = found[0].breakdown()["seen"]["with this type"]
    figures = [f"{100 * it:.2f}" for it in (group.precision, group.recall, group.f1.value)]
    interval = f"[{100 * group.f1.low:.2f}, {100 * group.f1.high:.2f}]"
    assert ["with this type", str(group.gold), *figures, interval] in cells(printed)
    (pair,) = compared(found)
    total = pair.agreements.total
    counts = [f"{it:.1f}".removesuffix(".0") for it in (total.both, total.first, total.second, total.neither)]
    assert ["all", *counts] in cells(printed)
    assert f"### {len(pair.cases)} sentences that one of them gets right more often" in printed
    assert printed.count("\nSentence ") == 5
    assert cli(["errors", *map(str, folders), "--json", "--sentences", "2"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rows"][0]["breakdown"]["seen"]["with this type"]["f1"]["value"] == group.f1.value
    assert content["rows"][0]["runs"] == {"1": str(folders[0]), "2": str(folders[2])}
    assert content["pairs"][0]["total"]["both"] == total.both
    assert [case["sentence"] for case in content["pairs"][0]["cases"]] == [it.number for it in pair.cases[:2]]


def test_the_command_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str | Path) -> str:
        assert cli(["errors", *map(str, arguments)]) == 1
        return capsys.readouterr().err

    assert "expected the folder of a finished run, but it has no metrics.json" in refused(tmp_path)
    folder = finish(tmp_path, "a", 1)
    assert "--sentences must be at least 0, got -1" in refused(folder, "--sentences", "-1")
    text = f"{folder}/config.yaml is damaged: "
    assert text in refused(folder / "config.yaml")
    (tmp_path / "other.json").write_text("{}")
    text = "other.json: expected a run as results/ keeps it, but it has no metrics"
    assert text in refused(tmp_path / "other.json")
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["test"]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    assert f"{folder}: its corpus has no test set, of which errors are" in refused(folder)
