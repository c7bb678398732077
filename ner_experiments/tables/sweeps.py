"""Sweeps as tables: what `python run.py -m` ran is recorded in OUTPUT_DIR/sweeps/NAME.yaml, in the format of sweeps/.

Whatever takes a published table takes a recorded sweep too, by its name or by its overrides.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from ner_experiments.analysis import search_trials
from ner_experiments.analysis.search_trials import Search
from ner_experiments.config.compose import compose, jobs, override_value, resolved
from ner_experiments.config.identity import KNOBS, NOT_THE_EXPERIMENT, as_numbers
from ner_experiments.config.plain_yaml import to_yaml
from ner_experiments.config.row_settings import as_override, joined, key, labels, root, settings, varying
from ner_experiments.runs.run import log_once
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.experiments import counts, output_dir
from ner_experiments.tables.looks import at_looks
from ner_experiments.tables.scores import Page
from ner_experiments.tables.spec import SMALLEST_EFFECT, Row, Table
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.locks import hold_lock
from ner_experiments.utils.text import did_you_mean, truncated_repr

log = logging.getLogger(__name__)
T = TypeVar("T")

FOLDER = "sweeps"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Names of sweeps, which are names of files."""
INDEX = "index"
"""No name of a sweep: a report has its index page there."""
NOT_OF_A_JOB = ("hydra", "sweep")
"""Settings of the command line that no job has."""
NAMED_RUNS = 10
"""Maximum number of runs that a message names."""
WITHOUT_EFFECT = ("runtime", "audit", "logger", "cache_dir", "sweep", *KNOBS)
"""Settings that change neither a run nor the place of its folder."""


def folder(output: Path) -> Path:
    return output / FOLDER


def names(output: Path) -> list[str]:
    """Names of the recorded sweeps, the newest first."""
    paths = folder(output).glob("*.yaml")
    return [path.stem for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)]


def recorded(output: Path) -> Iterator[Table]:
    """The recorded sweeps, the newest first, as `readable`."""
    return readable((folder(output) / f"{name}.yaml" for name in names(output)), spec.read)


def readable(paths: Iterable[Path], read: Callable[[Path], T]) -> Iterator[T]:
    """The contents of files; a file that cannot be read is left out with a warning."""
    for path in paths:
        try:
            yield read(path)
        except (ValueError, OSError) as error:
            log.warning("left out: %s", error)


def find(name: str, output: Path) -> Table:
    """The published table or recorded sweep of that name. ValueError if there is none."""
    if name in spec.names():
        return spec.load(name)
    if name in names(output):
        return spec.read(folder(output) / f"{name}.yaml")
    if find_search(name, output):
        raise ValueError(
            f"{name} is a search; only `ner-experiments table` and `ner-experiments report` take one"
        )
    known = names(output)
    sort = f"table or sweep in {folder(output)} named" if known else "table"
    raise ValueError(
        f"there is no {sort} {truncated_repr(name)}{did_you_mean(name, [*spec.names(), *known])}"
    )


def searches(output: Path) -> Iterator[Search]:
    """The searches with trials, as `readable`."""
    paths = sorted((output / search_trials.FOLDER).glob(f"*/{search_trials.FILE}"))
    return (search for search in readable(paths, search_trials.read) if search.trials)


def find_search(name: str, output: Path) -> Search | None:
    """The search of that name, unless a table or sweep has it. ValueError for a file that cannot be read."""
    path = output / search_trials.FOLDER / name / search_trials.FILE
    if not NAME.fullmatch(name) or name in (*spec.names(), *names(output)) or not path.is_file():
        return None
    return search_trials.read(path)


def requested(
    items: Sequence[str], place: Sequence[str] = (), *, unrecorded: bool = False
) -> tuple[Table, list[str]]:
    """The table or sweep that a command line names, and the overrides that locate its runs.

    items: NAME OVERRIDE ..., or the overrides of a sweep, such as model=residual layers=2,3. The latter must be
        recorded unless `unrecorded`. Its seeds do not matter.
    place: further overrides that say where the runs are.
    """
    first, *others = items
    if "=" not in first:
        if other := next((item for item in others if "=" not in item and not item.startswith("~")), None):
            raise ValueError(f"expected one table or sweep and then overrides, got {first} and {other}")
        for seeds in (item for item in others if key(item) == "seeds"):
            log.warning("%s: passed over; all finished seeds are shown", seeds)
        others = [item for item in others if key(item) != "seeds"]
        return find(first, output_dir([*others, *place])), [*others, *place]
    items = [item for item in items if root(item) not in NOT_OF_A_JOB]
    where = [*(item for item in items if is_place(item)), *place]
    asked = of_jobs([[*job, *place] for job in jobs(items)], "sweep", items)
    if unrecorded:
        return asked, where
    output = output_dir(where)
    for table in recorded(output):
        if same_rows(table, asked):
            return table, where
    raise ValueError(
        f"{folder(output)} has no sweep with the rows of {' '.join(items)}; `ner-experiments table --over` collects "
        "finished runs that were never one sweep"
    )


