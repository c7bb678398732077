"""BRAT standoff: a folder of texts (`.txt`), each with its mentions by characters in a file beside it (`.ann`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ner_experiments.data.columns import read_lines, read_text
from ner_experiments.data.formats.annotated import Annotated, Characters, Options, of_text
from ner_experiments.data.remarks import Remarks
from ner_experiments.utils.files import atomic_folder
from ner_experiments.utils.text import truncated_repr

_MENTION = re.compile(r"(T\d+)\t(\S+) (\d{1,15}) (\d{1,15})((?:;\d{1,15} \d{1,15})*)(?:\t(.*))?", re.ASCII)


def files(path: Path) -> list[Path]:
    """The texts of a folder, in alphabetical order; none if there is no such folder.

    Raises ValueError for a file, and for a text without its .ann.
    """
    if path.is_file():
        raise ValueError(f"{path}: expected a folder of BRAT's .txt and .ann, got a file")
    if not path.is_dir():
        return []
    texts = sorted(path.glob("*.txt"))
    for text in texts:
        if not text.with_suffix(".ann").is_file():
            raise ValueError(f"{text}: there is no {text.stem}.ann beside it")
    return texts


def beside(path: Path) -> list[Path]:
    return [path.with_suffix(".ann")]


def read(path: Path, options: Options, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of one text. Raises ValueError, with file and line, for a mention that the text does not have."""
    text = "".join(line for _, line in read_text(path, options.encoding))
    yield from of_text(
        text,
        list(_mentions(path.with_suffix(".ann"), text, options, remarks)),
        options,
        remarks,
        place=str(path),
        document=path.stem,
    )


def _mentions(path: Path, text: str, options: Options, remarks: Remarks) -> Iterator[Characters]:
    for number, line in read_lines(path, options.encoding):
        place = f"{path}:{number}"
        if not line.startswith("T"):
            if line.strip():
                remarks.add("lines that are no mentions, such as relations and notes", place, line)
            continue
        match = _MENTION.fullmatch(line)
        if match is None:
            raise ValueError(
                f"{place}: expected a mention as T1<TAB>TYPE START END<TAB>TEXT: {truncated_repr(line)}"
            )
        _, type_, start, end, others, written = match.groups()
        found = Characters(int(start), int(end), type_)
        if others:
            if options.misaligned not in ("expand", "skip"):
                raise ValueError(
                    f"{place}: a mention in pieces (misaligned: expand or skip): {truncated_repr(line)}"
                )
            remarks.add(f"mentions in pieces, by misaligned: {options.misaligned}", place, line)
            if options.misaligned == "skip":
                continue
            found = Characters(found.start, int(others.rsplit(" ", 1)[1]), type_)
        elif written is not None and " ".join(text[found.start : found.end].split()) != " ".join(
            written.split()
        ):
            there = truncated_repr(text[found.start : found.end])
            raise ValueError(f"{place}: the text from {start} to {end} is {there}: {truncated_repr(line)}")
        yield found


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write each document as a text with one sentence per line, and a file of its mentions, into the folder `path`.

    Sentences without a document are written as one, named as the folder. Raises ValueError for a type with white
    space, which the format cannot hold, before anything is written.
    """
    sentences = list(sentences)
    for sentence in sentences:
        if wrong := next((type_ for *_, type_ in sentence.mentions if type_.split() != [type_]), None):
            raise ValueError(
                f"{sentence.place}: BRAT types cannot contain white space, got {truncated_repr(wrong)}"
            )
    documents: dict[str, list[Annotated]] = {}
    for sentence in sentences:
        documents.setdefault(sentence.document or path.name, []).append(sentence)
    with atomic_folder(path) as folder:
        for name, document in documents.items():
            for suffix, content in zip((".txt", ".ann"), _text_and_mentions(document), strict=True):
                (folder / f"{name}{suffix}").write_text(content, encoding="utf-8", newline="\n")


def _text_and_mentions(document: Iterable[Annotated]) -> tuple[str, str]:
    lines: list[str] = []
    mentions: list[str] = []
    start = 0
    for sentence in document:
        line = " ".join(re.split(r"[\r\n]", sentence.text))
        for it in sentence.characters():
            place = f"{it.type} {start + it.start} {start + it.end}"
            mentions.append(f"T{len(mentions) + 1}\t{place}\t{line[it.start : it.end]}\n")
        lines.append(f"{line}\n")
        start += len(line) + 1
    return "".join(lines), "".join(mentions)
