"""Counts of files with other tokens and sentences, nested mentions, and answers, against sets of mentions.

A mention is its first character in the whole text without white space, the one after its last, and its type.
"""

import json
import random
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import Any

import pytest
import random_tags

import ner_experiments
from ner_experiments.data.tags import encode

Mention = tuple[int, int, str]
Sentences = list[list[int]]
"""For each sentence where its tokens end, after where it starts."""
Counts = list[int]
"""Number of mentions of a file, and of those that are gold."""


def overlaps(mention: Mention, others: Iterable[Mention]) -> bool:
    return any(mention[0] < end and start < mention[1] for start, end, _ in others)


def mentions_in(rng: random.Random, ends: list[int], likely: set[Mention], *, nested: bool) -> set[Mention]:
    """Half of the likely mentions, and others between two of these ends."""
    found: set[Mention] = set()
    ours = [it for it in sorted(likely) if it[0] in ends and it[1] in ends and rng.random() < 0.5]
    for _ in range(rng.choice([0, 1, 2, 4])):
        start, end = sorted(rng.sample(ends, 2))
        ours.append((start, end, rng.choice(random_tags.TYPES)))
    for it in ours:
        if nested or not overlaps(it, found):
            found.add(it)
    return found


def sentences_of(rng: random.Random, length: int, likely: Sentences) -> Sentences:
    """Other tokens and sentences, which mostly end where those of gold do."""
    ends = {end for it in likely for end in it if rng.random() < 0.9} | {0, length}
    ends |= {end for end in range(length) if rng.random() < 0.1}
    last = {it[-1] for it in likely if rng.random() < 0.8} | {end for end in ends if rng.random() < 0.05}
    found: Sentences = [[0]]
    for end in sorted(ends - {0}):
        found[-1].append(end)
        if end in last and end < length:
            found.append([end])
    return found


def by_tokens(ends: list[int], mentions: set[Mention]) -> list[Mention]:
    return [(bisect_left(ends, start), bisect_left(ends, end), kind) for start, end, kind in mentions]


def columns(ends: list[int], text: str, mentions: set[Mention], rng: random.Random) -> str:
    words = [text[a:b] for a, b in pairwise(ends)]
    lines = [*zip(words, encode(by_tokens(ends, mentions), len(words), "iob2"), strict=True)]
    place = rng.randrange(len(lines))
    if rng.random() < 0.1 and lines[place][1][0] != "I":
        lines.insert(place, ("\u3000", "O"))  # white space is a token of some corpora
    return "".join(f"{word} {tag}\n" for word, tag in lines) + "\n"


def tokens(ends: list[int], text: str, mentions: set[Mention], _: random.Random) -> str:
    words = [text[a:b] for a, b in pairwise(ends)]
    return json.dumps({"tokens": words, "entities": by_tokens(ends, mentions)}) + "\n"


def offsets(ends: list[int], text: str, mentions: set[Mention], rng: random.Random) -> str:
    shown, places = "", []
    for place in range(ends[0], ends[-1]):
        shown += " " * (place in ends and rng.random() < 0.7)
        places.append(len(shown))
        shown += text[place]
    found = [[places[a - ends[0]], places[b - 1 - ends[0]] + 1, kind] for a, b, kind in mentions]
    return json.dumps({"text": shown, "entities": found}) + "\n"


Write = Callable[[list[int], str, set[Mention], random.Random], str]


def mentioning(
    rng: random.Random, text: str, gold: Sentences, likely: set[Mention], write: Write
) -> tuple[str, int, int]:
    content, number, correct = "", 0, 0
    for ends in sentences_of(rng, len(text), gold):
        found = mentions_in(rng, ends, likely, nested=write is not columns)
        content += write(ends, text, found, rng)
        number, correct = number + len(found), correct + len(found & likely)
    return content, number, correct


def answering(
    rng: random.Random, text: str, gold: Sentences, likely: set[Mention], _: Write
) -> tuple[str, int, int]:
    """Lists of mentions without offsets: each stands at its first free occurrence, of whole tokens if there is one."""
    content, number, found = "", 0, set[Mention]()
    repeats, key, nothing = rng.random() < 0.5, rng.choice(["mentions", "answer"]), rng.random() < 0.1
    for ends in gold:
        listed = []
        for start, end, kind in [] if nothing else sorted(mentions_in(rng, ends, likely, nested=True)):
            surface = text[start:end] if rng.random() < 0.9 else rng.choice(["zz", "a", "ba"])
            listed.append([" ".join(surface) if rng.random() < 0.5 else surface, kind])
            places = [
                (place, place + len(surface), kind)
                for place in range(ends[0], ends[-1] - len(surface) + 1)
                if text[place : place + len(surface)] == surface
                and not overlaps((place, place + len(surface), kind), found)
            ]
            places.sort(key=lambda it: not {*it[:2]} <= {*ends})
            found.update(places[:1])
        number += len(listed)
        sentence = {"text": text[ends[0] : ends[-1]]} if repeats else {}
        content += json.dumps({**sentence, key: listed}) + "\n"
    return content, number, len(found & likely)