def is_sweep(overrides: Sequence[str]) -> bool:
    """Whether overrides choose several values, such as layers=2,3."""
    return bool(overrides) and len(jobs(overrides)) > 1


def of_jobs(
    jobs: Sequence[Sequence[str]], name: str, overrides: Sequence[str], looks: Sequence[int] = ()
) -> Table:
    """The jobs of a sweep as a table: a row for each combination of settings other than the seed.

    overrides: those of the command line, which become the title. ValueError if two jobs are one run.
    """
    if item := next((item for item in overrides if len(item.splitlines()) > 1), None):
        raise ValueError(f"{truncated_repr(item)}: a sweep is recorded with values of one line")
    swept = set(varying([settings(job) for job in jobs]))
    if place := next((item for item in overrides if is_place(item) and key(item) in swept), None):
        raise ValueError(
            f"{place}: no part of an experiment, so all runs of a sweep have the same {key(place)}: "
            "give the command once for each"
        )
    check_different(jobs)
    rows = list(dict.fromkeys(tuple(item for item in job if counts(item)) for job in jobs))
    names = labels([*rows])
    base = [item for item in rows[0] if key(item) not in swept]
    varied = [tuple(item for item in row if key(item) in swept) for row in rows]
    if len(rows) == 1:
        varied, base = [tuple(base)], []
    typed = [item for item in overrides if counts(item)]
    title = " ".join(item for item in typed if key(item) in swept)
    fixed = " ".join(item for item in typed if key(item) not in swept)
    return Table(
        name=name,
        title=title or fixed or "The defaults",
        source=fixed if title and fixed else "All other settings have their defaults",
        base=tuple(base),
        seeds=tuple(sorted({*map(seed_of, jobs)})),
        rows=tuple(Row(label=label, run=row) for label, row in zip(names, varied, strict=True)),
        overrides=tuple(overrides),
        recorded=datetime.now().astimezone().isoformat(sep=" ", timespec="minutes"),
        looks=tuple(looks),
    )


def is_place(override: str) -> bool:
    """Whether an override says where or how a run runs; the seed does not."""
    return root(override) in NOT_THE_EXPERIMENT and root(override) != "seed"


def rows_of(table: Table, jobs: Sequence[Sequence[str]], extra_overrides: Sequence[str]) -> list[str]:
    """The label of the row that each job belongs to."""
    by_overrides = {
        frozenset(filter(counts, joined(table.base, row.run, extra_overrides))): row.label
        for row in (spec.load(table.analysis) if table.analysis else table).rows
        if row.run is not None
    }
    return [by_overrides[frozenset(filter(counts, job))] for job in jobs]


def check_different(jobs: Iterable[Sequence[str]]) -> None:
    """Raise ValueError if two jobs are the same run, such as those of seed=1,1."""
    seen: dict[tuple[str, int], Sequence[str]] = {}
    for job in jobs:
        other = seen.setdefault((effective(without_seed(job)), seed_of(job)), job)
        if other is not job:
            twice = " ".join(job)
            raise ValueError(
                f"two jobs of the sweep are the same run: {twice}"
                + ("" if list(other) == list(job) else f" and {' '.join(other)}")
            )


@cache
def effective(overrides: tuple[str, ...]) -> str:
    """The settings that change the run, its files or the place of its folder, as one string to compare."""
    settings = {name: value for name, value in resolved(overrides).items() if name not in WITHOUT_EFFECT}
    return repr(as_numbers(settings))


def without_seed(job: Sequence[str]) -> tuple[str, ...]:
    """The overrides of a job but for its seed, which are those of its row."""
    return tuple(item for item in job if root(item) != "seed")


