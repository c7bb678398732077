"""Files in the formats of annotated text: JSON Lines with tags, Doccano's, Prodigy's, CSV, CoNLL-U with
mentions, and BRAT's.

Which of the damaged files must be refused is not judged here; what is accepted must be what the file says.
"""

from __future__ import annotations

import csv
import io
import json
import re
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from fuzz import oracle
from fuzz.corpora import SCHEMES, Known, draw, laid_out, tags_of
from fuzz.readers import Case, Reader
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.data.remarks import Remarks

Sentence = tuple[list[str], list[oracle.Mention]]
RANGE = re.compile(r"[0-9]+[-.][0-9]+")
HEADER = re.compile(r"# *global\.columns *= *(.+)")
HEADINGS = (
    ("Sentence #", "sentence", "sentence_id", "Sentence", "sent_id"),
    ("Word", "word", "token", "Token", "words", "tokens"),
    ("Tag", "tag", "ner_tag", "label", "labels", "ner"),
)


class AnnotatedReader(Reader):
    """`AnnotatedFiles.annotated` of one file, in which tags are written as B-ORG."""

    inputs = 20_000
    judges = False
    format: str

    def read(self) -> Any:
        source = AnnotatedFiles(
            name="mine",
            folder="",
            files={"train": str(self.path)},
            format=self.format,
            tag_style="B-ORG",
            columns={"tag": "NER"} if self.format == "conllu_ner" else {},
            misaligned="split",
        )
        return self.shown(iter(source.annotated(Remarks())["train"]))

    def shown(self, sentences: Iterator[Annotated]) -> Any:
        return [(list(it.words), list(it.mentions)) for it in sentences]

    def whole(self, rng: Random) -> Case:
        corpus = draw(rng, "mentions")
        return Case(self.write(rng, corpus), [(known.words, known.found) for known in corpus])

    @abstractmethod
    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        """A file of the corpus, in one of the layouts that the format allows."""


class JsonLines(AnnotatedReader):
    name, format = "jsonl", "jsonl"

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        ascii_only, scheme = rng.random() < 0.5, rng.choice(SCHEMES)
        names = rng.choice(("tokens", "words")), rng.choice(("ner_tags", "tags"))
        lines = []
        for number, known in enumerate(corpus):
            record = {names[0]: known.words, names[1]: tags_of(known, scheme), "id": number}
            items = list(record.items())
            rng.shuffle(items)
            lines.append([json.dumps(dict(items), ensure_ascii=ascii_only)])
        return laid_out(rng, lines, ["", ""])

    def expected(self, content: bytes) -> Any:
        found = []
        for record in objects(content):
            words = record.get("tokens", record.get("words"))
            if words:
                found.append((words, mentions(record.get("ner_tags", record.get("tags")))))
        return found


def objects(content: bytes) -> Iterator[Any]:
    """The JSON objects of a file, one per line."""
    lines, faults = oracle.decoded(content)
    if faults:
        raise oracle.Faulty(faults)
    for line in lines.values():
        if line.strip(" \t"):
            yield json.loads(line)


class Texts(AnnotatedReader):
    """Texts with mentions by characters. Only types and texts of mentions are compared: tokens are the suite's own."""

    name, format = "doccano", "jsonl"

    def whole(self, rng: Random) -> Case:
        lines, marked = [], []
        for known in draw(rng, "mentions"):
            text, offsets = joined(rng, known.words)
            mentions = [
                [offsets[start][0], offsets[end - 1][1], kind]
                for start, end, kind in known.found
                if all(word.strip() for word in known.words[start:end])
            ]
            marked += [(kind, text[start:end]) for start, end, kind in mentions]
            record = {"id": 7, "text": text, rng.choice(("label", "entities", "labels")): mentions}
            lines.append([json.dumps(record, ensure_ascii=rng.random() < 0.5)])
        return Case(laid_out(rng, lines, ["", ""]), without_space(marked))

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        raise NotImplementedError

    def shown(self, sentences: Iterator[Annotated]) -> Any:
        return [pair for it in sentences for pair in it.texts()]

    def expected(self, content: bytes) -> Any:
        found: list[tuple[str, str]] = []
        for record in objects(content):
            text = record["text"]
            mentions = next(
                (
                    record[key]
                    for key in ("entities", "spans", "label", "labels", "mentions")
                    if key in record
                ),
                None,
            )
            ordered = sorted({tuple(it) for it in mentions or []}, key=lambda it: (it[0], -it[1], it[2]))
            found += [(kind, text[start:end]) for start, end, kind in ordered]
        return without_space(found)


