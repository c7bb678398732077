"""Tests of the forms in which tools write their predictions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ner_experiments import compare
from ner_experiments.comparison.reading import GOLD as GOLD_COLUMNS
from ner_experiments.comparison.reading import PREDICTED, read, read_at_once

GOLD = "Vera B-PER\nStavsen I-PER\nleft O\nDalmia B-ORG\n\nLeft O\n\n"
TEXTS = ("Vera Stavsen left Dalmia", "Left")
NAMES = ("Vera Stavsen", "PER"), ("Dalmia", "ORG")
TAGS = [["B-PER", "I-PER", "O", "B-ORG"], ["O"]]


def records(*lines: object) -> str:
    return "".join(json.dumps(it) + "\n" for it in lines)


FORMS = {
    "spacy.jsonl": records(
        {"text": TEXTS[0], "ents": [{"start": 0, "end": 12, "label": "PER"}, {"start": 18, "end": 24, "label": "ORG"}]},
        {"text": TEXTS[1], "ents": []},
    ),
    "pipeline.jsonl": records(
        {"text": TEXTS[0], "entities": [{"entity_group": "PER", "start": 0, "end": 12, "word": "Vera Stavsen"},
                                        {"entity_group": "ORG", "start": 18, "end": 24, "word": "Dalmia"}]},
        {"text": TEXTS[1], "entities": []},
    ),
    "tags.jsonl": records(*({"tokens": text.split(), "tags": tags} for text, tags in zip(TEXTS, TAGS, strict=True))),
    "pairs.jsonl": records({"text": TEXTS[0], "entities": NAMES}, {"text": TEXTS[1], "entities": []}),
    "objects.jsonl": records(
        {"text": TEXTS[0], "answer": [{"text": text, "type": type_} for text, type_ in NAMES]},
        {"text": TEXTS[1], "answer": []},
    ),
    "by_type.jsonl": records({"output": {type_: [text] for text, type_ in NAMES}}, {"output": {}}),
    "bioes.conll": "Vera B-PER\nStavsen E-PER\nleft O\nDalmia S-ORG\n\nLeft O\n\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_all_mentions(tmp_path: Path, name: str) -> None:
    (tmp_path / "gold.conll").write_text(GOLD)
    (tmp_path / name).write_text(FORMS[name])
    (record,) = compare(tmp_path / "gold.conll", {"a": tmp_path / name}).to_records()
    assert (record["mean"], record["token accuracy"]) == (100, 100)


@pytest.mark.parametrize("name", ["tags.jsonl", "tags.conll"])
def test_illegal_tags_are_counted(tmp_path: Path, name: str) -> None:
    (tmp_path / "gold.conll").write_text(GOLD)
    text = FORMS[name].replace("B-ORG", "I-ORG") if name in FORMS else GOLD.replace("B-ORG", "I-ORG")
    (tmp_path / name).write_text(text)
    found = compare(tmp_path / "gold.conll", {"a": tmp_path / name})
    assert f"{tmp_path / name}: tags that break iob2, read as conlleval reads them: 1" in found.reading
    assert found.to_records()[0]["mean"] == 100


@pytest.mark.parametrize(
    ("text", "at_once"),
    [
        (GOLD.replace("B-ORG", "I-LOC"), True),
        (GOLD.replace(" ", "\t").strip("\n"), True),
        (GOLD.replace(" ", " O ").replace("I-PER", "E-PER"), True),
        (GOLD.replace("\n\n", "\n \n"), False),
        (GOLD.replace("B-ORG", "ORG").replace("PER", "ORG").replace("B-", "").replace("I-", ""), False),
        ("# a comment\n" + GOLD, False),
        (GOLD.replace("\n", "\r\n"), False),
        (GOLD.replace("Dalmia", "Dal mia"), False),
    ],
)
def test_columns_beside_gold_are_read_at_once_as_else(tmp_path: Path, text: str, at_once: bool) -> None:
    (tmp_path / "gold.conll").write_text(GOLD)
    (tmp_path / "a.conll").write_bytes(text.encode())
    gold = read(tmp_path / "gold.conll", GOLD_COLUMNS)
    found = read_at_once(tmp_path / "a.conll", gold)
    assert (found is not None) == at_once
    if found:
        assert found == replace(read(tmp_path / "a.conll", PREDICTED), sentences=found.sentences)
        assert found.sentences == [*read(tmp_path / "a.conll", PREDICTED).sentences]
