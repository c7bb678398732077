"""Files of gold mentions and of predictions, in any format that the suite reads, and lists of mentions without offsets.

Of column files, predictions are in the last column, and gold, where no file of its own states it, in the one before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats.annotated import Annotated, Tagged
from ner_experiments.data.formats.jsonl import MENTIONS, TAGS, WORDS, first_of, records
from ner_experiments.data.formats.layout import AUTO, Layout, tag_columns
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.formats.registry import FORMATS, detect, format_of
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.schemes import schemes_of
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span, count_illegal, count_windows
from ner_experiments.data.text_files import UTF_8, guessed_encoding, is_undecoded
from ner_experiments.runs import predictions
from ner_experiments.runs.artifacts import PROBABILITIES, TEST_PREDICTIONS
from ner_experiments.runs.predictions import UNREACHABLE
from ner_experiments.utils.text import truncated_repr

T = TypeVar("T")
Columns = Mapping[str, int | str]

GOLD: Columns = {"word": AUTO, "tag": AUTO}
PREDICTED: Columns = {"word": AUTO, "tag": -1}
GOLD_BESIDE: Columns = {"word": AUTO, "tag": -2}
"""Columns of a file of gold mentions; of predictions; and of gold mentions in a file of predictions."""

OFFSETS = "offsets"
"""The scheme of a file that states mentions, not tags."""
ANSWERS = (*MENTIONS, "answer", "answers", "predictions", "output")
"""Keys of lists of mentions without offsets."""
KEYS = frozenset((*MENTIONS, *TAGS, "annotations"))
"""Keys of mentions with offsets and of tags, of which a record of JSON Lines has one."""
_SURFACE = ("text", "mention", "name", "word", "span", "entity")
_TYPE = ("type", "label", "entity_type", "entity_group", "tag", "category", "class", "entity")
_START, _END = ("start", "start_offset"), ("end", "end_offset")
PROBABILITY = ("probability", "score", "confidence", "prob")
"""Keys of a mention's probability."""

WAYS_OUT: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"'data\.columns={(.*?)}'": lambda it: (
        f"--columns or --gold-columns {re.sub(': ?', '=', it[1]).replace(', ', ',')}"
    ),
    r"; columns that are split at tabs or spaces: --format conll": "",  # a comparison goes by the file's name
    r"data\.columns\.tag=": "--columns or --gold-columns tag=",
    "set names to the tags in their order": "write tags by name, such as B-PER",
    r"(; | \()if this is a comment line, set comments [^;)]*'#'\)?": "",  # which are skipped
    r" \(data\.[^)]*\)(?=$|; and )| that this does not pass| \(to read it: .*": "",
}
"""Settings of a corpus in messages of its readers, as regular expressions -> what a comparison has in their place."""

Answer = tuple[str, str]
"""Text and type of a mention whose place is not stated."""


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence of a file.

    words: none if the file does not repeat the text. mentions: by these words; they may overlap.
    answers: mentions without a place. place: where it is in its file, such as test.conll:7.
    probabilities: those of the mentions, or of the answers, if the file states them.
    """

    words: tuple[str, ...]
    mentions: tuple[Span, ...]
    place: str
    answers: tuple[Answer, ...] = ()
    probabilities: tuple[float | None, ...] = ()

    @property
    def characters(self) -> str:
        """Its text without white space, by which two tokenizations of it are compared."""
        return visible("".join(self.words))

    def spans(self) -> Iterator[Span]:
        """The mentions by `characters`."""
        ends = ends_of(self.words) if self.mentions else ()
        for first, after, type_ in self.mentions:
            yield ends[first], ends[after], type_


@lru_cache(maxsize=200_000)  # the files of all systems have the same words
def ends_of(words: tuple[str, ...]) -> tuple[int, ...]:
    """Where each word ends in the text without white space, after 0."""
    return tuple(accumulate((len(visible(word)) for word in words), initial=0))


@lru_cache(maxsize=200_000)
def visible(text: str) -> str:
    """The text without white space, and without the U+2423 that stands for it in a run's predictions."""
    return "".join(text.replace("\u2423", "").split())


