"""The oracles: what a file says, or which of its lines are at fault, line by line without the package."""

import gzip
import re
import struct
from dataclasses import dataclass, field

DOCSTART = "-DOCSTART-"
LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bmes": "BMES"}

Mention = tuple[int, int, str]
Lines = dict[int, str]


class Faulty(Exception):
    """The lines that a reader may name when it refuses the file; none where the whole file is at fault."""

    def __init__(self, lines: set[int]) -> None:
        super().__init__(f"lines {sorted(lines)}")
        self.lines = lines


@dataclass(frozen=True)
class Read:
    """A sentence: its words, its mentions (or tags, where those are scored), its other columns, its line."""

    words: list[str]
    found: list[Mention] | list[str]
    columns: dict[str, list[str]] = field(default_factory=dict)
    line: int = 0


def decoded(content: bytes) -> tuple[Lines, set[int]]:
    """The text of each line, and the lines that are none."""
    pieces = content.split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    lines, faults = {}, set()
    for number, piece in enumerate(pieces, 1):
        try:
            line = piece.decode("utf-8")
        except UnicodeDecodeError:
            faults.add(number)
            continue
        if number == 1 and line[:1] == "\ufeff":
            line = line[1:]
        if line[-1:] == "\r":
            line = line[:-1]
        if "\r" in line or "\0" in line:
            faults.add(number)
        else:
            lines[number] = line
    return lines, faults


