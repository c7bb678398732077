"""Tests of the forms in which tools write their predictions."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import refused

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


@pytest.mark.parametrize("name", FORMS)
def test_another_encoding_is_stated_by_an_option(tmp_path: Path, name: str) -> None:
    gold, file, utf_8 = (tmp_path / it for it in ("gold.conll", name, "utf-8"))
    for path, text in ((gold, GOLD), (file, FORMS[name])):
        path.write_bytes(text.replace("Dalmia", "Dalmié").encode("cp1252"))
    utf_8.write_text(GOLD.replace("Dalmia", "Dalmié"), encoding="utf-8")
    for files in ((gold, {"a": utf_8}), (utf_8, {"a": file})):
        with pytest.raises(ValueError, match=r"not UTF-8 [^(]*\([^(]*\)[^(]* \(--encoding cp1252\)$"):
            compare(*files)
    (record,) = compare(gold, {"a": [file, utf_8]}, train=gold, encoding="cp1252").to_records()
    assert record["mean"] == 100


def test_schemes_and_numbers_of_files_leave_the_signature_as_it_is(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("gold.conll", "bioes.conll", "tags.jsonl")]
    for path in paths:
        path.write_text(FORMS.get(path.name, GOLD))
    signatures = {compare(path, {"a": paths[:n]}).signature for n, path in enumerate(paths, start=1)}
    assert len(signatures) == 1


BAD = refused("""
{"text": "c"} -> expected a list of mentions, which is [] for a sentence without any, got a record without one
{"text": "c", "answer": null} -> for a sentence without any, got "answer": None
{"text": "c", "answer": "Vera"} -> for a sentence without any, got "answer": 'Vera'
{"text": "c", "answer": ["Vera"]} -> expected a mention's text and type, got 'Vera'
{"text": "c", "answer": {"PER": "Vera"}} -> expected a list of texts for each type, got 'Vera'
{"text": "c", "answer": [[0, 1, "PER"]]} -> expected a mention's text and type, got [0, 1, 'PER']
""")


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_record_of_another_form_than_most_is_named(tmp_path: Path, bad: str, message: str) -> None:
    path = tmp_path / "answers.jsonl"
    empty = {"text": "b", "answer": []}
    first, last = {"text": "a", "answer": [["a", "PER"]]}, {"text": "d", "answer": {"A": ["d"]}}
    path.write_text(records(first, empty, json.loads(bad), last))
    with pytest.raises(ValueError, match=re.escape(f"{path}:3: ") + ".*" + re.escape(message)):
        read(path, PREDICTED)
    path.write_text(
        records(*[{"text": "a", "entities": [[0, 1, "PER"]]}] * 2, {"text": "a", "entities": [["a", "PER"]]})
    )
    with pytest.raises(ValueError, match=r"jsonl:3: expected a mention as \[start, end, type\]"):
        read(path, PREDICTED)


def test_answers_without_offsets_are_noted(tmp_path: Path) -> None:
    (tmp_path / "gold.conll").write_text(GOLD)
    answers = [*NAMES, ("Atlantis", "LOC"), ("Dalmia", "ORG"), ("Atlantis", "LOC"), ("Rome", "LOC")]
    path = tmp_path / "pairs.jsonl"
    path.write_text(records({"text": TEXTS[0], "entities": answers}, {"text": TEXTS[1], "entities": []}))
    nowhere = "mentions without a place in their sentence, such as 'Atlantis' (LOC), 'Dalmia' (ORG)"
    assert compare(tmp_path / "gold.conll", {"a": path}).reading[1:] == [
        f"{path}: mentions without offsets, each put at its first free occurrence: 2",
        f"{path}: {nowhere}, counted as spurious: 4",
    ]


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
