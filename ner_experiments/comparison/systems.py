"""Systems to compare: a name, and a file of predictions for each seed, as the rows of a table."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.analysis.row_errors import RowErrors
from ner_experiments.comparison.aligning import Aligned, align, tagged, token_accuracy, uncut, without_overlap
from ner_experiments.comparison.reading import (
    GOLD,
    GOLD_BESIDE,
    OFFSETS,
    PREDICTED,
    Columns,
    Text,
    Texts,
    mapped,
    predicted_columns,
    read,
    read_at_once,
    types_of,
    with_probabilities,
)
from ner_experiments.data.sentence import Sentence, gold_digest
from ner_experiments.data.tags import encode
from ner_experiments.runs.file_run import FileRun
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import SMALLEST_EFFECT, Row, Table
from ner_experiments.utils.text import counted, truncated_repr

if TYPE_CHECKING:
    from ner_experiments.tables.table_view import TableView

Systems = Mapping[str, Sequence[Path]]
"""The files of each system, one per seed; a file may be the folder of a run."""
WITH_OPTION = "with --gold, or of `rescore` with --own-gold"
"""How to state gold that is not beside the predictions."""
_SEED = re.compile(r"seed[-_=]?(\d+)|(\d+)(?=\.[a-z]\w*$|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Published:
    """A published score in percent, with its standard deviation over `runs`, if it has one."""

    mean: float
    sd: float | None = None
    runs: int | None = None


@dataclass(frozen=True)
class Compared:
    """Systems on one gold file. page: that of a sweep, with a row for each system.

    types, missing_is_empty, remarks: as in `score`. found_types: the types of all files, before they are renamed.
    """

    page: Page
    gold: Texts
    types: Mapping[str, str]
    missing_is_empty: bool
    found_types: frozenset[str]
    remarks: Sequence[str] = ()

    @property
    def runs(self) -> list[FileRun]:
        return [run for run in self.page.runs if isinstance(run, FileRun)]

    @property
    def rows(self) -> list[RowErrors]:
        """The errors of each system."""
        return [RowErrors(it.row.label, it.runs) for it in self.page.results]


def parsed(arguments: Iterable[str]) -> tuple[dict[str, list[Path]], list[str]]:
    """The systems of arguments such as `flair=flair/seed-*.conll`; a further path belongs to the name before it.

    An argument that is neither names a table or a recorded sweep, whose rows are systems; remarks on what was planned
    for them are returned, too. ValueError for a path without a name, a pattern that no file has, a name or file that
    stands twice, and an unknown table.
    """
    systems: dict[str, list[Path]] = {}
    remarks: list[str] = []
    name = ""
    for argument in arguments:
        head, equals, pattern = argument.partition("=")
        if equals and not Path(argument).exists():
            if not (name := head):
                raise ValueError(f"{argument}: expected NAME=FILES")
            add(systems, name, [], argument)
        else:
            pattern = argument
        paths = matching(pattern)
        if not paths and equals:
            raise ValueError(f"{name}: there is no file {pattern}")
        if not paths:
            view = table_of(argument)
            if view.added_seeds:
                remarks.append(f"{argument}: {view.added_seeds}")
            if view.page.table.looks:
                planned = f"`ner-experiments table {argument}` tests at the level of each look"
                remarks.append(f"{argument}: planned with looks; {planned}, but the tests here are at 0.05.")
            for row in view.page.results:
                if row.runs:
                    add(systems, row.row.label, [run.folder for run in row.runs.values()], argument)
        elif not name:
            raise ValueError(f"{argument}: expected NAME=FILES, such as mine={argument}")
        elif again := {*systems[name]}.intersection(paths):
            raise ValueError(f"{name}: {again.pop()} stands twice")
        else:
            systems[name] += paths
    return systems, remarks


def matching(pattern: str) -> list[Path]:
    """The path, or the files of a pattern in natural order; empty if there is none."""
    return [Path(pattern)] if Path(pattern).exists() else sorted(map(Path, glob.glob(pattern)), key=natural)


def add(systems: dict[str, list[Path]], name: str, paths: list[Path], argument: str) -> None:
    """Add a system. ValueError for a name that stands twice."""
    if name in systems:
        raise ValueError(f"{argument}: a name stands twice")
    systems[name] = paths


def table_of(name: str) -> TableView:
    """A table or a recorded sweep with its runs. ValueError for an unknown one, and if no run of it is finished."""
    from ner_experiments.tables import sweeps  # slow to import: Hydra
    from ner_experiments.tables.experiments import output_dir
    from ner_experiments.tables.table_view import TableView

    output = output_dir([])
    if name not in (*spec.names(), *sweeps.names(output)):
        raise sweeps.unknown(name, output)
    return TableView(sweeps.finished(sweeps.find(name, output), [], output))


def are_files(arguments: Sequence[str]) -> bool:
    """Whether arguments are files of systems, as `parsed` takes them, and not tables, sweeps or overrides.

    An override may name a file or folder, too: `output_dir=outputs`, `words.input.path=vectors.txt`, or
    `data=conll2003` beside a folder of this name.
    """
    pairs = [it.partition("=")[::2] for it in arguments if "=" in it]
    found = {name: glob.glob(pattern) for name, pattern in pairs if name != "output_dir"}
    certain = any(Path(it).is_file() for name, paths in found.items() if "." not in name for it in paths)
    return certain or (bool(found) and all(found.values()))


def natural(path: Path) -> list[str | int]:
    """Sort key by which seed-2 comes before seed-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]


