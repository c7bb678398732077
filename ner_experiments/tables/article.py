"""A table for an article: LaTeX of its rows, PDF figures, a paragraph on the methods, and BibTeX of what it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from ner_experiments.config.row_settings import display_name, flat, varying
from ner_experiments.tables.effects import Effects
from ner_experiments.tables.pairs import against_leaders, mean
from ner_experiments.tables.plots import score_plots, seed_plots, settings
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.tables.significance import ALPHA
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils.text import listed
from ner_experiments.view import cells, pages
from ner_experiments.view.table import Grid, latex
from ner_experiments.view.vega import Chart

TEXTS = ("table", "effects", "methods", "preview")
FIGURE_WIDTH = 500
"""In pixels: as wide as two columns of text."""
REFERENCES = Path(pages.__file__).with_name("templates") / "references.bib"
ENTRY = re.compile(r"^@\w+\{(?P<key>\w+),.*?^\}\n", re.DOTALL | re.MULTILINE)
USED = re.compile(r"^  used = \{(.*)\},\n", re.MULTILINE)
"""The field of an entry that says what it is cited for: corpora by name, code by the end of its path."""


def write(view: TableView, folder: Path, dataset: str | None = None) -> list[Path]:
    """Write the files of a table into a folder, and return them: first the document that shows all of them.

    dataset: name of the test set, if it is not that of the runs' corpus.

    ValueError for a table without training runs.
    """
    article = Article(view, dataset)
    if not article.rows:
        name = view.page.table.name
        raise ValueError(f"{name}: --paper describes training runs, and none of its rows has a finished one")
    folder.mkdir(parents=True, exist_ok=True)
    contents: dict[str, bytes] = {}
    for number, plot in enumerate(article.plots, start=1):
        contents[f"figure-{number}.pdf"] = plot.pdf(FIGURE_WIDTH)
    figures = [*contents]
    for name in TEXTS:
        if text := pages.page(f"article/{name}.tex.j2", it=article, figures=figures, prose=prose):
            contents[f"{name}.tex"] = text.encode()
    contents["references.bib"] = references(contents["methods.tex"].decode()).encode()
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return [folder / file for file in sorted(contents, key="preview.tex".__ne__)]


@dataclass(frozen=True)
class Article:
    """A table's rows and runs, in the words and cells of the files."""

    view: TableView
    dataset: str | None = None

    @property
    def page(self) -> Page:
        return self.view.page

    @cached_property
    def rows(self) -> list[Result]:
        """The rows with runs and, of a published table, those with a published number."""
        measured = [it for it in self.page.results if it.runs]
        return [it for it in self.page.results if it.runs or it.row.published is not None] if measured else []

    @cached_property
    def plots(self) -> list[Chart]:
        """One plot for each corpus with runs and each grid, or one along the number that a published table varies."""
        page = replace(self.page, results=tuple(it for it in self.rows if it.runs or it.row.cited))
        if not page.table.is_sweep:
            return score_plots(page)
        return [*seed_plots(page), *(plot for it in self.view.effects if (plot := it.plot))]

    @cached_property
    def score(self) -> str:
        """`F1`, or the name of another score; several where rows are scored by different ones."""
        return listed(list(dict.fromkeys(run.score_name for run in self.page.runs)))

    # The table

    @cached_property
    def varied(self) -> list[str]:
        """The settings that make the rows of a sweep, if each row has a value for each of them; else none."""
        rows = [settings(self.page.table, result) for result in self.rows]
        keys = varying(rows) if self.page.table.is_sweep else []
        return keys if all(key in row for key in keys for row in rows) else []

    @property
    def headings(self) -> list[str]:
        names = [display_name(key).rpartition(".")[2].replace("_", " ") for key in self.varied] or [""]
        published = ["published"] if self.page.table.is_published else []
        return [*names, *published, "ours" if published else f"test {self.score}", "95 % interval"]

    @property
    def lines(self) -> Iterator[list[str]]:
        """The cells of each row as LaTeX."""
        for result in self.rows:
            row, ours = result.row, result.measured
            values = settings(self.page.table, result)
            names = [values[key].rpartition("/")[2] for key in self.varied] or [row.label]
            published = (
                [cells.published(row.published, row.sd, row.runs)] if self.page.table.is_published else []
            )
            *texts, score, interval = map(
                prose, [*names, *published, self.mean(result), cells.interval(ours)]
            )
            yield [*texts, rf"\textbf{{{score}}}" if row.label in self.bold else score, interval or "--"]

    def mean(self, result: Result) -> str:
        """`91.20 ± 0.10`, with the number of runs where it differs between rows."""
        if (ours := result.measured) is None:
            return "--"
        return (
            f"{ours.mean:.2f}{cells.deviation(ours.sd, None if len(self.numbers_of_seeds) == 1 else ours.n)}"
        )

    @cached_property
    def is_tested(self) -> bool:
        """Whether some compared pair of rows has several seeds."""
        return any(pair.test.p_adjusted is not None for pair in self.view.tested)

    @cached_property
    def bold(self) -> set[str]:
        """On each test set, the rows with the highest mean as printed and, of a tested sweep, those not behind it."""
        found = set()
        for group in groups(self.page.results):
            best = max(round(mean(it), 2) for it in group)
            found |= {it.row.label for it in group if round(mean(it), 2) == best and len(group) > 1}
        # a published table does not compare all rows with the best
        if self.is_tested and self.page.table.is_sweep:
            against = chain.from_iterable(against_leaders(self.view.pairs))
            found |= {it.labels[1] for it in against if it.verdict != "ahead"}
        return found

    @cached_property
    def grids(self) -> list[Effects]:
        """The grids whose effects are tested."""
        return [it for it in self.view.effects if it.analysis]

    @staticmethod
    def tabular(grid: Grid) -> str:
        """LaTeX of a grid, with the signs of numbers, differences and interactions in mathematical mode."""
        return re.sub(r"(?<= )-(?= )", "$-$", signed(grid.latex()))

    @cached_property
    def corpora(self) -> list[str]:
        """The names of the corpora that the runs were trained on."""
        names = dict.fromkeys(str(run.metrics["data"]["name"]) for run in self.page.runs)
        return [self.dataset] if self.dataset else list(names)

    @property
    def test_set(self) -> str:
        """`the test set of conll2003`, or another one that the table was asked to show."""
        if not self.trained:
            return listed(self.corpora)
        other = next((run.test_name for run in self.page.runs if run.test_name != "test"), "")
        return other or f"the test set{'s' * (len(self.corpora) > 1)} of {listed(self.corpora)}"

    @cached_property
    def numbers_of_seeds(self) -> list[int]:
        return sorted({len(it.runs) for it in self.rows if it.runs})

    # The methods

    @cached_property
    def shared(self) -> Mapping[str, Any]:
        """The settings that all runs have, by their path, such as `optimizer.lr`."""
        every = [dict(flat(run.settings())) for run in self.page.runs]
        return {key: value for key, value in every[0].items() if all(it.get(key) == value for it in every)}

    @property
    def optimizer(self) -> str:
        return str(self.shared.get("optimizer._target_", "")).rpartition(".")[2]

    @property
    def trained(self) -> bool:
        """Whether the rows are trainings of the suite; else they are files of predictions."""
        return any("versions" in run.metrics for run in self.page.runs)

    @property
    def software(self) -> str:
        """The versions of the suite and of the libraries that the runs were made with."""
        torch = {
            it["torch"].partition("+")[0] for run in self.page.runs if (it := run.metrics.get("versions"))
        }
        return f"version {version('ner_experiments')}" + (
            f" with PyTorch {listed(sorted(torch))}" if torch else ""
        )

    @property
    def levels(self) -> list[float]:
        """The levels of the tests, if looks share the level of the verdicts out among them."""
        levels = sorted({pair.test.alpha for pair in self.view.tested})
        return [] if levels == [ALPHA] else levels

    @property
    def registration(self) -> str:
        """A sentence on what was registered of the table before the first run; nothing for files of predictions.

        What runs recorded may be the registration of another sweep with an equal row, or of a paper's claims.
        """
        standing = self.view.registration
        if not self.trained:
            return ""
        if (it := standing.registration) is None:
            return "This table has no registration of its own, so its comparisons are exploratory."
        if standing.pair is None:
            text = f"The registration {it.hash} is of other runs or scores than these"
            return f"{text}, so that all comparisons are exploratory."
        text = f"Rows, seeds and the primary comparison, {' - '.join(it.labels)}, were registered"
        return f"{text} before the first run (hash {it.hash}); all others are exploratory."

    @cached_property
    def used(self) -> dict[str, list[str]]:
        """Keys of the references to what the runs used, by what that is: a corpus, a model, a part of it."""
        names = {f".{corpus}" for corpus in self.corpora}
        for run in self.page.runs:
            names |= {f".{value}" for key, value in flat(run.settings()) if key.endswith("_target_")}
        names.add(f".papers.{self.page.table.name.partition('_')[0]}")
        found: dict[str, list[str]] = {}
        for entry in ENTRY.finditer(REFERENCES.read_text(encoding="utf-8")):
            use = USED.search(entry[0])
            kind, *parts = use[1].split() if use else [""]
            if any(name.endswith(f".{part}") or f".{part}." in name for part in parts for name in names):
                found.setdefault(kind, []).append(entry["key"])
        return found

    def cite(self, *keys: str) -> str:
        r"""`~\cite{KEY,KEY}`; nothing without a key."""
        return rf"~\cite{{{','.join(keys)}}}" if keys else ""


def references(methods: str) -> str:
    """The BibTeX entries that the methods cite."""
    cited = {key for keys in re.findall(r"\\cite\{(.*?)\}", methods) for key in keys.split(",")}
    entries = ENTRY.finditer(REFERENCES.read_text(encoding="utf-8"))
    return "\n".join(USED.sub("", entry[0]) for entry in entries if entry["key"] in cited)


def prose(text: str) -> str:
    """The text for LaTeX, with the signs of negative numbers and of interactions as such."""
    return signed(latex(text))


def signed(text: str) -> str:
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", text).replace(" x ", r" $\times$ ")