def seed_of(job: Sequence[str]) -> int:
    """The seed of a job. Its other settings are not composed, so that a sweep of many seeds stays fast."""
    given = [item for item in job if root(item) == "seed"]
    value = override_value(given[-1]) if given else None
    return value if type(value) is int else int(compose(given).seed)


def record(table: Table, output: Path) -> Table:
    """Write a sweep to OUTPUT/sweeps/NAME.yaml; if it is recorded there already, add its seeds.

    Without a name, it is named after what varies. Returns the table as recorded. ValueError for a name that a
    published table, a sweep of other rows or the index page of a report has, and for looks that are not those recorded.
    """
    named(table, output)  # refused before anything is written
    try:
        with hold_lock(folder(output), wait=True):  # two commands may add their seeds at once
            merged, _ = with_record(table, output)
            with atomic_write(folder(output) / f"{merged.name}.yaml") as part:
                part.write_text(as_yaml(merged), encoding="utf-8")
    except OSError as error:
        merged, before = with_record(table, output)
        if before is None or merged.seeds != before.seeds or merged.looks != before.looks:
            raise
        # such as on a read-only disk
        log_once(
            f"{folder(output) / merged.name}.yaml: {error.strerror}; the sweep is recorded there already"
        )
    return merged


def named(table: Table, output: Path) -> Table:
    """The table with the name that it is recorded under. ValueError as `record`."""
    return replace(table, name=with_record(table, output)[0].name)


def with_record(table: Table, output: Path) -> tuple[Table, Table | None]:
    """The sweep, named and merged with the one recorded under its name; and the recorded one, or None."""
    for name in [table.name] if table.name else names_for(table):
        path = folder(output) / f"{name}.yaml"
        if refused := refusal(name):
            if table.name:
                raise ValueError(refused)
            continue
        if not path.exists():
            return replace(table, name=name), None
        if same_rows(before := spec.read(path), table):
            refuse_changed_looks(table, before)
            seeds = tuple(sorted({*before.seeds, *table.seeds}))
            table = replace(table, name=name, seeds=seeds, looks=table.looks or before.looks)
            return replace(table, notes=before.notes, smallest_effect=before.smallest_effect), before
    raise ValueError(f"sweep.name={table.name}: {path} is a sweep of other rows")


def refusal(name: str) -> str:
    """Why a sweep cannot have a name, or ""."""
    if not NAME.fullmatch(name):
        return f"sweep.name must be made of letters, digits, '_', '.' and '-', got {truncated_repr(name)}"
    if name in spec.names():
        return f"sweep.name={name}: a published table has this name"
    return f"sweep.name={name}: the index page of a report has this name" if name == INDEX else ""


def names_for(table: Table) -> Iterator[str]:
    """Names after what varies: layers, layers_2, layers_3, ..."""
    keys = [re.split(r"[./@]", key(item))[-1] for row in table.rows for item in row.run or ()]
    stem = "_".join(dict.fromkeys(keys))
    if len(table.rows) == 1:
        stem = "seeds" if len(table.seeds) > 1 else "run"
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))


def refuse_changed_looks(table: Table, before: Table) -> None:
    """Raise ValueError if the looks of a recorded sweep would change, or the seed that they start from.

    The levels of the looks bound false verdicts only if both are chosen before results are seen.
    """
    if before.looks and table.looks not in ((), before.looks):
        rule = (
            f"{before.name} was declared with {as_override('sweep.looks', before.looks)}, which cannot change"
        )
        raise ValueError(
            f"{as_override('sweep.looks', table.looks)}: {rule}; a sweep of another name can have others"
        )
    start, first = table.seeds[:1], before.seeds[:1]
    if (before.looks and start < first) or (table.looks and start != first):
        rule = f"the looks of {before.name} start from its first seed, {before.seeds[0]}"
        raise ValueError(f"seed={table.seeds[0]}: {rule}; a sweep of another name can start from another")


def add_to_record(table: Table, output: Path, seeds: Iterable[int] = (), looks: Sequence[int] = ()) -> Table:
    """Add seeds and looks to a sweep recorded in OUTPUT/sweeps; returns the table with them.

    The files of other tables are not changed.
    """
    table = replace(table, seeds=tuple(sorted({*table.seeds, *seeds})), looks=tuple(looks) or table.looks)
    if table.is_sweep and table.name in names(output) and table.name not in spec.names():
        return record(table, output)
    return table


