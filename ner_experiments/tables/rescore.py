"""The runs of a table scored against another gold file of the same text, by the tags that they predicted.

A run's tags are those of predictions/test.conll, or those archived in results/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ner_experiments.config.row_settings import joined
from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.formats.layout import Columns
from ner_experiments.data.projection import OtherTextError, Projection, project
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import count_mentions, count_windows
from ner_experiments.data.text_files import UTF_8
from ner_experiments.experiment_data import read_corpus
from ner_experiments.runs.predictions import as_field
from ner_experiments.runs.store import find_archive, same_overrides
from ner_experiments.tables import results_folder, spec, verdicts
from ner_experiments.tables.claims import Claim, ClaimSource
from ner_experiments.tables.experiments import experiments
from ner_experiments.tables.rescored import Change, Rescored, RescoredRun
from ner_experiments.tables.scores import Page, Result, groups


@dataclass(frozen=True)
class Gold:
    """A file of gold mentions."""

    path: Path
    sentences: Sequence[Sentence]

    @classmethod
    def read(cls, path: Path, columns: Columns, encoding: str = UTF_8) -> Gold:
        """The mentions of a column file with tags in any scheme. Raises ValueError as `ColumnFiles.read`."""
        files = {"test": str(path)}
        file = ColumnFiles(name=path.name, folder=".", files=files, columns=columns, encoding=encoding)
        sentences = file.read()["test"]
        return cls(path, [replace(it, words=tuple(map(as_field, it.words))) for it in sentences])

    @property
    def types(self) -> Counter[str]:
        """Number of mentions of each type."""
        return count_mentions(count_windows(sentence.tags for sentence in self.sentences))


def rescore(page: Page, gold: Gold, overrides: Sequence[str] = ()) -> Rescored:
    """Score the runs of a page against `gold`. overrides: those that say where its corpus is.

    Raises ValueError if `gold` has none of the types that the runs predict.
    """
    scored: dict[str, Mapping[int, RescoredRun]] = {}
    projections: dict[str, Projection] = {}
    not_rescored: dict[Path, str] = {}
    other_rows: dict[str, str] = {}
    for group in groups(page.results):
        try:
            words = text_of(group, page, overrides)
            projection = project(words, gold.sentences)
        except OtherTextError as error:
            text = f"{gold.path} has another text than the test set of {group[0].data['name']}"
            other_rows |= {result.row.label: f"{text}: {error}" for result in group}
            continue
        except (ValueError, OSError) as error:
            other_rows |= {result.row.label: f"{error}" for result in group}
            continue
        projections[group[0].run.test_set] = projection
        for result in group:
            scored[result.row.label], failed = rescored_runs(result, words, projection)
            not_rescored |= failed
    check_types(gold, [run for runs in scored.values() for run in runs.values()])
    pairs = [(result, scored.get(result.row.label, {})) for result in page.results]
    own = tuple(result.at(runs.keys()) for result, runs in pairs)
    other = tuple(result.with_runs(runs) for result, runs in pairs)
    by_own, by_other = replace(page, results=own), replace(page, results=other)
    number = gold.types.total()
    return Rescored(gold.path, number, page, by_own, by_other, projections, not_rescored, other_rows)


def rescored_runs(
    result: Result, words: Sequence[tuple[str, ...]], projection: Projection
) -> tuple[dict[int, RescoredRun], dict[Path, str]]:
    """The runs of a row that can be rescored, by seed, and the reason for each of the others."""
    runs, failed = {}, {}
    for seed, run in result.runs.items():
        try:
            runs[seed] = RescoredRun.of(run, words, projection)
        except (ValueError, OSError) as error:
            failed[run.folder] = f"{error}"
    return runs, failed


def check_types(gold: Gold, runs: Sequence[RescoredRun]) -> None:
    """Raise ValueError if no type of the gold mentions is one that the runs predict."""
    predicted = {type_ for run in runs for type_ in run.types}
    if predicted and predicted.isdisjoint(gold.types):
        found = ", ".join(sorted(gold.types)) or "none"
        raise ValueError(f"{gold.path}: expected types such as {min(predicted)}, got {found}")


def text_of(group: Sequence[Result], page: Page, overrides: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of the test sentences of rows on the same data, with spaces as in files of predictions.

    They are read from a run's folder, or from the corpus if all runs are archived ones, which have no text. Raises
    ValueError or OSError if they cannot be read, and for rows that tag single tokens.
    """
    runs = [run for result in group for run in result.runs.values()]
    if runs[0].metrics["task"] != "mentions":
        raise ValueError(
            f"{runs[0].metrics['data']['name']} has one tag per token, and only mentions are rescored"
        )
    if folders := [run for run in runs if not run.archived]:
        return [sentence.words[: sentence.num_tokens] for sentence in folders[0].predicted()]

    row = group[0].row.label
    found = experiments(page.table, joined(page.deviations, overrides))
    corpus = read_corpus(next(it.cfg.data for it in found if it.row.label == row))
    if corpus.checksum != (checksum := group[0].data["checksum"]):
        raise ValueError(
            f"{corpus.name} has changed since the runs: its checksum is {corpus.checksum}, theirs was {checksum}"
        )
    return [tuple(map(as_field, sentence.words)) for sentence in corpus.splits["test"]]


# Claims


def decide_again(
    ledger: Sequence[Claim], rescored: Rescored, gold: Gold, results: Path, overrides: Sequence[str] = ()
) -> tuple[list[Change], list[Claim]]:
    """The tests of claims about rescored rows whose runs could all be rescored, and those of which some could not.

    Tests that lack the runs of a row are left out. Rows of other tables that a claim needs are read from `results`. In
    the correction for the number of claims, rows with runs that could not be rescored count with their scores by their
    own gold.
    """

    @cache
    def rescored_table(source: ClaimSource) -> Rescored | None:
        if is_of(source, rescored.page):
            return rescored
        archive = find_archive(results, spec.load(source.table).runs_of, source.overrides)
        return rescore(results_folder.read(archive.folder), gold, overrides) if archive else None

    old = verdicts.row_reader(lambda source: found.page if (found := rescored_table(source)) else None)
    new = verdicts.row_reader(lambda source: found.mixed if (found := rescored_table(source)) else None)
    about = [claim for claim in ledger if any(is_of(it.source, rescored.page) for it in claim.references)]
    concerned, complete = [], set()
    for claim in about:
        runs = [*verdicts.runs(claim, old)]
        if any(run.test_set in rescored.projections for run in runs):
            concerned.append(claim)
            if all(isinstance(run, RescoredRun) for run in verdicts.runs(claim, new)):
                complete.add(claim.id)
    tested = verdicts.with_families(ledger, concerned)
    pairs = zip(verdicts.decide_by(tested, old), verdicts.decide_by(tested, new), strict=True)
    changes = [Change(own, other) for own, other in pairs if own.claim.id in complete and not own.lacks_rows]
    return changes, [claim for claim in concerned if claim.id not in complete]


def is_of(source: ClaimSource, page: Page) -> bool:
    """Whether a source of the ledger has the runs of this page."""
    return spec.load(source.table).runs_of == page.table.name and same_overrides(
        source.overrides, page.deviations
    )
