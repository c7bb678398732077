"""Folders of runs of two rows of a published table on the toy corpus, and the table's page."""

import json
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from seqeval.metrics import f1_score

from ner_experiments.config.compose import compose
from ner_experiments.config.identity import identity, run_folder, run_name
from ner_experiments.data import toy
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.code import code_of, digest
from ner_experiments.runs.predictions import write_predictions
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.scores import Page

TABLE = "yang2020_table12"
TOY = ["data=toy_zh", "data.sentences={train: 20, dev: 5, test: 30}"]
TEST = toy.sentences("zh", "test", 30)


def finish(overrides: list[str], seed: int, num_wrong: int, **more: Any) -> Path:
    """Folder of a run that misses all names in the first `num_wrong` test sentences and finds all others.

    more: further entries of metrics.json, or others in place of its own.
    """
    cfg = compose([*overrides, f"seed={seed}"], "test")
    read = Fingerprints()(cfg)
    name = identity(cfg, read)
    code = code_of(cfg)
    folder = run_folder(cfg, run_name(name, digest(code)))
    predicted = [["O"] * len(it) if number < num_wrong else it.tags for number, it in enumerate(TEST)]
    folder.mkdir(parents=True)
    write_predictions(folder / "predictions" / "test.conll", "mentions", TEST, predicted)
    f1 = float(f1_score([list(it.tags) for it in TEST], [list(tags) for tags in predicted]))
    metrics = {
        "identity": name,
        "checksum": read,
        "seed": seed,
        "task": "mentions",
        "data": {
            "name": cfg.data.name,
            "checksum": {"toy_zh": "abc"}.get(cfg.data.name, cfg.data.name),
            "gold": f"{cfg.data.name}, {cfg.data.get('max_sentences')}",
            "notes": ["a note"],
        },
        "dev": {"f1": f1},
        "test": {"f1": f1, "precision": 1.0, "recall": 0.5},
        "best_epoch": 1,
        "parameters": 1234,
        "parameters_of": {"model": 1000},
        "peak_memory_bytes": {"main": 2_000_000},
        "tokens_per_second": 500.0,
        "seconds": 6.0,
        "epochs": 3,
        "versions": {"torch": "2"},
        "commit": "abc",
        "code": digest(code),
        "device": "test",
        "threads": 1,
    }
    OmegaConf.save(cfg, folder / "config.yaml", resolve=True)
    (folder / "code.json").write_text(json.dumps(code))
    (folder / "log.csv").write_text("epoch,dev_f1\n1,0.5\n")
    (folder / "metrics.json").write_text(json.dumps(add_checksum(metrics | more)))
    return folder


def page_of(here: str) -> Page:
    """Page of two rows with three and two seeds. One run has the same settings as its row, by other overrides."""
    row = ["paper=yang2020", *TOY, here]
    for seed, num_wrong in ((1, 2), (2, 3), (3, 5)):
        finish([*row, "model=residual", "layers=4"], seed, num_wrong)
    finish([*row, "model=stacked", "model.num_layers=2"], 1, 15)
    finish([*row, "model=stacked", "layers=2", "runtime.threads=3", "logger=tensorboard"], 9, 18)
    return collect(spec.load(TABLE), [*TOY, here])
