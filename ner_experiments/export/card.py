"""Model card of an export: the model, its data and protocol, its scores, and their distribution over seeds.

It is generated from metrics.json and config.yaml alone, so it contains no text of the corpus.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ner_experiments.analysis.statistics import CONFIDENCE, Summary, summarize
from ner_experiments.config.identity import counted, kind, model_kind
from ner_experiments.data import raw_text
from ner_experiments.experiment_data import readers, source
from ner_experiments.export.formats import EXTRA, Onnx
from ner_experiments.runs import artifacts
from ner_experiments.runs.provenance import commit
from ner_experiments.runs.run import Run, by_seed
from ner_experiments.runs.store import finished_runs

MEASURES = {
    "f1": ("precision", "recall", "f1", "gold", "predicted"),
    "accuracy": ("accuracy", "gold", "correct"),
}
COUNTS = ("gold", "predicted", "correct")
SPLITS = ("dev", "test")


def card(run: Run, origin: str, differences: Mapping[str, float], names: Collection[str]) -> str:
    """The card as Markdown.

    origin: describes the sentences that the export was verified on.
    differences: file of the export -> its largest difference of a score from the run's. names: of all files.
    """
    cfg, metrics = run.config, run.metrics
    scored = [split for split in SPLITS if split in metrics]
    parts = {
        "Model": model(run, cfg),
        "Files": files(origin, differences, names),
        "Data": data(metrics["data"]),
        "Protocol": protocol(run, cfg),
        "Scores": scores(run, scored),
        "Seeds": seeds(run, scored[-1]),
        "Made with": made_with(metrics, differences),
        "Limits": [*limits(metrics), tokens_only(cfg)],
        "Settings": settings(cfg),
    }
    title = f"# {model_kind(cfg.model)} with {kind(cfg.decoder)} on {metrics['data']['name']}, seed {metrics['seed']}"
    blocks = ["\n".join([f"## {name}", "", *lines]) for name, lines in parts.items()]
    return "\n\n".join([title, *blocks]) + "\n"


def model(run: Run, cfg: Any) -> Iterator[str]:
    """Lines on the architecture, its inputs and parameters, and the identity of the run."""
    metrics = run.metrics
    yield f"- architecture: {class_summary(cfg.model._target_)}"
    yield f"- decoder: {class_summary(cfg.decoder._target_)}"
    inputs = ", ".join(
        f"{name} ({part.input._target_.rpartition('.')[2]})" for name, part in readers(cfg).items()
    )
    yield f"- inputs: {inputs}"
    parts = ", ".join(f"{name} {number:,}" for name, number in metrics["parameters_of"].items())
    yield f"- parameters: {metrics['parameters']:,} trained ({parts})"
    yield f"- identity: `{metrics['identity']}`"


def class_summary(target: str) -> str:
    """Name of a class and the first line of its module's docstring, which names the paper."""
    place = target.rpartition(".")[0]
    text = inspect.getdoc(import_module(place)) or ""
    return f"`{target}`" + (f": {text.splitlines()[0]}" if text else "")


def files(origin: str, differences: Mapping[str, float], names: Collection[str]) -> Iterator[str]:
    """Lines on the files of the export and how they were verified; arguments as in `card`."""
    yield f"Each model file was loaded and verified on sentences: {origin}. It predicts the same tags as the run."
    yield ""
    for name, difference in differences.items():
        yield f"- `{name}`: scores differ from the run's by at most {difference:.1e}"
    yield "- `encoder.json`: how to compute the inputs, and the tag of each index"
    if "tag.py" in names:
        yield "- `tag.py`, `tokens.py`: `python tag.py FILE` tags text (`pip install numpy onnxruntime`); verified, too"


