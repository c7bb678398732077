"""What a row of an analysis measures, and on the runs of which rows.

What a file of sweeps/ may say of a table, a row and a measure, and of which kind each is.

The published tables of sweeps/*.yaml: their rows and figures as written, checked when they are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from ner_experiments.config.compose import PACKAGE
from ner_experiments.config.safe_yaml import describe, read_text
from ner_experiments.data.tags import CHUNK_TAGS, LENGTHS
from ner_experiments.utils.text import did_you_mean, truncated_repr

CHUNK = "chunk"
KEYS = {"type": (), "length": LENGTHS, CHUNK: CHUNK_TAGS}
"""The figures, and what can be their key; of a type the corpus decides that."""
PART = re.compile(r"H|C([1-9]\d*)?")
Figures = Mapping[str, Mapping[str, float]]
"""A run's figures in percent: by what is left of the model ("" is all of it), and by key."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """`figure` for `key`, on the runs of the row `of` of the analysed table; minus that of the row `over`.

    figure: "type" and "length", F1 on test of the mentions of type `key`, or of `key` tokens; "chunk", the
        recall of the chunk tag `key` on dev, by tokens.
    over: a label, as `of` is; empty where the figure itself is meant.
    only: of figure "chunk": the one part of an Att that is left to `of` (not to `over`); empty: all of it.
    ValueError for a figure, key or part that there is none of.
    """

    of: str
    figure: str
    key: str
    over: str = ""
    only: str = ""

    def __post_init__(self) -> None:
        if self.figure not in KEYS:
            raise ValueError(f"figure must be one of {', '.join(KEYS)}, got {truncated_repr(self.figure)}")
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

    def check_rows(self, labels: list[str], table: str) -> None:
        """ValueError if a row is not among those that are run."""
        for name, label in (("of", self.of), ("over", self.over)):
            if label and label not in labels:
                raise ValueError(
                    f"{name} must be a row of {table} that is run, got {truncated_repr(label)}"
                    f"{did_you_mean(label, labels)}"
                )

    def scores(self, figures: Callable[[str, str], Mapping[int, Figures]]) -> dict[int, float]:
        """By seed: the figure, or the difference over those seeds that both rows have.

        `figures` are by seed those of a row's runs, for its label and the name of the figure. ValueError if a
        run has no such part or key, or if two rows with runs have no seed in common.
        """
        ours = self._values(figures, self.of, self.only)
        if not self.over:
            return ours
        theirs = self._values(figures, self.over, "")
        if ours and theirs and not ours.keys() & theirs.keys():
            raise ValueError(f"{self.of!r} and {self.over!r} have no seed in common")
        return {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}

    def _values(
        self, figures: Callable[[str, str], Mapping[int, Figures]], label: str, part: str
    ) -> dict[int, float]:
        found = {}
        for seed, of_parts in figures(label, self.figure).items():
            if part not in of_parts:
                raise ValueError(f"the model of {label!r} has no part {part!r}")
            if self.key not in of_parts[part]:
                raise ValueError(f"the corpus of {label!r} has no {self.figure} {self.key!r}")
            found[seed] = of_parts[part][self.key]
        return found


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15  # not infinite, nor too long for a float


def are(kind: Any) -> Any:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def is_figure(value: Any) -> bool:
    return is_number(value) or is_text(value) or (are(is_text)(value) and bool(value))


def are_figures(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, value)) and all(map(is_number, value.values()))


TEXTS = (are(is_text), "a list of texts")
TEXT = (is_text, "a text")
TABLE = {
    "title": TEXT,
    "source": TEXT,
    "rows": (lambda value: isinstance(value, list), "a list"),
    "extends": TEXT,
    "base": TEXTS,
    "seeds": (are(is_count), "a list of whole numbers from 0"),
    "analysis": TEXT,
    "command": TEXT,
    "notes": TEXTS,
}
ROW = {
    "label": TEXT,
    "published": (is_figure, "a number, a text or a list of texts"),
    "run": TEXTS,
    "cited": (lambda value: isinstance(value, bool), "true or false"),
    "sd": (is_number, "a number"),
    "runs": (is_count, "a whole number"),
    "also": (are_figures, "names with a number each"),
    "trial": TEXTS,
    "measure": (lambda value: isinstance(value, dict), "of, figure and key, and over or only, by name"),
    "note": TEXT,
}
MEASURE = dict.fromkeys(("of", "figure", "key", "over", "only"), TEXT)
REQUIRED = ("title", "source", "rows", "label", "of", "figure", "key")


def checked(content: Any, rules: Mapping[str, tuple[Any, str]], place: str) -> dict[str, Any]:
    """`content` as it is, if it holds nothing but what the rules name, and as they say."""
    if not isinstance(content, dict):
        raise ValueError(f"{place}: expected {', '.join(rules)} by name, got {truncated_repr(content)}")
    for key, value in content.items():
        if key not in rules:
            raise ValueError(f"{place}: there is no {truncated_repr(key)}{did_you_mean(str(key), rules)}")
        fits, rule = rules[key]
        if not fits(value):
            raise ValueError(f"{place}: {key} must be {rule}, got {truncated_repr(value)}")
    for key in REQUIRED:
        if key in rules and key not in content:
            raise ValueError(f"{place}: {key} is missing")
    return content


SWEEPS = next(folder for folder in (PACKAGE / "sweeps", PACKAGE.parent / "sweeps") if folder.is_dir())
"""In an installed package sweeps/ lies inside it, in a checkout beside it."""

Published = float | list[str] | str | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of a published table. Scores are in percent, as printed.

    label: what the row is, in the paper's words.
    published: the paper's number; text where it shows none; None where it states nothing.
    run: the overrides that, with the table's, make the experiment; None where there is none to run.
    cited: whether the paper copied the number from other work. Such rows are shown, and never run.
    sd, runs: the deviation and the number of runs that the paper states.
    also: further figures that the paper prints in the row, such as precision.
    trial: of a table of `ner-experiments xor`: architecture and decoder.
    measure: of an analysis: what is measured, and on the runs of which rows; None where nothing is.
    note: where the paper contradicts itself, or leaves the row open.
    """

    label: str
    published: Published = None
    run: tuple[str, ...] | None = None
    cited: bool = False
    sd: float | None = None
    runs: int | None = None
    also: Mapping[str, float] = field(default_factory=dict)
    trial: tuple[str, ...] | None = None
    measure: Measure | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A published table.

    extends: the table whose rows stand before its own, under the same base.
    base: the overrides that all its rows share.
    seeds: with which the rows are run where the command line says nothing else.
    analysis: the table whose runs this one's figures are made from; it has none of its own.
    command: what measures the rows where training runs do not.
    notes: what was taken where the paper leaves something open.
    """

    name: str
    title: str
    source: str
    rows: tuple[Row, ...]
    extends: str = ""
    base: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    analysis: str = ""
    command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def runs_of(self) -> str:
        """The name of the table whose runs its figures are of: its own, or that of the table it analyses."""
        return self.analysis or self.name


def names() -> list[str]:
    """All tables, table 4 before table 10."""
    return sorted((path.stem for path in SWEEPS.glob("*.yaml")), key=order)


def order(name: str) -> tuple[str, int]:
    """huang2015_table2: huang2015_table and 2."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def load(name: str) -> Table:
    """ValueError for a name that no table has, and for a file that breaks a rule: file, row, rule, value."""
    check_name(name)
    return read(SWEEPS / f"{name}.yaml")


