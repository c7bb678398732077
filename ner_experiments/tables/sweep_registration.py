"""The registration of a sweep: what is tested, fixed in OUTPUT/sweeps/NAME/registration.yaml before the first run.

It names rows, seeds, the primary comparison and its test. Runs record its hash when they are started, which proves that
all of it was fixed before. The verdict rests on these runs alone, and is given once, when all of them are finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ner_experiments.config.identity import NOT_THE_EXPERIMENT, identity
from ner_experiments.config.safe_yaml import read_plain, to_yaml
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.runs.artifacts import CONFIG
from ner_experiments.runs.code import code_of
from ner_experiments.runs.code import digest as code_digest
from ner_experiments.runs.run import Run
from ner_experiments.runs.status import planned_run, sweep_statuses
from ner_experiments.tables.experiments import Experiment, as_override, deviations, experiments, root
from ner_experiments.tables.pairs import Pair, compare_all
from ner_experiments.tables.registration import FILE, digest, unrecorded
from ner_experiments.tables.scores import Page, Result, at_seeds, named_seeds
from ner_experiments.tables.significance import ALPHA
from ner_experiments.tables.spec import Table
from ner_experiments.utils.checks import Number, Positive, Seeds, String, Text, keys, parsed
from ner_experiments.utils.files import atomic_write, json_digest
from ner_experiments.utils.locks import hold_lock
from ner_experiments.utils.text import did_you_mean, listed
from ner_experiments.view import cells

FEWEST_SEEDS = 2
"""The fewest with which Welch's test has a variance; a claim of a paper needs `registration.FEWEST_SEEDS`."""
TEST = "Welch's t-test over seeds, two-sided"
WHEN = "registered"
"""The entry with the time of registering; all others are what is registered."""


@dataclass(frozen=True)
class RegisteredRow:
    """A row of the file. settings: what makes it, for a reader."""

    label: Text
    settings: String
    identity: Text
    code: Text


@dataclass(frozen=True)
class Primary:
    """The labels of the two rows of the primary comparison, a - b."""

    a: Text
    b: Text


@dataclass(frozen=True)
class Analysis:
    """The test of the primary comparison."""

    test: Text
    level: Number
    smallest_effect: Positive


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A registration. registered: when. path, hash: its file, and that of the content, if it was read from one."""

    registered: Text
    name: Text
    rows: tuple[RegisteredRow, ...]
    seeds: Seeds
    primary: Primary
    analysis: Analysis
    path: Path = Path()
    hash: str = ""

    @property
    def fixed(self) -> dict[str, Any]:
        """The part that cannot change: all but the time of writing, the rows' order, and their settings as text."""
        rows = {row.label: (row.identity, row.code) for row in self.rows}
        return {name: getattr(self, name) for name in keys(Registration)} | {WHEN: "", "rows": rows}

    @cached_property
    def by_label(self) -> Mapping[str, RegisteredRow]:
        return {row.label: row for row in self.rows}

    @property
    def labels(self) -> tuple[str, str]:
        """Rows a and b of the primary comparison a - b."""
        return self.primary.a, self.primary.b

    def __str__(self) -> str:
        seeds = listed(list(map(str, self.seeds)))
        return f"{' - '.join(self.labels)}, seeds {seeds} ({self.hash}, {self.path})"

    @property
    def num_runs(self) -> int:
        return len(self.rows) * len(self.seeds)

    def complaint(self, label: str, run: Run) -> str:
        """Why a run of a row does not count, or ""."""
        row = self.by_label[label]
        if text := unrecorded(run, self.hash):
            return text
        if run.metrics["identity"] != row.identity:
            return "other settings or data than were registered"
        return "" if run.metrics.get("code") == row.code else "other code than was registered"


# Before the runs


def place(table: Table, extra_overrides: Sequence[str], output: Path) -> Path:
    """The file of a sweep's registration; a table has one for each choice of settings that are not its own."""
    return file_of(table.name, deviations(table, extra_overrides), output)


def file_of(name: str, others: Sequence[str], output: Path) -> Path:
    return output / "sweeps" / (f"{name}-{json_digest(sorted(others))[:8]}" if others else name) / FILE