@dataclass(frozen=True)
class Texts:
    """The sentences of a file.

    scheme: that of its tags, or `OFFSETS`. illegal: number of tags that break it; they are read as conlleval does.
    notes: how the file is laid out, and what was skipped or filled in.
    """

    path: Path
    sentences: Sequence[Text]
    scheme: str
    illegal: int = 0
    notes: tuple[str, ...] = ()

    @property
    def num_mentions(self) -> int:
        return sum(len(it.mentions) for it in self.sentences)


def read(
    path: Path, columns: Columns, *, with_unreachable: bool = False, encoding: str | None = None
) -> Texts:
    """The mentions of a file, or of the predictions of a run's folder; columns: of a column file, or by name of a CSV.

    with_unreachable: whether the gold mentions that a run's tokens cannot express are sentences' words, too.
    encoding: that of a file that is not in UTF-8.
    ValueError, with file and place, for a path that does not exist and a file that cannot be read.
    """
    path = file_of(path)
    return decoded(partial(_read, path, columns, with_unreachable), path, encoding)


def decoded(read_in: Callable[[str], T], path: Path, encoding: str | None) -> T:
    """The result of a reader for UTF-8, or if the path is not, for `encoding`. ValueError, with the option, without."""
    try:
        return read_in(UTF_8)
    except ValueError as error:
        if not is_undecoded(error):
            raise
        if encoding:
            return read_in(encoding)
        way_out = f" (--encoding {guessed_encoding([path])})" if path.is_file() else ""
        raise ValueError(f"{error}{way_out}") from None


def _read(path: Path, columns: Columns, with_unreachable: bool, encoding: str) -> Texts:
    name, _ = detect(path, None)
    lines: dict[str, dict[str, Any]] = {}
    if name.startswith("jsonl"):
        lines = {place: record for place, _, record in records(path, encoding, Remarks())}
        if are_answers([*lines.values()]):
            return with_stated(Texts(path, lists_of_answers(lines.items()), OFFSETS), lines)
        if not any(map(KEYS.intersection, lines.values())):
            others = ", ".join(key for key in ANSWERS if key not in MENTIONS)
            rule = f"no record has mentions with offsets ({', '.join(MENTIONS)}), lists of mentions without ({others})"
            raise ValueError(f"{path}: {rule}, or tags ({', '.join(TAGS)})")
    remarks = Remarks()
    if name == "conll":
        return of_columns(path, columns, remarks, with_unreachable=with_unreachable, encoding=encoding)
    if FORMATS[name].options is not TextOptions:
        raise ValueError(f"{path}: expected mentions, but the file is of {FORMATS[name].about}")
    file = AnnotatedFiles(
        name=path.name,
        folder=".",
        files={"test": str(path)},
        format=name,
        misaligned="split",
        encoding=encoding,
        columns={it: column for it, column in columns.items() if isinstance(column, str) and column != AUTO},
    )
    texts = of_sentences(path, without_settings(lambda: file.as_written(remarks)["test"]), remarks)
    return with_stated(texts, lines)


def file_of(path: Path) -> Path:
    """The path of a file, or of the predictions of a run's folder. ValueError if there is none."""
    if path.is_dir() and format_of(path) == "brat" and not any(path.rglob("*.ann")):
        try:
            return predictions.file(path, TEST_PREDICTIONS)
        except ValueError as error:
            way_out = (
                f"; a system of the files in it is NAME={path}/*"
                if any(map(Path.is_file, path.iterdir()))
                else ""
            )
            raise ValueError(f"{error}{way_out}") from None
    if not path.exists():
        raise ValueError(f"{path}: there is no such file")
    return path


def predicted_columns(path: Path, gold: Path, columns: Columns) -> Columns:
    """The columns of a file of predictions: those of gold if it has gold's header, else `PREDICTED`.

    columns: those of gold.
    """
    if not path.is_file() or first_line(path) != first_line(gold):
        return PREDICTED
    name, _ = detect(gold, None)
    if name != "conll" or detect(path, None)[0] != name:
        return columns if name == "csv" else PREDICTED
    ((_, _, layout),) = column_file(gold, columns, guessed_encoding([gold])).layouts()
    return dict(layout.columns) if layout.header else PREDICTED


def first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline()


