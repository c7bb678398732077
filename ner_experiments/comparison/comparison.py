"""A comparison as its reader sees it: the outputs of a sweep's table, other scores, and how all was scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from ner_experiments.analysis import looser_scores
from ner_experiments.analysis.archive import Errors, errors_in_predictions
from ner_experiments.analysis.breakdown import SEEN, TYPE, dimensions
from ner_experiments.comparison import systems
from ner_experiments.comparison.reading import Columns, types_of
from ner_experiments.comparison.systems import Compared, Published
from ner_experiments.runs.file_run import FileRun
from ner_experiments.tables.effects import Effects
from ner_experiments.tables.pairs import with_sign
from ner_experiments.tables.scores import Result
from ner_experiments.tables.spec import SMALLEST_EFFECT
from ner_experiments.tables.table_view import MEANS, OF_A_ROW, SUMMARY, TableView, row_record
from ner_experiments.utils.text import truncated_repr
from ner_experiments.view import cells, pages
from ner_experiments.view.table import Grid

OTHER_SCORES = {
    "exact": looser_scores.ANY_TYPE,
    "partial": looser_scores.PARTIAL,
    "type": looser_scores.ANY_OVERLAP,
    "macro": looser_scores.MACRO,
}
"""Names of SemEval-2013, and of the mean over types -> those of `analysis.looser_scores`."""
LEGEND = (
    "Means over files, in percent. exact: F1 of the boundaries, of any type; partial: as exact, where an overlap "
    "counts half; type: F1 of the types, with any overlap (SemEval-2013); macro: mean F1 of the types; token accuracy: "
    "share of tokens with the IOB2 tag of gold."
)
EXPECTED = (
    "Expected: whether the published number lies in the system's 95 % prediction interval for the mean of as many "
    "runs; unknown for a single file."
)
SEEN_LEGEND = "F1 of mentions by whether train has them, in percent, and their number in gold."


@dataclass(frozen=True)
class Comparison(TableView):
    """Systems on one gold file."""

    compared: Compared
    of_a_row: ClassVar[Sequence[str]] = tuple(key for key in OF_A_ROW if key != "cited")

    @classmethod
    def of(cls, compared: Compared) -> Comparison:
        systems.check_renamed(compared)
        return cls(compared.page, compared)

    @property
    def standing(self) -> str:
        """Empty: no file shows whether the comparison was planned before it was made."""
        return ""

    @property
    def added_seeds(self) -> str:
        """The same of the tables whose rows are compared, and that they were planned with looks."""
        return " ".join(self.compared.remarks)

    @property
    def effects(self) -> list[Effects]:
        return []

    @property
    def closeness(self) -> str:
        return ""

    @cached_property
    def signature(self) -> str:
        """How the scores were made: two comparisons with one signature measured alike, on the same gold mentions.

        Mentions are right if boundaries and type are; illegal tags are read as by conlleval; mentions are compared by
        the characters of gold, which is by its tokens where files have these; gold's number of types; other names of
        types; whether missing sentences count; gold's digest, which no format or scheme changes; version.
        """
        parts = [
            "strict",
            "conlleval",
            "characters",
            f"types:{len(types_of(self.compared.gold.sentences))}",
            *(f"map:{old}={new}" for old, new in sorted(self.compared.types.items())),
            *(["missing:empty"] if self.compared.missing_is_empty else []),
            f"gold:{self.compared.runs[0].metrics['data']['gold'][:8]}",
            f"v{version('ner_experiments')}",
        ]
        return "|".join(parts)

    def check_signature(self, other: str) -> None:
        """Raise ValueError, with the parts that differ, if the signature is another one."""
        if other != self.signature:
            ours, theirs = self.signature.split("|"), other.split("|")
            differ = ", ".join(sorted({*ours} ^ {*theirs})) or "the order"
            raise ValueError(f"the signature is {self.signature}, not {other}; they differ in {differ}")

    @cached_property
    def results(self) -> Grid:
        return (
            super()
            .results.without(["parameters", "s per epoch"])
            .renamed({"test": "F1", "ours - published": "difference"})
        )

    @property
    def explanation(self) -> str:
        of_published = f" {EXPECTED}" if self.page.table.is_published else ""
        return f"{MEANS} F1: exact mentions, as conlleval counts them.{of_published}"

    @cached_property
    def errors(self) -> dict[tuple[str, int], Errors]:
        """The errors of each file, by system and seed: by type, and by occurrence in train if that is known."""
        runs = self.compared.runs
        every = dimensions(runs[0].train, "mentions")
        named = {name: every[name] for name in (TYPE, SEEN) if name in every}
        found = errors_in_predictions([run.uncut for run in runs], "mentions", named)
        return {(run.label, run.metrics["seed"]): it for run, it in zip(runs, found, strict=True)}

    def of_system(self, result: Result) -> list[Errors]:
        return [self.errors[result.row.label, seed] for seed in result.runs]

    @cached_property
    def other_scores(self) -> Grid:
        """Precision, recall and scores that count more than exact mentions."""
        lines = []
        for result in self.page.results:
            scores = self.further_scores(result)
            lines.append([result.row.label, *(f"{score:.2f}" for score in scores.values())])
        return Grid(["", *scores], lines)

    def further_scores(self, result: Result) -> dict[str, float]:
        """Means over the files of a system, in percent, by the headings of `other_scores`."""
        runs = [run for run in result.runs.values() if isinstance(run, FileRun)]
        looser = [*map(looser_scores.looser_scores, self.of_system(result))]

        def mean(name: str) -> float:
            return fmean(100 * run.metrics["test"][name] for run in runs)

        strict = {name: mean(name) for name in ("precision", "recall")}
        others = {name: 100 * fmean(it[key] for it in looser) for name, key in OTHER_SCORES.items()}
        return strict | others | {"token accuracy": mean("token_accuracy")}

    @cached_property
    def seen(self) -> Grid | None:
        """F1 of mentions that train has, and of those that it has not; None without train."""
        if self.compared.runs[0].train is None:
            return None
        groups = {
            it.row.label: [errors.breakdown[SEEN] for errors in self.of_system(it)]
            for it in self.page.results
        }
        gold = {name: bucket.gold for name, bucket in next(iter(groups.values()))[0].items() if bucket.gold}
        lines = [
            [label, *(f"{100 * fmean(it[name].f1 for it in of_files):.2f}" for name in gold)]
            for label, of_files in groups.items()
        ]
        return Grid(["", *(f"{name} ({number:,})" for name, number in gold.items())], lines)

    @property
    def other_legend(self) -> str:
        return LEGEND

    @property
    def seen_legend(self) -> str:
        return SEEN_LEGEND

    @cached_property
    def leakage(self) -> str:
        """How many sentences of gold train has, too; empty without train."""
        train = self.compared.runs[0].train
        if train is None:
            return ""
        known = {it.words for it in train}
        number = sum(it.words in known for it in self.compared.gold.sentences)
        verb = "occurs" if number == 1 else "occur"
        return f"{number:,} of the {len(self.compared.gold.sentences):,} sentences also {verb} in train."

    @cached_property
    def reading(self) -> list[str]:
        """How files were read, and what in them was counted otherwise than it is written; each thing once."""
        files: dict[str, list[str]] = {}
        for run in self.compared.runs:
            for note in run.notes:
                files.setdefault(note, []).append(str(run.folder))
        # the remark on further columns names a setting of conf/data
        notes = [f"gold: {note.partition(': data.columns')[0]}" for note in self.compared.gold.notes]
        notes += [f"{paths[0]}{others(len(paths) - 1)}: {note}" for note, paths in files.items()]
        if illegal := self.compared.gold.illegal:
            notes.append(
                f"gold: tags that break {self.compared.gold.scheme}, read as by conlleval: {illegal:,}"
            )
        return notes

    @property
    def of_the_files(self) -> list[str]:
        sentences = [f"{note}." for note in self.reading if ": read as: " not in note]
        single = [(*it.labels, cells.probability(it.over_sentences.p_over_sentences)) for it in self.pairs]
        if listed := "; ".join(f"{a} and {b}: p {with_sign(p)}" for a, b, p in single if p):
            how = "Single files were compared over sentences by approximate randomization, which says nothing"
            sentences.append(f"{how} about other trainings: {listed}.")
        return sentences

    def markdown(self) -> str:
        return pages.page("comparison.md.j2", view=self, page=self.page, root="")

    def record(self) -> dict[str, Any]:
        """The comparison by name, as in `ner-experiments compare --json`."""
        return {
            "signature": self.signature,
            "gold": {
                "file": str(self.compared.gold.path),
                "sentences": len(self.compared.gold.sentences),
                "mentions": sum(len(it.mentions) for it in self.compared.gold.sentences),
                "digest": self.compared.runs[0].metrics["data"]["gold"],
            },
            "systems": [*map(self.system, self.page.results)],
            "verdict": self.verdict,
            "pairs": [pair.record() for pair in self.pairs],
            "notes": [*self.notes, *self.reading],
        }

    def system(self, result: Result) -> dict[str, Any]:
        """A system by name."""
        row, runs = row_record(result), result.runs
        counts = ("correct", "predicted", "gold")
        return {
            "name": row["label"],
            **{name: value for name, value in row.items() if name.startswith("published")},
            "measured": {key: row["measured"][key] for key in (*SUMMARY, "scores")},
            "files": row["measured"]["folders"],
            "other_scores": self.further_scores(result),
            "counts": {seed: {key: it.metrics["test"][key] for key in counts} for seed, it in runs.items()},
        }

    def to_records(self) -> list[dict[str, Any]]:
        """A flat record for each system: the rows of a data frame."""
        records = []
        for it in self.page.results:
            measured = row_record(it)["measured"]
            summary = {key: measured[key] for key in ("mean", "sd", "n", "low", "high")}
            records.append({"system": it.row.label, **summary, **self.further_scores(it)})
        return records

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def __rich__(self) -> Any:
        from rich.markdown import Markdown

        return Markdown(self.markdown())

    def __str__(self) -> str:
        return self.markdown()

    def __repr__(self) -> str:
        return f"<Comparison: {self.page.table.title}. {self.verdict}>"


Paths = str | PathLike[str]


def compare(
    gold: Paths | None,
    files: Mapping[str, Paths | Sequence[Paths]],
    *,
    train: Paths | None = None,
    types: Mapping[str, str] = {},
    against: float | Published | None = None,
    gold_columns: Columns | None = None,
    columns: Mapping[str, Columns] = {},
    missing_is_empty: bool = False,
    encoding: str | None = None,
    smallest_effect: float = SMALLEST_EFFECT,
) -> Comparison:
    """The predictions of any tools on one gold file, scored and tested as the rows of a table are.

    gold: a file in any format that the suite reads; None if the files of predictions are columns with gold, as those of
        conlleval.
    files: system -> its files of predictions, one per seed, or a pattern such as "seed-*.conll"; a file may be the
        folder of a finished run.
    train: training data, to score mentions that it has apart from others. types: other names for types, in all files.
    against: a published F1 in percent.
    gold_columns: layer -> column of the gold file, where these are not found, such as {"word": 0, "tag": 3}.
    columns: the same of predictions, by system, and of "" for all others.
    missing_is_empty: whether a sentence that a file lacks counts as without a prediction; else it is an error.
    encoding: that of the files that are not in UTF-8.
    smallest_effect: systems are equal if their difference is shown to be smaller, in points.

    Raises ValueError or OSError, with file and place, for files that cannot be read or have another text than gold.
    """
    if not isinstance(files, Mapping):
        rule = "expected the files of each system by its name, such as {'mine': 'mine-*.conll'}"
        raise ValueError(f"{rule}, got {truncated_repr(files)}")
    paths = {
        name: [
            path
            for each in ([own] if isinstance(own, str | PathLike) else own)
            for path in systems.matching(str(each)) or [Path(each)]
        ]
        for name, own in files.items()
    }
    published = Published(against) if isinstance(against, int | float) else against
    compared = systems.score(
        paths,
        None if gold is None else Path(gold),
        gold_columns=gold_columns,
        columns=columns,
        types=types,
        published=published,
        missing_is_empty=missing_is_empty,
        encoding=encoding,
        train=None if train is None else Path(train),
        smallest_effect=smallest_effect,
    )
    return Comparison.of(compared)


def others(number: int) -> str:
    return f" and {number} other file{'s' * (number > 1)}" if number else ""
