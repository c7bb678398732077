"""Files by which others read the scores of a comparison: Every Eval Ever JSON, and metadata of the Hugging Face hub."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from ner_experiments.analysis.statistics import CONFIDENCE, summarize
from ner_experiments.comparison.comparison import Comparison
from ner_experiments.tables.scores import Result
from ner_experiments.utils.files import write_json

SCHEMA = "0.3.0"
"""Version of https://github.com/evaleval/every_eval_ever."""
METRICS: Mapping[str, tuple[str, str]] = {
    "f1": ("F1 of exact mentions (boundaries and type)", "f1"),
    "precision": ("precision of exact mentions", "precision"),
    "recall": ("recall of exact mentions", "recall"),
}
"""Score -> its name, and its identifier across evaluations."""


def publish(comparison: Comparison, folder: Path, dataset: str | None = None) -> list[Path]:
    """Write the files of each system into a folder of its own, and return them.

    dataset: the test set by the name of its publisher, such as `tner/conll2003`; by default that of the gold file. The
    hub's `.eval_results` are written for a name with a slash, as they refer to a data set there.
    """
    name = dataset or comparison.compared.gold.path.stem
    written = []
    for result in comparison.page.results:
        own = folder / re.sub(r"[^\w.-]+", "-", result.row.label)
        own.mkdir(parents=True, exist_ok=True)
        write_json(own / "every_eval_ever.json", every_eval_ever(comparison, result, name))
        contents: dict[Path, Any] = {
            own / "model-index.yaml": {"model-index": [model_index(comparison, result, name)]}
        }
        if "/" in name:
            contents[own / ".eval_results" / f"{name.replace('/', '-')}.yaml"] = eval_results(
                comparison, result, name
            )
        for path, content in contents.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
        written += [own / "every_eval_ever.json", *contents]
    return written


def every_eval_ever(comparison: Comparison, result: Result, dataset: str) -> dict[str, Any]:
    """The scores of a system as proportions, with their spread over its files."""
    now = f"{int(time.time())}"
    system = result.row.label
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{dataset}/{system}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "model_info": {
            "name": system,
            "id": system,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "eval_library": {
            "name": "ner_experiments",
            "version": version("ner_experiments"),
            "additional_details": {"signature": comparison.signature},
        },
        "evaluation_results": [
            {
                "evaluation_name": dataset,
                "source_data": {"dataset_name": dataset, "source_type": "other"},
                "metric_config": {
                    "metric_id": identifier,
                    "metric_name": name,
                    "metric_kind": key,
                    "metric_unit": "proportion",
                    "lower_is_better": False,
                    "score_type": "continuous",
                    "min_score": 0.0,
                    "max_score": 1.0,
                },
                "score_details": score_details(result, key),
            }
            for key, (name, identifier) in METRICS.items()
        ],
    }


def score_details(result: Result, key: str) -> dict[str, Any]:
    """Mean of a score over a system's files, with its interval over seeds if there are several."""
    ours = summarize([run.metrics["test"][key] for run in result.runs.values()])
    details: dict[str, Any] = {
        "score": ours.mean,
        "details": {f"file {seed}": f"{run.metrics['test'][key]}" for seed, run in result.runs.items()},
    }
    if ours.sd is not None:
        details["uncertainty"] = {
            "standard_error": {"value": ours.sd / math.sqrt(ours.n), "method": "over seeds"},
            "standard_deviation": ours.sd,
            "confidence_interval": {
                "lower": ours.low,
                "upper": ours.high,
                "confidence_level": CONFIDENCE,
                "method": "t-interval of the mean over seeds",
            },
            "num_samples": ours.n,
        }
    return details


def model_index(comparison: Comparison, result: Result, dataset: str) -> dict[str, Any]:
    """The entry of a model card's `model-index`."""
    metrics = [
        {
            "type": key,
            "value": round(summarize([run.metrics["test"][key] for run in result.runs.values()]).mean, 4),
        }
        for key in METRICS
    ]
    return {
        "name": result.row.label,
        "results": [
            {
                "task": {"type": "token-classification"},
                "dataset": {"type": dataset, "name": dataset, "split": "test"},
                "metrics": [
                    {
                        **it,
                        "name": f"test {METRICS[str(it['type'])][0]}",
                        "args": {"signature": comparison.signature},
                    }
                    for it in metrics
                ],
            }
        ],
    }


def eval_results(comparison: Comparison, result: Result, dataset: str) -> list[dict[str, Any]]:
    """The content of a file of `.eval_results`: the F1, in percent."""
    assert result.measured is not None
    value = round(result.measured.mean, 2)
    return [{"dataset": {"id": dataset, "task_id": "default"}, "value": value, "notes": comparison.signature}]
