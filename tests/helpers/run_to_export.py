"""A run on a toy corpus of columns for tests of the export, and copies of it as other seeds."""

import json
import shutil
from pathlib import Path
from typing import Any

from ner_experiments.config.compose import compose
from ner_experiments.data import toy
from ner_experiments.runs import artifacts
from ner_experiments.train import train
from ner_experiments.utils.files import write_json

SMALL = [
    "data=conll",
    "data.name=conll",
    "words.module.dim=20",
    "model.hidden_size=20",
    "optimizer.lr=0.01",
    "trainer.max_epochs=6",
    "batches.tokens=100",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]


def write_corpus(folder: Path) -> None:
    """Write train, dev and test as columns."""
    for split, number in (("train", 150), ("dev", 30), ("test", 40)):
        lines = [
            "".join(f"{word} {tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))
            for sentence in toy.sentences("en", split, number)
        ]
        (folder / split).write_text("\n".join(lines))


def train_on(corpus: Path) -> Path:
    """Folder of a run that is trained on the corpus in this folder."""
    files = [f"data.files.{split}={corpus / split}" for split in ("train", "dev", "test")]
    cfg = compose([*SMALL, *files, f"output_dir={corpus / 'outputs'}", f"cache_dir={corpus}"], "test")
    return Path(train(cfg)["folder"])


def copy_as(run: Path, folder: Path, *, seed: int, f1: float | None, identity: str = "") -> None:
    """Copy a run as a finished run with another seed and test score in metrics.json. f1: None for no test score."""
    folder.mkdir(parents=True)
    metrics = {name: value for name, value in metrics_of(run).items() if name != artifacts.CHECKSUM}
    test = metrics.pop("test")
    metrics |= {"seed": seed, "identity": identity or metrics["identity"]}
    if f1 is not None:
        metrics["test"] = {**test, "f1": f1}
    write_json(folder / "metrics.json", artifacts.add_checksum(metrics))
    shutil.copy(run / artifacts.CODE, folder)


def metrics_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "metrics.json").read_text())