def register(
    table: Table, extra_overrides: Sequence[str], seeds: Sequence[int], primary: str, output: Path
) -> Registration:
    """Write the registration of a sweep, or return the one written before if it says the same.

    Raises ValueError for what cannot be registered: too few rows or seeds, no primary comparison, runs that were begun
    before, and anything else than was registered.
    """
    if table.analysis:
        raise ValueError(f"sweep.register: {table.name} has no runs; register table={table.analysis}")
    if table.looks:
        rule = f"a registration has a fixed number of seeds, and {table.name} has sweep.looks"
        raise ValueError(f"sweep.register: {rule}; choose one of them")
    if len(seeds) < FEWEST_SEEDS:
        raise ValueError(
            f"sweep.register: a test over seeds takes {FEWEST_SEEDS} of each row or more, got {len(seeds)}"
        )
    rows = experiments(table, extra_overrides)
    a, b = primary_of(table.name, [it.row.label for it in rows], primary)
    fingerprint = Fingerprints()
    asked = Registration(
        registered=datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        name=table.name,
        rows=tuple(
            RegisteredRow(
                label=it.row.label,
                settings=" ".join(item for item in it.overrides if root(item) not in NOT_THE_EXPERIMENT),
                identity=identity(it.cfg, fingerprint(it.cfg)),
                code=code_digest(code_of(it.cfg)),
            )
            for it in rows
        ),
        seeds=tuple(sorted(seeds)),
        primary=Primary(a, b),
        analysis=Analysis(TEST, ALPHA, table.smallest_effect),
    )
    path = place(table, extra_overrides, output)
    with hold_lock(path.parent, wait=True):
        if not path.exists():
            refuse_begun(table, rows, seeds, output)
            content = {name: value for name, value in asdict(asked).items() if name in keys(Registration)}
            with atomic_write(path) as part:
                part.write_text(to_yaml(content), encoding="utf-8")
        found = read(path)
        if changed := [name for name, value in asked.fixed.items() if found.fixed[name] != value]:
            raise ValueError(
                f"{path}: its {listed(changed)} cannot change after registering (rows: their settings, data and "
                f"code); {way_out(table, seeds)}"
            )
    return found


def primary_of(name: str, labels: Sequence[str], primary: str) -> tuple[str, str]:
    """The rows of the primary comparison: those that `primary` names as "A - B", or the only two."""
    pairs = {f"{a} - {b}": (a, b) for a in labels for b in labels if a != b}
    if not pairs:
        raise ValueError(f"sweep.register: a registration compares rows, and {name} has only one")
    if primary and primary not in pairs:
        raise ValueError(
            f"sweep.primary={primary}: expected two rows of {name}, such as sweep.primary='{next(iter(pairs))}'"
            f"{did_you_mean(primary, pairs)}"
        )
    if not primary and len(labels) > 2:
        raise ValueError(
            f"sweep.register: {name} has {len(labels)} rows; name the two whose difference is tested, such as "
            f"sweep.primary='{next(iter(pairs))}'"
        )
    return pairs[primary or f"{labels[0]} - {labels[1]}"]


def refuse_begun(table: Table, rows: Sequence[Experiment], seeds: Sequence[int], output: Path) -> None:
    """Raise ValueError if a run was begun, by whatever code: what it has shown may be why it is registered."""
    planned = [
        replace(planned_run(it.row.label, it.cfg), seed=seed, reuse="any") for it in rows for seed in seeds
    ]
    statuses = sweep_statuses(planned, output)
    begun = [it for it in statuses if it.folder and (Path(it.folder) / CONFIG).exists()]
    if begun:
        more = f" and {len(begun) - 1} more" if len(begun) > 1 else ""
        raise ValueError(
            f"sweep.register: {begun[0].folder}{more} of these runs were begun before, so they cannot be registered; "
            f"register new seeds: {new_seeds(table, seeds)}"
        )


def new_seeds(table: Table, seeds: Sequence[int]) -> str:
    """As many seeds, none of which is among these, as an override."""
    name = "seed" if table.is_sweep else "seeds"
    return as_override(name, range(max(seeds) + 1, max(seeds) + 1 + len(seeds)))


def way_out(table: Table, seeds: Sequence[int]) -> str:
    """Advice for runs or a file that depart from a registration."""
    place = "under another name: sweep.name=NAME" if table.is_sweep else "in another folder: output_dir=DIR"
    return f"new seeds can be registered {place} {new_seeds(table, seeds)}"


def read(path: Path) -> Registration:
    """The registration of a file. ValueError with file, rule and value for any other content."""
    content = read_plain(path)
    name = digest(str(content.get("name")), content) if isinstance(content, dict) else ""
    found = parsed(content, Registration, f"{path}", path=path, hash=name)
    if unknown := [label for label in found.labels if label not in found.by_label]:
        raise ValueError(f"{path}: primary must name two of its rows, got {unknown[0]!r}")
    return found


# After the runs


