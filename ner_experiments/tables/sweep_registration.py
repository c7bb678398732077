"""The registration of a sweep: what is tested, fixed in OUTPUT/sweeps/NAME/registration.yaml before the first run.

It names rows, seeds, the primary comparison and its test. Runs record its hash when they are started, which proves that
all of it was fixed before. The verdict rests on these runs alone, and is given once, when all of them are finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ner_experiments.config import plain_yaml
from ner_experiments.config.row_settings import as_override
from ner_experiments.runs.run import Run
from ner_experiments.tables.pairs import Pair, compare_all
from ner_experiments.tables.registration import FILE, digest, unrecorded
from ner_experiments.tables.scores import Page, Result, at_seeds, named_seeds
from ner_experiments.tables.significance import ALPHA
from ner_experiments.tables.spec import Table
from ner_experiments.utils.checks import Number, Positive, Seeds, String, Text, keys, parsed
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import listed
from ner_experiments.view import cells

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


def file_of(name: str, others: Sequence[str], output: Path) -> Path:
    return output / "sweeps" / (f"{name}-{json_digest(sorted(others))[:8]}" if others else name) / FILE


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
    content = plain_yaml.load(path)
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
    "undecided": "the order is undecided",
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
        where = "the file is gone, or it is of another sweep or of a paper (see `ner-experiments register`)"
        return f"runs recorded {listed(names)}, which is no registration of it here: {where}"
    return "nothing was registered before its first run"