def seeds_of(paths: Sequence[Path]) -> list[int]:
    """The seeds that the names of files state; else their numbers from 1."""
    found = [_SEED.findall(path.name) or _SEED.findall(str(path)) for path in paths]
    seeds = [int(next(filter(None, it[-1]))) if it else -1 for it in found]
    return seeds if len({*seeds} - {-1}) == len(paths) else [*range(1, len(paths) + 1)]


def score(
    systems: Systems,
    gold: Path | None,
    *,
    gold_columns: Columns | None = None,
    columns: Mapping[str, Columns] = {},
    types: Mapping[str, str] = {},
    published: Published | None = None,
    missing_is_empty: bool = False,
    encoding: str | None = None,
    train: Path | None = None,
    smallest_effect: float = SMALLEST_EFFECT,
    remarks: Sequence[str] = (),
) -> Compared:
    """Score the files of systems against one gold file.

    gold: None if all files of predictions are columns that have it, too. columns: those of predictions, by system, with
    "" for all others, where these are not found. types: other names for types, in all files.
    published: a score that each system is compared with. train: training data, by which mentions are seen or unseen.
    missing_is_empty: as in `align`. encoding: as in `read`. smallest_effect: as in `Table`.
    remarks: sentences on the seeds of the systems.

    ValueError for files that cannot be read or aligned, files with another gold, predictions or train without a type of
    gold, and columns of what is not there.
    """
    if not systems:
        raise ValueError("expected the files of at least one system, as NAME=FILES")
    for name, paths in systems.items():
        if not paths:
            raise ValueError(f"{name}: it has no file")
    if unknown := {*columns} - {*systems, ""}:
        raise ValueError(f"--columns {min(unknown)}: there is no such system; there are {', '.join(systems)}")
    found_types: set[str] = set()
    read_file = partial(read, encoding=encoding)

    def renamed(texts: Texts) -> Texts:
        found_types.update(types_of(texts.sentences))
        return mapped(texts, types)

    gold_texts = renamed(read_file(gold, gold_columns or GOLD)) if gold else None
    files: dict[tuple[str, int], Texts] = {}
    seeds = {name: seeds_of(paths) for name, paths in systems.items()}
    for name, paths in systems.items():
        for seed, path in zip(seeds[name], paths, strict=True):
            of_system = columns.get(name) or columns.get("")
            file = read_at_once(path, gold_texts) if gold_texts and not of_system else None
            if file is None:
                found = of_system or (
                    predicted_columns(path, gold, gold_columns or GOLD) if gold else PREDICTED
                )
                file = read_file(path, found, with_unreachable=gold is None)
            files[name, seed] = renamed(with_probabilities(file))
            if gold is None:
                own = renamed(read_gold_beside(path, gold_columns, encoding))
                gold_texts = gold_texts or own
                check_same_gold(gold_texts, own)
    assert gold_texts is not None
    if not gold_texts.sentences:
        raise ValueError(f"{gold_texts.path}: it has no sentence")
    train_texts = renamed(read_file(train, gold_columns or GOLD)) if train else None
    check_types(gold_texts, [*files.values(), *([train_texts] if train_texts else [])])
    known_words = {it.words for it in gold_texts.sentences}
    aligned = {
        key: align(gold_texts, texts, missing_is_empty=missing_is_empty) for key, texts in files.items()
    }
    sentences = dict(zip(files, tagged(gold_texts.sentences, [*aligned.values()]), strict=True))
    data = about_gold(gold_texts)
    known = train_texts and [  # without nested mentions
        Sentence(it.words, encode(without_overlap(it.mentions)[0], len(it.words), "iob2"))
        for it in train_texts.sentences
    ]
    results = []
    for name in systems:
        runs = {
            seed: FileRun.of(
                files[name, seed].path,
                sentences[name, seed],
                system=name,
                seed=seed,
                data=data,
                token_accuracy=token_accuracy(gold_texts.sentences, sentences[name, seed]),
                uncut=uncut(gold_texts.sentences, aligned[name, seed], sentences[name, seed]),
                train=known,
                stated=stated_probabilities(gold_texts.sentences, aligned[name, seed]),
                notes=notes_on(files[name, seed], aligned[name, seed], known_words),
            )
            for seed in sorted(seeds[name])
        }
        runs = with_doubts(runs)
        row = Row(label=name)
        if published:
            row = replace(row, published=published.mean, sd=published.sd, runs=published.runs)
        results.append(Result(row, scores={seed: run.score for seed, run in runs.items()}, runs=runs))
    table = Table(
        name="comparison",
        title=f"{len(systems)} system{'s' * (len(systems) > 1)} on {gold_texts.path.name}",
        source=f"{counted(len(gold_texts.sentences), 'sentence')}, {counted(gold_texts.num_mentions, 'mention')}",
        rows=tuple(it.row for it in results),
        recorded=datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        smallest_effect=smallest_effect,
    )
    return Compared(
        Page(table, tuple(results)), gold_texts, types, missing_is_empty, frozenset(found_types), remarks
    )