def column_file(path: Path, columns: Columns, encoding: str) -> ColumnFiles:
    files = {"test": str(path)}
    return ColumnFiles(
        name=path.name, folder=".", files=files, columns=dict(columns), empty_tag="O", encoding=encoding
    )


def of_columns(
    path: Path, columns: Columns, remarks: Remarks, *, with_unreachable: bool, encoding: str
) -> Texts:
    file = column_file(path, columns, encoding)
    try:
        sentences = without_settings(lambda: file.read(remarks)["test"])
    except ValueError as error:
        raise ValueError(f"{error}{another_column(file) if columns == PREDICTED else ''}") from None
    if not with_unreachable:
        sentences = [*map(without_unreachable, sentences)]
    texts = of_sentences(path, sentences, remarks)
    return with_column(texts, sentences) if PROBABILITY[0] in columns else texts


def another_column(file: ColumnFiles) -> str:
    """End of a message about a file whose last column has no tags, such as one of scores: the columns that have."""
    (_, survey, layout), *_ = file.layouts()
    found = [*tag_columns(survey.values(header=layout.header is not None))]
    if not found or survey.width - 1 in found:
        return ""
    which = f"column{'s' * (len(found) > 1)} {', '.join(map(str, found))}"
    return f"; tags are in {which}: state {'one' if len(found) > 1 else 'it'} with --columns tag={found[-1]}"


def of_sentences(path: Path, sentences: Sequence[Sentence | Annotated], remarks: Remarks) -> Texts:
    """The sentences of a file, with its tags or with mentions."""
    tagged = [it.tags for it in sentences if isinstance(it, Sentence)]
    windows = count_windows(tagged)
    scheme = schemes_of("auto", {"test": windows})["test"] if tagged else OFFSETS
    illegal = count_illegal(windows, scheme) if tagged else 0  # type: ignore[arg-type]
    notes = (*remarks.layouts(scheme if tagged else ""), *remarks.counts())
    return Texts(path, [text_of(it, path) for it in sentences], scheme, illegal, notes)


def without_settings(read_it: Callable[[], T]) -> T:
    """The result of a reader, whose errors name options of `compare` in place of settings of a corpus."""
    try:
        return read_it()
    except ValueError as error:
        message = str(error)
        for setting, way_out in WAYS_OUT.items():
            message = re.sub(setting, way_out, message)
        raise ValueError(message) from None


def without_unreachable(sentence: Sentence) -> Sentence:
    """The sentence without the lines in which a run's predictions list gold mentions that its tokens cannot express."""
    if sentence.words[-1][0] != UNREACHABLE:
        return sentence
    end = next(n for n, word in enumerate(sentence.words) if word[0] == UNREACHABLE)
    return Sentence(sentence.words[:end], sentence.tags[:end], line=sentence.line)


def text_of(it: Sentence | Annotated, path: Path) -> Text:
    if isinstance(it, Annotated):
        return Text(it.words, it.mentions, it.place)
    return Text(
        it.words,
        predictions.mentions(it.tags),
        it.at[0] if isinstance(it, Tagged) else f"{path.name}:{it.line}",
    )


# Columns with the words of gold

STANDARD = re.compile("O|[BIMESLU]-[!-~]+")
"""Tags that are read as they are written."""


def read_at_once(path: Path, gold: Texts) -> Texts | None:
    """As `read`, several times as fast, for columns with the words of gold first and tags last; None for other files.

    Nearly all files of predictions are so.
    """
    path = file_of(path)
    try:
        text = path.read_bytes().decode("utf-8").strip("\n")
    except (OSError, UnicodeDecodeError):  # a folder, or bytes that `read` names
        return None
    first = text.partition("\n")[0]
    separator = "\t" if "\t" in first else " "
    width, blocks = first.count(separator) + 1, text.split("\n\n")
    if width < 2 or len(blocks) != len(gold.sentences):
        return None
    sequences: list[tuple[str, ...]] = []
    for block, it in zip(blocks, gold.sentences, strict=True):
        fields = block.replace("\n", separator).split(separator)
        if len(fields) != width * len(it.words) or tuple(fields[::width]) != it.words:
            return None
        sequences.append(tuple(fields[width - 1 :: width]))
    if not all(map(STANDARD.fullmatch, set[str]().union(*sequences))):
        return None
    windows = count_windows(sequences)
    scheme = schemes_of("auto", {"test": windows})["test"]
    layout = Layout(
        separator="tabs" if separator == "\t" else "spaces",
        width=width,
        columns={"word": 0, "tag": width - 1},
        detected=True,
    )
    note = f"read as: {layout.described()}, {scheme}"
    lines = accumulate((block.count("\n") + 2 for block in blocks), initial=1)
    texts = [
        Text(it.words, predictions.mentions(tags), f"{path.name}:{line}")
        for it, tags, line in zip(gold.sentences, sequences, lines, strict=False)
    ]
    return Texts(path, texts, scheme, count_illegal(windows, scheme), (note,))


