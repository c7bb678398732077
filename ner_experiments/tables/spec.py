"""Published tables: the files of sweeps/*.yaml as `Table`, `Row` and `Measure`, checked when they are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from ner_experiments.config import plain_yaml
from ner_experiments.config.config_dirs import PACKAGE
from ner_experiments.data.tags import CHUNK_TAGS, LENGTHS
from ner_experiments.utils.checks import (
    Counts,
    Flag,
    Positive,
    Rule,
    Text,
    Texts,
    checked,
    is_count,
    is_mapping,
    is_number,
    is_text,
    list_of,
    numbered,
    parsed,
)
from ner_experiments.utils.files import State, state
from ner_experiments.utils.text import did_you_mean, listed, truncated_repr

SWEEPS = next(folder for folder in (PACKAGE / "sweeps", PACKAGE.parent / "sweeps") if folder.is_dir())
"""In an installed package sweeps/ lies inside it, in a checkout beside it."""
CHUNK = "chunk"
FIGURES = ("published", "sd", "runs")
"""Keys of a row that another can repeat."""
SMALLEST_EFFECT = 0.3
"""Default of a table's smallest effect, in points."""
NAMED = 3
"""Number of rows that a sentence names; further ones are counted."""
KEYS = {"type": (), "length": LENGTHS, CHUNK: CHUNK_TAGS}
"""The figures of a measure and their valid keys; the keys of `type` depend on the corpus."""
PART = re.compile(r"H|C([1-9]\d*)?")
"""A part of an Att model: H, C (all heads), or one head such as C1."""

Published = float | tuple[str, ...] | str | None
Figures = Mapping[str, Mapping[str, float]]
"""A run's figures in percent, by the part of the model that is not ablated ("": the whole model), then by key."""


def is_figure(value: Any) -> bool:
    return is_number(value) or is_text(value) or (list_of(is_text)(value) and bool(value))


def are_figures(value: Any) -> bool:
    return is_mapping(value) and all(map(is_text, value)) and all(map(is_number, value.values()))


def is_place(value: Any) -> bool:
    return list_of(is_text)(value) and len(value) == 2


