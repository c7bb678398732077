"""Tag text with the model beside this file, by NumPy and ONNX Runtime alone: `python tag.py [FILE ...]`.

Prints a JSON object per sentence, with its offset and its mentions. From Python: `tag.Tagger(FOLDER).tag(text)`.
`export` writes this file as tag.py; `tokens.py` beside it splits text as the suite does.
"""

from __future__ import annotations

import json
import os
import re
import string
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 32
"""Number of sentences that are tagged together."""
Encode = Callable[[Sequence[str]], Sequence[Any]]
"""The id, or the ids, of each word of a sentence."""


class Tagger:
    """An exported model: model.onnx, and encoder.json, which says how its inputs are computed."""

    def __init__(self, folder: Path | str) -> None:
        import onnxruntime

        self.about = json.loads(Path(folder, "encoder.json").read_text(encoding="utf-8"))
        self.session = onnxruntime.InferenceSession(
            Path(folder, "model.onnx"), providers=["CPUExecutionProvider"]
        )
        self.shapes = {it.name: it.shape for it in self.session.get_inputs()}
        self.inputs = {
            name: INPUTS[it["kind"]](it["settings"], it["learned"])
            for name, it in self.about["inputs"].items()
        }

    def tag(self, text: str) -> Iterator[dict[str, Any]]:
        """The sentences of a text with their mentions, or with a tag per token if the model tags those."""
        from tokens import tokenize_lines  # beside tag.py

        how = self.about["raw_text"]
        sentences = tokenize_lines(StringIO(text, newline="\n"), how["tokens"], lines=how["lines"])
        while batch := list(islice(sentences, BATCH)):
            for it, tags in zip(batch, self.tags([it.words for it in batch]), strict=True):
                found: dict[str, Any] = {"tags": tags}
                if self.about["task"] == "mentions":
                    spans = [
                        (it.offsets[first][0], it.offsets[last - 1][1], kind)
                        for first, last, kind in mentions(tags)
                    ]
                    found = {
                        "mentions": [
                            {"start": start, "end": end, "type": kind, "text": text[start:end]}
                            for start, end, kind in spans
                        ]
                    }
                yield {"line": it.line, "start": it.start, "text": it.text, **found}

    def tags(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of tokenized sentences, each of at least one token."""
        tensors = {"lengths": np.array([*map(len, sentences)], dtype=np.int64)}
        for name, encode in self.inputs.items():
            rows = [encode(sentence) for sentence in sentences]
            tensors[name] = padded(rows, self.shapes[name])
        (found,) = self.session.run(["tags"], tensors)
        labels = self.about["labels"]
        return [[labels[tag] for tag in row[: len(it)]] for row, it in zip(found, sentences, strict=True)]


def padded(rows: Sequence[Sequence[Any]], shape: Sequence[Any]) -> np.ndarray:
    """The ids of all tokens, [batch time] or [batch time width], with 0 where there is none."""
    longest = max(map(len, rows))
    if len(shape) == 2:
        return np.array([[*row, *[0] * (longest - len(row))] for row in rows], dtype=np.int64)
    width = shape[2] if isinstance(shape[2], int) else max(1, *(len(ids) for row in rows for ids in row))
    table = np.zeros((len(rows), longest, width), dtype=np.int64)
    for number, row in enumerate(rows):
        for place, ids in enumerate(row):
            table[number, place, : len(ids)] = ids
    return table


def mentions(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """First token, one after the last, and type of each mention: exactly S, or B I* E of one type."""
    found = []
    start, inside = 0, ""
    for place, tag in enumerate(tags):
        letter, _, kind = tag.partition("-")
        if letter in ("B", "S"):
            start, inside = place, kind
        elif kind != inside:
            inside = ""
        if letter in ("E", "S") and inside:
            found.append((start, place + 1, kind))
            inside = ""
    return found


def random_words(settings: Any, learned: Any) -> Encode:
    ids = {word: number for number, word in enumerate(learned["words"], start=1)}
    return lambda words: [ids.get(word.lower() if settings["lowercase"] else word, 0) for word in words]


def pretrained_words(settings: Any, learned: Any) -> Encode:
    """The word as it is, lower-cased, with its digits as 0, or both, whichever is known first."""
    ids = learned["ids"]

    def encode(words: Sequence[str]) -> list[int]:
        forms = [[it, it.lower(), re.sub(r"\d", "0", it), re.sub(r"\d", "0", it.lower())] for it in words]
        return [next((ids[form] for form in each if form in ids), 0) for each in forms]

    return encode


def words_with_case(settings: Any, learned: Any) -> Encode:
    ids = {word: number for number, word in enumerate(learned["words"], start=1)}
    return lambda words: [ids.get(word, 0) for word in words]


def characters(settings: Any, learned: Any) -> Encode:
    known = learned.get(
        "characters", string.ascii_uppercase + string.ascii_lowercase + string.digits + string.punctuation
    )
    ids = {character: number for number, character in enumerate(known, start=2)}
    return lambda words: [[ids.get(it, 1) for it in word[: settings["max_length"]]] for word in words]


def case(settings: Any, learned: Any) -> Encode:
    return lambda words: [[it.isupper(), it[:1].isupper(), it.islower(), True].index(True) for it in words]


def spelling(settings: Any, learned: Any) -> Encode:
    """The features of Huang, Xu & Yu (2015), section 4.2.1."""
    ids = {feature: number for number, feature in enumerate(learned["features"], start=1)}
    return lambda words: [[ids[it] for it in spelling_features(word) if it in ids] for word in words]


def spelling_features(word: str) -> Iterator[str]:
    letters = "".join(filter(str.isalpha, word))
    others = "".join(it for it in word if not it.isalpha())
    shape = "".join(
        "A" if it.isupper() else "a" if it.islower() else "0" if it.isdigit() else it for it in word
    )
    holds = {
        "initial capital": word[0].isupper(),
        "all capitals": word.isupper(),
        "all lower": word.islower(),
        "non-initial capital": any(map(str.isupper, word[1:])),
        "letters and digits": bool(letters) and any(map(str.isdigit, word)),
        "punctuation": any(unicodedata.category(it)[0] in "PS" for it in word),
        "apostrophe": word.endswith(("'s", "’s")),
    }
    yield f"word {word.lower()}"
    yield from (name for name, true in holds.items() if true)
    for size in range(2, min(len(word), 5) + 1):
        yield from (f"prefix {word[:size]}", f"suffix {word[-size:]}")
    yield from (f"{name} {text}" for name, text in (("letters", letters), ("others", others)) if text)
    yield f"pattern {shape}"
    yield "summary " + re.sub(r"(.)\1+", r"\1", shape, flags=re.DOTALL)


def context(settings: Any, learned: Any) -> Encode:
    """The n-grams of words in a window, Huang, Xu & Yu (2015), section 4.2.2."""
    window, (symbols, *_) = settings["window"], learned["symbols"]
    numbers = {symbol: number for number, symbol in enumerate(symbols, start=3)}
    base = len(numbers) + 3

    def encode(words: Sequence[str]) -> list[list[int]]:
        column = [numbers.get(it.lower() if settings["lowercase"] else it, 0) for it in words]
        column = [*[1] * window, *column, *[2] * window]
        rows: list[list[int]] = [[] for _ in words]
        first, tables = 1, iter(learned["ngrams"])
        for order in (1, 2):
            for start in range(2 * window + 2 - order):
                known = next(tables)
                for token, row in enumerate(rows):
                    parts = column[token + start : token + start + order]
                    ngram = parts[0] if order == 1 else parts[0] * base + parts[1]
                    place = bisect_left(known, ngram)
                    if 0 not in parts and known[place : place + 1] == [ngram]:
                        row.append(first + place)
                first += len(known)
        return rows

    return encode


def gazetteer(settings: Any, learned: Any) -> Encode:
    """B, I, E or S of the longest names of each list, from left to right."""
    lists = [{tuple(name) for name in names} for names in learned.values()]
    sizes = [sorted({*map(len, names)}, reverse=True) for names in lists]

    def encode(words: Sequence[str]) -> list[list[int]]:
        tokens = [it.lower() if settings["lowercase"] else it for it in words]
        rows: list[list[int]] = [[] for _ in words]
        for number, names in enumerate(lists):
            start, first = 0, 1 + 4 * number
            while start < len(tokens):
                left = (size for size in sizes[number] if tuple(tokens[start : start + size]) in names)
                size = next((it for it in left if start + it <= len(tokens)), 0)
                marks = [first + 3] if size == 1 else [first, *[first + 1] * (size - 2), first + 2]
                for row, mark in zip(rows[start : start + size], marks, strict=False):
                    row.append(mark)
                start += size or 1
        return rows

    return encode


INPUTS: dict[str, Callable[[Any, Any], Encode]] = {
    "RandomWords": random_words,
    "PretrainedWords": pretrained_words,
    "WordsWithCase": words_with_case,
    "Characters": characters,
    "TypedCharacters": characters,
    "Case": case,
    "Spelling": spelling,
    "Context": context,
    "Gazetteer": gazetteer,
}


def main(names: Sequence[str]) -> int:
    """Tag files, standard input without any; return the exit status: 1, without a message, if the reader has gone."""
    if {"-h", "--help"} & set(names):
        print(__doc__)
        return 0
    tagger = Tagger(Path(__file__).parent)
    for name in names or ["-"]:
        try:
            data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            text = data.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            print(f"{name}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            return 1
        try:
            for sentence in tagger.tag(text):
                sys.stdout.buffer.write(json.dumps(sentence, ensure_ascii=False).encode() + b"\n")
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