# Lists of mentions without offsets


def are_answers(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a file lists mentions without offsets: as most of its records that list something do."""
    listed = [next((record[key] for key in ANSWERS if key in record), None) for record in records]
    tagged = [bool(KEYS.difference(MENTIONS).intersection(record)) for record in records]
    kinds = Counter(not own and has_no_place(it) for it, own in zip(listed, tagged, strict=True) if it or own)
    if kinds:
        return kinds[True] > kinds[False]
    return bool(listed) and all(isinstance(it, list | dict) for it in listed)


def has_no_place(listed: Any) -> bool:
    """Whether mentions are texts and types, by the first one; not tags of tokens, or labels of a whole text."""
    if isinstance(listed, dict):
        return True
    first = listed[0] if isinstance(listed, list) else None
    if isinstance(first, dict):
        return first_of(first, _START) is None
    return isinstance(first, list) and len(first) != 3  # start, end, type


def lists_of_answers(lines: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Text]:
    """The sentences of a file of lists of mentions without offsets, by place and record.

    A record has the list, and the text or the tokens of its sentence unless there is a record for each sentence, in
    order. A mention is an object with text and type, or a pair of these; a list may also be an object from types to
    lists of texts. FaultsError, with the lines, for records of another form.
    """
    remarks, sentences = Remarks(), []
    with remarks.counting_faults():
        for place, record in lines:
            try:
                sentences.append(sentence_of_answers(record, place))
            except ValueError as error:
                remarks.fault(f"{place}: {error}")
    return sentences


def sentence_of_answers(record: Mapping[str, Any], place: str) -> Text:
    key = next((key for key in ANSWERS if key in record), None)
    if key is None or not isinstance(record[key], list | dict):
        found = "a record without one" if key is None else f'"{key}": {truncated_repr(record[key])}'
        rule = f"expected a list of mentions, which is [] for a sentence without any, got {found}"
        raise ValueError(rule)
    words = first_of(record, WORDS)
    if words is None:
        words = [record["text"]] if "text" in record else []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"expected a text or a list of tokens, got {truncated_repr(words)}")
    return Text(tuple(words), (), place, tuple(answers_of(record[key])))


def answers_of(listed: list[Any] | dict[str, Any]) -> Iterator[Answer]:
    """Text and type of each mention."""
    if isinstance(listed, dict):
        for type_, texts in listed.items():
            if not isinstance(texts, list):
                raise ValueError(f"expected a list of texts for each type, got {truncated_repr(texts)}")
            yield from answers_of([[text, type_] for text in texts])
        return
    for item in listed:
        if isinstance(item, dict):
            item = [*stated_answer(item)]
        if not (isinstance(item, list) and len(item) == 2 and all(isinstance(it, str) and it for it in item)):
            raise ValueError(f"expected a mention's text and type, got {truncated_repr(item)}")
        yield item[0], item[1]


# Probabilities


def with_stated(texts: Texts, records: Mapping[str, Mapping[str, Any]]) -> Texts:
    """The sentences with the probabilities of their mentions, where their records, by place, state them.

    A mention is the record's first one of its text and type that is left.
    """
    stated = {
        place: of_record for place, record in records.items() if (of_record := probabilities_of(record))
    }
    if not stated:
        return texts
    if others := [
        p for it in stated.values() for found in it.values() for p in found if p and not 0 <= p <= 1
    ]:
        note = f"its scores are no probabilities, such as {others[0]:g}, and are not read"
        return replace(texts, notes=(*texts.notes, note))

    def found(text: Text) -> Iterator[float | None]:
        spans = ((visible("".join(text.words[start:end])), type_) for start, end, type_ in text.mentions)
        for surface, type_ in [*spans, *((visible(surface), type_) for surface, type_ in text.answers)]:
            left = stated[text.place].get((surface, type_))
            yield left.pop(0) if left else None

    sentences = [
        replace(it, probabilities=tuple(found(it))) if it.place in stated else it for it in texts.sentences
    ]
    return replace(texts, sentences=sentences)


def probabilities_of(record: Mapping[str, Any]) -> dict[Answer, list[float | None]]:
    """The probabilities of a record's mentions by text without white space and type, in order; empty without any."""
    listed = (record[key] for key in ANSWERS if isinstance(record.get(key), list))
    items = [it for it in next(listed, ()) if isinstance(it, dict)]
    if not any(first_of(it, PROBABILITY) is not None for it in items):
        return {}
    found: dict[Answer, list[float | None]] = {}
    for item in sorted(items, key=lambda it: start if isinstance(start := first_of(it, _START), int) else 0):
        surface, type_ = stated_answer(item)
        start, end = first_of(item, _START), first_of(item, _END)
        if "text" not in item and isinstance(start, int) and isinstance(end, int):
            text = record.get("text")
            surface = (
                text[start:end] if isinstance(text, str) else "".join(first_of(record, WORDS)[start:end])
            )
        probability = first_of(item, PROBABILITY)
        is_number = isinstance(probability, int | float) and not isinstance(probability, bool)
        found.setdefault((visible(str(surface)), str(type_)), []).append(
            float(probability) if is_number else None
        )
    return found


def with_column(texts: Texts, sentences: Sequence[Sentence]) -> Texts:
    """The sentences with the probabilities of a column, which has that of a mention in its first line."""
    found = []
    for text, sentence in zip(texts.sentences, sentences, strict=True):
        column = sentence.columns[PROBABILITY[0]]
        try:
            probabilities = tuple(float(column[start]) for start, _, _ in text.mentions)
        except ValueError as error:
            raise ValueError(f"{text.place}: expected the probability of a mention: {error}") from None
        found.append(replace(text, probabilities=probabilities))
    return replace(texts, sentences=found)


def with_probabilities(texts: Texts) -> Texts:
    """The sentences of a run's predictions with the probabilities that it recorded in a file beside them."""
    path = texts.path.with_suffix(Path(PROBABILITIES).suffix)
    if not path.is_file():
        return texts
    found = predictions.read_probabilities(path)
    if [*map(len, found)] != [len(it.mentions) for it in texts.sentences]:
        raise ValueError(f"{path}: expected a probability for each mention of {texts.path.name}")
    sentences = [replace(it, probabilities=tuple(of)) for it, of in zip(texts.sentences, found, strict=True)]
    return replace(texts, sentences=sentences)


def stated_answer(item: Mapping[str, Any]) -> tuple[Any, Any]:
    """Text and type of a mention; None for what it does not have."""
    kind = next((key for key in _TYPE if key in item), "")
    type_ = item.get(kind)
    surface = next((item[key] for key in _SURFACE if key in item and key != kind), None)
    return surface, type_[0] if isinstance(type_, list) and type_ else type_  # as Label Studio writes it


def mapped(texts: Texts, types: Mapping[str, str]) -> Texts:
    """The file with other names for types."""
    if not types:
        return texts

    def renamed(it: Text) -> Text:
        mentions = tuple((start, end, types.get(type_, type_)) for start, end, type_ in it.mentions)
        answers = tuple((text, types.get(type_, type_)) for text, type_ in it.answers)
        return replace(it, mentions=mentions, answers=answers)

    return replace(
        texts, sentences=[renamed(it) if it.mentions or it.answers else it for it in texts.sentences]
    )


def types_of(sentences: Iterable[Text]) -> set[str]:
    placed = {type_ for it in sentences for _, _, type_ in it.mentions}
    return placed | {type_ for it in sentences for _, type_ in it.answers}