LINE = Rule(lambda value: is_text(value) and value.splitlines() == [value], "a text of one line")
DEVIATION = Rule(lambda value: is_number(value) and value >= 0, "a number of at least 0")
NUMBER_OF_RUNS = Rule(lambda value: is_count(value) and value > 0, "a whole number of at least 1")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A published table.

    extends: the table whose rows come before this one's, under the same base.
    base: the overrides that all rows share.
    seeds: the default seeds of a sweep over the table.
    analysis: the table whose runs this one's figures are computed from; an analysis has no runs itself.
    command: what measures the rows where training runs do not.
    notes: choices made where the paper leaves something open.
    overrides, recorded: of a recorded sweep, what was typed and when; see sweeps.py.
    smallest_effect: rows are called equal if their difference is shown to be smaller than this, in points.
    looks: numbers of seeds at which a sweep decides whether to add seeds; see looks.py.
    """

    name: str
    title: Annotated[str, LINE]
    source: Annotated[str, LINE]
    rows: tuple[Row, ...]
    extends: Text = ""
    base: Texts = ()
    seeds: Counts = ()
    analysis: Text = ""
    command: Text = ""
    notes: Texts = ()
    overrides: Texts = ()
    recorded: Text = ""
    looks: Counts = ()
    smallest_effect: Positive = SMALLEST_EFFECT

    @property
    def is_sweep(self) -> bool:
        """Whether it is a sweep of the user's own, not a table of a paper."""
        return bool(self.recorded)

    @property
    def is_published(self) -> bool:
        """Whether some row has a published number or text."""
        return any(row.published is not None for row in self.rows)

    @property
    def runs_of(self) -> str:
        """The name of the table that has the runs: this one, or the one that it analyzes."""
        return self.analysis or self.name


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a published table. Scores are in percent, as printed.

    label: the row's name, in the paper's words.
    published: the paper's number; text where the paper prints text; None where it states nothing.
    repeats: the table and the label of the row whose `published`, `sd` and `runs` this row has; empty for its own.
    run: the overrides that, with the table's, make the experiment; None if there is nothing to run.
    cited: whether the paper copied the number from other work. Cited rows are shown but never run.
    sd, runs: the standard deviation and the number of runs that the paper states.
    also: further figures that the paper prints in the row, such as precision.
    trial: architecture and decoder, in a table of `ner-experiments xor`.
    measure: the measured figure, in an analysis; None if the row has none.
    note: where the paper contradicts itself, or leaves the row open.
    """

    label: Annotated[str, LINE]
    published: Annotated[Published, Rule(is_figure, "a number, a text or a list of texts")] = None
    repeats: Annotated[tuple[str, ...], Rule(is_place, "a table and a label of its rows")] = ()
    run: Texts | None = None
    cited: Flag = False
    sd: Annotated[float | None, DEVIATION] = None
    runs: Annotated[int | None, NUMBER_OF_RUNS] = None
    also: Annotated[Mapping[str, float], Rule(are_figures, "names with a number each")] = field(
        default_factory=dict
    )
    trial: Texts | None = None
    measure: Measure | None = None
    note: Text = ""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A figure of the runs of the row `of` of the analyzed table, minus that of the row `over`, if given.

    figure: "type" or "length": test F1 of the mentions of type `key`, or of `key` tokens; "chunk": dev recall
        of the chunk tag `key`, by tokens.
    of, over: labels of rows; `over` is empty if the figure itself is meant.
    only: with figure "chunk", the one part of Att that is not ablated in `of` (`over` is whole); empty for all parts.

    Raises ValueError for an invalid key or part.
    """

    of: Text
    figure: Literal["type", "length", "chunk"]
    key: Text
    over: Text = ""
    only: Text = ""

    def __post_init__(self) -> None:
        keys = KEYS[self.figure]
        if keys and self.key not in keys:
            raise ValueError(
                f"key of figure {self.figure} must be one of {', '.join(keys)}, got {truncated_repr(self.key)}"
            )
        if self.only and self.figure != CHUNK:
            raise ValueError(f"only belongs to figure {CHUNK}, not to {self.figure}")
        if self.only and not PART.fullmatch(self.only):
            raise ValueError(
                f"only must be H, C (all heads) or a head such as C1, got {truncated_repr(self.only)}"
            )
        if self.over == self.of and not self.only:
            raise ValueError(f"over must be another row than of, got {truncated_repr(self.over)} twice")

    def scores(self, figures: Callable[[str, str], Mapping[int, Figures]]) -> dict[int, float]:
        """The figure by seed, or the difference for the seeds that both rows have.

        `figures` maps a row's label and the name of a figure to the figures of its runs by seed. Raises
        ValueError if a run lacks the part or key, or if two rows with runs have no seed in common.
        """
        scores = self._by_seed(figures, self.of, self.only)
        if not self.over:
            return scores
        baseline = self._by_seed(figures, self.over, "")
        if scores and baseline and not scores.keys() & baseline.keys():
            raise ValueError(f"{self.of!r} and {self.over!r} have no seed in common")
        return {seed: scores[seed] - baseline[seed] for seed in scores if seed in baseline}

    def _by_seed(
        self, figures: Callable[[str, str], Mapping[int, Figures]], label: str, part: str
    ) -> dict[int, float]:
        scores = {}
        for seed, by_part in figures(label, self.figure).items():
            if part not in by_part:
                raise ValueError(f"the model of {label!r} has no part {part!r}")
            if self.key not in by_part[part]:
                raise ValueError(f"the corpus of {label!r} has no {self.figure} {self.key!r}")
            scores[seed] = by_part[part][self.key]
        return scores


def names() -> list[str]:
    """The names of all tables, table 4 before table 10."""
    return sorted((path.stem for path in SWEEPS.glob("*.yaml")), key=_natural)


