"""Setup of all tests: shape annotations are checked, every test is seeded, and torch uses one thread."""

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("NER_CONFIG_DIRS", None)  # a user's own configs are no part of the suite

import jaxtyping
import pytest
import torch
from hypothesis import settings

# a script's background ignores SIGINT, and all processes inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("suite", deadline=None)  # a busy machine breaks no test
settings.load_profile("suite")

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which transformers does too

MODULES = Path(__file__).parents[1] / "ner_experiments" / "modules"
SHAPED = (
    # not modules/kernels: what calls them declares the same shapes, and checks of each small step took half the time
    *(f"modules.{path.stem}" for path in MODULES.glob("[!_]*.py")),
    "models",
    "metrics",
    "tagger",
    "analysis.randomization",
    "analysis.bootstrap",
    "analysis.calibration",
    "analysis.disagreements",
    "xor.measurement",
    "xor.experiment",
)
jaxtyping.install_import_hook([f"ner_experiments.{part}" for part in SHAPED], "beartype.beartype")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("start_early") is None)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that a test starts in its own process runs there, with what the test has replaced."""
    monkeypatch.setattr("ner_experiments.launch.local.usable_cores", lambda: 1)


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """No later test logs to the output of this one: a job configures the logging of its process, as Hydra does."""
    yield
    for handler in [it for it in logging.root.handlers if type(it) is logging.StreamHandler]:
        logging.root.removeHandler(handler)


@pytest.fixture
def ner(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs commands in this process; see tests/helpers/in_process.py."""
    from in_process import Ner  # after the hook above

    return Ner(capsys)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has no runs, which that of the checkout may have."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BiLSTM-CRF with character CNNs that finds mentions in the toy language."""
    from tiny_runs import finished  # after the hook above

    return finished(tmp_path_factory.mktemp("toy_run"), "data=toy_en")


def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection, which would walk them again and again."""
    gc.collect()
    gc.freeze()