FORMS = [(mentioning, columns), (mentioning, tokens), (mentioning, offsets), (answering, columns)]


def made(folder: Path, seed: int, number: int, *, nested: bool) -> tuple[Path, int, list[Path], list[Counts]]:
    """A gold file and its number of mentions, and files of predictions in all forms with their counts."""
    rng = random.Random(seed)
    lengths = [rng.choice([1, 2, 5, 9, 20]) for _ in range(6)]
    text = "".join(rng.choices("aab.", k=sum(lengths)))
    gold = [
        sorted({start, start + length, *(rng.randint(start, start + length) for _ in range(length // 2))})
        for start, length in zip(accumulate(lengths, initial=0), lengths, strict=False)
    ]
    mentions = [mentions_in(rng, ends, {(*ends[:2], "PER")}, nested=nested) for ends in gold]
    mentions[0] = {(gold[0][0], gold[0][1], "LOC")}
    write = tokens if nested else columns
    path = folder / "gold"
    path.write_text("".join(write(*it, rng) for it in zip(gold, repeat(text), mentions, strict=False)))
    every, paths, expected = set[Mention]().union(*mentions), [], []
    for n in range(number):
        make, form = FORMS[n % len(FORMS)]
        content, *counts = make(rng, text, gold, every, form)
        paths.append(folder / f"{n}.txt")
        paths[-1].write_text(content, encoding="utf-8")
        expected.append(counts)
    return path, len(every), paths, expected


@pytest.mark.parametrize("nested", [False, True], ids=["flat gold", "nested gold"])
@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_sets(tmp_path: Path, seed: int, nested: bool) -> None:
    gold, number, paths, expected = made(tmp_path, seed, 60, nested=nested)
    tests = [run.metrics["test"] for run in ner_experiments.compare(gold, {"a": paths}).compared.runs]
    assert [[it["predicted"], it["correct"]] for it in tests] == expected
    assert {it["gold"] for it in tests} == {number}


@pytest.mark.parametrize("seed", [0, 10, 17, 19])
def test_no_score_depends_on_other_systems_or_their_order(tmp_path: Path, seed: int) -> None:
    gold, _, paths, _ = made(tmp_path, seed, 24, nested=seed % 2 == 1)

    def scores(*paths: Path) -> dict[str, Any]:
        systems = ner_experiments.compare(gold, {it.name: it for it in paths}).record()["systems"]
        return {it["name"]: (it["measured"], it["counts"], it["other_scores"]) for it in systems}

    alone = {name: found for path in paths for name, found in scores(path).items()}
    assert scores(*paths) == scores(*reversed(paths)) == alone


@pytest.mark.parametrize(
    ("file", "correct", "predicted"),
    [
        ("ann B-PER\n\u3000 I-PER\nis O\n\nrome B-LOC\n\n\u3000 B-LOC\n", 3, 3),
        ("an B-PER\nn I-PER\nis O\n\nrome B-LOC\n\n\u3000 B-LOC\n", 3, 3),
        ("an B-PER\nn B-PER\nis O\nrome B-LOC\n\u3000 B-LOC\n", 2, 4),
    ],
)
def test_mentions_of_white_space_count(tmp_path: Path, file: str, correct: int, predicted: int) -> None:
    """Some corpora have tokens of U+3000; gold is the first file."""
    gold, path = tmp_path / "gold.conll", tmp_path / "file.conll"
    gold.write_text("ann B-PER\n\u3000 I-PER\nis O\n\nrome B-LOC\n\n\u3000 B-LOC\n", encoding="utf-8")
    path.write_text(file, encoding="utf-8")
    (run,) = ner_experiments.compare(gold, {"a": path}).compared.runs
    test = run.metrics["test"]
    assert (test["correct"], test["predicted"], test["gold"]) == (correct, predicted, 3)


def test_groups_of_gold_mentions_are_those_of_its_own_tokens(tmp_path: Path) -> None:
    """The file b cuts a token of gold; a nested gold mention follows the words of its sentence."""
    gold, train, cut = tmp_path / "gold.jsonl", tmp_path / "train.conll", tmp_path / "cut.jsonl"
    words = ["Old", "Town-Hall", "of", "Rome"]
    gold.write_text(json.dumps({"tokens": words, "entities": [[0, 2, "LOC"], [1, 2, "LOC"], [0, 4, "ORG"]]}))
    train.write_text("Old B-LOC\nTown-Hall I-LOC\n\nTown-Hall B-LOC\n")
    cut.write_text(json.dumps({"text": " ".join(words), "entities": [[4, 8, "LOC"]]}))
    compared = ner_experiments.compare(gold, {"a": gold, "b": cut}, train=train).compared
    for row in compared.rows:
        groups = {name: {it: of.gold for it, of in row.breakdown[name].items()} for name in row.breakdown}
        assert groups["length"] == {"1": 1, "2": 1, "more than 3": 1}
        assert groups["seen"] == {"with this type": 2, "new, unknown word": 1}
