"""Faults of annotated texts: all are counted, one setting reads the rest, and no gold mention of test is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from annotated_files import lines_of, message

from ner_experiments.data.corpus import load
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.sentence import Sentence, gold_digest

OFF_BY_ONE = "T1\tPER 0 3\tAnn\nT2\tLOC 12 16\tOslo\n"
TEXT = "Ann lives in Oslo."


def brat(folder: Path, annotations: str = OFF_BY_ONE, text: str = TEXT) -> Path:
    folder.mkdir()
    (folder / "a.txt").write_text(text, encoding="utf-8")
    (folder / "a.ann").write_text(annotations, encoding="utf-8")
    return folder


def corpus(format: str, files: dict[str, Path], **settings: Any) -> AnnotatedFiles:
    named = {split: str(path) for split, path in files.items()}
    return AnnotatedFiles(name="mine", folder="", files=named, format=format, **settings)


def missing(sentences: list[Sentence]) -> list[tuple[str, tuple[str, ...], str]]:
    return [(*it,) for sentence in sentences for it in sentence.unreachable]


def test_mentions_that_disagree_with_their_text_are_noted(tmp_path: Path) -> None:
    files = {split: brat(tmp_path / split, OFF_BY_ONE) for split in ("train", "dev", "test")}
    notes = load(corpus("brat", files, misaligned="skip")).notes
    assert notes[0] == "mentions that disagree with their text, skipped: 1"
    assert notes[-2:] == (
        "dev: 1 of 2 gold mentions disagree with their text; they count as missing",
        "test: 1 of 2 gold mentions disagree with their text; they count as missing",
    )


@pytest.mark.parametrize("text", ["王小明昨天在上海。", "山田は東京へ。", "สมชายไปกรุงเทพ"])
def test_for_text_without_spaces_characters_come_first(text: str, tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", {"text": text, "entities": [[0, 2, "PER"]]})
    way_out = "(data.tokens=characters; or data.misaligned=split, expand or skip)"
    assert message(path, "jsonl").endswith(f"starts or ends inside a token {way_out}")
    ((it,),) = corpus("jsonl", {"train": path}, tokens="characters").read().values()
    assert it.tags[:3] == ("B-PER", "I-PER", "O")


# Units of UTF-16

EMOJI = "👩‍💻 Mia Katz visits Oslo 🇳🇴 today"
IN_UTF16 = [[6, 14, "PER"], [22, 26, "LOC"]]


def test_offsets_in_utf16_are_named_and_read(tmp_path: Path) -> None:
    way_out = "(data.offsets=utf16; or data.misaligned=split, expand or skip)"
    path = lines_of(tmp_path / "a.jsonl", {"text": EMOJI, "label": IN_UTF16})
    assert message(path, "jsonl").endswith(f"starts or ends inside a token {way_out}")
    spans = [
        {"start": a, "end": b, "label": t, "text": w}
        for (a, b, t), w in zip(IN_UTF16, ("Mia Katz", "Oslo"), strict=True)
    ]
    written = lines_of(tmp_path / "b.jsonl", {"text": EMOJI, "label": spans})
    assert message(written, "jsonl").endswith("(data.offsets=utf16)")
    annotations = "".join(
        f"T1\t{t} {a} {b}\t{w}\n" for (a, b, t), w in zip(IN_UTF16, ("Mia Katz", "Oslo"), strict=True)
    )
    folder = brat(tmp_path / "brat", annotations, EMOJI)
    assert message(folder, "brat").endswith("(data.offsets=utf16)")
    for format, file in (("jsonl", path), ("jsonl", written), ("brat", folder)):
        ((it,),) = corpus(format, {"test": file}, offsets="utf16").read().values()
        mentions = [word for word, tag in zip(it.words, it.tags, strict=True) if tag != "O"]
        assert (mentions, it.unreachable) == (["Mia", "Katz", "Oslo"], ())


def test_the_digest_of_gold_covers_mentions_that_no_tags_express(tmp_path: Path) -> None:
    text = {"text": "In NewYork and preOslo"}
    digests = set()
    for number, mentions in enumerate(([[3, 6, "LOC"]], [[18, 22, "LOC"]], [[3, 6, "PER"]], [])):
        path = lines_of(tmp_path / f"{number}.jsonl", {**text, "label": mentions})
        digests.add(gold_digest(corpus("jsonl", {"test": path}).read()["test"], "mentions"))
    assert len(digests) == 4
