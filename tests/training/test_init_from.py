"""Two-stage training: the second run starts from the first one's weights, whatever their word inputs."""

import csv
import json
from pathlib import Path
from typing import Any

import hydra
import pytest
import tiny_bert
import torch
from safetensors.torch import load_file
from tiny_runs import TINY

from ner_experiments.config.compose import compose
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.config.identity import identity, run_folder, run_name
from ner_experiments.data.toy import sentences
from ner_experiments.experiment_data import fingerprint, init_config, read_data
from ner_experiments.runs.code import code_of, digest
from ner_experiments.train import train
from ner_experiments.utils.locks import hold_lock


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with the characters of the toy corpus as its vocabulary."""
    characters = sorted({word for sentence in sentences("zh", "train", 60) for word in sentence.words})
    return tiny_bert.save(tmp_path_factory.mktemp("bert"), [*tiny_bert.SPECIAL, *characters])


def run(bert: Path, outputs: Path, *overrides: str) -> dict[str, Any]:
    small = ["model.hidden_size=8", "model.dense_size=8", "layers=1", "data.max_sentences=60"]
    setting = ["paper=yang2020_bert", "data=toy_zh", f"words.input.path={bert}", "words.input.max_length=30"]
    places = [
        f"output_dir={outputs}",
        f"cache_dir={outputs}/cache",
        "runtime.progress=false",
        "runtime.accelerator=cpu",
    ]
    steps = ["init_from.trainer.max_epochs=1", "init_from.optimizer.lr=0.03", "trainer.max_epochs=1"]
    with hydra_context():
        overrides = [*setting, *small, *places, *steps, "words.input.overlap=8", *overrides]
        cfg = hydra.compose(CONFIG_NAME, overrides=overrides)
    return train(cfg)


def test_a_second_step_that_learns_nothing_scores_as_the_first(folder: Path, tmp_path: Path) -> None:
    nothing = ["optimizer.lr=1e-300", "optimizer.weight_decay=0.0"]
    second = run(folder, tmp_path, *nothing, "init_from.trainer.max_epochs=12")
    (first,) = (path for path in tmp_path.glob("*/seed-1") if path != Path(second["folder"]))
    weights, before = (
        load_file(Path(second["folder"]) / "model.safetensors"),
        load_file(first / "model.safetensors"),
    )
    assert all(torch.equal(weights[name], weight) for name, weight in before.items())
    assert second["dev"] == json.loads((first / "metrics.json").read_text())["dev"]
    assert second["dev"]["correct"] > 0


def test_the_first_step_is_shared_and_counts_in_what_the_second_is(folder: Path, tmp_path: Path) -> None:
    second = run(folder, tmp_path)
    faster = run(folder, tmp_path, "optimizer.lr=0.0001")
    other_start = run(folder, tmp_path, "init_from.optimizer.lr=0.01")
    assert len({second["identity"], faster["identity"], other_start["identity"]}) == 3
    assert len(list(tmp_path.glob("toy_zh-*/seed-1/metrics.json"))) == 5


def test_bert_is_warmed_up_and_its_rate_decays_in_the_second_step_alone(folder: Path, tmp_path: Path) -> None:
    second = run(folder, tmp_path, "optimizer.lr=0.001", "trainer.max_epochs=2")
    (first,) = (path for path in tmp_path.glob("*/seed-1") if path != Path(second["folder"]))
    assert {*learning_rates(first)} == {0.03}
    last_steps = (3 / 8, 7 / 8)  # 60 sentences are four batches of at most 16
    expected = [0.001 * (1 - done) / 0.9 for done in last_steps]
    assert learning_rates(Path(second["folder"])) == pytest.approx(expected)


def learning_rates(folder: Path) -> list[float]:
    with (folder / "log.csv").open(encoding="utf-8") as file:
        return [float(row["learning_rate"]) for row in csv.DictReader(file)]


def test_everything_moves_in_the_second_step(folder: Path, tmp_path: Path) -> None:
    second = run(folder, tmp_path, "optimizer.lr=0.001")
    (first,) = (path for path in tmp_path.glob("*/seed-1") if path != Path(second["folder"]))
    weights, before = (
        load_file(Path(second["folder"]) / "model.safetensors"),
        load_file(first / "model.safetensors"),
    )
    assert all(
        not torch.equal(weights[name], weight)
        for name, weight in before.items()
        if weight.is_floating_point()
    )


PLAIN = [
    *TINY,
    *(
        "data=toy_en",
        "data.sentences={train: 20, dev: 20, test: 5}",
        "model.hidden_size=8",
        "trainer.max_epochs=1",
    ),
]


def plain(outputs: Path, *overrides: str) -> dict[str, Any]:
    return train(compose([*PLAIN, f"output_dir={outputs}", *overrides]))


@pytest.mark.parametrize(
    ("words", "also"),
    [("random", ""), ("vectors", ""), ("random", ", words: {module: {replace_singletons: 0.1}}")],
)
def test_a_second_run_with_the_same_words_starts_from_all_weights(
    words: str, also: str, tmp_path: Path
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("Vera 0.1 0.2\nVantora 0.3 0.4\n", encoding="utf-8")
    own = [f"words={words}", *([f"words.input.path={vectors}"] if words == "vectors" else [])]
    nothing = ["optimizer.lr=1e-300", f"+init_from={{optimizer: {{lr: 0.05}}{also}}}"]
    second = plain(tmp_path, *own, *nothing)
    (first,) = (path for path in tmp_path.glob("*/seed-1") if path != Path(second["folder"]))
    weights = (folder / "model.safetensors" for folder in (Path(second["folder"]), first))
    after, before = map(load_file, weights)
    assert "inputs.words.vectors" in " ".join(before)
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert second["dev"] == json.loads((first / "metrics.json").read_text())["dev"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{model: {hidden_size: 9}}", r"\S+ has the shape \[36\] in \S+, and \[32\] in this run"),
        (
            "{data: {language: zh}}",
            r"chars of \S+ and of this run differ, as they were fitted on other data",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^init_from: {message}"):
        plain(tmp_path, f"+init_from={change}")


def test_a_first_run_that_another_process_trains_is_not_waited_for(tmp_path: Path) -> None:
    """A job of a sweep whose first run is busy is busy, so that its worker takes the next job."""
    cfg = compose([*PLAIN, f"output_dir={tmp_path}", "+init_from={optimizer: {lr: 0.05}}"])
    first = init_config(cfg)
    name = run_name(identity(first, fingerprint(*read_data(first))), digest(code_of(first)))
    folder = run_folder(first, name)
    with hold_lock(folder, wait=True):
        assert train(cfg, wait=False) == {"busy": str(folder)}
    assert "busy" not in train(cfg, wait=False)