def without_space(marked: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(kind, "".join(text.split())) for kind, text in marked]


def mentions(tags: list[str]) -> list[oracle.Mention]:
    """The mentions of tags, of which a lower-case o is O, too."""
    return oracle.mentions(["O" if tag == "o" else tag for tag in tags])


def joined(rng: Random, words: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of the words, and the first character and the one after the last of each."""
    text, offsets = "", []
    for word in words:
        offsets.append((len(text), len(text) + len(word)))
        text += word + rng.choice((" ", " ", "  ", "\t"))
    return text, offsets


class Prodigy(AnnotatedReader):
    name, format = "prodigy", "jsonl"

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        lines = []
        for known in corpus:
            text, offsets = joined(rng, known.words)
            tokens = [{"start": start, "end": end, "id": n} for n, (start, end) in enumerate(offsets)]
            spans = [
                {"start": offsets[start][0], "end": offsets[end - 1][1], "label": kind}
                for start, end, kind in known.found
            ]
            lines.append([json.dumps({"text": text, "tokens": tokens, "spans": spans})])
        return laid_out(rng, lines, ["", ""])

    def shown(self, sentences: Iterator[Annotated]) -> Any:
        """Characters of all tokens, and the mentions; the words are kept for `agrees`.

        A damaged file may name no tokens, and is then split into the suite's own.
        """
        self.sentences = list(sentences)
        words = [word for it in self.sentences for word in it.words]
        return "".join("".join(words).split()), [pair for it in self.sentences for pair in it.texts()]

    def agrees(self, found: Any, known: Any) -> bool:
        return [(list(it.words), list(it.mentions)) for it in self.sentences] == known

    def expected(self, content: bytes) -> Any:
        characters, found = "", []
        for record in objects(content):
            text, spans = record["text"], record.get("spans", ())
            tokens = [(it["start"], it["end"]) for it in record.get("tokens", ())] or [(0, len(text))]
            if "tokens" in record and not record["tokens"]:
                continue
            characters += "".join(text[start:end] for start, end in tokens)
            marked = {(it["start"], it["end"], it["label"]) for it in spans}
            for start, end, kind in sorted(marked, key=lambda it: (it[0], -it[1], it[2])):
                inside = [(max(start, at), min(end, to)) for at, to in tokens if at < end and start < to]
                found.append((kind, text[inside[0][0] : inside[-1][1]]))
        return "".join(characters.split()), without_space(found)


class Csv(AnnotatedReader):
    name, format = "csv", "csv"

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        scheme, only_first = rng.choice(SCHEMES), rng.random() < 0.5
        order = rng.sample(range(4), 4)
        rows = [[rng.choice(names) for names in HEADINGS] + ["POS"]]
        for number, known in enumerate(corpus, 1):
            for place, pair in enumerate(zip(known.words, tags_of(known, scheme), strict=True)):
                rows.append([f"Sentence: {number}" if not (only_first and place) else "", *pair, "NN"])
        file = io.StringIO()
        quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        writer = csv.writer(file, quoting=quoting, lineterminator=rng.choice(("\n", "\r\n")))
        writer.writerows([row[column] for column in order] for row in rows)
        return ("\ufeff" * (rng.random() < 0.2) + file.getvalue()).encode()

    def expected(self, content: bytes) -> Any:
        rows = csv.reader(io.StringIO(content.decode().removeprefix("\ufeff"), newline=""))
        header = next(rows)
        places = [next(header.index(name) for name in names if name in header) for names in HEADINGS]
        blocks: list[list[list[str]]] = []
        now = ""
        for row in rows:
            if not any(row):
                now = ""
                continue
            sentence, word, tag = (row[place] for place in places)
            if not blocks or (sentence and sentence != now):
                blocks.append([])
                now = sentence
            blocks[-1].append([word, tag])
        return [([word for word, _ in block], mentions([tag for _, tag in block])) for block in blocks]


class ConlluMentions(AnnotatedReader):
    name, format = "conllu_ner", "conllu_ner"

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        scheme, plus, numbered = rng.choice(SCHEMES), rng.random() < 0.4, rng.random() < 0.5
        blocks = []
        for number, known in enumerate(corpus):
            block = [f"# sent_id = {number}"] * (rng.random() < 0.5)
            if plus and not number:
                block.insert(0, f"# global.columns = {'ID ' * numbered}FORM NER")
            for place, (word, tag) in enumerate(zip(known.words, tags_of(known, scheme), strict=True), 1):
                if not plus and rng.random() < 0.1:
                    block.append("\t".join((f"{place}-{place + 1}", "both", *"_" * 8)))
                misc = rng.choice((f"NER={tag}", f"SpaceAfter=No|NER={tag}"))
                columns = [str(place)] * (numbered or not plus) + [word]
                block.append("\t".join([*columns, tag] if plus else [*columns, *"_" * 7, misc]))
            blocks.append(block)
        return laid_out(rng, blocks, ["", ""])

    def expected(self, content: bytes) -> Any:
        lines, faults = oracle.decoded(content)
        if faults:
            raise oracle.Faulty(faults)
        names = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]
        found = []
        for block in oracle.blocks(lines, oracle.is_blank):
            comments = [lines[number] for number in block if lines[number].startswith("#")]
            headers = [match for match in map(HEADER.fullmatch, comments) if match]
            names = headers[0][1].split() if headers else names
            words, tags = [], []
            for number in block:
                fields = lines[number].split("\t")
                row = dict(zip(names, fields, strict=False))
                may_be_token = names[0] != "ID" and 1 < len(fields) == len(names)
                if (lines[number].startswith("#") and not may_be_token) or RANGE.fullmatch(row.get("ID", "")):
                    continue
                misc = [it for it in row.get("MISC", "_").split("|") if it.partition("=")[0] == "NER"]
                tag = row["NER"] if "NER" in row else misc[0].partition("=")[2] if misc else "O"
                words.append(row["FORM"])
                tags.append("O" if tag in ("_", "*") else tag)
            if words:
                found.append((words, mentions(tags)))
        return found


class Brat(Texts):
    """A text and the mentions beside it. In the input, `SEPARATOR` stands between the two files."""

    name, format = "brat", "brat"

    def whole(self, rng: Random) -> Case:
        text, lines, marked = "", [], []
        for known in draw(rng, "mentions"):
            part, offsets = joined(rng, known.words)
            for start, end, kind in known.found:
                if not all(word.strip() for word in known.words[start:end]):
                    continue
                first, last = len(text) + offsets[start][0], len(text) + offsets[end - 1][1]
                shown = part[offsets[start][0] : offsets[end - 1][1]].replace("\t", " ")
                note = rng.random() < 0.2
                lines += [f"#{len(lines)}\tAnnotatorNotes T1\tsure"] * note
                lines.append(f"T{len(lines)}\t{kind} {first} {last}\t{shown}")
                marked.append((kind, part[offsets[start][0] : offsets[end - 1][1]]))
            text += part + rng.choice(("\n", "\n\n", "\r\n"))
        end = rng.choice(("\n", "\r\n"))
        mark = "\ufeff" * (text.startswith("\ufeff") or rng.random() < 0.1)  # does not count in offsets
        content = (mark + text).encode() + SEPARATOR + "".join(line + end for line in lines).encode()
        return Case(content, without_space(marked))

    def read(self) -> Any:
        text, _, annotations = self.path.read_bytes().partition(SEPARATOR)
        self.path.with_suffix(".txt").write_bytes(text)
        self.path.with_suffix(".ann").write_bytes(annotations)
        files = {"train": str(self.path.parent)}
        source = AnnotatedFiles(name="mine", folder="", files=files, format="brat", misaligned="split")
        try:
            return self.shown(iter(source.annotated(Remarks())["train"]))
        except ValueError as error:  # of one of the two files
            raise ValueError(re.sub(r"\binput\.(ann|txt)\b", "input", str(error))) from None

    def expected(self, content: bytes) -> Any:
        encoded, _, annotations = content.partition(SEPARATOR)
        lines, faults = oracle.decoded(annotations)
        if faults:
            raise oracle.Faulty(faults)
        text = encoded.decode().removeprefix("\ufeff")
        marked = set()
        for line in lines.values():
            if line.startswith("T"):
                kind, start, end = line.split("\t")[1].split(" ")
                first, last = int(start), int(end)
                while first < last and text[first].isspace():
                    first += 1
                while first < last and text[last - 1].isspace():
                    last -= 1
                marked.add((first, last, kind))
        ordered = sorted(marked, key=lambda it: (it[0], -it[1], it[2]))
        return without_space([(kind, text[start:end]) for start, end, kind in ordered])


SEPARATOR = b"\n=== .ann ===\n"


def format_files(folder: Path) -> list[Reader]:
    readers = (JsonLines, Texts, Prodigy, Csv, ConlluMentions, Brat)
    return [reader(folder) for reader in readers]
