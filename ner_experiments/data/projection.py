"""Mentions of one annotation of a text, projected by characters onto the tokens of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, chain

from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span, encode, spans

SAME_TEXT = 0.95
"""Share of a text's characters that another must have, in the same order, to be the same text."""

MAX_COMPARED = 2_000
"""Length of the longest texts in which single characters are compared, which takes quadratic time."""

Words = Sequence[Sequence[str]]
"""The tokens of each sentence."""


class OtherTextError(ValueError):
    """Two texts differ in more than a few characters."""


@dataclass(frozen=True)
class Projection:
    """Gold mentions on the tokens of a text that may be cut into other tokens or sentences than theirs.

    tags: IOB2 tags of each sentence.
    unclear: the tokens, as numbers of sentence and token, that a gold mention without a place in these tags touches,
        and those with characters that only this text has.
    left_out: number of gold mentions without a place.
    """

    tags: tuple[tuple[str, ...], ...]
    unclear: frozenset[tuple[int, int]]
    left_out: int

    def clear(self, tags: Sequence[Sequence[str]]) -> tuple[list[tuple[str, ...]], int]:
        """Predicted tags as IOB2 without the mentions that touch an unclear token, and the number of these."""
        kept, left_out = [], 0
        for number, own in enumerate(tags):
            mentions = spans(own)
            clear = [
                it for it in mentions if all((number, token) not in self.unclear for token in range(*it[:2]))
            ]
            left_out += len(mentions) - len(clear)
            kept.append(encode(clear, len(own), "iob2"))
        return kept, left_out


def project(words: Words, gold: Sequence[Sentence]) -> Projection:
    """The mentions of `gold` on the tokens of `words`, which have the same text apart from a few characters.

    Only characters of tokens count, not the space between them. A mention has no place if it starts or ends inside a
    token, crosses the end of a sentence, or has characters that `words` lacks. Raises `OtherTextError` if less than
    `SAME_TEXT` of the characters of `words` occur in `gold`, in the same order.
    """
    place = places([*map("".join, words)], ["".join(it.words) for it in gold])
    tokens = [(number, token) for number, own in enumerate(words) for token in range(len(own))]
    ends = [*accumulate(len(word) for own in words for word in own)]
    first_of = {char: token for token, char in zip(tokens, [0, *ends], strict=False)}
    last_of = {char - 1: token for token, char in zip(tokens, ends, strict=True)}
    token_of = [token for token, word in zip(tokens, chain.from_iterable(words), strict=True) for _ in word]

    mentions: list[list[Span]] = [[] for _ in words]
    unclear = {token_of[char] for char in {*range(len(token_of))} - {*place}}
    left_out = 0
    for start, end, type_ in characters(gold):
        chars = [char for char in place[start:end] if char is not None]
        if chars and chars == [*range(chars[0], chars[0] + end - start)]:
            first, last = first_of.get(chars[0]), last_of.get(chars[-1])
            if first and last and first[0] == last[0]:
                mentions[first[0]].append((first[1], last[1] + 1, type_))
                continue
        left_out += 1
        unclear.update(token_of[char] for char in chars)
    return Projection(
        tuple(encode(it, len(own), "iob2") for it, own in zip(mentions, words, strict=True)),
        frozenset(unclear),
        left_out,
    )


def characters(sentences: Iterable[Sentence]) -> Iterator[Span]:
    """The mentions of a text by its characters, which are counted over all sentences."""
    start = 0
    for sentence in sentences:
        ends = [*accumulate(map(len, sentence.words), initial=start)]
        for first, after, type_ in spans(sentence.tags):
            yield ends[first], ends[after], type_
        start = ends[-1]


def places(text: Sequence[str], other: Sequence[str]) -> list[int | None]:
    """For each character of the sentences of `other`, the same one of `text`, by its number; None where there is none.

    If the texts differ, sentences are compared first, and characters only where these differ. Raises `OtherTextError`.
    """
    if "".join(text) == "".join(other):
        return [*range(sum(map(len, text)))]
    starts, other_starts = ([*accumulate(map(len, it), initial=0)] for it in (text, other))
    found: list[int | None] = [None] * other_starts[-1]
    same = 0
    for _, a, b, c, d in SequenceMatcher(None, text, other, autojunk=False).get_opcodes():
        for i, j, size in same_characters("".join(text[a:b]), "".join(other[c:d])):
            place, other_place = starts[a] + i, other_starts[c] + j
            found[other_place : other_place + size] = range(place, place + size)
            same += size
    if same < SAME_TEXT * starts[-1]:
        raise OtherTextError(f"only {same:,} of {starts[-1]:,} characters are the same")
    return found


def same_characters(text: str, other: str) -> list[tuple[int, int, int]]:
    """Where two texts are the same: the start in each, and the length. Long texts are compared as a whole."""
    if text == other:
        return [(0, 0, len(text))]
    if len(text) * len(other) > MAX_COMPARED**2:
        return []
    return [
        (i, j, size)
        for i, j, size in SequenceMatcher(None, text, other, autojunk=False).get_matching_blocks()
    ]
