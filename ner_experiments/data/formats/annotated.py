"""`Annotated`, the sentence that every format reads and writes, made from tags or from mentions by characters."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence, Tokens
from ner_experiments.data.tag_styles import MultiLabel, TagStyle, check_label, labels, respelled
from ner_experiments.data.tags import Span, encode, spans
from ner_experiments.data.tokenize import tokenize
from ner_experiments.utils.text import truncated_repr

Nested = Literal["refuse", "outermost", "innermost"]
Misaligned = Literal["refuse", "split", "expand", "skip"]


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """A sentence as a file annotates it.

    mentions: (first token, one after the last, type), in order of their starts, the longer first. They may be nested.
    text, offsets: the sentence's text, and each token's first character in it and the one after its last.
    place, line: where it is in its file, such as train.jsonl:7, for messages.
    keys: what else the file says about it, such as id and meta; formats that have keys write them back.
    document: name of the document that it is from; empty if the file has none.
    tagged: the sentence with the tags of its file, spelled as `B-ORG`; None if the file has mentions instead.
    """

    words: tuple[str, ...]
    mentions: tuple[Span, ...]
    text: str
    offsets: tuple[tuple[int, int], ...]
    place: str = ""
    line: int = 0
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    document: str = ""
    tagged: Tagged | None = field(default=None, compare=False)

    def tags(self) -> tuple[str, ...]:
        """IOB2 tags. Raises ValueError for nested mentions."""
        return encode(self.mentions, len(self.words), "iob2")

    def characters(self) -> list[Characters]:
        """The mentions by their characters in `text`."""
        return [
            Characters(self.offsets[first][0], self.offsets[last - 1][1], type_)
            for first, last, type_ in self.mentions
        ]

    def texts(self) -> list[tuple[str, str]]:
        """Type of each mention and its text without white space, by which two formats can be compared."""
        return [(type_, "".join(self.text[start:end].split())) for start, end, type_ in self.characters()]


class Characters(NamedTuple):
    """A mention by characters: its first, the one after its last, and its type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to read a file in matters that its format leaves open.

    tokens, lines: how text is tokenized, and whether each of its lines is a sentence.
    misaligned: what becomes of a mention that starts or ends inside a token: refuse the file, split the token there,
        expand the mention to whole tokens, or skip the mention.
    tag_style, multi_label: see `ColumnFiles`.
    names: where tags are numbers, the tag of each number from 0.
    columns: "word", "tag" or "sentence" -> the name of its column in the header, where it is not a usual one.
    all_texts: also read texts that are not annotated, and those whose annotation was rejected, in order to tag them.
    """

    tokens: Tokens = "words"
    lines: bool = False
    misaligned: Misaligned = "refuse"
    encoding: str = "utf-8"
    tag_style: TagStyle | Literal["auto"] = "auto"
    multi_label: MultiLabel = "refuse"
    names: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    all_texts: bool = False


def in_order(mentions: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(set(mentions), key=lambda it: (it[0], -it[1], it[2])))


# Sentences of words


def of_words(words: Sequence[str], mentions: Iterable[Span], *, joint: str = " ", **about: Any) -> Annotated:
    """A sentence of words whose text is not known: the words joined by `joint`, which is empty for characters."""
    starts = accumulate((len(word) + len(joint) for word in words), initial=0)
    offsets = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=False))
    return Annotated(
        words=tuple(words), mentions=in_order(mentions), text=joint.join(words), offsets=offsets, **about
    )


def of_sentence(sentence: Sentence, *, joint: str = " ", **about: Any) -> Annotated:
    """A sentence of a corpus, whose tags may be of any scheme."""
    about = {"columns": sentence.columns, "line": sentence.line, **about}
    return of_words(sentence.words, spans(sentence.tags), joint=joint, **about)


@dataclass(frozen=True, kw_only=True)
class Tagged:
    """A sentence with one raw tag per token, whose style can only be detected from the whole file.

    at: where each token is, such as train.csv:7. about: further fields of `Annotated`.
    """

    words: Sequence[str]
    tags: Sequence[str]
    at: Sequence[str]
    about: Mapping[str, Any] = field(default_factory=dict)


def of_tags(file: Iterable[Tagged | Annotated], options: Options, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences with the mentions that their tags encode. Sentences that have mentions already stay as they are.

    Raises ValueError for a string that is no tag, and for a tag with several labels unless `multi_label` is "first".
    """
    every = list(file)
    sentences = [it for it in every if isinstance(it, Tagged)]
    tags = {tag for sentence in sentences for tag in sentence.tags}
    several = {tag for tag in tags if len(labels(tag)) > 1}
    for sentence in sentences if several else ():
        for tag, place in zip(sentence.tags, sentence.at, strict=True):
            if tag in several:
                check_label(tag, place, options.multi_label, remarks)
    new, remark = respelled(tags, options.tag_style)
    for it in every:
        if isinstance(it, Tagged):
            standard = [new.get(tag, tag) for tag in it.tags]
            for tag, place in zip(it.tags, it.at, strict=True) if remark else ():
                if tag in new:
                    remarks.add(remark, os.path.basename(place))
            about = {**it.about, "tagged": replace(it, tags=standard)}
            it = of_words(it.words, _spans(standard, it.at), **about)
        yield it


def _spans(tags: Sequence[str], at: Sequence[str]) -> list[Span]:
    try:
        return spans(tags)
    except ValueError:
        for tag, place in zip(tags, at, strict=True):
            try:
                spans([tag])
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
        raise


