"""Corpora with known mentions, and their files in every format, however these may lawfully be laid out."""

import gzip
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from fuzz import oracle_corpora
from fuzz.oracle import Mention, Read

WORDS = [
    *("Mia", "Roe", "in", "Oslo", "the", "7", "1984", ".", '"', "#", "##", "O", "B-PER", "-", "*", "(", "_"),
    *("中", "国", "é", "e\u0301", "😀", "👩\u200d🔬", "a\u00a0b", "\u3000", "\u2028", "\x85", "\x0b", "\x1c"),
    *("\u200b", "a\u200bb", "\u200f", "\u202eabc\u202c", "\u2066x\u2069", "\ufeffa", "\ufe0f", "x" * 300),
]
TYPES = ["PER", "LOC", "ORG", "WORK_OF_ART", "a-b", "B-PER", "O", "人名"]
TAGS = ["NN", "VBZ", "O", ".", "``", "B-PER", "-LRB-", "$"]
SCHEMES = ("iob1", "iob2", "bioes", "bmes", "bilou")


@dataclass(frozen=True)
class Known:
    """Ground truth of a sentence: its words, and its mentions or, for the task "tags", its tags."""

    words: list[str]
    found: list[Mention] | list[str]


def draw(rng: Random, task: str) -> list[Known]:
    """Draw one to four short sentences."""
    corpus = []
    for _ in range(rng.randint(1, 4)):
        length = rng.randint(1, 6)
        words = [rng.choice(WORDS) for _ in range(length)]
        tags = task == "tags"
        corpus.append(Known(words, [rng.choice(TAGS) for _ in words] if tags else draw_mentions(rng, length)))
    return corpus


def draw_mentions(rng: Random, length: int) -> list[Mention]:
    found: list[Mention] = []
    place = rng.randint(0, 2)
    while place < length:
        end = min(length, place + rng.choice((1, 1, 2, 3)))
        found.append((place, end, rng.choice(TYPES[: rng.choice((2, len(TYPES)))])))
        place = end + rng.choice((0, 0, 1, 2))
    return found


def tags_of(known: Known, scheme: str) -> list[str]:
    """One tag per token, composed letter by letter."""
    tags, before = ["O"] * len(known.words), None
    for start, end, kind in known.found:
        for place in range(start, end):
            first, last = place == start, place == end - 1
            if scheme == "iob1":
                letter = "B" if first and before == (start, kind) else "I"
            elif scheme == "iob2":
                letter = "B" if first else "I"
            elif first:
                letter = ("U" if scheme == "bilou" else "S") if last else "B"
            elif last:
                letter = "L" if scheme == "bilou" else "E"
            else:
                letter = "M" if scheme == "bmes" else "I"
            tags[place] = f"{letter}-{kind}"
        before = (end, kind)
    return tags