def named_runs(items: Sequence[str]) -> dict[Path, str]:
    """Labels of the rows of the runs that a command line names, by path of the run; "" if no table names it.

    items: paths of runs, which have no label, and names of tables and sweeps, which stand for all their finished
        runs; overrides such as output_dir=DIR say where these are. Without a name and a path, overrides such as
        layers=2,3 name a recorded sweep. ValueError if there is no finished run, and for a name that nothing has.
    """
    overrides = [item for item in items if "=" in item and not Path(item).exists()]
    output = output_dir(overrides)
    if len(overrides) == len(items):
        if all(map(is_place, items)):
            raise ValueError(
                f"{' '.join(items)}: expected a run, or a table or sweep by its name or overrides"
            )
        table, place = requested(items)
        return runs_of(table, place, output)
    known = {*spec.names(), *names(output)}
    labels: dict[Path, str] = {}
    for item in items:
        if item in known and not Path(item).exists():
            labels |= runs_of(find(item, output), overrides, output)
        elif item not in overrides:
            if "/" not in item and not Path(item).exists():
                raise unknown(item, output)
            labels[Path(item)] = ""
    return labels


def refuse_several(run: Path) -> None:
    """Raise ValueError, with its runs in the order of dev, if one run is expected and a table or sweep is named."""
    name, output = str(run), output_dir([])
    if run.exists() or name not in (*spec.names(), *names(output)):
        return
    rows = finished(find(name, output), [], output).results
    runs = [(100 * it.metrics["dev"][it.primary_metric], it, row) for row in rows for it in row.runs.values()]
    runs.sort(key=lambda it: -it[0])
    lines = [f"  {dev:5.2f} {it.folder} ({row.row.label})" for dev, it, row in runs[:NAMED_RUNS]]
    if (more := len(runs) - NAMED_RUNS) > 0:
        lines.append(f"  and {more} more: `ner-experiments table {name}`")
    head = f"{name}: expected the folder of one run; those of {name}, by dev {runs[0][1].score_name}:"
    raise ValueError("\n".join([head, *lines]))


def unknown(name: str, output: Path) -> ValueError:
    """Error for a name that no run, table or sweep has; of a search, it says what takes one."""
    if find_search(name, output):
        find(name, output)
    return ValueError(
        f"{name}: there is no such run, table or sweep{did_you_mean(name, [*spec.names(), *names(output)])}"
    )


def runs_of(table: Table, overrides: Sequence[str], output: Path) -> dict[Path, str]:
    """The finished runs of a table with the labels of their rows. ValueError as `finished`."""
    page = finished(table, overrides, output)
    return {run.folder: it.row.label for it in page.results for run in it.runs.values()}


def finished(table: Table, overrides: Sequence[str], output: Path) -> Page:
    """A table with its finished runs; a warning names rows that are not counted. ValueError if there is no run."""
    page = at_looks(collect(table, overrides))
    if not page.runs:
        reason = next((f": {it.missing}" for it in page.results if it.missing), "")
        raise ValueError(f"{table.name}: no run of it is finished in {output}{reason}")
    for text in page.not_counted:
        log_once(f"not counted: {text}")
    return page


def same_rows(one: Table, other: Table) -> bool:
    """Whether two tables have the same experiments on the same files, in any order and under any label."""
    rows, others = (
        {joined(it.base, row.run) for row in it.rows if row.run is not None} for it in (one, other)
    )
    if rows == others:  # composing is slow
        return True
    try:
        return {*map(effective, rows)} == {*map(effective, others)}
    except ValueError:  # a recorded sweep can no longer be composed, such as without its --config-dir
        return False


def as_yaml(table: Table) -> str:
    """A recorded sweep as a file of sweeps/."""
    content: dict[str, Any] = {
        "title": table.title,
        "source": table.source,
        "recorded": table.recorded,
        "overrides": [*table.overrides],
        "base": [*table.base],
        "seeds": [*table.seeds],
        "looks": [*table.looks],
        "rows": [{"label": row.label, "run": [*(row.run or ())]} for row in table.rows],
        "notes": [*table.notes],
        "smallest_effect": table.smallest_effect if table.smallest_effect != SMALLEST_EFFECT else None,
    }
    filled: Mapping[str, Any] = {name: value for name, value in content.items() if value}
    return to_yaml(filled)