def read_gold_beside(path: Path, columns: Columns | None, encoding: str | None) -> Texts:
    """The gold mentions of a file of predictions. ValueError if it has none."""
    way_out = f"state the gold file {WITH_OPTION}"
    try:
        found = read(path, columns or GOLD_BESIDE, with_unreachable=True, encoding=encoding)
    except ValueError as error:
        raise ValueError(f"{error}; without gold tags beside those of predictions, {way_out}") from None
    if found.scheme == OFFSETS:
        raise ValueError(
            f"{path}: it is no file of columns, which can have gold beside predictions: {way_out}"
        )
    return found


def notes_on(file: Texts, aligned: Aligned, known_words: Set[tuple[str, ...]]) -> tuple[str, ...]:
    """Sentences on what was read otherwise than it is written. known_words: those of the sentences of gold."""
    notes = [*file.notes]
    if file.scheme != OFFSETS and not all(it.words in known_words for it in file.sentences):
        notes.append("it has other tokens than gold: its mentions were compared by characters")
    if file.illegal:
        notes.append(f"tags that break {file.scheme}, read as conlleval reads them: {file.illegal:,}")
    if aligned.searched:
        notes.append(f"mentions without offsets, each put at its first free occurrence: {aligned.searched:,}")
    if nowhere := aligned.nowhere:
        examples = ", ".join(
            f"{truncated_repr(text)} ({type_})" for text, type_ in [*dict.fromkeys(nowhere)][:2]
        )
        rule = f"mentions without a place in their sentence, such as {examples}, counted as spurious"
        notes.append(f"{rule}: {len(nowhere):,}")
    if aligned.absent:
        notes.append(f"missing sentences, counted as without a prediction: {aligned.absent:,}")
    return tuple(notes)