def data(about: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the corpus, with its notes and the sentences that its splits share."""
    yield f"- {about['name']}, checksum `{about['checksum']}`"
    yield from (f"- {note}" for note in about["notes"])
    if found := about.get("raw_text"):
        yield f"- {raw_text.line(found)}"
    for name, count in about.get("leakage", {}).items():
        one, other = name.split("_in_")
        yield f"- {count:,} sentences of {one} have the same words as a sentence of {other}"


def protocol(run: Run, cfg: Any) -> Iterator[str]:
    """Lines on how the epoch was selected and how the test set was scored."""
    metrics = run.metrics
    yield (
        f"- The epoch was selected on the dev set alone: epoch {metrics['best_epoch']} of {metrics['epochs']} "
        f"(at most {cfg.trainer.max_epochs}; early stopping after {cfg.trainer.patience} without improvement)."
    )
    if note := artifacts.scoring_of_test(metrics):
        yield f"- {note.capitalize()}."
    if metrics["task"] == "mentions":
        yield "- A mention is correct if its type and both boundaries match; seqeval computes the same F1."
    yield f"- Seed {metrics['seed']}, which determines the initial weights, the order of the batches and dropout."


def scores(run: Run, scored: list[str]) -> Iterator[str]:
    """Lines of a table with the scores of each split in `scored`, in total and by type."""
    names = MEASURES[run.primary_metric]
    yield f"| | {' | '.join(names).replace('f1', 'F1')} |"
    yield "|---|" + "--:|" * len(names)
    for split in scored:
        report = run.metrics[split]
        yield row(split, report, names)
        yield from (row(f"{split}, {type}", of_type, names) for type, of_type in report["types"].items())


def row(name: str, report: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """A table row, with scores in percent and counts as they are."""
    cells = (
        f"{report[name]:,}" if name in COUNTS else f"{100 * report[name]:.2f}" if name in report else ""
        for name in names
    )
    return f"| {name} | {' | '.join(cells)} |"


def made_with(metrics: Mapping[str, Any], differences: Mapping[str, float]) -> Iterator[str]:
    """Lines on the versions, machine and code of the training and of the export."""
    versions = ", ".join(f"{name} {number}" for name, number in metrics["versions"].items())
    device = f"{metrics['device']}, {metrics['threads']} threads, {metrics['processes']} processes"
    yield f"- training: Python {metrics['python']}, {versions}; {device}; {metrics['seconds']:.0f} seconds"
    code = [commit_text(metrics["commit"]), f"checksum `{metrics['code']}`"]
    yield f"- code of the training: {', '.join(filter(None, code))}"
    names = ("torch", *(EXTRA if Onnx.file in differences else ()))
    exported = [", ".join(f"{name} {version(name)}" for name in names), commit_text(commit())]
    yield f"- export: {'; '.join(filter(None, exported))}"


def commit_text(commit: str | None) -> str:
    """The commit in words; empty outside a checkout."""
    return f"commit {commit}" if commit else ""


def limits(metrics: Mapping[str, Any]) -> Iterator[str]:
    name = metrics["data"]["name"]
    yield f"- It was trained and scored on {name} alone; its performance on other text was not measured."
    yield "- `encoder.json` contains words of the corpus, whose license may apply to it and to the weights."
    yield "- Other machines round differently: where the scores of two tags are equal up to rounding, either may win."


def tokens_only(cfg: Any) -> str:
    """Line on the tokens that the files expect, and how the run's raw text is cut into them."""
    tokens = source(cfg).tokens
    name = tokens if isinstance(tokens, str) else cfg.data.tokens["_target_"]
    return (
        "- The files expect tokens, tokenized as in that corpus, one sentence at a time; raw text is cut into them as "
        f"`data.tokens={name}` does."
    )


def settings(cfg: Any) -> Iterator[str]:
    yield "All settings that can change the result, except the seed:"
    yield ""
    yield f"```json\n{json.dumps(counted(cfg), indent=2)}\n```"


def same_experiment(run: Run, split: str) -> dict[int, Run]:
    """Seed -> finished run, over those of the same identity and code in the same output folder, including this one.

    Runs that are damaged or have no score of the split are skipped.
    """
    output = run.folder.resolve().parent.parent
    same = []
    for other in finished_runs(output):
        with suppress(artifacts.DamagedError):
            alike = (
                other.metrics["identity"] == run.metrics["identity"] and other.experiment == run.experiment
            )
            same += [other] if alike and split in other.metrics else []
    return by_seed([*same, run])


def seeds(run: Run, split: str) -> Iterator[str]:
    """Distribution of the score, in percent, over the finished runs that differ only in the seed."""
    runs = same_experiment(run, split)
    scores = {seed: 100 * float(it.metrics[split][it.primary_metric]) for seed, it in runs.items()}
    yield f"{split} {run.score_name}, in percent, of the finished runs that differ only in the seed:"
    yield ""
    yield "| seed | " + " | ".join(map(str, scores)) + " |"
    yield "|---|" + "--:|" * len(scores)
    yield f"| {run.score_name} | " + " | ".join(f"{score:.2f}" for score in scores.values()) + " |"
    yield ""
    yield from seed_statistics(summarize(scores.values()), scores, run.metrics["seed"])


def seed_statistics(summary: Summary, scores: Mapping[int, float], seed: int) -> Iterator[str]:
    """Mean, standard deviation and confidence interval of the scores, and the rank of this run."""
    if summary.sd is None:
        yield "This is the only run, so the variation of the score over seeds is not known."
        return
    assert summary.low is not None
    assert summary.high is not None
    above = sum(score > scores[seed] for score in scores.values())
    yield f"- mean {summary.mean:.2f}, standard deviation {summary.sd:.2f}, {summary.n} runs"
    yield f"- {CONFIDENCE:.0%} confidence interval of the mean (Student's t): {summary.low:.2f} to {summary.high:.2f}"
    away = (
        f", {(scores[seed] - summary.mean) / summary.sd:+.2f} standard deviations from the mean"
        if summary.sd
        else ""
    )
    yield f"- this run, seed {seed}: rank {above + 1} of {summary.n}{away}"
