"""results/PAPER.md, what was measured of a paper: the words of a template, the figures of the kept runs.

A template is results/PAPER.md.j2. It calls `table(NAME, OVERRIDE, ...)`, the kept runs of a table as a
`Measured`, `run(NAME)`, what results/NAME.json has of a single run, and `breakdown(RUN)`, so that no figure of a run
is typed by hand. Templates run in Jinja's sandbox.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ner_experiments.analysis import statistics
from ner_experiments.analysis.archive import run_errors
from ner_experiments.tables import pages, spec, svg
from ner_experiments.tables import scores as one_sentence
from ner_experiments.tables.plots import BARS, grid, varied
from ner_experiments.tables.render import Grid, as_markdown, deviation, interval, of_seeds, probability
from ner_experiments.tables.scores import Page, Result, compare
from ner_experiments.tables.svg import Plot
from ner_experiments.utils.text import did_you_mean, truncated_repr

SUFFIX, PLOTS = ".md.j2", "plots"


def write_all(results: Path) -> list[Path]:
    """Writes each template's page and its plots. ValueError with the template for a wrong call."""
    return [write(template) for template in sorted(results.glob(f"*{SUFFIX}"))]


def write(template: Path) -> Path:
    results, path = template.parent, template.with_name(template.name.removesuffix(".j2"))
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals["table"] = cache(partial(measured, results))
    environment.globals["breakdown"] = lambda run: run_errors(run).breakdown
    environment.globals["run"] = partial(single, results)
    try:
        text = environment.from_string(template.read_text(encoding="utf-8")).render()
    except (TemplateError, TypeError, ValueError) as error:
        raise ValueError(f"{template}: {error}") from error
    path.write_text(text, encoding="utf-8")
    return path


def measured(results: Path, name: str, *overrides: str) -> Measured:
    """An analysis is made of the runs that are kept of the table it analyses."""
    table = spec.load(name)
    folder = pages.folder_of(results, table.runs_of, overrides)
    if not (folder / pages.TABLE).is_file():
        raise ValueError(f"no runs of {table.runs_of} {' '.join(overrides)}".rstrip() + " are kept")
    return Measured(pages.read(folder, table), results, pages.folder_of(Path(), name, overrides).as_posix())


def single(results: Path, name: str) -> dict[str, Any]:
    """Its `metrics` and its `config`. ValueError if no such run is kept."""
    path = results / f"{name}.json"
    if not path.is_file():
        kept = sorted(path.stem for path in results.glob("*.json"))
        raise ValueError(f"no run {name} is kept{did_you_mean(name, kept)}")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@dataclass(frozen=True, eq=False)
