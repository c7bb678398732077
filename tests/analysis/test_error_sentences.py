"""Sentences of a run with what is wrong in them, and which of them are shown."""

import json
from pathlib import Path

import pytest

from ner_experiments.analysis.sentences import WrongSentence, by_kind, gold_segments, predicted_segments
from ner_experiments.main import cli
from ner_experiments.runs.predictions import Predicted, read
from ner_experiments.view.mentions import in_brackets

GOLD = "B-PER I-PER O B-LOC O B-ORG O"
WORDS = "Ann Lee saw Rome with Shell ."
MARKED = {
    GOLD: "[Ann Lee]PER saw [Rome]LOC with [Shell]ORG .",
    "O O O B-LOC O B-ORG O": "[Ann Lee]PER(missing) saw [Rome]LOC with [Shell]ORG .",
    "B-PER I-PER B-LOC B-LOC O B-ORG O": "[Ann Lee]PER [saw]LOC(spurious) [Rome]LOC with [Shell]ORG .",
    "B-PER I-PER O B-ORG O B-ORG O": "[Ann Lee]PER saw [Rome]ORG(gold LOC) with [Shell]ORG .",
    "O B-PER O B-LOC O B-ORG O": "Ann [Lee]PER(wrong boundary) saw [Rome]LOC with [Shell]ORG .",
    "B-PER I-PER O B-LOC O B-PER I-PER": "[Ann Lee]PER saw [Rome]LOC with [Shell .]PER(wrong boundary, gold ORG)",
    "O O O B-LOC I-LOC I-LOC O": "[Ann Lee]PER(missing) saw [Rome with Shell]LOC(wrong boundary) .",
}
"""The predicted tags, and the sentence with its errors. In the last one, a mention overlaps Shell, which is missing."""


def tagged(tags: str, gold: str = GOLD) -> Predicted:
    return Predicted(tuple(WORDS.split()), tuple(gold.split()), tuple(tags.split()))


@pytest.mark.parametrize("tags", MARKED)
def test_each_error_is_marked_with_what_gold_has(tags: str) -> None:
    assert in_brackets(predicted_segments(tagged(tags), "mentions")) == MARKED[tags]


def test_mentions_outside_of_the_tags_are_shown_of_who_has_them() -> None:
    words = ("New", "York", "␀York", "␀Atlantis", "␀City")
    it = Predicted(words, ("B-LOC", "I-LOC", "B-ORG", "O", "O"), ("B-LOC", "I-LOC", "O", "B-LOC", "I-LOC"))
    assert in_brackets(gold_segments(it, "mentions")) == "[New York]LOC | also: [York]ORG"
    missing, spurious = "[York]ORG(missing)", "[Atlantis City]LOC(spurious)"
    expected = f"[New York]LOC | also: {missing} | not in the text: {spurious}"
    assert in_brackets(predicted_segments(it, "mentions")) == expected


def test_of_single_tags_the_wrong_ones_are_marked() -> None:
    segments = predicted_segments(tagged("A B C D E F G", "A B C D E X G"), "tags")
    assert in_brackets(segments) == "Ann Lee saw Rome with [Shell]F(gold X) ."


def test_each_kind_has_its_first_sentences_and_each_sentence_is_shown_once() -> None:
    kinds = ["O O O B-LOC O B-ORG O", "O B-PER O O O B-ORG O", "O B-PER O B-LOC O B-ORG O"]
    wrong = [WrongSentence(number, 1.0, {1: tagged(tags)}) for number, tags in enumerate(kinds, 1)]
    found = {name: [it.number for it in part] for name, part in by_kind(wrong, 1).items() if part}
    assert found == {"missing": [1], "boundary": [2]}
    found = {name: [it.number for it in part] for name, part in by_kind(wrong, 5).items() if part}
    assert found == {"missing": [1, 2], "boundary": [3]}


def test_a_single_run_has_its_sentences_with_errors(
    toy_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [number for number, it in enumerate(read(toy_run), 1) if it.predicted != it.gold]
    assert cli(["cases", str(toy_run), "--json"]) == 0
    assert sorted(it["sentence"] for it in json.loads(capsys.readouterr().out)["cases"]) == wrong
    assert cli(["cases", str(toy_run)]) == 0
    assert capsys.readouterr().out.startswith(
        f"# {len(wrong)} of 40 test sentences, tagged wrongly, shortest first\n"
    )
    assert cli(["errors", str(toy_run), "--sentences", "3"]) == 0
    printed = capsys.readouterr().out
    assert f"### Sentences with errors: {len(wrong)}, those with most first\n" in printed
    assert printed.count("a wrong boundary or type counts as both.\n") == 1
    assert cli(["errors", str(toy_run), "--sentences", "3", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    first, *others = row["sentences"]
    assert f"Sentence {first['sentence']}, errors: {first['errors']:.0f} (" in printed
    assert printed.count("\nSentence ") == len(others) + 1
    assert {it["sentence"] for it in row["sentences"]} <= {*wrong}
