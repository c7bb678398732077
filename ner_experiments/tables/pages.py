"""results/: the runs of published tables that are kept, and a page of each table made of them alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ner_experiments.analysis.archive import archive
from ner_experiments.config.overrides import as_value
from ner_experiments.runs.run import ArchivedRun, Run, archived_runs, finished_once
from ner_experiments.tables import spec
from ner_experiments.tables.experiments import Experiment
from ner_experiments.tables.render import Grid, as_markdown, markdown
from ner_experiments.tables.scores import Page, Source, collect
from ner_experiments.tables.spec import Table
from ner_experiments.utils.files import write_json
from ner_experiments.xor.results import FILE, PICTURE, Trials

TABLE, RUNS, PAGE, INDEX = "table.json", "runs", "README.md", "TABLES.md"


def add(page: Page, results: Path) -> Path:
    """Keeps the runs of a table, whose page this is, and writes the page. ValueError if there are none.

    Returns its folder: results/TABLE, or with deviations from the paper results/TABLE/DEVIATIONS.
    """
    if source := page.table.analysis:
        raise ValueError(f"{page.table.name} is made from the runs of {source}; keep those")
    runs = [(run, result.row.label) for result in page.results for run in result.runs.values()]
    if not runs:
        made = f"; `{page.table.command} --output DIR` writes there" if page.table.command else ""
        raise ValueError(f"{page.table.name}: there are no finished runs of it to keep{made}")
    folder = folder_of(results, page.table.name, page.deviations)
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    write_json(folder / TABLE, {"table": page.table.name, "overrides": list(page.deviations)})
    for run, label in runs:
        name = f"{run.metrics['identity'][:12]}-seed-{run.metrics['seed']}.json"
        archive(run, folder / RUNS / name, label)
    write(folder)
    return folder


def folder_of(results: Path, name: str, overrides: Sequence[str]) -> Path:
    """Where the runs of a table are kept that were made with these deviations from the paper.

    Of a file's path its name stands for it.
    """
    return results / name / ",".join(map(in_a_name, overrides))


def in_a_name(override: str) -> str:
    key, equals, value = override.partition("=")
    return key.replace("/", "-") + equals + value.rstrip("/").rpartition("/")[2]


def write_all(results: Path) -> list[Path]:
    """Writes every page anew, and TABLES.md, which lists them. Reads nothing but results/."""
    folders = kept_folders(results)
    lines = ["# Measured tables", "", "| table | settings | rows | runs | hours |", "|---|---|---|---|---|"]
    for folder in folders:
        page = write(folder)
        lines.append(index_line(page, folder.relative_to(results)))
    (results / INDEX).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folders


def kept_folders(results: Path) -> list[Path]:
    return [path.parent for path in sorted(results.rglob(TABLE))]


def write(folder: Path) -> Page:
    """The page of the runs that a folder keeps, or of what a table's command left there, written there."""
    page = read(folder)
    text = "\n".join([markdown(page), *further(page)])
    (folder / PAGE).write_text(text, encoding="utf-8")
    return page


def further(page: Page) -> list[str]:
    """What stands below the table."""
    if page.trials:
        return of_trials(page.trials, page.table.command)
    return origin(page) if page.runs else []


def read(folder: Path, shown: Table | None = None) -> Page:
    """The page of what a folder of results/ keeps of a table. `shown`: another that is made of its runs."""
    table, overrides = about(folder)
    others = [f"output_dir={as_value(str(folder.parent))}"] if table.command else overrides
    return collect(shown or table, others, among(list(archived_runs(folder / RUNS))))


def about(folder: Path) -> tuple[Table, list[str]]:
    """Which table a folder of results/ keeps runs of, and with which overrides they were made."""
    content = json.loads((folder / TABLE).read_text(encoding="utf-8"))
    if references := [item for item in content["overrides"] if "${" in item]:
        raise ValueError(f"{folder / TABLE}: overrides must be values, not references, got {references[0]!r}")
    return spec.load(content["table"]), list(content["overrides"])


