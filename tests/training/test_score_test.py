"""Runs with audit.test=false, which are started again for their test score alone."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked
import pytest
from tiny_runs import TINY, TOY

from ner_experiments.build import batches, decode, load_with_corpus
from ner_experiments.config.compose import compose
from ner_experiments.metrics import SpanF1
from ner_experiments.runs import artifacts
from ner_experiments.runs.predictions import iob2, read
from ner_experiments.tables import experiments, spec
from ner_experiments.train import train
from ner_experiments.training.callbacks import Predictions
from ner_experiments.training.checkpoints import BestWeights

SMALL = [*TINY, TOY, "data=toy_en", "model.hidden_size=8", "chars=none"]


def run(output: Path, *overrides: str) -> dict[str, Any]:
    return train(compose([*SMALL, f"output_dir={output}", *overrides]))


def test_test_is_not_scored_until_it_is_asked_for_and_then_as_if_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An oracle: the same run in another folder, which scores test at its end."""
    at_once = run(tmp_path / "at_once")
    before = run(tmp_path / "later", "audit.test=false")
    folder = Path(before["folder"])
    assert "test" not in before
    assert not (folder / "predictions/test.conll").exists()
    assert before["dev"] == at_once["dev"]
    weights = (folder / "model.safetensors").read_bytes()
    assert run(tmp_path / "later", "audit.test=false") == before  # finished as far as it was asked for
    caplog.clear()
    with caplog.at_level(logging.INFO):
        after = run(tmp_path / "later")
    assert f"{folder}: scoring test, which was left out in training" in caplog.text
    assert "epoch" not in caplog.text  # it was not trained again
    assert after["test"] == at_once["test"]
    assert {**before, "test": 0, "files": 0, "sha256": 0} == {**after, "test": 0, "files": 0, "sha256": 0}
    for path in (*artifacts.PREDICTIONS, artifacts.PROBABILITIES):
        assert (folder / path).read_bytes() == (Path(at_once["folder"]) / path).read_bytes()
    assert (folder / "model.safetensors").read_bytes() == weights
    assert artifacts.read(folder / "metrics.json")["test"] == at_once["test"]
    artifacts.verify(folder, after)
    assert run(tmp_path / "later", "audit.test=false")["test"] == at_once["test"]


def test_dev_is_evaluated_once_an_epoch_and_the_selected_weights_predict_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of the last two epochs is selected. An oracle: the run's tagger, loaded from its folder."""
    evaluations: list[str] = []
    select = BestWeights.on_train_epoch_end

    def select_early(best: BestWeights, trainer: Any, module: Any) -> None:
        if trainer.current_epoch < 2:
            select(best, trainer, module)

    monkeypatch.setattr(BestWeights, "on_train_epoch_end", select_early)
    for name in ("on_validation_start", "on_test_start"):
        monkeypatch.setattr(Predictions, name, noted(getattr(Predictions, name), evaluations))
    result = run(tmp_path)
    assert (result["best_epoch"] in (1, 2), result["epochs"]) == (True, 4)
    assert result["dev"]["predicted"] > 0
    assert evaluations == ["on_validation_start"] * 4 + ["on_test_start"]
    tagger, encoder, corpus = load_with_corpus(Path(result["folder"]))
    metric = SpanF1(encoder.labels)
    tags: dict[int, list[int]] = {}
    for batch in batches(encoder, corpus.splits["dev"]):
        predicted = decode(tagger, batch)
        metric.update(predicted, batch.tags, batch.mask)
        tags |= zip(batch.sentences.tolist(), predicted.tolist(), strict=True)
    assert metric.compute() == result["dev"]
    for number, sentence in enumerate(read(Path(result["folder"]), "dev")):
        found = [encoder.labels[tag] for tag in tags[number][: len(sentence.words)]]
        assert sentence.predicted == iob2(found)


def noted(method: Callable[..., None], calls: list[str]) -> Callable[..., None]:
    """The method, whose calls are noted by its name."""

    def noting(*arguments: Any) -> None:
        calls.append(method.__name__)
        method(*arguments)

    return noting


@pytest.mark.slow
@pytest.mark.start_early
def test_several_processes_score_test_later_as_at_once(tmp_path: Path) -> None:
    """Each scores its own sentences, so those that join for the test score alone must find the finished run too."""
    several = ["trainer=ddp", "trainer.devices=2", *SMALL]

    def start(place: str, *overrides: str) -> dict[str, Any]:
        ended = forked.run(*several, *overrides, f"output_dir={tmp_path / place}")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        (path,) = (tmp_path / place).glob("*/seed-1/metrics.json")
        return artifacts.read(path)

    assert "test" not in start("later", "audit.test=false")
    later, at_once = start("later"), start("at_once")
    assert later["test"] == at_once["test"]
    assert later["test"]["predicted"] > 0


def test_a_sweep_over_a_table_counts_a_run_without_test_as_unfinished(tmp_path: Path) -> None:
    table = spec.Table(
        name="mine", title="t", source="s", rows=(spec.Row(label="r", run=()),), base=tuple(SMALL)
    )
    places = [f"output_dir={tmp_path}"]
    run(tmp_path, "audit.test=false")
    jobs, finished = experiments.unfinished(table, places, [1])
    assert (len(jobs), finished) == (1, 0)
    run(tmp_path)
    assert experiments.unfinished(table, places, [1]) == ([], 1)
