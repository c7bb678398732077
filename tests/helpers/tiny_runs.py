"""Runs that finish within seconds, and the test file of a toy corpus in columns."""

from pathlib import Path

from ner_experiments.config.compose import compose
from ner_experiments.data.toy import sentences
from ner_experiments.train import train

METRICS = {
    "identity": "abc",
    "checksum": "def",
    "task": "mentions",
    "commit": "unknown",
    "seed": 1,
    "epochs": 3,
    "best_epoch": 2,
    "data": {"checksum": "abc"},
    "dev": {"f1": 0.5, "accuracy": 0.5},
    "test": {"f1": 0.4, "accuracy": 0.4},
}
"""The least that a run's metrics.json holds."""
TINY = [
    "trainer.max_epochs=4",
    "batches=tokens",
    "batches.tokens=60",
    "optimizer=adam",
    "optimizer.lr=0.02",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]
TOY = "data.sentences={train: 150, dev: 20, test: 40}"


def finished(folder: Path, *overrides: str) -> Path:
    """Folder of a finished run."""
    toy = [TOY] if any(override.startswith("data=toy") for override in overrides) else []
    small = [] if "model=none" in overrides else ["model.hidden_size=16", "model.dropout=0.0"]
    cfg = compose([*TINY, *toy, *small, *overrides, f"output_dir={folder}/outputs"], "test")
    return Path(train(cfg)["folder"])


def columns_of_test(path: Path, language: str, number: int = 40) -> Path:
    """The first sentences of test, with tags that must be ignored."""
    blocks = ["".join(f"{word} O\n" for word in it.words) for it in sentences(language, "test", number)]
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path