def among(runs: Sequence[ArchivedRun]) -> Source:
    """Finds the runs of an experiment among these."""

    def of_row(experiment: Experiment) -> dict[int, Run]:
        return finished_once(experiment.cfg, [run for run in runs if run.label == experiment.row.label])

    return of_row


def index_line(page: Page, place: Path) -> str:
    measured = sum(result.measured is not None for result in page.results)
    settings = " ".join(page.deviations) or "the paper's"
    number, time = cost(page.runs, page.trials)
    return (
        f"| [{page.table.name}]({str(place).replace(' ', '%20')}/{PAGE}) | {settings} |"
        f" {measured} of {len(page.results)} | {number} | {time:.1f} |"
    )


def origin(page: Page) -> list[str]:
    """How the numbers were made: the command, the code, the machine, the data, and what it cost."""
    runs = page.runs
    command = " ".join(["python run.py -m", f"table={page.table.name}", *page.deviations])
    versions = listed({f"torch {run.metrics['versions']['torch']}" for run in runs})
    lines = [
        "## How it was made",
        "",
        f"`{command} seeds=[{','.join(map(str, sorted({run.metrics['seed'] for run in runs})))}]`",
        "",
        f"- {len(runs)} runs, {hours(runs):.1f} hours of training in all, on {devices(runs)}; {versions}.",
        f"- Code: checksum {listed({run.metrics['code'][:12] for run in runs})},"
        f" commit {listed({short_commit(run.metrics) for run in runs})}.",
    ]
    for name, checksum, notes in sorted({described(run.metrics["data"]) for run in runs}):
        lines += [f"- Data: {name}, checksum `{checksum}`.", *(f"  - {note}" for note in notes)]
    return [*lines, ""]


def of_trials(trials: Trials, command: str) -> list[str]:
    """Of all architectures, of which the table has some: what was found, and how it was made."""
    from ner_experiments.xor.experiment import HEADINGS, lines

    grid = as_markdown(Grid(HEADINGS, lines(trials.found)))
    made = ["## How it was made", "", f"`{command}`", "", *(f"- {line}" for line in making(trials))]
    picture = f"![Proved, measured and trained]({PICTURE})"
    return ["## All architectures", "", picture, "", grid, "", *made, ""]


def making(trials: Trials) -> list[str]:
    """What trials cost, and of which code they are."""
    how = trials.content
    number = f"{trials.trainings} trainings and {trials.measurements} measurements at random weights"
    time = f"{60 * trials.hours:.1f} minutes by {how['processes']} processes"
    return [
        f"{number}, in {time}, on {device(how)}; torch {how['versions']['torch']}.",
        f"Code: checksum {how['code'][:12]}, commit {short_commit(how)}.",
        f"Data: phrases, which {FILE} has beside all other settings; no file is read.",
    ]


def described(data: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """Runs from before there was an audit say nothing of leakage."""
    counts = [f"{count:,} {name.replace('_', ' ')}" for name, count in data.get("leakage", {}).items()]
    audit = [f"sentences with the words of one in another part: {', '.join(counts)}"] if counts else []
    return data["name"], data["checksum"], (*data["notes"], *audit)


def short_commit(metrics: Mapping[str, Any]) -> str:
    """With "+" where the source was changed since; a run made outside a checkout has none."""
    commit = metrics["commit"] or "unknown"
    return commit[:12] + ("+" if commit.endswith("+") else "")


def devices(runs: Iterable[Run]) -> str:
    return listed({device(run.metrics) for run in runs})


def device(metrics: Mapping[str, Any]) -> str:
    threads = metrics["threads"]
    return f"{metrics['device']} ({threads} {'thread' if threads == 1 else 'threads'})"


def cost(runs: Sequence[Run], trials: Trials | None) -> tuple[int, float]:
    """How often was trained, and the hours that it took."""
    return (trials.trainings, trials.hours) if trials else (len(runs), hours(runs))


def hours(runs: Iterable[Run]) -> float:
    return sum(run.metrics["seconds"] for run in runs) / 3600


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
