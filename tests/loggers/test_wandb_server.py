"""The run and the workspace that W&B has in the end, by a stand-in for its server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import forked
import killed
import pytest
import wandb_server
from logged import SMALL
from wandb_server import Store

from ner_experiments.main import cli

pytestmark = pytest.mark.slow
KEY = "0" * 40
EPOCHS = 4
SHOWN = ("test/predictions", "dev/types", "test/types_bars")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Store]:
    """The server, which must have refused nothing in the end."""
    with wandb_server.served() as store:
        yield store
    assert store.refused == []


def access(server: Store, home: Path, mode: str) -> dict[str, str]:
    return {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": server.url, "WANDB_MODE": mode, "HOME": str(home)}


def sync(server: Store, home: Path) -> None:
    (folder,) = home.glob("o/*/seed-1/wandb/offline-run-*")
    command = [sys.executable, "-m", "wandb", "sync", str(folder)]
    environment = {**os.environ, **access(server, home, "online")}
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def read_id(home: Path) -> str:
    (path,) = home.glob("o/*/seed-1/wandb/id")
    return path.read_text()


def check(server: Store, home: Path) -> None:
    """The only run of the server, which must have each epoch once, and the scores and tables of the run's folder."""
    (folder,) = home.glob("o/*/seed-1")
    metrics = json.loads((folder / "metrics.json").read_text())
    names, *rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    logged = [(int(row[0]), 100 * float(row[names.index("dev_f1")])) for row in rows]
    assert len(logged) == EPOCHS
    ((name, run),) = server.runs.items()
    assert name == read_id(home)
    assert run.exit_code == 0
    bucket = run.bucket
    assert bucket["groupName"] == folder.parent.name
    assert bucket["displayName"] == f"{folder.parent.name} seed=1"
    assert {"toy_en", "bilstm", "crf"} < {*bucket["tags"]}
    assert json.loads(bucket["config"])["seed"]["value"] == 1
    assert [(row["epoch"], row["dev/f1"]) for row in run.history() if "dev/f1" in row] == logged
    summary = run.summary()
    assert summary["best/test_f1"] == pytest.approx(100 * metrics["test"]["f1"])
    assert summary["best/epoch"] == metrics["best_epoch"]
    shown = {key: server.uploads[f"/run/{name}/{summary[key]['path']}"] for key in SHOWN}
    assert all(len(content) == summary[key]["size"] for key, content in shown.items())
    assert len(json.loads(shown["test/predictions"])["data"]) == 20
    assert {artifact["state"] for artifact in server.artifacts.values()} == {"COMMITTED"}
    assert f"/run/{name}/wandb-summary.json" in server.uploads


@pytest.mark.parametrize(
    ("first", "then"), [("online", "online"), ("offline", "offline"), ("online", "offline")]
)
def test_a_killed_and_resumed_run_is_one_run_with_every_epoch(
    first: str, then: str, server: Store, tmp_path: Path
) -> None:
    """A run that ends offline is synced, and replaces what was sent before, since it has all epochs."""
    run = [*SMALL, f"trainer.max_epochs={EPOCHS}", "optimizer.lr=0.02", "trainer.patience=9"]
    run += ["runtime.checkpoint_seconds=0", f"output_dir={tmp_path}/o", "logger=wandb"]
    log = tmp_path / "log"
    assert killed.run(["train", *run], log, 1_800, **access(server, tmp_path, first)) == -9
    assert server.runs.keys() == ({read_id(tmp_path)} if first == "online" else set())
    result = forked.run(*run, environment={**os.environ, **access(server, tmp_path, then)})
    assert result.returncode == 0, result.stderr
    assert "resuming from last.ckpt" in result.stdout
    if then == "online":
        assert "query RunResumeStatus" in server.operations
        assert not list(tmp_path.glob("o/*/seed-1/wandb/data/**/*.json"))
    else:
        sync(server, tmp_path)
    check(server, tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of wandb-workspaces
def test_a_workspace_is_saved(
    server: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in access(server, tmp_path, "online").items():
        monkeypatch.setenv(name, value)
    overrides = ["data=toy_en", f"output_dir={tmp_path}"]
    assert cli(["dashboard", "yang2020_table12", *overrides, "--project=mine"]) == 0
    (view,) = server.views
    assert (view["entityName"], view["projectName"]) == (wandb_server.ENTITY, "mine")
    assert view["type"] == "project-view"
    assert capsys.readouterr().out.startswith(f"saved: {server.url}/{wandb_server.ENTITY}/mine?nw=")
    panels = json.loads(view["spec"])["section"]["panelBankConfig"]["sections"]
    assert "best/test_f1" in json.dumps(panels)