def stated_probabilities(gold: Iterable[Text], file: Aligned) -> tuple[tuple[int, float, bool], ...]:
    """The number of the sentence, the probability, and whether it is correct, for each mention with a probability."""

    def stated() -> Iterator[tuple[int, float, bool]]:
        for number, (text, found) in enumerate(zip(gold, file.sentences, strict=True)):
            if found.probabilities:
                spans = {*text.spans()}
                yield from ((number, p, it in spans) for it, p in found.probabilities.items())

    return tuple(stated())


def with_doubts(runs: Mapping[int, FileRun]) -> dict[int, FileRun]:
    """The files of a system by seed, with a note on each that looks as if it were not what it is taken for."""
    first: dict[tuple[tuple[str, ...], ...], Path] = {}
    found = {}
    for seed, run in runs.items():
        test, notes = run.metrics["test"], [*run.notes]
        if not test["predicted"]:
            notes.append("it has no mention")
        elif test["correct"] == test["predicted"] == test["gold"]:
            notes.append(
                "it has all mentions of gold and no other: are these its predictions? --columns states them"
            )
        tags = tuple(it.predicted for it in run.uncut)
        if (same := first.setdefault(tags, run.folder)) != run.folder:
            notes.append(f"its predictions are those of {same}: copies of a file are no further seeds")
        found[seed] = replace(run, notes=tuple(notes))
    return found


def about_gold(gold: Texts) -> dict[str, Any]:
    """The gold file as the data of a run."""
    digest = gold_digest(
        (Sentence(tuple(it.characters), tuple(map(str, sorted(it.spans())))) for it in gold.sentences),
        "mentions",
    )
    return {"name": gold.path.name, "gold": digest, "checksum": digest, "notes": ()}


def check_same_gold(gold: Texts, other: Texts) -> None:
    """Raise ValueError, with the first place, if two files of predictions have another gold."""
    if len(gold.sentences) != len(other.sentences):
        numbers = f"{len(gold.sentences):,} and {len(other.sentences):,} sentences"
        raise ValueError(f"{gold.path} and {other.path} have {numbers}: state the gold file {WITH_OPTION}")
    for one, another in zip(gold.sentences, other.sentences, strict=True):
        if (one.characters, {*one.spans()}) != (another.characters, {*another.spans()}):
            places = (gold.path.with_name(one.place), other.path.with_name(another.place))
            raise ValueError(
                f"{places[0]} and {places[1]} have another gold: state the gold file {WITH_OPTION}"
            )


def check_renamed(*compared: Compared) -> None:
    """Raise ValueError for a type to be renamed that no file has."""
    found = frozenset[str]().union(*(it.found_types for it in compared))
    if unknown := {*compared[0].types} - found:
        raise ValueError(f"--map {min(unknown)}: no file has this type; there are {', '.join(sorted(found))}")


def check_types(gold: Texts, files: Iterable[Texts]) -> None:
    """Raise ValueError for a file of predictions none of whose types is one of gold."""
    known = types_of(gold.sentences)
    for file in files:
        found = types_of(file.sentences)
        if found and known and found.isdisjoint(known):
            rule = f"its types are {', '.join(sorted(found))}, those of gold {', '.join(sorted(known))}"
            raise ValueError(f"{file.path}: {rule}; --map {min(found)}={min(known)} renames one")
