"""DocBin files, made by spaCy. The oracle unpacks a damaged one by itself: MessagePack, arrays and structs."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

from fuzz import oracle
from fuzz.corpora import WORDS, Known, draw, draw_mentions
from fuzz.damage import damaged, rubbish
from fuzz.format_files import AnnotatedReader, Sentence
from fuzz.readers import Case

SPACES = ("\n", "\n\n", " ", "\t")
"""Tokens that spaCy makes of surplus white space, and the suite leaves out."""


class DocBinFile(AnnotatedReader):
    name = format = "docbin"
    package = "spacy"

    def case(self, rng: Random) -> Case:
        """As of other formats, but most damage is to what zlib packs, where its checksum would show any."""
        if rng.random() < 0.05:
            return Case(rubbish(rng))
        whole = self.whole(rng)
        if rng.random() < 0.5:
            return whole
        return Case(rng.choice((damaged, inside, inside, values, values))(rng, whole.content))

    def whole(self, rng: Random) -> Case:
        """Documents of sentences or, if the file does not say where these start, of a single one."""
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab

        vocab, starts = Vocab(), rng.random() < 0.5
        kinds = ["ENT_TYPE", "ENT_IOB", *(["SENT_START"] if starts else [])]
        attributes = {} if starts and rng.random() < 0.5 else {"attrs": rng.sample(kinds, len(kinds))}
        packed = DocBin(store_user_data=rng.random() < 0.3, **attributes)
        corpus = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            sentences = draw(rng, "mentions")[: rng.choice((0, 9, 9, 9)) if starts else 1]
            corpus += sentences
            packed.add(document(rng, vocab, sentences, starts=starts))
        return Case(packed.to_bytes(), [(known.words, sorted_mentions(known)) for known in corpus])

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        raise NotImplementedError

    def expected(self, content: bytes) -> Any:
        return [sentence for document in documents(content) for sentence in document]


def sorted_mentions(known: Known) -> list[Any]:
    return sorted(set(known.found), key=lambda it: (it[0], -it[1], it[2]))


def document(rng: Random, vocab: Any, sentences: list[Known], *, starts: bool) -> Any:
    """A document with surplus white space, its mentions as entities, as spans, or as both; spans may be nested."""
    from spacy.tokens import Doc, Span

    words: list[str] = []
    heads: list[int] = []
    found: list[oracle.Mention] = []
    more: list[oracle.Mention] = []
    for known in sentences:
        places, first = [], len(words)
        for word in known.words:
            places.append(len(words))
            words += [word, *rng.choices(SPACES, k=rng.random() < 0.05)]
        heads += [rng.randrange(first, len(words))] * (len(words) - first)
        found += [(places[start], places[end - 1] + 1, kind) for start, end, kind in known.found]
        if rng.random() < 0.2:
            nested = draw_mentions(rng, len(places))
            more += [(places[start], places[end - 1] + 1, kind) for start, end, kind in nested]
            known.found.extend(nested)
    layout: dict[str, Any] = {"spaces": rng.choice((None, [rng.random() < 0.7 for _ in words]))}
    if starts and rng.random() < 0.5:
        layout |= {"heads": heads, "deps": ["dep"] * len(words)}  # a parse; its trees are the sentences
    elif starts:
        layout["sent_starts"] = [not place or heads[place - 1] != head for place, head in enumerate(heads)]
    made = Doc(vocab, words=words, **layout)
    as_entities, as_spans = rng.choice(((True, False), (True, True), (False, True)))
    if as_entities:
        made.set_ents([Span(made, *it) for it in found], default=rng.choice(("outside", "missing")))
    if as_spans or more:
        made.spans[rng.choice(("sc", "人名"))] = [Span(made, *it) for it in more + found * as_spans]
    made.user_data["source"] = rng.choice(WORDS)
    return made


def inside(rng: Random, content: bytes) -> bytes:
    """Damage to the bytes of the message."""
    return zlib.compress(damaged(rng, zlib.decompress(content)))


def values(rng: Random, content: bytes) -> bytes:
    """A wrong value in a field of the message, or a field that is missing."""
    from srsly import msgpack_dumps, msgpack_loads

    message = msgpack_loads(zlib.decompress(content))
    name = rng.choice(sorted(message))
    value = message[name]
    if rng.random() < 0.1:
        del message[name]
    elif name in ("tokens", "spaces", "lengths") and value:
        width = {"tokens": 8, "spaces": 1, "lengths": 4}[name]
        place = rng.randrange(len(value) // width) * width
        number = rng.choice((0, 1, 2, 3, 4, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1)) % 2 ** (8 * width)
        other = rng.randrange(len(value) // width) * width
        new = rng.choice((number.to_bytes(width, "little"), value[other : other + width]))
        message[name] = value[:place] + new + value[place + width :]
    elif name == "span_groups" and any(len(it) > 1 for it in value):
        value[:] = [moved(rng, it) if len(it) > 1 else it for it in value]
    elif isinstance(value, list) and value:
        place = rng.randrange(len(value))
        value[place : place + 1] = rng.choice(([], [value[place]] * 2, [None], [7], ["x\0y"], [b"x"]))
    else:
        message[name] = rng.choice((None, 7, "x", [], {}, b"x"))
    return zlib.compress(msgpack_dumps(message))


def moved(rng: Random, groups: bytes) -> bytes:
    """The groups with spans of which one number is another."""
    from srsly import msgpack_dumps, msgpack_loads

    found = {}
    for packed, keys in msgpack_loads(groups).items():
        group = msgpack_loads(packed)
        for place, span in enumerate(group["spans"]):
            *ids, label, start, end, first, last = struct.unpack(">QQQllll", span)
            numbers = [start, end, first, last]
            if rng.random() < 0.5:
                numbers[rng.randrange(4)] += rng.choice((-1, 1, 1, 1000, -1000))
            label = rng.choice((label, label, label, label ^ 1, 0))
            group["spans"][place] = struct.pack(">QQQllll", *ids, label, *numbers)
        found[msgpack_dumps(group)] = keys
    return msgpack_dumps(found)


def documents(content: bytes) -> Iterator[list[Sentence]]:
    """The sentences of each document, by the layout that spaCy's documentation of DocBin states."""
    from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH
    from spacy.strings import StringStore
    from srsly import msgpack_loads

    message = msgpack_loads(zlib.decompress(content))
    names = StringStore([it for it in message["strings"] if isinstance(it, str)])
    attributes = message["attrs"]
    width = len(attributes)
    cells = struct.unpack(f"<{len(message['tokens']) // 8}Q", message["tokens"])
    rows = [dict(zip(attributes, cells[at : at + width], strict=True)) for at in range(0, len(cells), width)]
    lengths, at = struct.unpack(f"<{len(message['lengths']) // 4}i", message["lengths"]), 0
    if min(lengths, default=0) < 0 or sum(lengths) != len(rows):
        raise oracle.Faulty(set())
    for number, length in enumerate(lengths):
        tokens, at = rows[at : at + length], at + length
        words = [names[token[ORTH]] for token in tokens]
        marked = set(
            entities(
                [token.get(ENT_IOB, 0) for token in tokens], [token.get(ENT_TYPE, 0) for token in tokens]
            )
        )
        marked |= set(spans(message["span_groups"][number] if "span_groups" in message else b""))
        starts = sentence_starts(tokens)
        yield [
            cut(
                words[start:end],
                [(a - start, b - start, names[kind]) for a, b, kind in marked if start <= a < end],
            )
            for start, end in pairwise([*starts, length])
        ]