def check_name(name: str, place: str = "") -> None:
    if name not in names():
        raise ValueError(f"{place}there is no table {truncated_repr(name)}{did_you_mean(name, names())}")


def read(path: Path) -> Table:
    """ValueError as `load`."""
    table = whole(path)
    check_rows(table, path)
    check_measures(table, path)
    return table


@cache
def parsed(path: Path) -> Table:
    """What one file can say wrong by itself is refused; how its rows agree is not looked at yet."""
    text = read_text(path)
    try:
        content = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except (OmegaConfBaseException, YAMLError, ValueError) as error:  # such as a number of 5,000 digits
        raise ValueError(f"{path}{describe(error, text)}") from error
    settings = checked(content, TABLE, f"{path}")
    rows = [row(entry, f"{path}: row {number}") for number, entry in enumerate(settings["rows"], start=1)]
    return Table(name=path.stem, **tuples(settings) | {"rows": tuple(rows)})


def whole(path: Path) -> Table:
    """With the rows and notes of the table that it extends, if it does, before its own."""
    own = parsed(path)
    if not own.extends:
        return own
    check_name(own.extends, f"{path}: extends: ")
    if own.base:
        raise ValueError(f"{path}: base is that of the table it extends; got {truncated_repr(own.base)}")
    other = parsed(SWEEPS / f"{own.extends}.yaml")
    if key := next((key for key in ("extends", "analysis", "command") if getattr(other, key)), None):
        rule = "extends must be a table of runs that extends none"
        raise ValueError(f"{path}: {rule}; {own.extends} has {key}")
    rows, notes = (*other.rows, *own.rows), (*other.notes, *own.notes)
    return replace(own, base=other.base, rows=rows, seeds=own.seeds or other.seeds, notes=notes)


