"""The published tables of sweeps/*.yaml: their rows and figures as written, checked when they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from ner_experiments.analysis.measure import Measure
from ner_experiments.plain_yaml import describe, read_text
from ner_experiments.quote import quoted
from ner_experiments.settings import PACKAGE, nearest
from ner_experiments.table_rules import MEASURE, ROW, TABLE, checked

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
        raise ValueError(f"{place}there is no table {quoted(name)}{nearest(name, names())}")


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
        raise ValueError(f"{path}: base is that of the table it extends; got {quoted(own.base)}")
    other = parsed(SWEEPS / f"{own.extends}.yaml")
    if key := next((key for key in ("extends", "analysis", "command") if getattr(other, key)), None):
        rule = "extends must be a table of runs that extends none"
        raise ValueError(f"{path}: {rule}; {own.extends} has {key}")
    rows, notes = (*other.rows, *own.rows), (*other.notes, *own.notes)
    return replace(own, base=other.base, rows=rows, seeds=own.seeds or other.seeds, notes=notes)


def row(content: Any, place: str) -> Row:
    if isinstance(content, dict) and isinstance(content.get("label"), str):
        place = f"{place} ({quoted(content['label'])})"
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
            raise ValueError(f"{path}: two rows have the label {quoted(label)}")
    own = not (table.analysis or table.command)
    for entry in table.rows:
        place = f"{path}: row {quoted(entry.label)}"
        if (entry.run is not None) != (own and not entry.cited):
            rule = "needs run, or cited: true" if own else "takes no run: the table has no runs of its own"
            raise ValueError(f"{place} {rule}")
        if (entry.trial is not None) != bool(table.command):
            raise ValueError(f"{place}: trial belongs to the rows of a command's table")
    if own and (not table.seeds or len(set(table.seeds)) < len(table.seeds)):
        raise ValueError(
            f"{path}: seeds must be different whole numbers, at least one; got {quoted(table.seeds)}"
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
        place = f"{path}: row {quoted(entry.label)}"
        if not table.analysis:
            raise ValueError(f"{place}: measure belongs to the rows of an analysis")
        try:
            entry.measure.check_rows(labels, table.analysis)
        except ValueError as error:
            raise ValueError(f"{place}: measure: {error}") from error