# Sentences of a text


def of_text(
    text: str,
    mentions: Sequence[Characters],
    options: Options,
    remarks: Remarks,
    *,
    place: str,
    tokens: Sequence[tuple[int, int]] | None = None,
    **about: Any,
) -> Iterator[Annotated]:
    """The sentences of a text, with their mentions.

    tokens: the offsets of its tokens, if the file has them; those of white space are left out.
    No sentence ends inside a mention. Raises ValueError for a mention outside the text, and for one that starts or ends
    inside a token, unless `misaligned` says what becomes of it.
    """
    for it in mentions:
        if not 0 <= it.start < it.end <= len(text):
            raise ValueError(
                f"{place}: mention {tuple(it)} is not within the {len(text)} characters of its text"
            )
    sentences = _sentences(text, options, tokens)
    every = [pair for sentence in sentences for pair in sentence]
    ends = {sentence[-1][1] for sentence in sentences}
    kept, cuts = _aligned(text, mentions, every, options, remarks, place)
    every = list(_cut(every, cuts))
    covered = [(*_inside(every, it), it.type) for it in kept]
    for first, last, _ in covered:
        ends.difference_update(end for _, end in every[first : last - 1])
    covered.sort()
    begin = 0
    for number, (_, end) in enumerate(every, 1):
        if end not in ends:
            continue
        start, offsets = every[begin][0], every[begin:number]
        found = []
        while covered and covered[0][0] < number:
            first, last, type_ = covered.pop(0)
            found.append((first - begin, last - begin, type_))
        begin = number
        yield Annotated(
            words=tuple(text[one:other] for one, other in offsets),
            mentions=in_order(found),
            text=text[start:end],
            offsets=tuple((one - start, other - start) for one, other in offsets),
            place=place,
            **about,
        )


def _sentences(
    text: str, options: Options, tokens: Sequence[tuple[int, int]] | None
) -> list[Sequence[tuple[int, int]]]:
    """The offsets of the tokens of each sentence."""
    if tokens is not None:
        visible = [(start, end) for start, end in tokens if text[start:end].strip(" \t\r\n")]
        return [visible] if visible else []
    return [sentence.offsets for sentence in tokenize(text, options.tokens, lines=options.lines)]


def _inside(tokens: Sequence[tuple[int, int]], it: Characters) -> tuple[int, int]:
    """The first token that has a character of the mention, and the token after the last such one."""
    first = bisect_right(tokens, it.start, key=lambda token: token[1])
    return first, max(first, bisect_left(tokens, it.end, key=lambda token: token[0]))


def _aligned(
    text: str,
    mentions: Iterable[Characters],
    tokens: Sequence[tuple[int, int]],
    options: Options,
    remarks: Remarks,
    place: str,
) -> tuple[list[Characters], set[int]]:
    """The mentions to keep, and where tokens are to be split for them."""
    kept, cuts = [], set()
    for it in mentions:
        first, last = _inside(tokens, it)
        if first < last and tokens[first][0] >= it.start and tokens[last - 1][1] <= it.end:
            kept.append(it)
            continue
        shown = f"{it.type} {truncated_repr(text[it.start : it.end])}"
        rule = "starts or ends inside a token" if first < last else "covers no token"
        if options.misaligned == "refuse" or (first == last and options.misaligned != "skip"):
            hint = "misaligned: split, expand or skip" if first < last else "misaligned: skip leaves it out"
            raise ValueError(f"{place}: mention {shown} at {it.start} {rule} ({hint})")
        done = {"split": "tokens split for it", "expand": "expanded to whole tokens", "skip": "skipped"}
        remarks.add(f"mentions inside a token, {done[options.misaligned]}", place, shown)
        if options.misaligned == "split":
            cuts |= {it.start, it.end}
        if options.misaligned != "skip":
            kept.append(it)
    return kept, cuts


def _cut(offsets: Iterable[tuple[int, int]], cuts: set[int]) -> Iterator[tuple[int, int]]:
    at = sorted(cuts)
    for start, end in offsets:
        yield from pairwise((start, *at[bisect_right(at, start) : bisect_left(at, end)], end))


# Flat mentions


def flat(sentence: Annotated, nested: Nested, remarks: Remarks) -> Annotated:
    """The sentence without overlapping mentions: only the outermost, or only the innermost, of nested ones are kept.

    Of two that overlap without nesting, "outermost" keeps the first and "innermost" the shorter. Of two with the same
    tokens, the first is kept. Raises ValueError for overlapping mentions if `nested` is "refuse".
    """
    mentions = list(sentence.mentions)
    if all(one[1] <= other[0] for one, other in pairwise(mentions)):
        return sentence
    wanted = mentions if nested == "outermost" else sorted(mentions, key=lambda it: (it[1] - it[0], it[0]))
    kept: list[Span] = []
    for it in wanted:
        clash = next((other for other in kept if it[0] < other[1] and other[0] < it[1]), None)
        if clash is None:
            kept.append(it)
            continue
        if nested == "refuse":
            one, other = (" ".join(sentence.words[a:b]) for a, b, _ in (clash, it))
            shown = f"{truncated_repr(other)} ({it[2]}) and {truncated_repr(one)} ({clash[2]})"
            raise ValueError(
                f"{sentence.place}: nested or overlapping mentions (nested: outermost or innermost): {shown}"
            )
        remarks.add(
            f"mentions left out beside the {nested}", sentence.place, " ".join(sentence.words[it[0] : it[1]])
        )
    return replace(sentence, mentions=in_order(kept))
