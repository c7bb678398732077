"""Cases: the sentences that some runs tag correctly and others wrongly."""

import json
import re
from pathlib import Path

import pytest
from tiny_runs import METRICS

from ner_experiments.analysis import disagreements
from ner_experiments.main import cli
from ner_experiments.runs import artifacts
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.run import open_run

GOLD = [("O", "B-PER", "I-PER", "O"), ("O", "O"), ("B-LOC", "I-LOC", "I-LOC"), ("B-PER",), ("B-LOC", "O")]
TAGS = {
    "stacked": [
        ("B-PER", "I-PER", "I-PER", "O"),
        ("O", "O"),
        ("B-ORG", "I-ORG", "I-ORG"),
        ("O",),
        ("O", "O"),
    ],
    "type_a": [("B-PER", "I-PER", "I-PER", "O"), ("O", "O"), GOLD[2], ("B-PER",), ("O", "B-LOC")],
    "ours": [*GOLD[:4], ("O", "O")],
}
WORDS = [("Dr", "Ann", "Lee", "``rose"), ("It", "rained"), ("New", "Old", "Town"), ("Bo",), ("Rome", "!")]


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    for name, tags in TAGS.items():
        lines = [
            "".join(f"{' '.join(fields)}\n" for fields in zip(*sentence, strict=True))
            for sentence in zip(WORDS, GOLD, tags, strict=True)
        ]
        (tmp_path / name / "predictions").mkdir(parents=True)
        (tmp_path / name / "predictions" / "test.conll").write_text("\n".join(lines) + "\n")
        (tmp_path / name / "metrics.json").write_text(json.dumps(add_checksum({"task": "mentions"})))
    return [tmp_path / name for name in TAGS]


def test_cases_are_what_one_run_has_right_and_another_wrong_from_short_to_long(runs: list[Path]) -> None:
    opened = [*map(open_run, runs)]
    found, total = disagreements.of_runs(opened)
    expected = []
    for number, gold in enumerate(GOLD):
        right = [tags[number] == gold for tags in TAGS.values()]
        if any(right) and not all(right):
            expected.append((number + 1, WORDS[number], right))
    expected.sort(key=lambda case: len(case[1]))
    assert [(case.number, case.words, case.correct) for case in found] == expected
    assert [case.number for case in found] == [4, 3, 1]  # the last is wrong in all, the second right
    assert total == 5
    assert disagreements.of_runs([opened[0]] * 2) == ([], 5)


def test_the_command_lists_cases_as_the_paper_writes_them(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["cases", *map(str, runs)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "# 3 of 5 test sentences, tagged correctly by some runs and wrongly by others, shortest first\n"
    )
    assert f"2. `{runs[1]}`" in printed
    block = """Sentence 1:

```text
gold       Dr [Ann Lee]PER ``rose
1 wrong    [Dr Ann Lee]PER(wrong boundary) ``rose
2 wrong    [Dr Ann Lee]PER(wrong boundary) ``rose
3 correct  Dr [Ann Lee]PER ``rose
```
"""
    assert printed.endswith(f"\n{block}")
    assert cli(["cases", "--json", *map(str, runs)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["runs"], content["sentences"]) == ([str(run) for run in runs], 5)
    assert content["cases"][1] == {
        "sentence": 3,
        "words": ["New", "Old", "Town"],
        "gold": ["B-LOC", "I-LOC", "I-LOC"],
        "predicted": [["B-ORG", "I-ORG", "I-ORG"], list(GOLD[2]), list(GOLD[2])],
        "correct": [False, True, True],
    }


def test_runs_that_cannot_be_held_against_each_other_are_refused(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*names: str) -> str:
        assert cli(["cases", *(str(tmp_path / name) for name in names)]) == 1
        return capsys.readouterr().err

    assert "nothing: expected the folder of a finished run, but there is no such folder" in refused(
        "ours", "nothing"
    )
    predictions = runs[0] / "predictions" / "test.conll"
    text = predictions.read_text()
    predictions.write_text(text.replace("rained O O", "rained B-LOC O"))
    assert "stacked and " in (message := refused("stacked", "ours"))
    assert "differ in the gold tags of test sentence 2: ('O', 'B-LOC') and ('O', 'O')" in message
    predictions.write_text(text.replace("rained", "snowed"))
    assert "in the words of test sentence 2: ('It', 'snowed') and" in refused("stacked", "ours")
    predictions.write_text(text.removesuffix("Rome B-LOC O\n! O O\n\n"))
    assert re.search(r"stacked has 4 test sentences, \S+ours has 5", refused("stacked", "ours"))
    predictions.unlink()
    assert "it has no predictions/test.conll" in refused("stacked", "ours")
    (runs[1] / "metrics.json").write_text(json.dumps(add_checksum({"task": "tags"})))
    assert "type_a: `cases` needs a corpus of mentions; this run tags tokens" in refused("ours", "type_a")


def test_a_damaged_run_is_refused(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    metrics, predictions = runs[0] / "metrics.json", runs[0] / "predictions" / "test.conll"
    whole = json.dumps(artifacts.add_checksum(METRICS | {artifacts.FILES: artifacts.checksums(runs[0])}))
    metrics.write_text(whole)
    predictions.write_text(predictions.read_text().replace("rained O O", "rained O B-LOC"))
    assert cli(["cases", *map(str, runs)]) == 1
    assert f"{predictions} is damaged: its SHA-256 is" in capsys.readouterr().err
    metrics.write_text(whole[:20])
    assert cli(["cases", *map(str, runs)]) == 1
    assert f"{metrics} is damaged: " in capsys.readouterr().err
