"""A run's tagger as a folder that can be uploaded to the Hugging Face hub as it is; `ner_experiments.load` reads it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from ner_experiments import build
from ner_experiments.config.identity import counted
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.export import card
from ner_experiments.export.inputs import OUTSIDE, check_exportable
from ner_experiments.export.scored_tags import check_scored_tags
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run, open_run
from ner_experiments.utils.files import atomic_folder, write_json

LICENCES = {"CC BY 4.0": "cc-by-4.0", "CC BY-SA 3.0": "cc-by-sa-3.0", "CC BY-SA 4.0": "cc-by-sa-4.0"}
"""Licence of a corpus, as in conf/data -> its identifier on the hub, where it also allows the weights to be shared."""
OTHER = "other"


def export(folder: Path, output: Path, *, licence: str | None) -> list[str]:
    """Write a run's tagger into the folder `output`, load it from there, and return the names of its files.

    licence: an identifier of the hub; by default that of the corpus if it is open, else "other". Raises ValueError or
    OSError if this fails; `output` then does not exist.
    """
    if output.exists():
        raise ValueError(f"{output} already exists: remove it, or choose another folder with --output")
    run = open_run(folder)
    artifacts.verify(folder, run.metrics, artifacts.TAGGER)
    cfg = run.config
    with atomic_folder(output) as part:
        for name in artifacts.TAGGER:
            shutil.copyfile(folder / name, part / name)
        tagger, encoder = build.load(part)
        check_exportable(encoder, OUTSIDE)
        check_scored_tags(run, tagger, encoder)
        labels = list(encoder.labels)
        write_json(
            part / "config.json", {"library_name": "ner_experiments", "id2label": labels, **counted(cfg)}
        )
        (part / "README.md").write_text(text(run, encoder, licence), encoding="utf-8")
        names = sorted(path.name for path in part.iterdir())
    return names


def text(run: Run, encoder: Encoder, licence: str | None) -> str:
    """The model card: what the hub reads of it as YAML, then Markdown."""
    found = metadata(run, run.label, licence or licence_of(run.config))
    columns = encoder.required_columns()
    of_words = ", ".join(['["..."]', *(f'{name}=["..."]' for name in columns)])
    call = f"tagger.tag_words({of_words})" if columns else 'tagger.tag("...")[0]'
    head = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=10**6)
    return card.card(run, hub={"head": head, "call": call}, title=run.label)


def licence_of(cfg: Any) -> str:
    return LICENCES.get(str(cfg.data.get("licence")), OTHER)


def metadata(run: Run, name: str, licence: str) -> dict[str, Any]:
    """Metadata by which the hub shows and finds a model, with its scores in the hub's form."""
    metrics = run.metrics
    key, shown = PRIMARY_METRIC[metrics["task"]]
    corpus = metrics["data"]["name"]
    results = [
        {
            "task": {"type": "token-classification"},
            "dataset": {"type": corpus, "name": corpus, "split": split},
            "metrics": [{"type": key, "value": round(metrics[split][key], 4), "name": f"{split} {shown}"}],
        }
        for split in card.SPLITS
        if split in metrics
    ]
    return {
        "library_name": "ner_experiments",
        "pipeline_tag": "token-classification",
        "license": licence,
        "tags": [
            "named-entity-recognition" if metrics["task"] == "mentions" else "part-of-speech",
            "pytorch",
        ],
        "model-index": [{"name": name, "results": results}],
    }
