"""Registered verdicts on claims of a paper, and the proof that their runs followed the registration.

A verdict is taken once, when all registered runs of its rows exist, recorded the registration's hash when they were
started, and were made by a commit that follows the one which registers. Without that there is none.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from ner_experiments.analysis import archive, statistics
from ner_experiments.analysis.statistics import Difference
from ner_experiments.config import plain_yaml
from ner_experiments.config.row_settings import run_command
from ner_experiments.runs.run import Run
from ner_experiments.runs.store import archives
from ner_experiments.tables import claims, registration, results_folder, verdicts
from ner_experiments.tables.claims import Claim, Reference
from ner_experiments.tables.experiments import identity_of, row_settings
from ner_experiments.tables.registration import (
    FEWEST_SEEDS,
    FILE,
    FIRST_SEED,
    MOST_SEEDS,
    Family,
)
from ner_experiments.tables.results_folder import Read
from ner_experiments.tables.scores import Result
from ner_experiments.tables.significance import ALPHA, over_sentences, seeds_to_detect
from ner_experiments.tables.spec import Measure
from ner_experiments.tables.verdicts import TEST, Decided, Reader, contrast_record, size_of
from ner_experiments.utils.files import as_file

RegisteredVerdict = Literal[
    "replicates",
    "smaller",
    "larger",
    "opposite",
    "no such difference",
    "undecided",
    "not testable",
    "needs a GPU",
    "not run",
]
FEWEST_FOUND = 30
"""Number of found mentions below which a score decides nothing."""
ROUNDING = 0.01
"""Points by which the difference of two printed scores may be off, each of them rounded to hundredths."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A registered test with its verdict.

    reason: why scores that exist decide nothing.
    p_adjusted: after Holm's correction over the paper's tests. p_over_all: after that over the tests of all papers.
    sentences_only: whether the difference is not shown for other test sentences than these (p over seeds and sentences
        above 0.05); None for a row of an analysis, a difference of differences, and without a verdict.
    secondary: the difference on each further test set on which all its runs were scored.
    """

    claim: Claim
    verdict: RegisteredVerdict
    reason: str = ""
    difference: Difference | None = None
    p_adjusted: float | None = None
    p_over_all: float | None = None
    sentences_only: bool | None = None
    secondary: Mapping[str, Difference] = field(default_factory=dict)

    @property
    def within_rounding(self) -> bool:
        """Whether the paper's difference is outside our interval by no more than its scores are rounded."""
        known = self.verdict in ("smaller", "larger")
        return known and not size_of(self.difference, self.claim.published, by=ROUNDING)

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments register --json`. Differences are in points."""
        return contrast_record(self.claim, self.difference) | {
            "seeds": [*self.claim.source.seeds],
            "margin": self.claim.source.smallest_effect,
            "verdict": self.verdict,
            "reason": self.reason,
            "within_rounding": self.within_rounding,
            "p_adjusted": self.p_adjusted,
            "p_over_all_papers": self.p_over_all,
            "on_these_test_sentences_only": self.sentences_only,
            "secondary": {
                name: {"difference": it.mean, "low": it.low, "high": it.high}
                for name, it in self.secondary.items()
            },
        }


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """Registered runs: an experiment with its seeds, whichever tables have it as a row.

    rows: the runs that count, by table and label. number: of seeds. secondary: the further test sets.
    """

    settings: tuple[str, ...]
    secondary: Mapping[str, Any]
    rows: Mapping[tuple[str, str], Mapping[int, Run]]
    number: int

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(FIRST_SEED, FIRST_SEED + self.number))

    @property
    def runs(self) -> Mapping[int, Run]:
        """The runs that count, by seed, from whichever table they are archived for."""
        return verdicts.only(
            {seed: run for runs in self.rows.values() for seed, run in runs.items()}, self.seeds
        )

    @property
    def missing(self) -> int:
        """The number of seeds without a run that counts."""
        return self.number - len(self.runs)

    def command(self, family: Family) -> str:
        """The command that makes its runs, of which those that are finished are skipped."""
        seeds = ",".join(map(str, self.seeds))
        extra = [f"audit.extra_tests={flow(self.secondary)}"] if self.secondary else []
        record = f"sweep.registration={family.hash}"
        return run_command(*self.settings, f"seed={seeds}", *extra, record)


def flow(content: Any) -> str:
    """A mapping in the grammar of overrides."""
    if isinstance(content, dict):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in content.items()) + "}"
    return str(content)


@dataclass(frozen=True, kw_only=True)
class Replication:
    """The registration of a paper, with its verdicts and the runs that they rest on.

    complaints: why runs with registered seeds do not count.
    """

    family: Family
    outcomes: tuple[Outcome, ...]
    planned: tuple[PlannedRow, ...]
    complaints: tuple[str, ...]

    @property
    def runs(self) -> int:
        """The number of registered runs."""
        return sum(row.number for row in self.planned)

    @property
    def missing(self) -> tuple[PlannedRow, ...]:
        """The rows that lack runs."""
        return tuple(row for row in self.planned if row.missing)

    @property
    def made(self) -> int:
        """The number of registered runs that exist and count."""
        return self.runs - sum(row.missing for row in self.missing)


def replications(
    results: Path, read: Read = results_folder.read, repository: Path | None = None
) -> list[Replication]:
    """The replication of each registered paper; none without a registration.

    repository: whose history has to prove that the runs followed the registration; without one, it is taken as proven
    by `make check`, as a copy of the files has no history.
    """
    path = results / FILE
    if not path.is_file():
        return []
    archived = verdicts.reader(results, read)
    families = registration.read(path, claims.read(results / claims.FILE))
    return over_all([replication(it, archived, checker(it, repository)) for it in families])


def over_all(papers: Sequence[Replication]) -> list[Replication]:
    """The same with one correction over the tests of all papers beside that of each."""
    flat = [it for paper in papers for it in paper.outcomes if it.claim.source.seeds]
    p_of = {id(it): p for it, p in zip(flat, holm(it.difference for it in flat), strict=True)}

    def corrected(it: Outcome) -> Outcome:
        return replace(it, p_over_all=p_of[id(it)]) if it.difference else it

    return [replace(paper, outcomes=tuple(map(corrected, paper.outcomes))) for paper in papers]


def holm(differences: Iterable[Difference | None]) -> list[float]:
    """Their p after Holm's correction, in which a test without runs counts as one that found nothing."""
    return statistics.holm([1.0 if it is None or it.p is None else it.p for it in differences])


def replication(family: Family, archived: Reader, complaint: Callable[[Run], str]) -> Replication:
    """The verdicts on a paper's tests. complaint: why a run is not proven to follow the registration, or ""."""
    differences: dict[str, Difference | None] = {}
    complaints: list[str] = []
    for claim in family.testable:
        runs = [run for run in verdicts.runs(claim, archived) if run.metrics["seed"] in claim.source.seeds]
        found = [text for run in runs if (text := complaint(run))]
        differences[claim.id] = None if found else difference(claim, archived)
        complaints += found
    adjusted = dict(zip(differences, holm(differences.values()), strict=True))
    unsettled = None in differences.values()
    sentences = sentences_only([claim for claim in family.testable if differences[claim.id]], archived)
    outcomes = []
    for claim in family.tests:
        name = claim.id
        ours = differences.get(name)
        if ours is None:
            missing: RegisteredVerdict = "needs a GPU" if family.gpu_hours else "not run"
            outcomes.append(Outcome(claim=claim, verdict=missing if claim.source.seeds else "not testable"))
            continue
        reason = weakness(claim, archived)
        secondary = {it: further for it in family.secondary if (further := difference(claim, archived, it))}
        outcomes.append(
            Outcome(
                claim=claim,
                verdict="undecided"
                if reason
                else verdict_of(claim, ours, adjusted[name], unsettled=unsettled),
                reason=reason,
                difference=ours,
                p_adjusted=adjusted[name],
                sentences_only=sentences.get(name),
                secondary=secondary,
            )
        )
    return Replication(
        family=family,
        outcomes=tuple(outcomes),
        planned=tuple(planned(family, archived, complaint)),
        complaints=tuple(dict.fromkeys(complaints)),
    )


def difference(claim: Claim, archived: Reader, test_set: str = TEST) -> Difference | None:
    """The difference of a test's rows by the registered seeds; None unless all were scored on the test set."""
    seeds = claim.source.seeds
    a, b = (verdicts.only(side, seeds) for side in verdicts.sides(claim, archived, test_set))
    return statistics.difference(a, b) if {*seeds} <= a.keys() & b.keys() else None


def verdict_of(
    claim: Claim, ours: Difference, p_adjusted: float, *, unsettled: bool = False
) -> RegisteredVerdict:
    """The verdict by the paper's difference, our interval and the corrected p.

    unsettled: whether tests of the paper lack runs, with which the corrected p may still fall to the level.
    """
    published, margin = claim.published, claim.source.smallest_effect
    assert published is not None
    if ours.low is None or ours.high is None or ours.p is None:
        return "undecided"
    if p_adjusted <= ALPHA:
        return "opposite" if ours.mean * published < 0 else size_of(ours, published) or "replicates"
    within = -margin <= ours.low and ours.high <= margin
    return "no such difference" if within and not (unsettled and ours.p <= ALPHA) else "undecided"


def sentences_only(tests: Sequence[Claim], archived: Reader) -> dict[str, bool]:
    """Whether p over seeds and test sentences is above 0.05, by claim, for differences of two rows."""
    rows: dict[Reference, Result] = {}
    by_test_set: dict[str, list[Claim]] = {}
    for claim in tests:
        references = claim.references
        if len(references) != 2 or any(it.row.measure for it in references):
            continue
        for reference in references:
            rows.setdefault(reference, archived(reference.source, reference.label).at(claim.source.seeds))
        by_test_set.setdefault(rows[references[0]].run.test_set, []).append(claim)
    found = {}
    for group in by_test_set.values():
        pairs = [(rows[a], rows[b]) for a, b in (claim.references for claim in group)]
        for claim, tested in zip(group, over_sentences(pairs), strict=True):
            p = tested.p_over_seeds_and_sentences
            found[claim.id] = p is None or p > ALPHA
    return found


def weakness(claim: Claim, archived: Reader) -> str:
    """Why the scores decide nothing: a row is below half of the paper's, or a run found fewer than `FEWEST_FOUND`."""
    for reference, result in verdicts.rows(claim, archived):
        row, label = result.at(claim.source.seeds), result.row.label
        published = row.row.published
        if isinstance(published, int | float) and fmean(row.scores.values()) < published / 2:
            return f"{label} is below half of the paper's score"
        numbers = [found_mentions(run, reference.row.measure) for run in row.runs.values()]
        if any(number is not None and number < FEWEST_FOUND for number in numbers):
            return f"a run of {label} found fewer than {FEWEST_FOUND} of the mentions"
    return ""


def found_mentions(run: Run, measure: Measure | None) -> int | None:
    """Number of mentions that a run found on test, or of those that are measured; None for a task of single tags."""
    if run.metrics["task"] != "mentions":
        return None
    if measure is None:
        number = run.metrics["test"].get("correct")
        return None if number is None else int(number)
    bucket = archive.run_errors(run).breakdown.get(measure.figure, {}).get(measure.key)
    return None if bucket is None else bucket.correct


# Runs, their number and their cost


def planned(family: Family, archived: Reader, complaint: Callable[[Run], str]) -> list[PlannedRow]:
    """The registered rows, each with as many seeds as a test needs at most. Rows with one identity are one."""
    found: dict[str, PlannedRow] = {}
    for claim in family.testable:
        for reference in claim.references:
            for name, label in reference.trained:
                settings = row_settings(name, label, reference.source.overrides)
                key = identity_of(settings)
                row = found.get(key) or PlannedRow(
                    settings=settings, secondary=family.secondary_of(claim), rows={}, number=0
                )
                runs = archived(reference.source, label).runs
                count = {seed: run for seed, run in runs.items() if not complaint(run)}
                rows = {**row.rows, (name, label): count}
                found[key] = replace(row, rows=rows, number=max(row.number, len(claim.source.seeds)))
    return [*found.values()]


def hours(rows: Sequence[PlannedRow], results: Path) -> float | None:
    """Core-hours of the missing runs of rows, by archived runs of the row's slowest setting; None if a row has none."""
    seconds: dict[tuple[str, str], float] = {}
    for table in {table for row in rows for table, _ in row.rows}:
        for made in archives(results, table):
            by_label: dict[str, list[float]] = {}
            for run in made.runs:
                by_label.setdefault(run.label, []).append(float(run.metrics["seconds"]))
            for label, measured in by_label.items():
                seconds[table, label] = max(fmean(measured), seconds.get((table, label), 0.0))
    slowest = [max((seconds[it] for it in row.rows if it in seconds), default=None) for row in rows]
    known = [row.missing * each / 3600 for row, each in zip(rows, slowest, strict=True) if each is not None]
    return sum(known) if len(known) == len(rows) else None


def seeds_needed(claim: Claim, exploratory: Decided, family_size: int) -> int:
    """Seeds per row that detect the paper's difference with 80 % power at the family's strictest level; 0 for none.

    At least `FEWEST_SEEDS`. Deviations are those of the exploratory runs. 0 also if a row has no two of these.
    """
    assert claim.published is not None
    a, b = (statistics.summarize(side) if side else None for side in (exploratory.a, exploratory.b))
    found = seeds_to_detect(a, b, claim.published, alpha=ALPHA / family_size, most=MOST_SEEDS)
    return max(found, FEWEST_SEEDS) if found else 0


# Proof


def checker(family: Family, repository: Path | None) -> Callable[[Run], str]:
    """Why a run is not proven to follow a registration, or "".

    It must have recorded the hash when it was started, and have been made by a commit without other changes that is
    the registering one or follows it. A repository that lacks one of the commits proves nothing. Without one (None),
    commits are not looked up.
    """
    registering = registering_commit(family, repository) if repository else None

    @cache
    def follows(commit: str) -> bool:
        return git(repository, "merge-base", "--is-ancestor", registering, commit) is not None

    def complaint(run: Run) -> str:
        commit = str(run.metrics["commit"])
        if text := registration.unrecorded(run, family.hash):
            return f"{run.folder}: {text}"
        if commit.endswith("+"):
            return f"{run.folder}: made with uncommitted changes, on {commit}"
        if repository and registering is None:
            return f"{run.folder}: no commit of {repository} registers {family.hash}"
        if repository and registering and not follows(commit):
            return f"{run.folder}: its commit {commit[:12]} does not follow {registering[:12]}, which registers it"
        return ""

    return complaint


def has_history(repository: Path) -> bool:
    """Whether a folder is in a Git repository that has all commits; false in a shallow clone."""
    return (git(repository, "rev-parse", "--is-shallow-repository") or "").strip() == "false"


def registering_commit(family: Family, repository: Path) -> str | None:
    """The earliest commit whose registration has this hash; None if there is none, and outside a Git repository."""
    path = f"results/{FILE}"
    for commit in (git(repository, "log", "--reverse", "--format=%H", "--", path) or "").split():
        text = git(repository, "show", f"{commit}:{path}") or ""
        try:
            with as_file(io.BytesIO(text.encode())) as file:
                papers = plain_yaml.load(file)["papers"]
        except (ValueError, TypeError, KeyError):  # an earlier file that is none
            continue
        if family.paper in papers and registration.digest(family.paper, papers[family.paper]) == family.hash:
            return commit
    return None


def git(repository: Path | None, *arguments: str | None) -> str | None:
    """The output of a Git command; None if it fails or Git is not installed."""
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *map(str, arguments)], capture_output=True, text=True
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