def laid_out(rng: Random, blocks: list[list[str]], between: list[str]) -> bytes:
    """A file of the sentences' lines, with random line ends, and blank lines and lines of `between` around them."""
    ends = rng.choice((["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"]))
    blank = ["", "", *between, " ", "\t", " \t ", "  "]
    lines = [rng.choice(blank) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    for block in blocks:
        lines += block
        lines += [rng.choice(blank) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    text = "".join(line + rng.choice(ends) for line in lines)
    if rng.random() < 0.2:
        text = text.rstrip("\r\n")
    with_mark = text[:1] == "\ufeff" or rng.random() < 0.15  # the first of two marks is not part of the text
    return ("\ufeff" * with_mark + text).encode()


class Format(ABC):
    """Writes corpora in one file format, laid out at random, and knows what must be read from any file."""

    task: str

    @abstractmethod
    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        """Write a file that must be accepted."""

    @abstractmethod
    def expected(self, content: bytes) -> list[Read]:
        """The sentences of a file by the oracle. Raises Faulty if the file must be refused."""

    def words_read(self, words: list[str]) -> list[str]:
        """The words that the suite must read where `words` were meant."""
        return words


@dataclass(frozen=True)
class Columns(Format):
    """Column files; the fields are those of `ColumnFiles`."""

    columns: Mapping[str, int]
    task: str = "mentions"
    scheme: str = "auto"
    first_character: bool = False
    empty_tag: str | None = None

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        width = max(2, 1 + max(self.columns.values())) + (-1 in self.columns.values() and rng.randint(0, 2))
        scheme = rng.choice(SCHEMES) if self.scheme == "auto" else self.scheme
        tabs = rng.random() < 0.5 or not all(map(self.fits_spaces, corpus))
        blocks = [self.block(rng, known, scheme, width, tabs) for known in corpus]
        if self.empty_tag is not None:  # a file whose tags are all empty is refused
            field = self.columns["tag"]
            if all(not line.split("\t")[field] for block in blocks for line in block if "\t" in line):
                blocks = [self.block(rng, known, scheme, width, tabs, fill=True) for known in corpus]
        comment = ["# of more fields than any of the tokens of this file"]
        if all(line.startswith(("# ", "#\t")) for block in blocks for line in block):
            comment = []  # among tokens that all look like comments no one can tell which line is one
        blocks = [comment * rng.choice((0, 0, 0, 1)) + block for block in blocks]
        content = laid_out(rng, blocks, ["-DOCSTART- -X- O O", "-DOCSTART-", "-DOCSTART-\t-X-\tO"])
        return gzip.compress(content, mtime=0) if rng.random() < 0.02 else content

    def fits_spaces(self, known: Known) -> bool:
        return not any(" " in word for word in known.words)

    def block(
        self, rng: Random, known: Known, scheme: str, width: int, tabs: bool, fill: bool = False
    ) -> list[str]:
        tags = known.found if self.task == "tags" else tags_of(known, scheme)
        lines = []
        for word, tag in zip(known.words, tags, strict=True):
            row = [rng.choice(("X", "NN", "I-NP")) for _ in range(width)]
            row[self.columns["word"]] = word + rng.choice("0127") if self.first_character else word
            row[self.columns["tag"]] = tag
            if tabs and not fill and tag == self.empty_tag and rng.random() < 0.3:
                row[self.columns["tag"]] = ""
            if tabs:
                lines.append("\t".join(row))
            else:
                lines.append((" " * rng.choice((1, 1, 1, 3))).join(row) + " " * rng.choice((0, 0, 2)))
        return lines

    def expected(self, content: bytes) -> list[Read]:
        return oracle_corpora.columns(content, **vars(self))

    def words_read(self, words: list[str]) -> list[str]:
        return [word[0] for word in words] if self.first_character else words


@dataclass(frozen=True)
class Conllu(Format):
    tag: str
    task: str = "tags"

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        blocks = [self.block(rng, known) for known in corpus]
        return laid_out(rng, blocks, ["", ""])

    def block(self, rng: Random, known: Known) -> list[str]:
        lines = ["# text = anything"] * rng.randint(0, 1)
        for number, (word, tag) in enumerate(zip(known.words, known.found, strict=True), 1):
            tags = (tag, "YY") if self.tag == "upos" else ("YY", tag)
            if rng.random() < 0.1:
                lines.append("\t".join((f"{number}-{number + 1}", "both", *"________")))
            lines.append("\t".join((str(number), word, word, *tags, *"_____")))
            if rng.random() < 0.1:
                lines.append("\t".join((f"{number}.1", "left out", *"________")))
        return lines

    def expected(self, content: bytes) -> list[Read]:
        return oracle_corpora.conllu(content, self.tag)


@dataclass(frozen=True)
class GoldConll(Format):
    task: str = "mentions"

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        blocks = [self.block(rng, known) for known in corpus]
        return laid_out(rng, blocks, ["#begin document (nw/a); part 000", "#end document"])

    def block(self, rng: Random, known: Known) -> list[str]:
        names = ["*"] * len(known.words)
        for start, end, kind in known.found:
            names[end - 1] = "*)"
            names[start] = f"({kind}*" if end - start > 1 else rng.choice((f"({kind})", f"({kind}*)"))
        separator = rng.choice(("\t", " ", "   "))
        arguments = ["(V*)"] * rng.randint(0, 2)
        return [
            separator.join(("nw/a", "0", str(place), word, "NN", *"*---", "Ann", name, *arguments, "-"))
            for place, (word, name) in enumerate(zip(known.words, names, strict=True))
        ]

    def expected(self, content: bytes) -> list[Read]:
        return oracle_corpora.gold_conll(content)
