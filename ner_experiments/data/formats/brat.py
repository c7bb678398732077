"""BRAT standoff: a folder of texts (`.txt`), each with its mentions by characters in a file beside it (`.ann`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ner_experiments.data.formats.annotated import (
    Annotated,
    Characters,
    Stated,
    of_text,
    skip,
    to_characters,
)
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.text_files import read_lines, read_text
from ner_experiments.utils.files import atomic_folder
from ner_experiments.utils.text import truncated_repr

_MENTION = re.compile(r"(T\d+)\t(\S+) (\d{1,15}) (\d{1,15})((?:;\d{1,15} \d{1,15})*)(?:\t(.*))?", re.ASCII)


def files(path: Path) -> list[Path]:
    """The texts of a folder and its subfolders, in alphabetical order, or the one text that `path` is.

    None if there is no such folder.
    Raises ValueError for a file that is no .txt.
    """
    if path.is_file():
        if path.suffix != ".txt":
            raise ValueError(
                f"{path}: expected a folder of BRAT's .txt and .ann, or one .txt, got another file"
            )
        return [path]
    if not path.is_dir():
        return []
    return sorted(path.rglob("*.txt"))


def beside(path: Path) -> list[Path]:
    return [mentions] if (mentions := path.with_suffix(".ann")).is_file() else []


def read(path: Path, options: TextOptions, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of one text.

    Faults, see `Remarks.fault`, are lines that are malformed mentions, those of `of_text`, and, unless
    gold is "none", a text without its .ann, which `options.misaligned` may skip.
    """
    text = "".join(line for _, line in read_text(path, options.encoding))
    mentions = path.with_suffix(".ann")
    annotated = mentions.is_file()
    if not annotated and options.gold != "none":
        if options.misaligned == "skip":
            remarks.add("texts without .ann, left out", str(path))
        else:
            remarks.fault(f"{path}: there is no {mentions.name} beside it", skip(options))
        return
    yield from of_text(
        text,
        list(_mentions(mentions, text, options, remarks)) if annotated else [],
        options,
        remarks,
        place=str(path),
        document=path.stem,
    )


def _mentions(path: Path, text: str, options: TextOptions, remarks: Remarks) -> Iterator[Stated]:
    character = to_characters(text, options.offsets)
    for number, line in read_lines(path, options.encoding):
        place = f"{path}:{number}"
        if not line.startswith("T"):
            if line.strip():
                remarks.add("lines that are no mentions, such as relations and notes", place, line)
            continue
        match = _MENTION.fullmatch(line)
        if match is None:
            rule = "expected a mention as T1<TAB>TYPE START END<TAB>TEXT"
            remarks.fault(f"{place}: {rule}: {truncated_repr(line)}")
            continue
        _, type_, start, end, others, written = match.groups()
        last = others.rsplit(" ", 1)[1] if others else end
        try:
            first, after = character(int(start)), character(int(last))
        except ValueError as error:
            remarks.fault(f"{place}: {error}: {truncated_repr(line)}")
            continue
        yield Stated(first, after, type_, place, written, in_pieces=bool(others))


class Document(NamedTuple):
    """A text and its mentions, each with the place that an error about it names."""

    text: str
    mentions: Sequence[tuple[str, Characters]]


def write_documents(documents: Mapping[str, Document], path: Path) -> None:
    """Write each document as a text, and a file of its mentions, into the folder `path`.

    Documents are keyed by name; one such as news/today goes into a subfolder.
    Raises ValueError as `check_type`, before anything is written.
    """
    for document in documents.values():
        for place, mention in document.mentions:
            check_type(mention.type, place)
    with atomic_folder(path) as folder:
        for name, document in documents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            for suffix, content in ((".txt", document.text), (".ann", _lines(document))):
                (folder / f"{name}{suffix}").write_text(content, encoding="utf-8", newline="\n")


def check_type(type_: str, place: str) -> None:
    """Raise ValueError, with the place, for a type of mentions with white space, which the format cannot hold."""
    if type_.split() != [type_]:
        raise ValueError(f"{place}: BRAT types cannot contain white space, got {truncated_repr(type_)}")


def _lines(document: Document) -> str:
    """The lines of the mentions. BRAT requires their text as it is in the document; only line ends become spaces."""
    return "".join(
        f"T{number}\t{it.type} {it.start} {it.end}\t{_one_line(document.text[it.start : it.end])}\n"
        for number, (_, it) in enumerate(document.mentions, 1)
    )


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]", " ", text)


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write each document as a text with one sentence per line, and a file of its mentions, into the folder `path`.

    Sentences without a document are written as one, named as the folder. Raises ValueError as `write_documents`.
    """
    documents: dict[str, list[Annotated]] = {}
    for sentence in sentences:
        documents.setdefault(sentence.document or path.name, []).append(sentence)
    write_documents({name: _joined(document) for name, document in documents.items()}, path)


def _joined(sentences: Iterable[Annotated]) -> Document:
    """The sentences as one text, one per line."""
    lines: list[str] = []
    mentions: list[tuple[str, Characters]] = []
    start = 0
    for sentence in sentences:
        mentions += [
            (sentence.place, Characters(start + it.start, start + it.end, it.type))
            for it in sentence.characters()
        ]
        lines.append(f"{_one_line(sentence.text)}\n")
        start += len(lines[-1])
    return Document("".join(lines), mentions)


FORMATS = {
    "brat": Format(
        about="a folder of BRAT's .txt and .ann",
        config="brat",
        read=read,
        write=write,
        nested=True,
        has_tokens=False,
        files=files,
        beside=beside,
    )
}
