"""Small files of every format, and the corpora that are read from them: `read.yaml`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from read_files import source

from ner_experiments.data.files import Files
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats.options import Misaligned
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence

CASES = yaml.safe_load(Path(__file__).with_name("read.yaml").read_text(encoding="utf-8"))

MISALIGNED = get_args(Misaligned)


def content(file: Any) -> Any:
    return "".join(f"{json.dumps(record)}\n" for record in file) if isinstance(file, list) else file


def shown(sentences: list[Sentence]) -> list[str]:
    tokens = [zip(it.words, it.tags, strict=True) for it in sentences]
    return [" ".join(word if tag == "O" else f"{word}/{tag}" for word, tag in it) for it in tokens]


def unreachable(sentences: list[Sentence]) -> list[list[Any]]:
    return [[it.type, [*it.words], it.reason] for other in sentences for it in other.unreachable]


def refusal(source: Files, folder: Path) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole message is compared
        source.read()
    return str(error.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_read_as_it_says(name: str, tmp_path: Path) -> None:
    case, remarks = CASES[name], Remarks()
    form, settings = case["format"], case.get("settings", {})
    train, test = (
        source(form, tmp_path, {it: content(case["file"])}, **settings) for it in ("train", "test")
    )
    if "message" in case:
        assert refusal(train, tmp_path) == case["message"]
    if "refused in test" in case:
        assert refusal(test, tmp_path) == case["refused in test"]
    if "train" in case:
        sentences = train.read(remarks)["train"]
        assert (shown(sentences), remarks.counts()) == (case["train"], case.get("remarks", []))
        assert not any(it.unreachable for it in sentences)
        assert len(train.checksum()) == 64  # of the files that there are
        assert [it.line for it in sentences] == case.get("lines", [it.line for it in sentences])
        assert {name: [*it] for name, it in sentences[0].columns.items()} == case.get("columns", {})
        if isinstance(train, AnnotatedFiles):
            (first, *_) = train.annotated(Remarks())["train"]
            assert first.place.startswith(f"{tmp_path}/train")
            assert {**first.keys} == case.get("keys", {**first.keys})
    if "train" in case or "untagged" in case:
        number = case["untagged"] if "untagged" in case else len(case["train"])
        assert len([*train.untagged(tmp_path / "train")]) == number
    # whatever becomes of mentions of train, those of test leave tokens and sentences as they are
    choices = (settings["misaligned"],) if "misaligned" in settings else MISALIGNED
    for choice in choices if "test" in case else ():
        sentences = replace(test, misaligned=choice).read()["test"]
        assert (shown(sentences), unreachable(sentences)) == (case["test"], case.get("unreachable", []))
