"""Files whose sentences differ from those of gold are refused or scored as by trying every way to align them."""

import random
import re
from itertools import combinations
from pathlib import Path

import pytest
from cases import refused

import ner_experiments
from ner_experiments.comparison.aligning import from_difference
from ner_experiments.comparison.reading import Text

Tagged = tuple[str, ...]
"""A sentence of lines, each with a word and a tag."""
GOLD = "anna B-PER\nsees O\nrome B-LOC\n\nno O\n\nbob B-PER\n\nno O\n\nrome B-LOC\nis O\nold O\n"
CHANGES = ("lack", "double", "move", "alter", "join")


def written(path: Path, sentences: list[Tagged]) -> Path:
    path.write_text("\n".join("".join(f"{line}\n" for line in it) for it in sentences), encoding="utf-8")
    return path


def text_of(sentence: Tagged) -> str:
    return "".join(line.split()[0] for line in sentence)


def changed(rng: random.Random, sentences: list[Tagged]) -> list[Tagged]:
    found, change, place = list(sentences), rng.choice(CHANGES), rng.randrange(len(sentences))
    sentence = found.pop(place)
    if change in ("double", "move"):
        found.insert(rng.randrange(len(sentences)), sentence)
    if change in ("double", "alter"):
        found.insert(place, sentence if change == "double" else ("x O", *sentence[1:]))
    if change == "join" and found:
        found[place - 1] += sentence
    return found or [sentence]


def right(gold: list[Tagged], predicted: list[Tagged]) -> int:
    """Number of mentions of one word that both have."""
    lines = zip(sum(gold, ()), sum(predicted, ()), strict=True)
    return sum(a == b and not a.endswith(" O") for a, b in lines)


def outcomes(gold: list[Tagged], file: list[Tagged], *, missing_is_empty: bool) -> set[int]:
    """Numbers of correct mentions by every allowed way to align the sentences; none if there is none."""
    if [*map(text_of, gold)] == [*map(text_of, file)] or text_of(sum(gold, ())) == text_of(sum(file, ())):
        return {right(gold, file)}
    ways = combinations(gold, len(file)) if missing_is_empty else []
    return {right([*it], file) for it in ways if [*map(text_of, it)] == [*map(text_of, file)]}


@pytest.mark.parametrize("seed", range(100))
def test_changed_files_are_refused_or_scored(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    words = [f"{word} {tag}" for word in "ab" for tag in ("O", "B-A")]
    gold = [tuple(rng.choices(words, k=rng.choice([1, 1, 2]))) for _ in range(rng.choice([1, 3, 5]))]
    gold[0] = ("a B-A",)
    file = [tuple(f"{line[0]} {rng.choice(['O', 'B-A'])}" for line in it) for it in gold]
    for _ in range(rng.choice([0, 1, 1, 2])):
        file = changed(rng, file)
    paths = written(tmp_path / "gold.conll", gold), written(tmp_path / "file.conll", file)
    for missing_is_empty in (False, True):
        expected = outcomes(gold, file, missing_is_empty=missing_is_empty)
        if expected:
            view = ner_experiments.compare(paths[0], {"a": paths[1]}, missing_is_empty=missing_is_empty)
            test = view.compared.runs[0].metrics["test"]
            assert test["correct"] in expected
            assert test["predicted"] == sum(not line.endswith(" O") for line in sum(file, ()))
            assert test["gold"] == sum(not line.endswith(" O") for line in sum(gold, ()))
        else:
            with pytest.raises(ValueError, match="has other sentences than"):
                ner_experiments.compare(paths[0], {"a": paths[1]}, missing_is_empty=missing_is_empty)


@pytest.mark.parametrize(
    ("change", "message"),
    refused(
        """
bob B-PER\\n\\n= -> gold.conll:7, 'bob', is missing (--missing empty counts missing ones as without a prediction)
bob B-PER\\n\\n=bob O\\n\\nbob O\\n\\n -> file.conll:9, 'bob', stands there 2 times, in gold 1
anna B-PER=bob O\\n\\nanna O -> file.conll:1, 'bob', stands there 2 times, in gold 1
sees=saw -> file.conll:1 has 'anna saw rome', where gold.conll:1 has 'anna sees rome'
bob B-PER=bob O\\n\\nx O -> file.conll:9, 'x', is not in gold
o=u -> gold.conll:1 has 'anna sees rome'; file.conll:5 has 'nu', where gold.conll:5 has 'no'; file.conll:7 has 'bub'
o=u -> , where gold.conll:7 has 'bob'; and 2 more
"""
    ),
)
def test_the_first_places_are_named(tmp_path: Path, change: str, message: str) -> None:
    gold, file = tmp_path / "gold.conll", tmp_path / "file.conll"
    gold.write_text(GOLD)
    file.write_text(GOLD.replace(*change.split("=")))
    with pytest.raises(ValueError, match=re.escape(message)):
        ner_experiments.compare(gold, {"a": file})


def test_two_sentences_are_quoted_around_their_first_difference() -> None:
    same = tuple(f"word{n}" for n in range(20))
    texts = [Text((*same, name), (), "") for name in ("anna", "annie")]
    assert [*from_difference(*texts)] == [
        f"'...ord16 word17 word18 word19 {name}'" for name in ("anna", "annie")
    ]


def test_a_sentence_that_stands_elsewhere_is_no_missing_one(tmp_path: Path) -> None:
    gold, file = tmp_path / "gold.conll", tmp_path / "file.conll"
    gold.write_text("x B-A\n\ny O\n\nz O\n\nx B-A\n")
    file.write_text("y O\n\nx B-A\n\nz O\n")
    with pytest.raises(ValueError, match=r"stands in another place$"):
        ner_experiments.compare(gold, {"a": file}, missing_is_empty=True)