def sentence_starts(tokens: list[dict[int, int]]) -> list[int]:
    """The first token of each sentence: of a parse, the leftmost that depends on a root, however remotely."""
    from spacy.attrs import DEP, HEAD, SENT_START

    if not any(HEAD in token and token.get(DEP) for token in tokens):
        return [
            place for place, token in enumerate(tokens) if place == 0 or int32(token.get(SENT_START, 0)) == 1
        ]
    leftmost: dict[int, int] = {}
    for place in range(len(tokens)):
        head = place
        for _ in tokens:
            head += int32(tokens[head][HEAD])
        leftmost.setdefault(head, place)
    roots = [place for place, token in enumerate(tokens) if not token[HEAD] and token[DEP]]
    return sorted({0, *(leftmost[root] for root in roots)})


def int32(cell: int) -> int:
    """The lower bits of a cell, which are what spaCy keeps of heads and sentence starts."""
    return (cell + 2**31) % 2**32 - 2**31


def entities(iob: list[int], kinds: list[int]) -> Iterator[oracle.Mention]:
    """First token, end and hash of the type of each entity: 3 begins one, 1 is inside one, 2 and 0 are outside."""
    for start in (place for place, value in enumerate(iob) if value == 3 and kinds[place]):
        end = start + 1
        while end < len(iob) and iob[end] == 1:
            end += 1
        yield start, end, kinds[start]


def spans(groups: bytes) -> Iterator[oracle.Mention]:
    from srsly import msgpack_loads

    unpacked = msgpack_loads(groups) if groups else []
    for group in unpacked:
        for span in msgpack_loads(group)["spans"]:
            _, _, kind, start, end, _, _ = struct.unpack(">QQQllll", span)
            yield start, end, kind


def cut(words: list[str], mentions: list[Any]) -> Sentence:
    """A sentence without its tokens of white space."""
    places = [place for place, word in enumerate(words) if word.strip(" \t\r\n")]
    found = set()
    for start, end, kind in mentions:
        inside = [number for number, place in enumerate(places) if start <= place < end]
        found.add((inside[0], inside[-1] + 1, kind))
    return [words[place] for place in places], sorted(found, key=lambda it: (it[0], -it[1], it[2]))