def row(content: Any, place: str) -> Row:
    if isinstance(content, dict) and isinstance(content.get("label"), str):
        place = f"{place} ({truncated_repr(content['label'])})"
    settings = tuples(checked(content, ROW, place))
    if "measure" in settings:
        settings["measure"] = measure(settings["measure"], f"{place}: measure")
    made = Row(**settings)
    if made.cited and (made.run is not None or made.trial or made.published is None):
        raise ValueError(f"{place}: a cited row has a published number, and nothing to run")
    return made


def measure(content: Any, place: str) -> Measure:
    settings = checked(content, MEASURE, place)
    try:
        return Measure(**settings)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def tuples(settings: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples, but for text that is shown as it stands."""
    return {
        key: tuple(value) if isinstance(value, list) and key != "published" else value
        for key, value in settings.items()
    }


def check_rows(table: Table, path: Path) -> None:
    """What a table's rows have to have in common, which its kind decides."""
    if not table.rows:
        raise ValueError(f"{path}: rows must not be empty")
    for label, number in Counter(row.label for row in table.rows).items():
        if number > 1:
            raise ValueError(f"{path}: two rows have the label {truncated_repr(label)}")
    own = not (table.analysis or table.command)
    for entry in table.rows:
        place = f"{path}: row {truncated_repr(entry.label)}"
        if (entry.run is not None) != (own and not entry.cited):
            rule = "needs run, or cited: true" if own else "takes no run: the table has no runs of its own"
            raise ValueError(f"{place} {rule}")
        if (entry.trial is not None) != bool(table.command):
            raise ValueError(f"{place}: trial belongs to the rows of a command's table")
    if own and (not table.seeds or len(set(table.seeds)) < len(table.seeds)):
        raise ValueError(
            f"{path}: seeds must be different whole numbers, at least one; got {truncated_repr(table.seeds)}"
        )
    if table.analysis:
        check_name(table.analysis, f"{path}: ")


def check_measures(table: Table, path: Path) -> None:
    """Only an analysis has them, and of rows that are run."""
    analysed = whole(SWEEPS / f"{table.analysis}.yaml").rows if table.analysis else ()
    labels = [row.label for row in analysed if row.run is not None]
    for entry in table.rows:
        if entry.measure is None:
            continue
        place = f"{path}: row {truncated_repr(entry.label)}"
        if not table.analysis:
            raise ValueError(f"{place}: measure belongs to the rows of an analysis")
        try:
            entry.measure.check_rows(labels, table.analysis)
        except ValueError as error:
            raise ValueError(f"{place}: measure: {error}") from error
