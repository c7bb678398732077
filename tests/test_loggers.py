"""The loggers, without an account: one W&B run per job, kept in its folder, and TensorBoard's files."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

ROOT = Path(__file__).parent.parent
SMALL = ["model.hidden_size=8", "data.max_sentences=20", "trainer=smoke", "runtime.progress=false"]
KEY = "0" * 40


def run(logger: str, home: Path, **environment: str) -> Path:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    command = [sys.executable, "run.py", "-m", "seed=1,2", *SMALL, f"logger={logger}", f"output_dir={home}/o"]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**clean, "HOME": str(home), **environment}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return home / "o"


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


def test_tensorboard_writes_events_beside_log_csv(tmp_path: Path) -> None:
    outputs = run("tensorboard", tmp_path)
    for seed in (1, 2):
        (folder,) = outputs.glob(f"*/seed-{seed}")
        events = EventAccumulator(str(folder / "tensorboard")).Reload()
        [row] = csv.DictReader((folder / "log.csv").read_text().splitlines())
        for scalar, column in {"train/loss": "train_loss", "dev/f1": "dev_f1"}.items():
            event, *_ = events.Scalars(scalar)  # dev is scored again by the weights that it chose
            assert event.value == pytest.approx(float(row[column]), rel=1e-6)
        assert json.loads((folder / "metrics.json").read_text())["seed"] == seed
