"""Registered verdicts on claims of a paper, and the proof that their runs followed the registration.

A verdict is taken once, when all registered runs of its rows exist, recorded the registration's hash when they were
started, and were made by a commit that follows the one which registers. Without that there is none.
"""

from __future__ import annotations

import io
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from ner_experiments.analysis import archive, statistics
from ner_experiments.analysis.statistics import Difference
from ner_experiments.config.safe_yaml import read_plain
from ner_experiments.runs.archived_run import archived_runs
from ner_experiments.runs.run import Run
from ner_experiments.tables import registration, results_folder, spec, verdicts
from ner_experiments.tables.experiments import joined
from ner_experiments.tables.registration import FILE, HOURS, MOST_SEEDS, Family, RegisteredTest
from ner_experiments.tables.significance import ALPHA, over_sentences, seeds_to_detect
from ner_experiments.tables.spec import Measure
from ner_experiments.tables.verdicts import Decided, Reader
from ner_experiments.utils.files import as_file

RegisteredVerdict = Literal[
    "replicates",
    "smaller",
    "larger",
    "opposite",
    "no such difference",
    "undecided",
    "not testable",
    "not run",
]
FEWEST_FOUND = 30
"""Number of found mentions below which a score decides nothing."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A registered test with its verdict.

    p_adjusted: after Holm's correction over the paper's tests. p_over_all: after that over the tests of all papers.
    sentences_only: whether the difference is not shown for other test sentences than these (p over seeds and sentences
        above 0.05); None for a row of an analysis, a difference of differences, and without a verdict.
    complaints: why its runs do not count.
    """

    test: RegisteredTest
    verdict: RegisteredVerdict
    difference: Difference | None = None
    p_adjusted: float | None = None
    p_over_all: float | None = None
    sentences_only: bool | None = None
    complaints: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments register --json`. Differences are in points."""
        claim, ours = self.test.claim, self.difference
        return {
            "claim": claim.id,
            "rung": claim.rung,
            "a": [{it.source.table: it.label} for it in claim.a],
            "b": [{it.source.table: it.label} for it in claim.b],
            "seeds": [*self.test.seeds],
            "published": claim.published,
            "margin": self.test.margin,
            "verdict": self.verdict,
            "difference": ours and ours.mean,
            "low": ours and ours.low,
            "high": ours and ours.high,
            "p": ours and ours.p,
            "p_adjusted": self.p_adjusted,
            "p_over_all_papers": self.p_over_all,
            "on_these_test_sentences_only": self.sentences_only,
            "complaints": [*self.complaints],
        }


def over_all(papers: Sequence[Sequence[Outcome]]) -> list[list[Outcome]]:
    """The outcomes of all papers, with one correction over all of them beside that of each."""
    flat = [it for paper in papers for it in paper if it.test.testable]
    adjusted = statistics.holm(
        [1.0 if it.difference is None or it.difference.p is None else it.difference.p for it in flat]
    )
    p_of = {id(it): p for it, p in zip(flat, adjusted, strict=True)}
    return [
        [replace(it, p_over_all=p_of[id(it)]) if it.difference else it for it in paper] for paper in papers
    ]


def outcomes(family: Family, archived: Reader, complaints: Callable[[Run], str]) -> list[Outcome]:
    """The verdicts on a paper's tests. complaints: why a run is not proven to follow the registration, or ""."""
    found: dict[str, Difference] = {}
    problems: dict[str, tuple[str, ...]] = {}
    for test in family.testable:
        a, b = (verdicts.only(side, test.seeds) for side in verdicts.sides(test.claim, archived))
        runs = [run for run in verdicts.runs(test.claim, archived) if run.metrics["seed"] in test.seeds]
        problems[test.claim.id] = tuple(dict.fromkeys(text for run in runs if (text := complaints(run))))
        if {*test.seeds} <= a.keys() & b.keys() and not problems[test.claim.id]:
            found[test.claim.id] = statistics.difference(a, b)
    p_values = [found[test.claim.id].p if test.claim.id in found else None for test in family.testable]
    # a test without runs counts in the correction, as if it found nothing
    adjusted = statistics.holm([1.0 if p is None else p for p in p_values])
    p_adjusted = {test.claim.id: p for test, p in zip(family.testable, adjusted, strict=True)}
    return [
        outcome(
            test,
            found.get(test.claim.id),
            p_adjusted.get(test.claim.id),
            problems.get(test.claim.id, ()),
            archived,
        )
        for test in family.tests
    ]


def outcome(
    test: RegisteredTest,
    ours: Difference | None,
    p_adjusted: float | None,
    complaints: tuple[str, ...],
    archived: Reader,
) -> Outcome:
    if not test.testable:
        return Outcome(test=test, verdict="not testable")
    if ours is None:
        return Outcome(test=test, verdict="not run", complaints=complaints)
    assert p_adjusted is not None
    verdict = "undecided" if too_low(test, archived) else verdict_of(test, ours, p_adjusted)
    only = sentences_only(test, archived)
    return Outcome(test=test, verdict=verdict, difference=ours, p_adjusted=p_adjusted, sentences_only=only)


def sentences_only(test: RegisteredTest, archived: Reader) -> bool | None:
    """Whether p over seeds and test sentences is above 0.05; None for what is not a difference of two rows."""
    references = test.claim.references
    if len(references) != 2 or any(it.row.measure for it in references):
        return None
    rows = []
    for reference in references:
        page = archived(reference.source)
        assert page is not None
        result = verdicts.result_of(page, reference.label)
        runs = {seed: run for seed, run in result.runs.items() if seed in test.seeds}
        rows.append(replace(result, runs=runs, scores={seed: run.score for seed, run in runs.items()}))
    (sentences,) = over_sentences([(rows[0], rows[1])])
    p = sentences.p_over_seeds_and_sentences
    return p is None or p > ALPHA


def verdict_of(test: RegisteredTest, ours: Difference, p_adjusted: float) -> RegisteredVerdict:
    """The verdict by the paper's difference, our interval and the corrected p."""
    published = test.claim.published
    assert published is not None
    if ours.low is None or ours.high is None:
        return "undecided"
    if p_adjusted <= ALPHA:
        if ours.mean * published < 0:
            return "opposite"
        low, high = sorted(end if published > 0 else -end for end in (ours.low, ours.high))
        return "smaller" if abs(published) > high else "larger" if abs(published) < low else "replicates"
    if -test.margin <= ours.low and ours.high <= test.margin:
        return "no such difference"
    return "undecided"


def too_low(test: RegisteredTest, archived: Reader) -> bool:
    """Whether a row is below half of the paper's score, or one of its runs found fewer than `FEWEST_FOUND` mentions."""
    for reference in test.claim.references:
        page, row = archived(reference.source), reference.row
        assert page is not None
        if row.measure is None and isinstance(row.published, int | float):
            scores = verdicts.only(verdicts.scores(reference, archived), test.seeds)
            if scores and fmean(scores.values()) < row.published / 2:
                return True
        for label in [row.measure.of, row.measure.over] if row.measure else [row.label]:
            runs = verdicts.result_of(page, label).runs
            numbers = [found_mentions(runs[seed], row.measure) for seed in test.seeds if seed in runs]
            if any(number is not None and number < FEWEST_FOUND for number in numbers):
                return True
    return False


def found_mentions(run: Run, measure: Measure | None) -> int | None:
    """Number of mentions that a run found on test, or of those that are measured; None for a task of single tags."""
    if run.metrics["task"] != "mentions":
        return None
    if measure is None:
        number = run.metrics["test"].get("correct")
        return None if number is None else int(number)
    bucket = archive.run_errors(run).breakdown.get(measure.figure, {}).get(measure.key)
    return None if bucket is None else bucket.correct


# Numbers of seeds, cost and commands


def seeds_needed(test: RegisteredTest, exploratory: Decided, family_size: int) -> int:
    """Seeds per row that detect the paper's difference with 80 % power at the family's strictest level; 0 for none.

    Deviations are those of the exploratory runs. 0 also if a row has no two of these.
    """
    assert test.claim.published is not None
    a, b = (statistics.summarize(side) if side else None for side in (exploratory.a, exploratory.b))
    found = seeds_to_detect(a, b, test.claim.published, alpha=ALPHA / family_size, most=MOST_SEEDS)
    return found or 0


def hours(family: Family, seconds: Mapping[tuple[str, str], Sequence[float]]) -> float | None:
    """Core-hours of the registered runs, by the seconds of archived runs of each row; None if a row has none."""
    if any(not seconds.get(row) for row in family.rows):
        return None
    return sum(number * fmean(seconds[row]) / HOURS for row, number in family.rows.items())


def archived_seconds(family: Family, results: Path) -> dict[tuple[str, str], list[float]]:
    """The seconds that archived runs of each row took, in whatever setting."""
    found: dict[tuple[str, str], list[float]] = {}
    for table in {table for table, _ in family.rows}:
        for folder in results_folder.archive_folders(results / table):
            for run in archived_runs(folder / "runs"):
                found.setdefault((table, run.label), []).append(float(run.metrics["seconds"]))
    return found


def commands(family: Family) -> Iterator[str]:
    """The commands that make the registered runs, row by row."""
    for (name, label), number in family.rows.items():
        table = spec.load(name)
        (row,) = (row for row in table.rows if row.label == label)
        settings = joined(table.base, row.run or (), family.overrides)
        seeds = ",".join(map(str, range(registration.FIRST_SEED, registration.FIRST_SEED + number)))
        extra = [f"audit.extra_tests={flow(family.secondary)}"] if family.secondary else []
        record = [f"sweep.registration={family.hash}"]
        yield shlex.join(["python", "run.py", "-m", *settings, f"seed={seeds}", *extra, *record])


def flow(content: Any) -> str:
    """A mapping in the grammar of overrides."""
    if isinstance(content, dict):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in content.items()) + "}"
    return str(content)


# Proof


def checker(family: Family, repository: Path) -> Callable[[Run], str]:
    """Why a run is not proven to follow a registration, or "".

    It must have recorded the hash when it was started, and have been made by a commit without other changes that is the
    registering one or follows it. Without a Git repository that has both commits, nothing is proven.
    """
    registering = registering_commit(family, repository)

    @cache
    def follows(commit: str) -> bool:
        assert registering is not None
        return succeeds(repository, "merge-base", "--is-ancestor", registering, commit)

    def complaint(run: Run) -> str:
        commit = str(run.metrics["commit"])
        if text := registration.unrecorded(run, family.hash):
            return f"{run.folder}: {text}"
        if registering is None:
            return f"{run.folder}: no commit of {repository} registers {family.hash}"
        if commit.endswith("+"):
            return f"{run.folder}: made with uncommitted changes, on {commit}"
        if not follows(commit):
            return f"{run.folder}: its commit {commit[:12]} does not follow {registering[:12]}, which registers it"
        return ""

    return complaint


def registering_commit(family: Family, repository: Path) -> str | None:
    """The earliest commit whose registration has this hash; None if there is none, and outside a Git repository."""
    path = f"results/{FILE}"
    for commit in git(repository, "log", "--reverse", "--format=%H", "--", path).split():
        text = git(repository, "show", f"{commit}:{path}")
        try:
            with as_file(io.BytesIO(text.encode())) as file:
                papers = read_plain(file)["papers"]
        except (ValueError, TypeError, KeyError):  # an earlier file that is none
            continue
        if family.paper in papers and registration.digest(family.paper, papers[family.paper]) == family.hash:
            return commit
    return None


def git(repository: Path, *arguments: str) -> str:
    """The output of a Git command; empty if it fails or Git is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def succeeds(repository: Path, *arguments: str) -> bool:
    try:
        return subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True).returncode == 0
    except OSError:
        return False
