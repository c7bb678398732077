"""Artifacts of a run: predictions that others score as we do, atomically written JSON, the commit."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import ROOT
from read_files import read_columns
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.metrics import SpanF1
from ner_experiments.runs import artifacts, provenance
from ner_experiments.runs.predictions import write_predictions
from ner_experiments.utils.files import write_json

Tags = Sequence[str]

LABELS = ("O", *(f"{prefix}-{kind}" for kind in ("A", "creative-work", "PER.NOM") for prefix in "BIES"))
ODD = (
    "New York",
    " ",
    "\xa0",
    "\u2028",
    "\x85",
    "a\x0bb\x0cc",
    "\x1c\x1d\x1e",
    "\u200b",
    "\ufe0f",
    "\u3000",
    "#",
)
seeded = settings(derandomize=True, deadline=None, max_examples=60)

tagged = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=9)
sentences = st.lists(tagged.map(lambda tokens: tuple(zip(*tokens, strict=True))), min_size=1, max_size=6)
# What no reader lets into a token: line ends, NUL, tabs in a field, a byte order mark at a file's start.
token = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\t\ufeff"), min_size=1, max_size=4)


def written(task: Task, words: Sequence[Tags], gold: Sequence[Tags], predicted: Sequence[Tags]) -> str:
    """The file's text, its bytes decoded."""
    pairs = [Sentence(tuple(w), tuple(tags)) for w, tags in zip(words, gold, strict=True)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "predictions" / "dev.conll"
        write_predictions(path, task, pairs, predicted)
        return path.read_bytes().decode("utf-8")


def columns(text: str) -> list[list[list[str]]]:
    """[column][sentence][token], as conlleval.pl cuts a file: at line feeds and at single spaces."""
    assert text.endswith("\n\n")
    blocks = [[line.split(" ") for line in block.split("\n")] for block in text[:-2].split("\n\n")]
    assert {len(fields) for block in blocks for fields in block} == {3}
    assert all(field for block in blocks for fields in block for field in fields)
    return [[[fields[column] for fields in block] for block in blocks] for column in range(3)]


def strict_f1(gold: Sequence[Tags], predicted: Sequence[Tags]) -> dict[str, float]:
    metric = SpanF1(LABELS)
    for pair in zip(gold, predicted, strict=True):
        right, guess = (torch.tensor([[LABELS.index(tag) for tag in tags]]) for tags in pair)
        metric.update(guess, right, torch.ones_like(right, dtype=torch.bool))
    return metric.compute()


@seeded
@given(sentences)
def test_seqeval_and_the_metric_find_the_same_in_any_predictions(sentences: list[tuple[Tags, Tags]]) -> None:
    gold, predicted = zip(*sentences, strict=True)
    words, right, guess = columns(written("mentions", [["w"] * len(tags) for tags in gold], gold, predicted))
    assert [list(map(len, column)) for column in (words, right, guess)] == [list(map(len, gold))] * 3
    ours = strict_f1(gold, predicted)
    for name, score in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
        assert ours[name] == pytest.approx(float(score(right, guess, zero_division=0)), abs=1e-12)
    assert (ours["gold"], ours["predicted"]) == (len(get_entities(right)), len(get_entities(guess)))


@pytest.mark.parametrize(
    ("bioes", "iob2"),
    [
        ("S-A B-A E-A O B-A I-A E-A", "B-A B-A I-A O B-A I-A I-A"),
        ("B-A I-A O E-A I-A S-A", "O O O O O B-A"),
        ("B-A B-A E-A E-A", "O B-A I-A O"),
        ("B-A E-PER.NOM S-creative-work", "O O B-creative-work"),
    ],
)
def test_mentions_are_written_as_iob2(bioes: str, iob2: str) -> None:
    tags = bioes.split()
    _, gold, predicted = columns(written("mentions", [["w"] * len(tags)], [tags], [["O"] * len(tags)]))
    assert (gold, predicted) == ([iob2.split()], [["O"] * len(tags)])
    _, gold, predicted = columns(written("mentions", [["w"] * len(tags)], [["O"] * len(tags)], [tags]))
    assert predicted == [iob2.split()]


@seeded
@given(st.lists(st.lists(token, min_size=1, max_size=5), min_size=1, max_size=4))
@example([list(ODD), *([word] for word in ODD)])
@example([["a"], ["␣", "  "]])
def test_odd_tokens_break_no_line(words: list[Tags]) -> None:
    tags = [["O"] * len(sentence) for sentence in words]
    text = written("mentions", words, tags, tags)
    assert text.count("\n") == sum(map(len, words)) + len(words)
    expected = [[word.replace(" ", "\u2423") for word in sentence] for sentence in words]
    assert columns(text)[0] == expected
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dev.conll"
        path.write_bytes(text.encode())
        read = list(read_columns(path, columns={"word": 0, "gold": 1, "tag": 2}))
    assert [list(sentence.words) for sentence in read] == expected


def test_spaces_in_a_tag_break_no_line() -> None:
    """A file with tabs may have them."""
    words, gold, predicted = columns(written("mentions", [["a b", "c"]], [["S-x y", "O"]], [["O", "S-x y"]]))
    assert (words, gold, predicted) == ([["a␣b", "c"]], [["B-x␣y", "O"]], [["O", "B-x␣y"]])


def test_parts_of_speech_are_written_as_they_are() -> None:
    gold, predicted = [["``", "-LRB-", "NN"], ["B-X"]], [["''", "I-X", "E-X"], ["NN"]]
    assert columns(written("tags", [["w"] * 3, ["v"]], gold, predicted))[1:] == [gold, predicted]


# JSON


def test_json_is_what_was_given(tmp_path: Path) -> None:
    content = {"é中\u2028\U0001f600": [1, 0.1, None, True, "\x85"], "b": {"a": "line\nline"}}
    path = tmp_path / "metrics.json"
    write_json(path, content)
    assert json.loads(path.read_bytes().decode("utf-8")) == content
    assert list(json.loads(path.read_text(encoding="utf-8"))) == list(content)
    assert list(tmp_path.iterdir()) == [path]


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    for before in ([], [path]):
        with pytest.raises(TypeError, match="not JSON serializable"):
            write_json(path, {"f1": 0.9, "weights": torch.zeros(1)})
        assert list(tmp_path.iterdir()) == before
        if before:
            assert json.loads(path.read_text(encoding="utf-8")) == {"f1": 0.5}
        write_json(path, {"f1": 0.5})


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.json"
    write_json(path, {"f1": 0.5})

    def half(self: Path, text: str, **_: str) -> None:
        self.write_bytes(text.encode()[: len(text) // 2])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, {"f1": 0.9})
    assert json.loads(path.read_bytes()) == {"f1": 0.5}


def test_files_are_utf8_whatever_the_locale(tmp_path: Path) -> None:
    """A process whose text files are ASCII by default writes the same bytes."""
    code = (
        "import locale, sys; from pathlib import Path\n"
        "from ner_experiments.runs.predictions import write_predictions\n"
        "from ner_experiments.utils.files import write_json\n"
        "from ner_experiments.data.sentence import Sentence\n"
        "assert locale.getencoding().lower() not in ('utf-8', 'utf8'), locale.getencoding()\n"
        "write_json(Path('a.json'), 'é中')\n"
        "write_predictions(Path('b/dev.conll'), 'tags', [Sentence(('é中',), ('X',))], [['X']])\n"
    )
    root = str(Path(provenance.__file__).parents[2])
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": root}
    (tmp_path / "write.py").write_text(code, encoding="utf-8")
    subprocess.run([sys.executable, "write.py"], cwd=tmp_path, env={**os.environ, **plain}, check=True)
    assert (tmp_path / "a.json").read_bytes() == '"é中"\n'.encode()
    assert (tmp_path / "b" / "dev.conll").read_bytes() == "é中 X X\n\n".encode()


# Where a result was made


def test_the_commit_says_whether_the_source_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "source" / "runs" / "provenance.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(file))

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (file.parents[1] / "__init__.py").touch()
    file.write_text("1")
    assert provenance.commit() is None  # in no checkout
    git("init")
    assert provenance.commit() is None  # in one that is not the source's
    git("add", ".")
    git("commit", "--message", "one")
    git("tag", "v1")
    assert provenance.commit() == git("rev-parse", "HEAD")
    assert re.fullmatch("[0-9a-f]{40}", git("rev-parse", "HEAD"))
    file.write_text("2")
    assert provenance.commit() == git("rev-parse", "HEAD") + "+"
    assert provenance.commit(":/source") == provenance.commit()
    assert provenance.commit(":/conf") == git("rev-parse", "HEAD")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="not Linux")
def test_a_new_measurement_forgets_the_old_peak() -> None:
    """In a separate process, since memory that other tests have freed would be reused."""
    code = """
import torch
from ner_experiments.runs import artifacts, provenance
def peak(): return provenance.peak_memory(torch.device("cpu"))["main"] >> 20
provenance.reset_peak_memory()
before = peak()
large = torch.ones(16 << 20)
assert 60 < peak() - before < 80
del large
assert peak() - before > 59
provenance.reset_peak_memory()
assert peak() < before + 16
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(("platform", "expected"), [("darwin", 4096), ("freebsd14", 4096 << 10)])
def test_without_proc_the_peak_is_that_of_the_whole_process(
    platform: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Getrusage reports bytes on macOS, and KiB elsewhere."""
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=4096))
    assert provenance.peak_memory(torch.device("cpu")) == {"main": expected}


def test_a_file_without_its_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"test": {"f1": 0.99}}')
    message = f"{path}: expected a file of a run or of results/, but it does not record its SHA-256"
    with pytest.raises(artifacts.DamagedError, match=re.escape(message)):
        artifacts.read(path)