class Measured:
    """A table's kept runs, as a template speaks of them; scores are in percent.

    place: their folder, from `results`; of an analysis, which has none, as if it had one.
    """

    page: Page
    results: Path
    place: str

    def without_heaviest(self) -> Measured:
        """The same without the sentence of test that holds much of it. ValueError if none does."""
        return replace(self, page=one_sentence.without(self.page))

    def row(self, label: str) -> Result:
        """ValueError if there is none."""
        rows = {result.row.label: result for result in self.page.results}
        if label not in rows:
            raise ValueError(
                f"{self.page.table.name} has no row {truncated_repr(label)}{did_you_mean(label, rows)}"
            )
        return rows[label]

    def of(self, label: str) -> Result:
        """The row. ValueError if there is none, or no run of it."""
        found = self.row(label)
        if not found.scores:
            raise ValueError(f"{self.page.table.name} has no run of row {truncated_repr(label)}")
        return found

    def ours(self, label: str) -> str:
        """Mean ± standard deviation (seeds)."""
        found = self.of(label).measured
        assert found is not None
        return f"{found.mean:.2f}{deviation(found.sd, found.n)}"

    def dev(self, label: str) -> float:
        """On dev, in the epochs that it chose: the mean."""
        runs = self.of(label).runs.values()
        return 100 * mean(run.metrics["dev"][run.primary_metric] for run in runs)

    def published(self, label: str) -> str:
        return f"{self.number(label):.2f}"

    def number(self, label: str) -> float:
        """The published one. ValueError where the paper has none, or words."""
        published = self.row(label).row.published
        if not isinstance(published, int | float):
            place = f"{self.page.table.name}, row {truncated_repr(label)}"
            raise ValueError(f"{place}: expected a published number, got {truncated_repr(published)}")
        return published

    def remarks(self) -> str:
        """On test sets of which one sentence holds much."""
        return " ".join(one_sentence.remarks(self.page))

    def difference(self, a: str, b: str, base: Measured | None = None) -> str:
        """Ours of row a minus ours of row b, which may be of another table, `base`."""
        return f"{statistics.difference(self.of(a).scores, (base or self).of(b).scores).mean:+.2f}"

    def dev_difference(self, a: str, b: str, base: Measured | None = None) -> str:
        """As `difference`, of `dev`."""
        return f"{self.dev(a) - (base or self).dev(b):+.2f}"

    def gap(self, a: str, b: str, base: Measured | None = None) -> str:
        """As `difference`, with its interval and p where there are seeds enough."""
        ours, theirs = self.of(a).scores, (base or self).of(b).scores
        found = statistics.difference(ours, theirs)
        if found.p is None:
            return f"{found.mean:+.2f} ({of_seeds(ours, theirs)})"
        return f"{found.mean:+.2f} ({interval(found.low, found.high)}, p {probability(found.p)})"

    def p(self, a: str, b: str, base: Measured | None = None) -> str:
        """That rows a and b are equal, over seeds and sentences; of one seed each, over sentences alone."""
        return probability(compare(self.of(a), (base or self).of(b)).over_sentences.p)

    def published_gap(self, a: str, b: str, base: Measured | None = None) -> str:
        """As `difference`, of the paper's numbers."""
        return f"{self.number(a) - (base or self).number(b):+.2f}"

    def published_also(self, label: str, name: str) -> str:
        """What the paper prints beside a score, such as a difference. ValueError if nothing."""
        also = self.row(label).row.also
        if name not in also:
            place = f"{self.page.table.name}, row {truncated_repr(label)}"
            raise ValueError(f"{place}: has no {truncated_repr(name)}{did_you_mean(name, also)}")
        return f"{also[name]:+.2f}"

    def linked(self, text: str) -> str:
        """A link to the page of all its rows."""
        return f"[{text}]({self.place}/{pages.PAGE})"

    def had(self) -> list[Result]:
        """The rows with runs."""
        return [result for result in self.page.results if result.scores]

    def rows(self) -> str:
        return as_markdown(grid(self.had()))

    def rows_and_costs(self) -> str:
        """With the weights of the model alone, words, characters, output and biases apart."""
        had = self.had()
        scores = grid(had)
        lines = [[*line, *costs(result)] for line, result in zip(scores.lines, had, strict=True)]
        return as_markdown(Grid([*scores.headings, "weights of the model", "s per epoch"], lines))

    def hours(self) -> str:
        return f"{pages.cost(self.page.runs, self.page.trials)[1]:.1f}"

    def plots(self) -> str:
        """A picture along the table's axis or, where it has none, for each corpus: rows with runs, and what
        its bars are.
        """
        had = Page(self.page.table, tuple(self.had()), self.page.deviations)
        stem = self.place.replace("/", "-").replace("=", "-").replace(",", "-")
        plots = varied(had)
        shown = [self.shown(plot, f"{stem}-{place}") for place, plot in enumerate(plots, start=1)]
        return "\n\n".join([*shown, BARS])

    def shown(self, plot: Plot, name: str) -> str:
        path = self.results / PLOTS / f"{name}.svg"
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg.standalone(plot), encoding="utf-8")
        return f"![{plot.title}]({PLOTS}/{path.name})"


def costs(result: Result) -> tuple[str, str]:
    """Of a row with runs."""
    run = next(iter(result.runs.values()))
    return f"{run.metrics['model_weights']:,}", f"{result.cost()['seconds_per_epoch']:.1f}"
