"""Shared parts of the oracles, independent of the package: lines, blocks of lines, and mentions of tags."""

from dataclasses import dataclass, field

DOCSTART = "-DOCSTART-"
LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bmes": "BMES"}

Mention = tuple[int, int, str]
Lines = dict[int, str]


class Faulty(Exception):
    """The lines that a refusal may name; empty if the whole file is at fault."""

    def __init__(self, lines: set[int]) -> None:
        super().__init__(f"lines {sorted(lines)}")
        self.lines = lines


@dataclass(frozen=True)
class Read:
    """A sentence: its words, its mentions (or tags, for the task "tags"), its other columns, its line."""

    words: list[str]
    found: list[Mention] | list[str]
    columns: dict[str, list[str]] = field(default_factory=dict)
    line: int = 0


def decoded(content: bytes) -> tuple[Lines, set[int]]:
    """The text of each line, and the lines that are not text."""
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
    """The line numbers of each sentence; `ends` decides whether a line ends one."""
    found: list[list[int]] = [[]]
    for number, line in lines.items():
        if ends(line):
            found.append([])
        else:
            found[-1].append(number)
    return [block for block in found if block]


def mentions(tags: list[str]) -> list[Mention]:
    """Mentions as conlleval reads them: token by token, whether one starts and whether one continues."""
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
    """The sentences with mentions in place of tags. Raises Faulty if a line is at fault or there is no sentence."""
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
