"""A run's tagger as a folder that can be uploaded to the Hugging Face hub as it is; `ner_experiments.load` reads it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from ner_experiments import build
from ner_experiments.config.identity import counted
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.export import card
from ner_experiments.export.inputs import OUTSIDE, check_exportable
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
        _, encoder = build.load(part)
        check_exportable(encoder, OUTSIDE)
        labels = list(encoder.labels)
        write_json(
            part / "config.json", {"library_name": "ner_experiments", "id2label": labels, **counted(cfg)}
        )
        (part / "README.md").write_text(text(run, cfg, encoder, licence), encoding="utf-8")
        names = sorted(path.name for path in part.iterdir())
    return names


def text(run: Run, cfg: Any, encoder: Encoder, licence: str | None) -> str:
    """The model card: what the hub reads of it as YAML, then Markdown."""
    metrics = run.metrics
    scored = [split for split in card.SPLITS if split in metrics]
    name = run.label
    parts = {
        "Use": use(metrics, encoder.required_columns()),
        "Intended use": intended_use(metrics),
        "Model": card.model(run, cfg),
        "Data": data(metrics, cfg),
        "Protocol": card.protocol(run, cfg),
        "Scores": card.scores(run, scored),
        "Seeds": card.seeds(run, scored[-1]),
        "Made with": card.made_with(metrics, {}),
        "Limits": card.limits(metrics),
    }
    head = yaml.safe_dump(
        metadata(run, name, licence or licence_of(cfg)), sort_keys=False, allow_unicode=True, width=10**6
    )
    blocks = ["\n".join([f"## {title}", "", *lines]) for title, lines in parts.items()]
    return f"---\n{head}---\n\n" + "\n\n".join([f"# {name}", *blocks]) + "\n"


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


def use(metrics: Any, columns: Sequence[str]) -> Iterator[str]:
    """Lines on how to tag text with it, or words if it reads columns besides them."""
    of_words = ", ".join(['["..."]', *(f'{name}=["..."]' for name in columns)])
    tagged = f"tagger.tag_words({of_words})" if columns else 'tagger.tag("...")[0]'
    found = "mentions" if metrics["task"] == "mentions" else "tags"
    yield "```python"
    yield "import ner_experiments"
    yield ""
    yield 'tagger = ner_experiments.load("USER/NAME")  # or the folder of these files'
    yield f"print({tagged}.{found})"
    yield "```"


def intended_use(metrics: Any) -> Iterator[str]:
    what = "names" if metrics["task"] == "mentions" else "parts of speech"
    yield f"- Research: to repeat, compare and analyze taggers trained on {metrics['data']['name']}."
    yield f"- Marking {what} in text like that of the corpus, where wrong and missing marks do no harm."
    yield "- Not decisions about people: it was not tested for errors that depend on whose name is tagged."


def data(metrics: Any, cfg: Any) -> Iterator[str]:
    """Lines on the corpus, its source and its terms."""
    yield from card.data(metrics["data"])
    for key, title in (("source", "source"), ("licence", "license of the corpus")):
        if value := cfg.data.get(key):
            yield f"- {title}: {value}"
