"""docs/configuration.md has every group and setting, and the suite refuses what lies outside its ranges."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import tiny_bert
from hydra.errors import HydraException
from places import ROOT

from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.launch.local import LocalLauncher
from ner_experiments.train import train

OUTSIDE = {
    "num_layers": [("model=residual", "model.num_layers=0")],
    "hidden_size": [("model=residual", "model.hidden_size=0"), ("chars=lstm", "chars.module.hidden_size=0")],
    "dense_size": [("model=residual", "model.dense_size=0")],
    "num_units": [("model=parallel", "model.num_units=0")],
    "unit_size": [("model=parallel", "model.unit_size=0")],
    "num_heads": [("model=attention", "model.num_heads=0")],
    "head_size": [("model=attention", "model.head_size=0")],
    "dim": [("words.module.dim=0",), ("chars.module.dim=0",)],
    "num_filters": [("chars.module.num_filters=0",)],
    "batches.tokens": [("batches.tokens=0",), ("batches=token_total", "batches.tokens=0")],
    "batches.sentences": [("batches=sentences", "batches.sentences=0")],
    "pool": [("batches=sentences", "batches.pool=0")],
    "min_count": [(f"direct={name}", f"direct.{name}.input.min_count=0") for name in ("context", "spelling")],
    "layers": [("model=residual", "layers=0")],
    "trainer.max_epochs": [("trainer.max_epochs=0",)],
    "trainer.patience": [("trainer.patience=0",)],
    "trainer.gradient_clip": [("trainer.gradient_clip=-0.1",)],
    "trainer.train_batches": [("trainer.train_batches=-1",)],
    "trainer.devices": [("trainer.devices=0",)],
    "trainer.num_nodes": [("trainer.num_nodes=0",)],
    "reduction": [("decoder=softmax", "decoder.reduction=mean")],
    "dropout": [("model.dropout=1.0",), ("model.dropout=-0.1",), ("chars.module.dropout=1.0",)],
    "held_out": [
        ("data=conll", "data.name=a", "data.held_out=1.0"),
        ("data=conll", "data.name=a", "data.held_out=-0.1"),
    ],
    "bound": [("words=random_huang2015_wide", "words.module.bound=0.0")],
    "widths": [("chars.module.widths=[0]",), ("chars.module.widths=[]",)],
    "weight": [("model=parallel", "penalty=orthogonality", "penalty.weight=-1.0")],
    "window": [("direct=context", "direct.context.input.window=-1")],
    "chars.input.max_length": [("chars.input.max_length=0",)],
    "words.input.max_length": [("words=bert", "words.input.max_length=2")],
    "words.input.overlap": [("words=bert", "words.input.max_length=8", "words.input.overlap=6")],
    "max_sentences": [("data.max_sentences=0",)],
    "audit.gradients": [("audit.gradients=-1",)],
    "replace_singletons": [
        ("words.module.replace_singletons=1.1",),
        ("words.module.replace_singletons=-0.1",),
    ],
    "optimizer.lr": [("optimizer.lr=0.0",), ("optimizer.lr=1e300",), ("optimizer.lr=nan",)],
    "optimizer.weight_decay": [("optimizer.weight_decay=-0.1",)],
    "optimizer.momentum": [("optimizer=sgd", "optimizer.momentum=-0.1")],
    "optimizer.momentum_decay": [("optimizer=nadam", "optimizer.momentum_decay=-0.1")],
    "schedule.warmup": [("schedule=linear", f"schedule.warmup={share}") for share in (-0.1, 1.0)],
    "seed": [("seed=-1",), ("seed=4294967296",)],
    "runtime.threads": [("runtime.threads=0",), ("runtime.threads=1025",)],
    "runtime.accelerator": [("runtime.accelerator=tpu",)],
    "runtime.cuda_graphs": [("runtime.cuda_graphs=on",)],
    "runtime.reuse": [("runtime.reuse=all",)],
    "runtime.checkpoint_seconds": [("runtime.checkpoint_seconds=-1",)],
    "runtime.ddp_seconds": [("runtime.ddp_seconds=0",)],
    "trainer.precision": [("trainer.precision=64-true",)],
    "logger.sentences": [("logger=tensorboard", "logger.sentences=-1")],
}
"""For each range of the page, overrides that lie just outside it."""
LAUNCHER = {"jobs": -1, "jobs_per_gpu": -1, "gpus_per_job": 0, "minutes": -1.0}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("configuration", ROOT / "docs/configuration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_each_range_of_the_page_is_tried(script: ModuleType) -> None:
    of_search = {
        name for name in script.RANGES if name.startswith("hydra.sweeper.")
    }  # by test_search_space.py
    assert {*OUTSIDE, *(f"hydra.launcher.{name}" for name in LAUNCHER)} == script.RANGES.keys() - of_search


CASES = [each for cases in OUTSIDE.values() for each in cases]
EARLY_ONLY = ("optimizer", "seed", "runtime", "trainer", "audit", "logger")
"""Settings whose values nothing checks where they are used, but only before a run is started."""
LATE_ONLY = ("widths=[]", "overlap=6")
"""Values that are wrong beside another setting."""


@pytest.mark.parametrize(
    "overrides", [each for each in CASES if not each[-1].endswith(LATE_ONLY)], ids=lambda each: each[-1]
)
def test_a_value_outside_its_range_is_refused_before_a_run(overrides: tuple[str, ...]) -> None:
    name = overrides[-1].partition("=")[0]
    more = ["words.input.path=a/b"] if "words=bert" in overrides else []
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        values.check_jobs([[*overrides, *more]], files=False, devices=False)


@pytest.mark.parametrize(
    "overrides",
    [each for each in CASES if not any(word in each[-1] for word in EARLY_ONLY)],
    ids=lambda each: each[-1],
)
def test_a_value_outside_its_range_is_refused_where_it_is_used(
    overrides: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ner_experiments.train.check_experiment", lambda _: None)
    setting = overrides[-1].partition("=")[0].rpartition(".")[2]
    more = ["trainer.max_epochs=1", "data.sentences={train: 6, dev: 3, test: 3}", "runtime.progress=false"]
    if "data=conll" in overrides:
        (tmp_path / "train.conll").write_text("Ann B-PER\n\nsat O\n\nBob B-PER\n")
        more = [f"data.files.{split}={tmp_path}/train.conll" for split in ("train", "test")]
    if "words=bert" in overrides:
        more.append(f"words.input.path={tiny_bert.save(tmp_path / 'bert')}")
    cfg = compose([*more, *overrides, "runtime.accelerator=cpu", f"output_dir={tmp_path}/outputs"])
    name = {"layers": "num_layers", "tokens": "tokens per batch", "dim": "(?:embedding_)?dim"}.get(
        setting, setting
    )
    with pytest.raises((ValueError, HydraException), match=rf"{name}\b.* must be "):
        train(cfg)


@pytest.mark.parametrize(("name", "value"), LAUNCHER.items())
def test_a_launcher_refuses_a_value_outside_its_range(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        LocalLauncher(**{name: value})
