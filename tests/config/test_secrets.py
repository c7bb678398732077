"""Network and files of a run: no unrequested connection is made, and no secret is written to a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_bert
from places import ROOT

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "7b1d-of-aws",
    "GITHUB_TOKEN": "7b1d-of-github",
    "HF_TOKEN": "hf_7b1dofhuggingface",
    "SLURM_JWT": "7b1d-of-slurm",
    "WANDB_API_KEY": "7b1d" * 10,
    "MY_PASSWORD": "7b1d-of-mine",
}
SMALL = (
    "model.hidden_size=8 data.max_sentences=20 trainer=smoke runtime.progress=false runtime.accelerator=cpu"
)
Events = list[list[str]]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("secrets")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def recorded_events(place: Path) -> dict[str, Events]:
    """By logger, what the run with it asked for; the first also reads a BERT. Their files are in `place`."""
    bert = tiny_bert.save(place / "bert")
    runs = {
        "csv": f"logger=csv words=bert_frozen words.input.path={bert} words.input.max_length=30"
        " words.input.overlap=2",
        "tensorboard": "logger=tensorboard",
        "wandb": "logger=wandb",
    }
    where = f"cache_dir={place}/cache output_dir={place}/outputs"
    arguments = [f"{SMALL} {where}-{logger} {chosen}" for logger, chosen in runs.items()]
    offline = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "WANDB_MODE")
    environment = {name: value for name, value in os.environ.items() if name not in offline}
    environment |= {**SECRETS, "HOME": str(place), "WANDB_BASE_URL": "http://127.0.0.1:9"}
    command = [
        sys.executable,
        str(ROOT / "tests" / "helpers" / "watched.py"),
        str(place / "report"),
        *arguments,
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=place, env={**environment, "PYTHONPATH": str(ROOT)}
    )
    (place / "printed").write_text(ended.stdout + ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return dict(zip(runs, json.loads((place / "report").read_text()), strict=True))


@pytest.mark.parametrize("logger", ["csv", "tensorboard"])
def test_a_run_asks_nothing_of_the_network(logger: str, recorded_events: dict[str, Events]) -> None:
    """Started programs do not connect either: git is asked for the commit, and fc-list for the installed fonts."""
    assert {tuple(event) for event in recorded_events[logger]} <= {
        ("subprocess.Popen", it) for it in ("git", "fc-list")
    }


def test_what_asks_for_the_network_would_have_been_seen(recorded_events: dict[str, Events]) -> None:
    assert any(
        event == "socket.connect" and "'127.0.0.1', 9" in text for event, text in recorded_events["wandb"]
    )


def test_no_secret_of_the_environment_is_in_a_file_or_printed(
    place: Path, recorded_events: dict[str, Events]
) -> None:
    """W&B's own folder and its cache are among the files."""
    files = [path for path in place.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"printed", "config.yaml", "metrics.json", "log.csv", "debug-internal.log"} <= names
    assert {path.suffix for path in files} >= {".wandb", ".npy", ".conll", ".safetensors"}
    for path in files:
        content = path.read_bytes()
        found = [name for name, value in SECRETS.items() if value.encode() in content]
        assert not found, f"{path} holds {found}"