def cut(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else [piece for piece in line.split(" ") if piece]


def is_blank(line: str) -> bool:
    return set(line) <= {" ", "\t"}


def blocks(lines: Lines, ends: object) -> list[list[int]]:
    """The numbers of the lines of each sentence; `ends` says of a line's text whether it ends one."""
    found: list[list[int]] = [[]]
    for number, line in lines.items():
        if ends(line):
            found.append([])
        else:
            found[-1].append(number)
    return [block for block in found if block]


def mentions(tags: list[str]) -> list[Mention]:
    """As conlleval reads them: token by token, whether a mention begins here, and whether one goes on."""
    found: list[Mention] = []
    before = "O"
    for place, tag in enumerate(tags):
        begins = tag != "O" and (
            before == "O" or tag[2:] != before[2:] or tag[0] in "BS" or before[0] in "ES"
        )
        if begins:
            found.append((place, place + 1, tag[2:]))
        elif tag != "O":
            start, _, kind = found.pop()
            found.append((start, place + 1, kind))
        before = tag
    return found


def is_tag(tag: str, letters: str) -> bool:
    return tag == "O" or (len(tag) > 2 and tag[0] in letters and tag[1] == "-")


def is_visible(tag: str) -> bool:
    return tag.isprintable() and tag == tag.strip(" ")


def letters_of(scheme: str, tags: list[str]) -> str:
    if scheme != "auto":
        return LETTERS[scheme]
    used = {tag[0] for tag in tags if tag[1:2] == "-"}
    return LETTERS["bmes" if "M" in used else "bioes" if used & {"E", "S"} else "iob2"]


def scored(read: list[tuple[list[int], Read]], faults: set[int], task: str, scheme: str) -> list[Read]:
    """The sentences with their mentions for their tags; Faulty if a line is at fault, or there is none."""
    tags = [tag for _, sentence in read for tag in sentence.found]
    letters = letters_of(scheme, tags)
    for block, sentence in read:
        for number, tag in zip(block, sentence.found, strict=True):
            if not is_visible(tag) or (task == "mentions" and not is_tag(tag, letters)):
                faults.add(number)
    if faults or not read:
        raise Faulty(faults)
    if task == "tags":
        return [sentence for _, sentence in read]
    return [Read(it.words, mentions(it.found), it.columns, it.line) for _, it in read]


def columns(
    content: bytes,
    columns: dict[str, int],
    *,
    task: str = "mentions",
    scheme: str = "auto",
    first_character: bool = False,
    empty_tag: str | None = None,
) -> list[Read]:
    lines, faults = decoded(content)
    rows = {number: cut(line) for number, line in lines.items()}

    def field_of(row: list[str], name: str) -> str:
        index = columns[name]
        return row[index] if -len(row) <= index < len(row) else ""

    def ends(line: str) -> bool:
        if is_blank(line):
            return True
        row = cut(line)
        has_mention = field_of(row, "tag")[:1] in tuple("BIMES") and field_of(row, "tag")[1:2] == "-"
        return DOCSTART in (row[0], field_of(row, "word")) and not (has_mention and field_of(row, "tag")[2:])

    width, read = 0, []
    for block in blocks(lines, ends):
        if not width:
            width = len(rows[block[0]])
            if any(not -width <= index < width for index in columns.values()):
                raise Faulty(faults | {block[0]})
            if columns["word"] % width == columns["tag"] % width:
                raise Faulty(faults | {block[0]})
        wrong = {number for number in block if len(rows[number]) != width}
        layers = {name: [field_of(rows[number], name) for number in block] for name in columns}
        words, tags = layers.pop("word"), layers.pop("tag")
        for place, number in enumerate(block):
            if (
                not words[place]
                or (not tags[place] and empty_tag is None)
                or (first_character and (len(words[place]) < 2 or words[place][-1] not in "0123456789"))
            ):
                wrong.add(number)
        faults |= wrong
        words = [word[:1] if first_character else word for word in words]
        tags = [tag or empty_tag or "O" for tag in tags]
        if not wrong:
            read.append((block, Read(words, tags, layers, block[0])))
    return scored(read, faults, task, scheme)


def conllu(content: bytes, tag: str) -> list[Read]:
    lines, faults = decoded(content)
    column, (other, other_column) = (3, ("xpos", 4)) if tag == "upos" else (4, ("upos", 3))
    read = []
    for block in blocks(lines, is_blank):
        taken: list[int] = []
        wrong: set[int] = set()
        for number in block:
            row = lines[number].split("\t")
            if lines[number][:1] == "#":
                continue
            if len(row) != 10:
                wrong.add(number)
            elif not re.match("[0-9]+[-.][0-9]+$", row[0]) or row[0][-1:] == "\n":
                taken.append(number)
                if row[0] != str(len(taken)) or not row[1] or row[column] in ("", "_"):
                    wrong.add(number)
        faults |= wrong
        rows = [lines[number].split("\t") for number in taken]
        if rows and not wrong:
            words, tags, others = ([row[index] for row in rows] for index in (1, column, other_column))
            read.append((taken, Read(words, tags, {other: others}, taken[0])))
    return scored(read, faults, "tags", "auto")


def brackets(content: bytes) -> list[Read]:
    """Names as conlleval would read them; a bracket is followed by hand."""
    lines, faults = decoded(content)
    read = []
    for block in blocks(lines, lambda line: is_blank(line) or re.match("#(begin|end) document", line)):
        rows = [cut(lines[number]) for number in block]
        wrong = {number for number, row in zip(block, rows, strict=True) if len(row) != len(rows[0])}
        if len(rows[0]) < 12:
            wrong.add(block[0])
        tags, inside, opened = [], "", block[0]
        for number, row in zip(block, rows, strict=True):
            name = row[10] if len(row) > 10 else "*"
            if not row[3:4] or not row[3]:
                wrong.add(number)
            if not re.fullmatch(r"\*\)?|\([^()*]+(\*|\*\)|\))", name):
                wrong.add(number)
            if name[:1] == "(":
                if inside:
                    wrong.add(number)
                inside, opened = name[1:].split("*")[0].split(")")[0], number
                tags.append("B-" + inside)
            else:
                tags.append("I-" + inside if inside else "O")
            if name[-1:] == ")":
                if not inside:
                    wrong.add(number)
                inside = ""
        if inside:
            wrong.add(opened)
        faults |= wrong
        if not wrong:
            layers = {"pos": [row[4] for row in rows]}
            read.append((block, Read([row[3] for row in rows], tags, layers, block[0])))
    return scored(read, faults, "mentions", "iob2")


def gazetteer(content: bytes) -> set[tuple[str, ...]]:
    lines, faults = decoded(content)
    names = {tuple(piece for piece in re.split("[ \t]", line) if piece) for line in lines.values()} - {()}
    if faults or not names:
        raise Faulty(faults)
    return names


def in_names(words: list[str], names: set[tuple[str, ...]]) -> list[int]:
    """1, 2, 3, 4 where a name begins, goes on, ends, or is a word alone; from left to right the longest."""
    found = [0] * len(words)
    place = 0
    while place < len(words):
        ends = [end for end in range(place + 1, len(words) + 1) if tuple(words[place:end]) in names]
        if ends:
            found[place : ends[-1]] = [2] * (ends[-1] - place)
            found[place], found[ends[-1] - 1] = 1, 3
            if ends[-1] == place + 1:
                found[place] = 4
        place = ends[-1] if ends else place + 1
    return found


def vectors(content: bytes, wanted: set[bytes]) -> dict[bytes, list[float]]:
    """The first vector of each wanted word in a file that is known to be a whole one."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    first, _, rest = content.partition(b"\n")
    fields = first.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r").replace(b"\t", b" ").split(b" ")
    fields = [field for field in fields if field]
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
        count, width = int(fields[0]), int(fields[1])
        numbers = rest.partition(b"\n")[0].partition(b" ")[2]
        if len(numbers) < 2 * width - 1 or re.search(rb"[^ -~\t\r]", numbers):
            return binary_vectors(rest, count, width, wanted)
    else:
        width = len(first.partition(b" ")[2].split())
        rest = content.removeprefix(b"\xef\xbb\xbf")
    found: dict[bytes, list[float]] = {}
    for line in rest.split(b"\n"):
        word, _, numbers = line.partition(b" ")
        word = b" ".join([word, *numbers.split()[:-width]])
        if word in wanted and word not in found and len(numbers.split()) >= width:
            found[word] = [as_float32(float(number)) for number in numbers.split()[-width:]]
    return found


def binary_vectors(content: bytes, count: int, width: int, wanted: set[bytes]) -> dict[bytes, list[float]]:
    found: dict[bytes, list[float]] = {}
    for _ in range(count):
        word, _, content = content.partition(b" ")
        if word.lstrip(b"\n") in wanted:
            found.setdefault(word.lstrip(b"\n"), list(struct.unpack(f"<{width}f", content[: 4 * width])))
        content = content[4 * width :]
    return found


def as_float32(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]
