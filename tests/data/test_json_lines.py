"""JSON Lines of annotated text: the keys of many tools, what is left out with a count, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from annotated_files import (
    EXPECTED,
    NAMES,
    WORDS,
    lines_of,
    message,
    read,
)

from ner_experiments.data.formats.registry import detect

LINES = Path(__file__).with_name("json_variants.jsonl").read_text(encoding="utf-8").splitlines()
VARIANTS: dict[str, Any] = dict(map(json.loads, LINES))


@pytest.mark.parametrize("variant", VARIANTS)
def test_json_lines_in_their_variants(variant: str, tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", VARIANTS[variant])
    sentences, _ = read(path, "jsonl", names=NAMES)
    assert [text for it in sentences for text in it.texts()] == EXPECTED
    assert sentences[0].words == tuple(WORDS)
    assert sentences[0].place == f"{path}:1"
    array = tmp_path / "b.json"
    array.write_text(json.dumps([VARIANTS[variant]], indent=1))
    assert [text for it in read(array, "jsonl", names=NAMES)[0] for text in it.texts()] == EXPECTED


@pytest.mark.parametrize(
    "record",
    [
        '{"tokens": ["Ada"], "key": ["B-PER"], "key": ["O"]}',
        '{"text": "Ada", "entities": [{"start": 0, "end": 3, "key": "PER", "key": "LOC"}]}',
        '["Ada", {"entities": [[0, 3, "PER"]], "key": 1, "key": 2}]',
    ],
)
@pytest.mark.parametrize(("before", "number"), [("", 1), ('{"text": "},{"} ,\n{"text": "["},\t\n', 3)])
def test_a_key_that_stands_twice_in_a_record_of_an_array_is_refused_with_the_record(
    record: str, before: str, number: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(f"\n [\n{before}{record}, {record}]\n")
    expected = f"a.json: record {number}: the key 'key' appears more than once in a JSON object"
    assert message(path, "jsonl") == expected


def test_a_file_whose_first_line_is_a_pair_of_spacys_has_a_pair_per_line(tmp_path: Path) -> None:
    pair = ["Ada sleeps", {"entities": [[0, 3, "PER"]]}]
    for records in ([pair], [pair, pair], [pair, {"text": "Bob", "entities": [[0, 3, "PER"]]}]):
        path = lines_of(tmp_path / "a", *records)
        sentences, _ = read(path, "jsonl")
        assert [len(it.mentions) for it in sentences] == [1] * len(records)
        assert sentences[-1].place == f"{path}:{len(records)}"
        assert detect(path, "utf-8") == ("jsonl", "its first line")
