"""`train()` in several threads of a process, and where Lightning cannot start processes."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from tiny_runs import TINY, TOY
from torch.distributed import DistStoreError

from ner_experiments.config import processes
from ner_experiments.config.compose import compose
from ner_experiments.config.processes import RANKS, check_program
from ner_experiments.train import train
from ner_experiments.training.trainer import killing_stragglers


@pytest.mark.slow
def test_threads_train_the_weights_of_their_seeds(tmp_path: Path) -> None:
    def weights(seed: int, folder: str) -> bytes:
        small = [*TINY, TOY, "data=toy_en", "model.hidden_size=8", "chars=none"]
        result = train(compose([*small, f"output_dir={tmp_path / folder}", f"seed={seed}"]))
        return (Path(result["folder"]) / "model.safetensors").read_bytes()

    with ThreadPoolExecutor(2) as pool:
        together = [*pool.map(weights, (1, 2), ("together", "together"))]
    assert together == [weights(seed, "alone") for seed in (1, 2)]


@pytest.mark.parametrize("program", ["-c", "", "-"])
def test_several_processes_need_a_program_in_a_file(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in RANKS:
        monkeypatch.delenv(rank, raising=False)
    monkeypatch.setattr(sys, "argv", [program])
    check_program(compose(["data=toy_en"]))
    cfg = compose(["data=toy_en", "trainer.devices=2"])
    message = "trainer.devices=2: each process reruns the program, but it is not in a file; "
    with pytest.raises(ValueError, match=re.escape(message)):
        check_program(cfg)
    for rank in RANKS:
        with monkeypatch.context() as started:
            started.setenv(rank, "1")
            check_program(cfg)
    monkeypatch.setattr(sys, "argv", [__file__])
    check_program(cfg)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)  # as in a notebook
    with pytest.raises(ValueError, match=re.escape(message)):
        check_program(cfg)


def test_several_machines_need_a_command_on_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in RANKS:
        monkeypatch.delenv(rank, raising=False)
    cfg = compose(["data=toy_en", "trainer.num_nodes=2"])
    with pytest.raises(
        ValueError, match=r"trainer\.num_nodes=2: the command must be started on each machine"
    ):
        check_program(cfg)
    monkeypatch.setenv("NODE_RANK", "0")
    check_program(cfg)


@pytest.mark.parametrize(
    ("error", "world_size", "expected"),
    [
        (DistStoreError("Timed out after 21 seconds waiting for clients."), 2, ConnectionError),
        (
            RuntimeError("[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"),
            2,
            ConnectionError,
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), 2, RuntimeError),
        (RuntimeError("[gloo/transport/tcp/device.cc:83] Unable to find address for: eth9"), 2, RuntimeError),
        (OSError(28, "No space left on device", "/home/gloo/Broken pipe"), 2, OSError),
        (RuntimeError("Connection reset by peer"), 1, RuntimeError),
    ],
)
def test_the_loss_of_another_process_is_distinguished_from_other_errors(
    error: Exception, world_size: int, expected: type[Exception]
) -> None:
    trainer: Any = SimpleNamespace(strategy=SimpleNamespace(launcher=None), world_size=world_size)
    with pytest.raises(expected) as raised, killing_stragglers(trainer):
        raise error
    assert type(raised.value) is expected
    assert ("repeat the command" in str(raised.value)) == (expected is ConnectionError)
    assert error in (raised.value, raised.value.__cause__)


def test_a_finished_run_is_returned_where_no_process_can_be_started(
    toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cfg = OmegaConf.load(toy_run / "config.yaml")
    assert isinstance(cfg, DictConfig)
    cfg.output_dir = str(toy_run.parents[1])
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(processes, "num_processes", lambda cfg: 2)
    assert train(cfg)["folder"] == str(toy_run)
