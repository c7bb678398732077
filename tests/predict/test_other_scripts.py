"""A tagger of Arabic finds mentions up to the punctuation after them, in text that was written for this test."""

import itertools
import json
import random
from pathlib import Path

import pytest
from annotated_files import lines_of
from tiny_runs import finished

import ner_experiments
from ner_experiments.main import cli

PEOPLE, PLACES = ("محمد", "علي", "سلمى", "ليلى"), ("القاهرة", "بغداد", "دمشق", "تونس")
PATTERNS = ("زار {} {}، ثم عاد.", "هل زار {} {}؟", "غادر {} {}؛ لماذا؟")


def record(pattern: str, person: str, place: str) -> dict[str, object]:
    text = pattern.format(person, place)
    mentions = ((text.index(name), name, type_) for name, type_ in ((person, "PER"), (place, "LOC")))
    return {"text": text, "label": [[start, start + len(name), type_] for start, name, type_ in mentions]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arabic")
    records = [record(*it) for it in itertools.product(PATTERNS, PEOPLE, PLACES)]
    random.Random(1).shuffle(records)
    files = {
        split: lines_of(folder / f"{split}.jsonl", *part)
        for split, part in (("train", records), ("dev", records[:9]))
    }
    named = [f"data.files.{split}={path}" for split, path in files.items()]
    return finished(folder, "data=jsonl", "data.name=arabic", "chars=none", "trainer.max_epochs=8", *named)


def test_mentions_end_before_the_punctuation(run: Path) -> None:
    (sentence,) = ner_experiments.load(run).tag("زار محمد القاهرة، ثم غادر")
    assert [(it.start, it.end, it.type) for it in sentence.mentions] == [(4, 8, "PER"), (9, 16, "LOC")]


def test_a_text_is_cut_the_same_way_from_python_and_by_the_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "هل زار علي دمشق؟ نعم، زار!\nगया। वह आया. वह"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert cli(["predict", str(run), str(tmp_path / "a.txt")]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [it.sentence for it in ner_experiments.load(run).tag(text)]
    assert [[[*pair] for pair in it.offsets] for it in expected] == [it["tokens"] for it in records]
    assert [" ".join(it.words) for it in expected] == [
        "هل زار علي دمشق ؟",
        "نعم ، زار !",
        "गया ।",
        "वह आया . वह",
    ]
