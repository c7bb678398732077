"""The loggers, without an account: what a run shows is read back from W&B's files and from TensorBoard's."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import killed
import pytest
from logged import SMALL, scalars
from omegaconf import OmegaConf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer

from ner_experiments.config.compose import compose
from ner_experiments.loggers import final, wandb
from ner_experiments.loggers.base import RunInfo
from ner_experiments.loggers.tensorboard import tensorboard
from ner_experiments.train import train

KEY = "0" * 40
Records = list[dict[str, Any]]


def run(logger: str, home: Path, *overrides: str, **environment: str) -> Path:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    arguments = ["-m", "seed=1,2", *SMALL, f"logger={logger}", f"output_dir={home}/o", *overrides]
    result = forked.run(*arguments, environment={**clean, "HOME": str(home), **environment})
    assert result.returncode == 0, result.stdout + result.stderr
    return home / "o"


@cache
def inspected(folder: Path, *options: str) -> str:
    """By W&B's own reader of its files."""
    (path,) = folder.glob("*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def records(folder: Path, kind: str) -> Records:
    lines = map(json.loads, inspected(folder).splitlines())
    return [line[kind] for line in lines if line["type"] == kind]


def curve(folder: Path) -> list[tuple[int, float]]:
    """Epochs and scores on dev, as they were logged."""
    items = [record["item"] for record in records(folder, "history")]
    return [(item["epoch"], item["dev/f1"]) for item in items if "dev/f1" in item]


def logged(folder: Path) -> list[tuple[int, float]]:
    """The same of log.csv."""
    names, *rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    return [(int(row[0]), 100 * float(row[names.index("dev_f1")])) for row in rows]


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(
        "wandb",
        tmp_path_factory.mktemp("offline"),
        "model=attention",
        "trainer.max_epochs=2",
        "audit.gradients=1",
    )


def test_a_job_is_a_run_with_its_group_seed_tags_and_config(offline: Path) -> None:
    groups, ids = set(), set()
    for seed in (1, 2):
        (folder,) = offline.glob(f"*/seed-{seed}")
        (stored,) = folder.glob("wandb/offline-run-*")
        (begun,) = records(stored, "run")
        cfg = OmegaConf.load(folder / "config.yaml")
        groups.add(begun["run_group"])
        ids.add(begun["run_id"])
        row = cfg.sweep.row
        assert row
        assert begun["run_group"] == row
        assert begun["job_type"] == cfg.sweep.name
        assert begun["display_name"] == f"{row} seed={seed}"
        assert begun["tags"][:3] == ["toy_en", "attbilstm", "crf"]
        assert begun["tags"][3].startswith("experiment-")
        config = {name: value for name, value in begun["config"]["update"].items() if name != "_wandb"}
        assert config == {
            name: value for name, value in OmegaConf.to_container(cfg).items() if name != "sweep"
        }
    assert len(groups) == 1
    assert len(ids) == 2


def test_its_summary_is_that_of_metrics_json(offline: Path) -> None:
    (folder,) = offline.glob("*/seed-1")
    metrics = json.loads((folder / "metrics.json").read_text())
    (stored,) = folder.glob("wandb/offline-run-*")
    found = json.loads(inspected(stored, "--summary"))
    assert (found["state"], found["exit_code"]) == ("finished", 0)
    for split in ("dev", "test"):
        for name in ("f1", "precision", "recall"):
            assert found["summary"][f"best/{split}_{name}"] == 100 * metrics[split][name]
        for kind, scores in metrics[split]["types"].items():
            assert found["summary"][f"best/{split}_types_{kind}"] == 100 * scores["f1"]
    for name in ("parameters", "seconds", "tokens_per_second", "epochs"):
        assert found["summary"][name] == metrics[name]
    assert found["summary"]["best/epoch"] == metrics["best_epoch"]
    assert found["summary"]["memory/main_mib"] == metrics["peak_memory_bytes"]["main"] / 2**20
    assert found["summary"]["protocol/checksum"] == metrics["data"]["checksum"]
    selection = "dev chose the epoch; test was scored once, by that epoch's weights"
    assert found["summary"]["protocol/selection"] == selection


def test_its_curves_tables_and_pictures_are_there(offline: Path) -> None:
    (folder,) = offline.glob("*/seed-1")
    (stored,) = folder.glob("wandb/offline-run-*")
    assert curve(stored) == logged(folder)
    (last,) = [
        it["item"]
        for it in records(stored, "history")
        if it["item"].get("epoch") == 2 and "dev/f1" in it["item"]
    ]
    assert {"train/loss", "train/learning_rate", "seconds", "dev_types/PER", "gradient/words"} <= set(last)
    tables = media(stored, "table", ".table.json")
    assert set(tables) == {
        f"{split}/{name}" for split in ("dev", "test") for name in ("types", "confusion", "predictions")
    }
    history = {name for record in records(stored, "history") for name in record["item"]}
    assert not [name for name in history if name.partition(".")[0] in tables]  # each number would be a panel
    predicted = json.loads(tables["test/predictions"].read_text())
    assert predicted["columns"] == ["sentence", "errors", "gold", "predicted"]
    errors = [row[1] for row in predicted["data"]]
    assert len(errors) == 20
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0
    pictures = media(stored, "images", ".png")
    assert {"test/types_bars", "test/confusion_matrix", "dev/types_bars", "dev/confusion_matrix"} <= set(
        pictures
    )
    assert len([name for name in pictures if name.startswith("attention/test-")]) == final.ATTENTION_MAPS


def test_an_offline_run_keeps_the_staged_files_that_its_record_names_and_no_other(offline: Path) -> None:
    for folder in offline.glob("*/seed-*"):
        (stored,) = folder.glob("wandb/offline-run-*")
        named = set(re.findall(r"artifacts/staging/(\w+)", inspected(stored)))
        found = {path.name for path in (folder / "wandb/data").rglob("*") if path.is_file()}
        assert len(named) > 3
        assert found == named


def test_if_a_record_cannot_be_read_all_staged_files_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    staging = tmp_path / "data"
    staging.mkdir()
    (staging / "tmpabc").write_text("a table")
    (tmp_path / "offline-run-1").mkdir()
    (tmp_path / "offline-run-1" / "run-1.wandb").write_bytes(b"no record")
    with caplog.at_level("WARNING"):
        wandb.remove_unneeded(staging)
    assert (staging / "tmpabc").exists()
    assert caplog.messages == [
        f"W&B: {tmp_path}/offline-run-1/run-1.wandb cannot be read, so {staging} keeps files that may not be "
        "needed; nothing of the run is lost"
    ]


def test_a_signal_to_a_stopping_job_does_not_reach_what_reads_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher sends it to the process group of the job, as a terminal does."""
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\nimport os\nprint(os.getpgrp())\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert int(wandb.inspected(tmp_path / "record")) != os.getpgrp()


def test_only_a_resumed_run_goes_on_in_what_wandb_has_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that starts over replaces it: in a resumed one its epochs would be older than what is there, and lost."""
    begun: list[dict[str, Any]] = []
    client = SimpleNamespace(Settings=dict, Error=RuntimeError, init=lambda **given: begun.append(given))
    monkeypatch.setitem(sys.modules, "wandb", client)
    monkeypatch.setattr(wandb, "is_reachable", lambda: True)
    for resumed in (False, True):
        wandb.start({"id": "a"}, resumed=resumed)
    assert [(it["id"], it["mode"], it["resume"]) for it in begun] == [
        ("a", "online", None),
        ("a", "online", "allow"),
    ]


@pytest.mark.parametrize(("mode", "runs"), [("disabled", 0), ("", 1)])
def test_a_mode_that_is_disabled_or_empty_is_no_failure(
    mode: str, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty one is as good as none: without an account, the run is stored offline."""
    monkeypatch.setenv("WANDB_MODE", mode)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    caplog.set_level("INFO")
    with wandb.wandb(RunInfo(tmp_path, "group", "name"), project="mine", sentences=0) as logger:
        logger.scalars({"dev/f1": 0.5}, 1)
    assert "None" not in caplog.text
    assert "failed" not in caplog.text
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == runs


def test_tensorboard_names_the_runs_of_a_sweep_by_what_varies_and_the_seed(tmp_path: Path) -> None:
    """By TensorBoard's own listing of a log directory, which follows links."""
    output = run("tensorboard", tmp_path, "model=residual", "layers=1,2", "trainer.max_epochs=1")
    (folder,) = output.glob("sweeps/*/tensorboard")
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    names = {f"layers={layers} seed={seed}" for layers in (1, 2) for seed in (1, 2)}
    assert multiplexer.Runs().keys() == names
    for name in names:
        assert multiplexer.Tensors(name, "dev/f1")


def linked(output: Path, folder: str, name: str) -> dict[str, Path]:
    """Links of the sweep after a run of it in this folder: name -> folder of the run."""
    about = RunInfo(output / folder / "seed-1", "row", name, sweep="sweep")
    with tensorboard(about, sentences=0) as logger:
        logger.scalars({"dev/f1": 0.5}, 1)
    return {it.name: it.resolve().parent.parent for it in (output / "sweeps/sweep/tensorboard").iterdir()}


def test_the_link_of_a_row_that_is_run_again_leads_to_the_new_run(tmp_path: Path) -> None:
    for folder in ("old", "new", "new"):
        assert linked(tmp_path, folder, "row seed=1") == {"row seed=1": tmp_path / folder}


def test_links_of_long_names_are_short_and_differ(tmp_path: Path) -> None:
    names = [f"words={'é' * 200} seed={seed}" for seed in (1, 2)]
    for folder, name in zip(("one", "two"), names, strict=True):
        links = linked(tmp_path, folder, name)
    assert sorted(links.values()) == [tmp_path / "one", tmp_path / "two"]
    assert all(name.startswith("words=é") and len(name.encode()) in (254, 255) for name in links)


def test_tensorboard_shows_an_epoch_when_it_ends(tmp_path: Path) -> None:
    with tensorboard(RunInfo(tmp_path, "group", "name"), sentences=0) as logger:
        for epoch in (1, 2):
            logger.scalars({"dev/f1": epoch / 2}, epoch)
            shown = [(event.step, event.value) for event in scalars(tmp_path).Scalars("dev/f1")]
            assert shown == [(1, 0.5), (2, 1.0)][:epoch]


def media(stored: Path, kind: str, suffix: str) -> dict[str, Path]:
    """Values by the names under which they were logged."""
    folder = stored / "files" / "media" / kind
    return {
        path.relative_to(folder).as_posix().rsplit("_", 2)[0]: path for path in folder.rglob(f"*{suffix}")
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{}, {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": "http://127.0.0.1:9"}],
    ids=["no account", "no network"],
)
def test_wandb_keeps_a_run_of_its_own_in_each_jobs_folder(
    environment: dict[str, str], tmp_path: Path
) -> None:
    outputs = run("wandb", tmp_path, **environment)
    folders = [sorted(outputs.glob(f"*/seed-{seed}/wandb/offline-run-*")) for seed in (1, 2)]
    assert [len(found) for found in folders] == [1, 1]
    for (folder,) in folders:
        assert list(folder.glob("*.wandb"))
    for path in outputs.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), f"{path} holds the key"


@pytest.mark.slow
def test_without_sentences_wandb_gets_no_word_of_the_corpus(tmp_path: Path) -> None:
    outputs = run("wandb", tmp_path, "logger.sentences=0", "model=attention")
    tokens = (next(outputs.glob("*/seed-1/predictions/test.conll"))).read_bytes().split()
    words = {word for word in tokens if len(word) > 6 and word.isalpha()}
    assert len(words) > 5
    for path in outputs.glob("*/seed-1/wandb/**/*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [word for word in words if word in content], path


@pytest.mark.slow
def test_what_was_cut_off_goes_on_as_the_same_run_with_every_epoch_once(tmp_path: Path) -> None:
    arguments = [
        "train",
        *SMALL,
        "trainer.max_epochs=6",
        "trainer.patience=9",
        "runtime.checkpoint_seconds=0",
        "logger=wandb",
    ]
    arguments += ["optimizer.lr=0.02", f"output_dir={tmp_path}/o"]
    os.environ["WANDB_MODE"] = "offline"
    assert killed.run(arguments, tmp_path / "log", lines=1_800) == -9
    (folder,) = (tmp_path / "o").glob("*/seed-1")
    before = len(logged(folder))
    assert 1 <= before < 6
    assert killed.run(arguments, tmp_path / "log") == 0
    assert "resuming from last.ckpt" in (tmp_path / "log").read_text()
    (stored,) = folder.glob("wandb/offline-run-*")
    (earlier,) = folder.glob("wandb/earlier/offline-run-*")
    assert stored.name.rpartition("-")[2] == earlier.name.rpartition("-")[2]
    assert curve(stored) == logged(folder)
    assert [epoch for epoch, _ in curve(stored)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_tensorboard_shows_what_wandb_shows(tmp_path: Path, offline: Path) -> None:
    """The same names: curves and summary, pictures, tables."""
    outputs = run("tensorboard", tmp_path, "model=attention", "trainer.max_epochs=2", "audit.gradients=1")
    for seed in (1, 2):
        (stored,) = offline.glob(f"*/seed-{seed}/wandb/offline-run-*")
        (folder,) = outputs.glob(f"*/seed-{seed}")
        metrics = json.loads((folder / "metrics.json").read_text())
        events = scalars(folder)
        found = [(event.step, event.value) for event in events.Scalars("dev/f1")]
        assert found == [(epoch, pytest.approx(score)) for epoch, score in logged(folder)]
        assert [event.step for event in events.Scalars("train/loss")] == [1, 2]
        (test,) = events.Scalars("best/test_f1")
        assert (test.step, test.value) == (2, pytest.approx(100 * metrics["test"]["f1"]))
        tags = events.Tags()
        assert set(tags["images"]) == media(stored, "images", ".png").keys()
        texts = {name.removesuffix("/text_summary") for name in tags["tensors"]}
        summary = json.loads(inspected(stored, "--summary"))["summary"]
        logged_there = {name for it in records(stored, "history") for name in it["item"]} | summary.keys()
        files = media(stored, "images", ".png").keys() | media(stored, "table", ".table.json").keys()
        names = {name for name in logged_there if name.partition(".")[0] not in files and name[0] != "_"}
        assert set(tags["images"]) | texts | set(tags["scalars"]) == files | names - {"epoch"} | {"tags"}
        assert "_hparams_/session_start_info" in events.summary_metadata
        assert metrics["seed"] == seed


@pytest.mark.slow
def test_tensorboard_has_every_epoch_once_of_a_run_that_was_cut_off(tmp_path: Path) -> None:
    further = ["trainer.max_epochs=4", "trainer.patience=9", "runtime.checkpoint_seconds=0"]
    arguments = ["train", *SMALL, *further, "logger=tensorboard", f"output_dir={tmp_path}/o"]
    assert killed.run(arguments, tmp_path / "log", lines=1_800) == -9
    assert killed.run(arguments, tmp_path / "log") == 0
    (folder,) = (tmp_path / "o").glob("*/seed-1")
    assert "resuming from last.ckpt" in (tmp_path / "log").read_text()
    assert [event.step for event in scalars(folder).Scalars("dev/f1")] == [1, 2, 3, 4]


@pytest.mark.parametrize("logger", [pytest.param("wandb", marks=pytest.mark.slow), "tensorboard"])
def test_a_finished_run_is_logged_once_from_its_files(
    logger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made without that logger and without a test score, which a third command adds."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    base = [*SMALL, "trainer.max_epochs=2", f"output_dir={tmp_path}"]
    folder = Path(train(compose([*base, "audit.test=false"]))["folder"])
    before = logged(folder)

    def stored() -> list[Path]:
        return [*folder.glob("wandb/offline-run-*"), *folder.glob("tensorboard/*")]

    def read() -> tuple[list[tuple[int, float]], set[str]]:
        """The curve, and the names of the final scores."""
        if logger == "tensorboard":
            events = [EventAccumulator(str(path)).Reload() for path in sorted(stored())]
            names = {name for each in events for name in each.Tags()["scalars"]}
            curves = [each.Scalars("dev/f1") for each in events if "dev/f1" in each.Tags()["scalars"]]
            return [(it.step, pytest.approx(it.value)) for points in curves for it in points], names
        (path,) = stored()
        return curve(path), {*json.loads(inspected(path, "--summary"))["summary"]}

    train(compose([*base, "audit.test=false", f"logger={logger}"]))
    points, names = read()
    assert points == before
    assert "best/dev_f1" in names
    assert "best/test_f1" not in names
    written = stored()
    train(compose([*base, "audit.test=false", f"logger={logger}"]))  # it has the run
    assert stored() == written
    train(compose([*base, f"logger={logger}"]))
    points, names = read()
    assert points == before
    assert "best/test_f1" in names