def _natural(name: str) -> tuple[str, int]:
    """`huang2015_table2` as ("huang2015_table", 2)."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def named_rows(labels: Sequence[str]) -> str:
    """`a, b, c and 2 more`: the first `NAMED` rows, and the number of the others."""
    more = len(labels) - NAMED
    return listed([*labels[:NAMED], *([f"{more} more"] if more > 0 else [])])


def load(name: str) -> Table:
    """The table of sweeps/NAME.yaml. Raises ValueError for an unknown name, and as `read`."""
    check_name(name)
    return read(SWEEPS / f"{name}.yaml")


def check_name(name: str, place: str = "") -> None:
    if name not in names():
        raise ValueError(f"{place}there is no table {truncated_repr(name)}{did_you_mean(name, names())}")


def read(path: Path) -> Table:
    """The table of a file. Raises ValueError with file, row, rule and value if the file breaks a rule."""
    table = extended(path)
    check_rows(table, path)
    check_measures(table, path)
    return table


def extended(path: Path) -> Table:
    """The table of a file, with the rows and notes of the table that it extends, if any, before its own."""
    table = alone(path)
    if not table.extends:
        return table
    check_name(table.extends, f"{path}: extends: ")
    if table.base:
        raise ValueError(f"{path}: base is that of the table it extends; got {truncated_repr(table.base)}")
    other = alone(SWEEPS / f"{table.extends}.yaml")
    if key := next((key for key in ("extends", "analysis", "command") if getattr(other, key)), None):
        rule = "extends must be a table of runs that extends none"
        raise ValueError(f"{path}: {rule}; {table.extends} has {key}")
    rows, notes = (*other.rows, *table.rows), (*other.notes, *table.notes)
    return replace(table, base=other.base, rows=rows, seeds=table.seeds or other.seeds, notes=notes)


def alone(path: Path) -> Table:
    """The table of a file by itself. Its rows are not checked against each other or against other tables."""
    return alone_in_state(path, state(path))


@lru_cache(maxsize=1_000)
def alone_in_state(path: Path, _state: State) -> Table:
    """`alone`, cached by the state of the file: another command may add seeds to a recorded sweep."""
    settings = settings_in_state(path, _state)
    rows = tuple(parsed_row(entry, place) for place, entry in numbered(settings["rows"], Row, f"{path}: row"))
    return parsed(settings, Table, f"{path}", name=path.stem, rows=rows)


@lru_cache(maxsize=1_000)
def settings_in_state(path: Path, _state: State) -> dict[str, Any]:
    """The settings of a table as they are written, cached as `alone_in_state`."""
    return checked(plain_yaml.load(path), Table, f"{path}")


def parsed_row(content: Any, place: str) -> Row:
    row = parsed(content, Row, place)
    if row.repeats:
        row = replace(row, **repeated(content, place))
    if row.cited and (row.run is not None or row.trial or row.published is None):
        raise ValueError(f"{place}: a cited row has a published number, and nothing to run")
    return row


def repeated(settings: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The published figure of the row that another row `repeats`, so that it is written once."""
    table, label = settings["repeats"]
    check_name(table, f"{place}: repeats: ")
    if own := next((key for key in FIGURES if key in settings), None):
        raise ValueError(f"{place}: {own} is that of the row it repeats; got {truncated_repr(settings[own])}")
    path = SWEEPS / f"{table}.yaml"
    entries = settings_in_state(path, state(path))["rows"]
    rows = {row["label"]: row for row in entries if isinstance(row, dict) and "published" in row}
    if label not in rows:
        rule = f"{table} has no row {truncated_repr(label)} with a published figure"
        raise ValueError(f"{place}: repeats: {rule}{did_you_mean(label, rows)}")
    other = parsed(rows[label], Row, f"{path}")
    return {key: getattr(other, key) for key in FIGURES}


def check_rows(table: Table, path: Path) -> None:
    """Check that labels are unique, and that each row has what this kind of table needs."""
    if not table.rows:
        raise ValueError(f"{path}: rows must not be empty")
    for label, number in Counter(row.label for row in table.rows).items():
        if number > 1:
            raise ValueError(f"{path}: two rows have the label {truncated_repr(label)}")
    has_runs = not (table.analysis or table.command)
    for row in table.rows:
        place = f"{path}: row {truncated_repr(row.label)}"
        if (row.run is not None) != (has_runs and not row.cited):
            rule = (
                "needs run, or cited: true" if has_runs else "takes no run: the table has no runs of its own"
            )
            raise ValueError(f"{place} {rule}")
        if (row.trial is not None) != bool(table.command):
            raise ValueError(f"{place}: trial belongs to the rows of a command's table")
    if has_runs and (not table.seeds or len(set(table.seeds)) < len(table.seeds)):
        raise ValueError(
            f"{path}: seeds must be different whole numbers, at least one; got {truncated_repr(table.seeds)}"
        )
    if table.analysis:
        check_name(table.analysis, f"{path}: ")


def check_measures(table: Table, path: Path) -> None:
    """Check that only an analysis has measures, and only of rows that are run."""
    analyzed = extended(SWEEPS / f"{table.analysis}.yaml").rows if table.analysis else ()
    labels = [row.label for row in analyzed if row.run is not None]
    for row in table.rows:
        if row.measure is None:
            continue
        place = f"{path}: row {truncated_repr(row.label)}"
        if not table.analysis:
            raise ValueError(f"{place}: measure belongs to the rows of an analysis")
        for name, label in (("of", row.measure.of), ("over", row.measure.over)):
            if label and label not in labels:
                raise ValueError(
                    f"{place}: measure: {name} must be a row of {table.analysis} that is run, got "
                    f"{truncated_repr(label)}{did_you_mean(label, labels)}"
                )
