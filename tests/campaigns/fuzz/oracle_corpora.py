"""The oracles for corpora: what a file says, or which of its lines are at fault, line by line."""

import re
from dataclasses import replace

from fuzz.oracle import (
    DOCSTART,
    Faulty,
    Read,
    blocks,
    cut,
    cut_alike,
    decoded,
    is_blank,
    is_visible,
    plain_of,
    restyled,
    scored,
    several_labels,
    tokens_only,
    width_of,
)


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
    empty, read = 0, []
    found = blocks(lines, ends_a_sentence)
    rows = cut_alike(found, lines)
    plain = plain_of(found, lines)
    width, _ = width_of(plain, rows)
    if plain:
        first = plain[0]
        if any(not -width <= index < width for index in columns.values()):
            raise Faulty(faults | {first})
        if columns["word"] % width == columns["tag"] % width:
            raise Faulty(faults | {first})
        tag = columns["tag"] % width
        _, found = tokens_only(found, lines, rows, tag, judged=task == "mentions")
    for block in found:
        wrong = {number for number in block if len(rows[number]) != width}
        layers = {
            name: [field_of(rows[number], index) for number in block] for name, index in columns.items()
        }
        words, tags = layers.pop("word"), layers.pop("tag")
        for number, word, tag in zip(block, words, tags, strict=True):
            if not word or (not tag and empty_tag is None) or not is_visible(tag):
                wrong.add(number)
            if first_character and (len(word) < 2 or word[-1] not in "0123456789"):
                wrong.add(number)
        faults |= wrong
        words = [word[:1] if first_character else word for word in words]
        empty += tags.count("")
        tags = [tag or empty_tag or "O" for tag in tags]
        if not wrong:
            read.append((block, Read(words, tags, layers, block[0])))
    if not faults and task == "mentions":
        for block, sentence in read:
            faults |= {n for n, tag in zip(block, sentence.found, strict=True) if several_labels(tag)}
        new = restyled({"O"}.union(*(it.found for _, it in read)), scheme)
        read = [(block, replace(it, found=[new.get(tag, tag) for tag in it.found])) for block, it in read]
    if empty_tag is not None and read and not faults and empty == sum(len(block) for block, _ in read):
        raise Faulty({read[0][0][0]})
    return scored(read, faults, task, scheme)


def field_of(row: list[str], index: int) -> str:
    return row[index] if -len(row) <= index < len(row) else ""


def ends_a_sentence(line: str) -> bool:
    """Whether the line ends a sentence: a blank line, or one of -DOCSTART- without a mention."""
    fields = line.replace("\t", " ").split(" ")
    is_mention = "[bimeslu][-_].+|.+[-_][bimeslu]"
    return is_blank(line) or (
        re.match(rf"[ \t]*((\d+|-X-|[-_])[ \t]+)*{DOCSTART}([ \t]|$)", line)
        and not any(re.fullmatch(is_mention, it, re.IGNORECASE) for it in fields)
    )


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


def gold_conll(content: bytes) -> list[Read]:
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
