"""Shared parts of the oracles, independent of the package: lines, blocks of lines, and mentions of tags."""

import gzip
from dataclasses import dataclass, field

DOCSTART = "-DOCSTART-"
LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}

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
    if content[:3] == b"\x1f\x8b\x08":
        try:
            content = gzip.decompress(content)
        except Exception:
            raise Faulty(set()) from None
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


def cut_alike(found: list[list[int]], lines: Lines) -> dict[int, list[str]]:
    """The fields of each line of a column file, by what makes more lines alike: tabs, or spaces and tabs."""
    plain = plain_of(found, lines)
    tabs = {number: lines[number].split("\t") for block in found for number in block}
    spaces = {
        number: [piece for piece in lines[number].replace("\t", " ").split(" ") if piece] for number in tabs
    }
    if all(len(tabs[number]) > 1 for number in plain):
        return tabs
    if all(len(tabs[number]) == 1 for number in plain):
        return spaces
    alike = []
    for rows in (tabs, spaces):
        width, number = width_of(plain, rows)
        alike.append((width > 1, number))
    return tabs if alike[0] >= alike[1] else spaces


def plain_of(found: list[list[int]], lines: Lines) -> list[int]:
    """The lines that cannot be comments."""
    numbers = [number for block in found for number in block]
    plain = [number for number in numbers if lines[number][:1] != "#"]
    return plain or [number for number in numbers if lines[number][:2] not in ("# ", "#\t")] or numbers


def width_of(numbers: list[int], rows: dict[int, list[str]]) -> tuple[int, int]:
    """The most frequent width of rows, of several the first, and how many rows have it."""
    widths: dict[int, int] = {}
    for number in numbers:
        widths[len(rows[number])] = widths.get(len(rows[number]), 0) + 1
    most = max(widths.values(), default=0)
    return next((width, number) for width, number in [*widths.items(), (0, 0)] if number == most)


def tokens_only(
    found: list[list[int]], lines: Lines, rows: dict[int, list[str]], tag: int | None, *, judged: bool = True
) -> tuple[int, list[list[int]]]:
    """The width of a column file, and the blocks without lines that can only be comments.

    tag: the column of the tags; None if it is not known. judged: whether a line can be a comment for its tag.
    """
    plain = plain_of(found, lines)
    width, _ = width_of(plain, rows)
    alike = [rows[number] for number in plain if len(rows[number]) == width]
    tags = tag_columns(alike) if tag is None else {tag: styled({row[tag] for row in alike})} if alike else {}
    kept = []
    for block in found:
        here: list[int] = []
        for number in block:
            row, line = rows[number], lines[number]
            may_be = line[:2] in ("# ", "#\t")
            if here:
                is_comment = may_be and len(row) == 1 < width and "\t" not in line and any_tab(plain, lines)
            else:
                is_comment = may_be and (
                    len(row) != width or (judged and not all(fits(row[it], way) for it, way in tags.items()))
                )
            if not is_comment:
                here.append(number)
        kept.append(here)
    return width, [block for block in kept if block]


def any_tab(plain: list[int], lines: Lines) -> bool:
    return all("\t" in lines[number] for number in plain)


Way = tuple[str, set[str]]
"""The style of the tags of a column, and these."""


def styled(values: set[str]) -> Way:
    tags = {first_label(value) for value in values if value}
    return (style_name(tags) if tags else ""), values


def fits(value: str, way: Way) -> bool:
    """Whether a value may be a tag of a column."""
    style, values = way
    if not style or not value or value in values:
        return True
    return style != "bare" and style_name({first_label(it) for it in {*values, value} if it}) == style


def tag_columns(rows: list[list[str]]) -> dict[int, Way]:
    ways = {place: styled({*column}) for place, column in enumerate(zip(*rows, strict=True))}
    found = {place: way for place, way in ways.items() if way[0]}
    for unsure in ("bare", "letters"):
        if any(way[0] != unsure for way in found.values()):
            found = {place: way for place, way in found.items() if way[0] != unsure}
    return found


def first_label(tag: str) -> str:
    if not several_labels(tag):
        return tag
    for separator in ",|;+":
        tag = tag.replace(separator, "\n")
    return tag.split("\n")[0]


def style_name(tags: set[str]) -> str:
    """The first style that explains all tags; empty if there is none."""
    for joint in ("first -", "first _", "last -", "last _"):
        for case, outside in (("upper", "O"), ("lower", "o")):
            if all(f"{joint} {case}" in styles_of(tag) for tag in tags if tag != outside):
                return joint
    if tags <= {*"OBIMESLU"} or tags <= {*"obimeslu"}:
        return "letters"
    kinds = tags - {"O"}
    bare = "O" in tags and "o" not in tags and not any(map(styles_of, kinds))
    return "bare" if bare and all(len(kind.strip("-_")) > 1 for kind in kinds) else ""


def mentions(tags: list[str]) -> list[Mention]:
    """Mentions as conlleval reads them: token by token, whether one starts and whether one continues."""
    found: list[Mention] = []
    before = "O"
    for place, tag in enumerate(tags):
        begins = tag != "O" and (
            before == "O" or tag[2:] != before[2:] or tag[0] in "BSU" or before[0] in "ESLU"
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
    detected = (
        "bmes" if "M" in used else "bilou" if used & {"L", "U"} else "bioes" if used & {"E", "S"} else "iob2"
    )
    return LETTERS[detected]


def styles_of(tag: str) -> dict[str, str]:
    """The ways to read a tag: style and case of its letter -> the tag as `B-ORG`."""
    ways = {}
    for letter, joint, kind, style in (
        (tag[:1], tag[1:2], tag[2:], "first"),
        (tag[-1:], tag[-2:-1], tag[:-2], "last"),
    ):
        if kind and joint in ("-", "_") and letter.upper() in tuple("BIMESLU"):
            ways[f"{style} {joint} {'upper' if letter.isupper() else 'lower'}"] = f"{letter.upper()}-{kind}"
    return ways


def several_labels(tag: str) -> bool:
    for separator in ",|;+":
        tag = tag.replace(separator, "\n")
    return "\n" in tag and all(part in ("O", "o") or styles_of(part) for part in tag.split("\n"))


def restyled(tags: set[str], scheme: str) -> dict[str, str]:
    """The standard form of each tag, if one style explains all of them."""
    for joint in ("first -", "first _", "last -", "last _"):
        for case, outside in (("upper", "O"), ("lower", "o")):
            ways = {tag: styles_of(tag).get(f"{joint} {case}") for tag in tags if tag != outside}
            if all(ways.values()):
                return {**ways, outside: "O"}
    if tags <= {*"OBIMESLU"} or tags <= {*"obimeslu"}:
        return {tag: "O" if tag in "Oo" else f"{tag.upper()}-_" for tag in tags}
    kinds = tags - {"O"}
    bare = "O" in tags and "o" not in tags and not any(map(styles_of, kinds))
    if bare and scheme == "auto" and all(len(kind.strip("-_")) > 1 for kind in kinds):
        return {**{kind: f"I-{kind}" for kind in kinds}, "O": "O"}
    return {}


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