@dataclass(frozen=True)
class Standing:
    """Whether a page is registered or exploratory, and why.

    reasons: why the page is exploratory. registration: that of its sweep. pair: the primary comparison, if it is
    registered. others: names of further registrations of the same two rows.
    """

    reasons: tuple[str, ...]
    registration: Registration | None = None
    pair: Pair | None = None
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        it = self.registration
        if it is None:
            return f"Exploratory: {'; '.join(self.reasons)}."
        if self.pair is None:
            return f"Exploratory, although {it} was registered: {'; '.join(self.reasons)}."
        ours, over_both = self.pair.test.over_seeds, self.pair.over_sentences.p_over_seeds_and_sentences
        only = self.pair.verdict in ("ahead", "behind") and (over_both is None or over_both > ALPHA)
        measured = cells.difference(ours)
        if cells.interval(ours) and ours.p is not None:
            measured += f", p {cells.probability(ours.p)}"
        verdict = VERDICTS[self.pair.verdict].format(*it.labels, it.analysis.smallest_effect)
        text = f"Registered: {it}: {measured}: {verdict}{', on these test sentences only' * only}."
        if self.others:
            text += f" Also registered for these two rows: {listed(self.others)}."
        return f"{text} Every other comparison is exploratory."

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments table --json`."""
        status = {"status": "registered" if self.pair else "exploratory", "reasons": [*self.reasons]}
        if (it := self.registration) is None:
            return status
        primary = {**asdict(it.primary), "seeds": [*it.seeds]}
        return status | {
            "hash": it.hash,
            "file": str(it.path),
            "primary": primary | (self.pair.record() | primary if self.pair else {}),
            "also_registered": [*self.others],
        }


VERDICTS = {
    "ahead": "{0} is ahead of {1}",
    "behind": "{0} is behind {1}",
    "equal": "they differ by less than {2:g} points",
    "open": "the order is open",
}


def of_page(page: Page) -> Registration | None:
    """The registration of a page's sweep, in the folder of its runs. ValueError for a file that is none."""
    for output in dict.fromkeys(run.folder.parent.parent for run in page.runs if not run.archived):
        path = file_of(page.table.name, page.deviations, output)
        if path.is_file():
            return read(path)
    return None


def at_registered_seeds(page: Page, registration: Registration) -> Page:
    """The page with the registered seeds alone, if any is finished; a remark names a row's other seeds."""
    found = at_seeds(page, lambda _: registration.seeds, "without {}, not registered")
    return found if found.runs else page


def standing(page: Page) -> Standing:
    """The standing of a page by the registration of its sweep."""
    if (it := of_page(page)) is None:
        return Standing((nothing(page),))
    page = at_registered_seeds(page, it)
    by_label = {result.row.label: result for result in page.results if result.row.run is not None}
    reasons = [*complaints(it, page.table, by_label)]
    if name := next((run.test_name for run in page.runs if run.test_name != "test"), ""):
        reasons.append(f"these are scores on {name}, and those on test were registered")
    pair = None
    if not reasons:
        a, b = (by_label[label] for label in it.labels)
        if a.run.shares_test_set(b.run):
            (pair,) = compare_all([[a, b]], smallest_effect=it.analysis.smallest_effect)
        else:
            reasons.append(f"{a.row.label} and {b.row.label} were scored on different test sets")
    return Standing(tuple(reasons), it, pair, tuple(others(it)))


def complaints(it: Registration, table: Table, by_label: Mapping[str, Result]) -> Iterator[str]:
    """Why the runs of a page's rows are not those that were registered, kind by kind."""
    if dropped := [label for label in it.by_label if label not in by_label]:
        yield f"registered rows that are gone: {listed(dropped)}"
    if added := [label for label in by_label if label not in it.by_label]:
        yield f"rows that were not registered: {listed(added)}"
    missing, number = [], 0
    kinds: dict[str, list[Path]] = {}
    for label in it.by_label:
        runs = by_label[label].runs if label in by_label else {}
        if lacking := [seed for seed in it.seeds if seed not in runs]:
            missing.append(f"{label} lacks {named_seeds(lacking)}")
            number += len(lacking)
        for seed in it.seeds:
            if seed in runs and (text := it.complaint(label, runs[seed])):
                kinds.setdefault(text, []).append(runs[seed].folder)
    if missing:
        yield f"{number} of {it.num_runs} registered runs are not finished: {', '.join(missing)}"
    for text, folders in kinds.items():
        more = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
        yield f"{folders[0]}{more}: {text}"
    if kinds:
        yield way_out(table, it.seeds)


def others(it: Registration) -> Iterator[str]:
    """Names of the other registrations beside a registration that have the same primary rows."""
    wanted = {it.by_label[label].identity for label in it.labels}
    for path in sorted(it.path.parents[1].glob(f"*/{FILE}")):
        with suppress(ValueError, OSError):
            other = read(path)
            if path != it.path and {other.by_label[label].identity for label in other.labels} == wanted:
                yield path.parent.name


def nothing(page: Page) -> str:
    """Why a page without a registration is exploratory; names those that its runs have recorded."""
    if names := sorted({name for run in page.runs if (name := run.metrics.get("registration"))}):
        where = "the file is gone, or it is that of a paper, which `ner-experiments register` prints"
        return f"runs recorded {listed(names)}, which is no registration of it here ({where})"
    return "nothing was registered before its first run"
