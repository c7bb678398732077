"""How the runs of one experiment score that differ in their seed alone, and where one lies among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from ner_experiments import sealed
from ner_experiments.data.sentence import HEADLINES
from ner_experiments.runs import Run, by_seed
from ner_experiments.statistics import CONFIDENCE, Summary, summarise


def same_experiment(run: Run) -> dict[int, Run]:
    """The finished runs under the run's output folder that have its identity, itself among them, by seed.

    A damaged one counts as not finished.
    """
    output = run.folder.resolve().parent.parent
    same = []
    for path in sorted(output.glob(f"*/seed-*/{sealed.METRICS}")):
        with suppress(sealed.DamagedError):
            other = Run(path.parent, sealed.read(path))
            same += [other] if other.metrics["identity"] == run.metrics["identity"] else []
    return by_seed([*same, run])


def section(run: Run, split: str) -> Iterator[str]:
    """Markdown of the distribution; scores are percent."""
    runs = same_experiment(run)
    name = HEADLINES[run.metrics["task"]][1]
    scores = {seed: 100 * float(it.metrics[split][it.headline]) for seed, it in runs.items()}
    yield f"{split} {name}, in percent, of the finished runs that differ in the seed alone:"
    yield ""
    yield "| seed | " + " | ".join(map(str, scores)) + " |"
    yield "|---|" + "--:|" * len(scores)
    yield f"| {name} | " + " | ".join(f"{score:.2f}" for score in scores.values()) + " |"
    yield ""
    yield from said(summarise(scores.values()), scores, run.metrics["seed"])


def said(found: Summary, scores: Mapping[int, float], seed: int) -> Iterator[str]:
    if found.sd is None:
        yield "This is the only run: how much its score owes to its seed is not known."
        return
    assert found.low is not None
    assert found.high is not None
    above = sum(score > scores[seed] for score in scores.values())
    yield f"- mean {found.mean:.2f}, standard deviation {found.sd:.2f}, {found.n} runs"
    yield f"- {CONFIDENCE:.0%} interval of the mean (Student): {found.low:.2f} to {found.high:.2f}"
    away = (
        f", {(scores[seed] - found.mean) / found.sd:+.2f} standard deviations from the mean"
        if found.sd
        else ""
    )
    yield f"- this run, seed {seed}: number {above + 1} of {found.n} from above{away}"
