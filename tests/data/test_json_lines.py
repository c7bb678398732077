"""JSON Lines of annotated text: the keys of many tools, what is left out with a count, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from annotated_files import (
    ADA,
    EXPECTED,
    NAMES,
    NESTED,
    TAGS,
    TEXT,
    WORDS,
    lines_of,
    message,
    read,
    source,
)

from ner_experiments.data.formats.registry import detect
from ner_experiments.data.remarks import Remarks

LINES = Path(__file__).with_name("json_variants.jsonl").read_text(encoding="utf-8").splitlines()
VARIANTS: dict[str, Any] = dict(map(json.loads, LINES))


def labeled(*labels: str, kind: str = "labels", **data: str) -> dict[str, Any]:
    value = {"start": 0, "end": 3, "text": "Ada", "labels": labels}
    return {"data": data or {"text": TEXT}, "annotations": [{"result": [{"type": kind, "value": value}]}]}


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


def test_records_that_nobody_accepted_are_skipped_with_their_number(tmp_path: Path) -> None:
    accepted, rejected, ignored = (
        {"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "PER"}], "answer": answer}
        for answer in ("accept", "reject", "ignore")
    )
    task = {"id": 1, "data": {"text": TEXT}, "annotations": []}
    cancelled = {**task, "annotations": [{"was_cancelled": True, "result": []}]}
    empty = {**task, "annotations": [{"result": []}]}
    path = lines_of(tmp_path / "a.jsonl", accepted, rejected, ignored, task, cancelled, empty)
    sentences, remarks = read(path, "jsonl")
    assert [it.line for it in sentences] == [1, 1, 6, 6]
    assert remarks == ["records skipped because they are not annotated or were rejected: 4"]
    lines = [it.line for it in source(path, "jsonl").untagged(path)]
    assert lines == [line for number in range(1, 7) for line in (number, number)]


def test_records_without_a_token_are_left_out_with_their_number(tmp_path: Path) -> None:
    empty = [{"text": ""}, {"text": " \n", "entities": []}, {"tokens": []}, {"tokens": [], "ner_tags": []}]
    path = lines_of(
        tmp_path / "a.jsonl", *({"entities": []} | it for it in empty), {"text": TEXT, "entities": ADA}
    )
    sentences, remarks = read(path, "jsonl")
    assert [it.line for it in sentences] == [5, 5]
    assert remarks == ["records without a token, left out: 4"]


def test_a_text_without_a_key_of_mentions_is_remarked_on(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", {"text": TEXT, "entites": ADA}, {"text": TEXT, "entities": ADA})
    sentences, remarks = read(path, "jsonl")
    assert [len(it.mentions) for it in sentences] == [0, 0, 3, 0]
    assert remarks == ['texts without "entities", "spans" or "label", read as having no mentions: 1']


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


@pytest.mark.parametrize(
    "keys",
    [
        {"entities": [], "label": ADA},
        {"entities": ADA, "spans": ADA},
        {"label": "news", "spans": ADA},
        {"labels": ["news", "people"], "entities": ADA},
    ],
)
def test_of_several_keys_those_with_mentions_count(keys: dict[str, Any], tmp_path: Path) -> None:
    sentences, remarks = read(lines_of(tmp_path / "a.jsonl", {"text": TEXT, **keys}), "jsonl")
    assert [text for it in sentences for text in it.texts()] == EXPECTED
    assert remarks == []


@pytest.mark.parametrize("keys", [{"entities": []}, {"label": "news"}, {"labels": ["news", "people"]}])
def test_keys_without_mentions_may_stand_beside_tags(keys: dict[str, Any], tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", {"tokens": WORDS, "ner_tags": TAGS, **keys})
    assert [it.texts() for it in read(path, "jsonl")[0]] == [EXPECTED]


def test_the_text_of_label_studio_is_the_annotated_one(tmp_path: Path) -> None:
    more = {"title": "An unrelated headline", "url": "https://example.org"}
    for data in ({**more, "text": TEXT}, {**more, "body": TEXT}):
        sentences, remarks = read(lines_of(tmp_path / "a.jsonl", labeled("PER", **data)), "jsonl")
        assert [text for it in sentences for text in it.texts()] == [("PER", "Ada")]
        assert dict(sentences[0].keys) == more
        assert remarks == ([] if "text" in data else ['texts read from "body", the longest in "data": 1'])


def test_results_of_label_studio_other_than_labels_are_remarked_on(tmp_path: Path) -> None:
    record = labeled("PER")
    record["annotations"][0]["result"].extend(
        [{"type": "choices", "value": {"choices": ["news"]}}, {"type": "relation", "from_id": "a"}]
    )
    _, remarks = read(lines_of(tmp_path / "a.jsonl", record), "jsonl")
    assert remarks == ["results other than labels, such as choices and relations: 2"]


def test_labels_in_a_list_and_several_of_them(tmp_path: Path) -> None:
    """The small export of Label Studio, and two labels on one mention."""
    value = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    (first, *_), _ = read(lines_of(tmp_path / "a.jsonl", {"text": TEXT, "label": [value]}), "jsonl")
    assert first.texts() == [("PER", "Ada")]
    path = lines_of(tmp_path / "b.jsonl", labeled("PER", "NOM"))
    (first, *_), remarks = read(path, "jsonl", multi_label="first")
    assert first.texts() == [("PER", "Ada")]
    assert remarks == ["mentions of which the first label was kept: 1"]


def test_tokens_of_white_space_are_left_out(tmp_path: Path) -> None:
    """As spaCy makes one of each line end, and Prodigy writes them."""
    tokens = [{"start": 0, "end": 3}, {"start": 3, "end": 4}, {"start": 4, "end": 8}]
    record = {"text": "Ada\nleft", "tokens": tokens, "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    (sentence,), _ = read(lines_of(tmp_path / "a.jsonl", record), "jsonl")
    assert sentence.words == ("Ada", "left")
    assert sentence.texts() == [("PER", "Ada")]


def test_old_training_data_of_spacy(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([[TEXT, {"entities": ADA}]]))
    assert [it.texts() for it in read(path, "jsonl")[0]] == [EXPECTED, []]


def test_old_training_data_of_spacy_a_pair_per_line(tmp_path: Path) -> None:
    pair = ["Ada sleeps", {"entities": [[0, 3, "PER"]]}]
    for records in ([pair], [pair, pair], [pair, {"text": "Bob", "entities": [[0, 3, "PER"]]}]):
        path = lines_of(tmp_path / "a", *records)
        sentences, _ = read(path, "jsonl")
        assert [len(it.mentions) for it in sentences] == [1] * len(records)
        assert sentences[-1].place == f"{path}:{len(records)}"
        assert detect(path, "utf-8") == ("jsonl", "its first line")
    path = lines_of(tmp_path / "a.jsonl", pair, ["Ada"])
    assert message(path, "jsonl") == "a.jsonl:2: expected a JSON object: ['Ada']"


def test_a_mention_inside_a_token_is_never_dropped_in_silence(tmp_path: Path) -> None:
    path = lines_of(
        tmp_path / "a.jsonl", {"text": "In NewYork today", "entities": [[3, 6, "X"], [11, 16, "T"]]}
    )
    assert message(path, "jsonl") == (
        "a.jsonl:1: mention X 'New' at 3 starts or ends inside a token (data.misaligned=split, expand or skip)"
    )
    expected = {
        "split": (("In", "New", "York", "today"), [("X", "New"), ("T", "today")], "tokens split for it"),
        "expand": (
            ("In", "NewYork", "today"),
            [("X", "NewYork"), ("T", "today")],
            "expanded to whole tokens",
        ),
        "skip": (("In", "NewYork", "today"), [("T", "today")], "skipped"),
    }
    for choice, (words, texts, told) in expected.items():
        (it,), remarks = read(path, "jsonl", misaligned=choice)
        assert (it.words, it.texts()) == (words, texts)
        assert remarks == [f"mentions inside a token, {told}: 1"]


def test_no_sentence_ends_inside_a_mention(tmp_path: Path) -> None:
    text = "We saw Who? What? When? at ten. It was good."
    path = lines_of(tmp_path / "a.jsonl", {"text": text, "entities": [[7, 23, "WORK"]]})
    first, *others = read(path, "jsonl")[0]
    assert first.texts() == [("WORK", "Who?What?When?")]
    assert first.text == "We saw Who? What? When? at ten."
    assert [it.text for it in others] == ["It was good."]


def test_nested_mentions_are_refused_or_chosen_from_with_counts(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", NESTED)
    assert message(path, "jsonl") == (
        "a.jsonl:1: nested or overlapping mentions: 'New York' (LOC) and 'Bank of New York' (ORG) "
        "(data.nested=outermost or innermost)"
    )
    for choice, tags in (("outermost", "B-ORG I-ORG I-ORG I-ORG O"), ("innermost", "O O B-LOC I-LOC O")):
        remarks = Remarks()
        splits = source(path, "jsonl", nested=choice).read(remarks)
        assert " ".join(splits["train"][0].tags) == tags
        assert remarks.counts() == [f"mentions left out beside the {choice}: 1"]
