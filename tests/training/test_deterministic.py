"""`runtime.deterministic`: each run uses PyTorch's deterministic algorithms if its own setting says so."""

from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, TOY

from ner_experiments.config.compose import compose
from ner_experiments.train import train
from ner_experiments.training.module import LightningTagger


def test_the_setting_holds_for_its_own_run_and_changes_no_weight_on_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # Lightning sets it, for good
    used = []
    monkeypatch.setattr(
        LightningTagger, "on_train_start", lambda _: used.append(torch.are_deterministic_algorithms_enabled())
    )
    weights = []
    for choice in ("true", "false"):
        settings = [*TINY, TOY, "data=toy_en", "model.hidden_size=8", "runtime.accelerator=cpu"]
        cfg = compose([*settings, f"runtime.deterministic={choice}", f"output_dir={tmp_path / choice}"])
        weights.append((Path(train(cfg)["folder"]) / "model.safetensors").read_bytes())
    assert used == [True, False]
    assert weights[0] == weights[1]
