"""results/PAPER.md: the measurements of a paper's tables, as a template filled with figures of archived runs.

A template is results/templates/PAPER.md.j2. It calls `table(NAME, OVERRIDE, ...)`, the archived runs of a table as a
`Measured`, the functions of `claims_page.for_templates`, `run(NAME)`, the content of results/NAME.json for a single
run, and `breakdown(RUN)`, so that no figure of a run and no verdict is typed by hand.
Templates run in Jinja's sandbox.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, StrictUndefined
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ner_experiments.analysis import statistics
from ner_experiments.analysis.archive import run_errors
from ner_experiments.data.tags import spans
from ner_experiments.runs.store import find_archive
from ner_experiments.tables import claims_page, dominant_sentence, results_folder, spec
from ner_experiments.tables.claims_page import PLOTS
from ner_experiments.tables.origin import cost
from ner_experiments.tables.plots import BARS, score_grid, score_plots
from ner_experiments.tables.results_folder import Read
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.significance import over_sentences
from ner_experiments.utils.text import did_you_mean, read_json_object, truncated_repr
from ner_experiments.view import cells
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart

TEMPLATES, SUFFIX = "templates", ".md.j2"


def write_all(results: Path, read: Read = results_folder.read) -> list[Path]:
    """Write the page and plots of each template; returns the pages. Tables and claims are read once for all of them.

    Raises ValueError as `write`.
    """
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals["table"] = cache(partial(measured, results, read))
    environment.globals |= claims_page.for_templates(results, read)
    environment.globals["breakdown"] = lambda run: run_errors(run).breakdown
    environment.globals["run"] = environment.globals["kept"] = cache(partial(kept, results))
    return [write(template, environment) for template in sorted((results / TEMPLATES).glob(f"*{SUFFIX}"))]


def write(template: Path, environment: Environment) -> Path:
    """Write the page and plots of a template; returns the page. Raises ValueError with the template."""
    path = template.parent.parent / template.name.removesuffix(".j2")
    try:
        text = environment.from_string(template.read_text(encoding="utf-8")).render()
    except (TemplateError, TypeError, ValueError) as error:
        raise ValueError(f"{template}: {error}") from error
    path.write_text(text, encoding="utf-8")
    return path


def measured(results: Path, read: Read, name: str, *overrides: str) -> Measured:
    """The archived runs of a table; for an analysis, those of the table it analyzes. ValueError if there are none."""
    table = spec.load(name)
    archive = find_archive(results, table.runs_of, overrides)
    if archive is None:
        raise ValueError(f"no runs of {table.runs_of} {' '.join(overrides)}".rstrip() + " are archived")
    folder = archive.folder
    place = Path(name) / folder.relative_to(results / table.runs_of)
    page = results_folder.read(folder, table) if table.analysis else read(folder)
    return Measured(page, results, place.as_posix())


def kept(results: Path, name: str) -> dict[str, Any]:
    """The content of results/NAME.json: a single run's `metrics` and `config`, or the kept output of a command.

    ValueError if there is no such file, and as `read_json_object`.
    """
    path = results / f"{name}.json"
    if not path.is_file():
        known = sorted(it.stem for it in path.parent.glob("*.json"))
        raise ValueError(f"{path}: no such file{did_you_mean(path.stem, known)}")
    return read_json_object(path)


@dataclass(frozen=True, eq=False)
class Measured:
    """A table's archived runs, for templates; scores are in percent.

    place: the folder of the runs, relative to `results`; for an analysis, where its folder would be.
    """

    page: Page
    results: Path
    place: str

    @cached_property
    def without_dominant_sentence(self) -> Measured:
        """The same without the dominant sentence of the test set. Raises ValueError if there is none."""
        return replace(self, page=dominant_sentence.drop_sentence(self.page))

    def row(self, label: str) -> Result:
        """The row of that label. Raises ValueError if there is none."""
        rows = {result.row.label: result for result in self.page.results}
        if label not in rows:
            raise ValueError(
                f"{self.page.table.name} has no row {truncated_repr(label)}{did_you_mean(label, rows)}"
            )
        return rows[label]

    def of(self, label: str) -> Result:
        """The row of that label. Raises ValueError if there is none, or if it has no runs."""
        result = self.row(label)
        if not result.scores:
            raise ValueError(f"{self.page.table.name} has no run of row {truncated_repr(label)}")
        return result

    def ours(self, label: str) -> str:
        """Mean ± standard deviation (seeds)."""
        return cells.score(self.of(label).measured)

    def dev(self, label: str) -> float:
        """The mean score on dev, in the epochs that dev chose."""
        runs = self.of(label).runs.values()
        return 100 * mean(run.metrics["dev"][run.primary_metric] for run in runs)

    def published(self, label: str) -> str:
        return f"{self.number(label):.2f}"

    def number(self, label: str) -> float:
        """The published number. Raises ValueError if the paper has none, or text."""
        published = self.row(label).row.published
        if not isinstance(published, int | float):
            place = f"{self.page.table.name}, row {truncated_repr(label)}"
            raise ValueError(f"{place}: expected a published number, got {truncated_repr(published)}")
        return published

    def remarks(self) -> str:
        """Remarks on test sets with a dominant sentence."""
        return " ".join(dominant_sentence.remarks(self.page))

    def difference(self, a: str, b: str, base: Measured | None = None) -> str:
        """Our score of row a minus that of row b, which may be of another table, `base`."""
        return f"{statistics.difference(self.of(a).scores, (base or self).of(b).scores).mean:+.2f}"

    def dev_difference(self, a: str, b: str, base: Measured | None = None) -> str:
        """Our mean dev score of row a minus that of row b."""
        return f"{self.dev(a) - (base or self).dev(b):+.2f}"

    def gap(self, a: str, b: str, base: Measured | None = None) -> str:
        """The difference of two rows, with its interval and p if there are enough seeds."""
        first, second = self.of(a).scores, (base or self).of(b).scores
        gap = statistics.difference(first, second)
        if gap.p is None:
            return cells.difference(gap, otherwise=cells.seed_counts(first, second))
        return f"{gap.mean:+.2f} ({cells.interval(gap)}, p {cells.probability(gap.p)})"

    def p(self, a: str, b: str, base: Measured | None = None) -> str:
        """p of the difference of two rows, over seeds and sentences; marked if it is over sentences alone."""
        (test,) = over_sentences([(self.of(a), (base or self).of(b))])
        alone = "" if test.p_over_sentences is None else " (sentences alone)"
        return cells.probability(test.p) + alone

    def published_gap(self, a: str, b: str, base: Measured | None = None) -> str:
        """The difference of two published numbers."""
        return f"{self.number(a) - (base or self).number(b):+.2f}"

    def published_also(self, label: str, name: str) -> str:
        """A figure that the paper prints beside a score, such as a difference. Raises ValueError if it has none."""
        also = self.row(label).row.also
        if name not in also:
            place = f"{self.page.table.name}, row {truncated_repr(label)}"
            raise ValueError(f"{place}: has no {truncated_repr(name)}{did_you_mean(name, also)}")
        return f"{also[name]:+.2f}"

    def linked(self, text: str) -> str:
        """A link to the page of all rows."""
        return f"[{text}]({self.place}/{results_folder.PAGE})"

    def measured_rows(self) -> list[Result]:
        """The rows with runs."""
        return [result for result in self.page.results if result.scores]

    def tagged(self, label: str, sentence: int, first: int, words: str) -> str:
        """Words of the test set with the mentions that the row's runs predict: Defender [Ann Lee]PER (2), ... (1).

        In parentheses: the number of runs, the largest first. sentence, first: the number of the sentence, and of the
        first word in it, from 0. Raises ValueError as `bracketed`.
        """
        found = Counter(
            bracketed(run.predicted_tags()[sentence], words.split(), first)
            for run in self.of(label).runs.values()
        )
        return ", ".join(f"{text} ({number})" for text, number in found.most_common())

    def rows(self) -> str:
        """A table of the rows with runs."""
        return score_grid(self.measured_rows()).markdown()

    def rows_and_costs(self) -> str:
        """A table of the rows with runs, with the weights of the model alone and the seconds per epoch.

        Weights exclude words, characters, the output layer and biases.
        """
        results = self.measured_rows()
        grid = score_grid(results)
        lines = [
            [*line, f"{it.run.metrics['model_weights']:,}", f"{it.cost()['seconds_per_epoch']:.1f}"]
            for line, it in zip(grid.lines, results, strict=True)
        ]
        return Grid([*grid.headings, "weights of the model", "s per epoch"], lines).markdown()

    def hours(self) -> str:
        return f"{cost(self.page.runs, self.page.trials)[1]:.1f}"

    def plots(self) -> str:
        """Plots of the rows with runs, along the table's axis or for each corpus, and an explanation of their bars."""
        page = Page(self.page.table, tuple(self.measured_rows()), self.page.deviations)
        stem = self.place.replace("/", "-")
        plots = enumerate(score_plots(page), start=1)
        return "\n\n".join([*(self._linked_plot(plot, f"{stem}-{number}") for number, plot in plots), BARS])

    def _linked_plot(self, plot: Chart, name: str) -> str:
        path = self.results / PLOTS / f"{name}.svg"
        path.parent.mkdir(exist_ok=True)
        path.write_text(plot.svg(), encoding="utf-8")
        return f"![{plot.title}]({PLOTS}/{path.name})"


def bracketed(tags: Sequence[str], words: Sequence[str], first: int) -> str:
    """The words with the mentions of their sentence in brackets; `first` is the number of the first word in it.

    Raises ValueError for words beyond the sentence, and for a mention that goes beyond the words.
    """
    if not 0 <= first <= len(tags) - len(words):
        raise ValueError(
            f"{truncated_repr(' '.join(words))} from word {first} on: the sentence has {len(tags)} words"
        )
    pieces = [*words]
    for start, end, kind in spans(tags):
        if end <= first or start >= first + len(words):
            continue
        if start < first or end > first + len(words):
            raise ValueError(f"a {kind} mention goes beyond {truncated_repr(' '.join(words))}")
        pieces[start - first] = f"[{pieces[start - first]}"
        pieces[end - 1 - first] += f"]{kind}"
    return " ".join(pieces)
