"""The command: its files, its card, what it refuses, and tag.py without torch and the suite."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
import torch
from run_to_export import copy_as, metrics_of, train_on, write_corpus
from torch import Tensor
from torch.export import ExportedProgram

from ner_experiments import build
from ner_experiments.data import toy
from ner_experiments.export import client, formats
from ner_experiments.export import export as module
from ner_experiments.export.export import Exported, export, tensors, trace
from ner_experiments.main import cli
from ner_experiments.predict.tagger import load
from ner_experiments.runs.predictions import read
from ner_experiments.tagger import Tagger

WITHOUT_TORCH = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "ner_experiments"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("corpus")
    write_corpus(corpus)
    return train_on(corpus)


@pytest.fixture(scope="module", autouse=True)
def _traced_once() -> Iterator[None]:
    """Exports of the run share one traced program and its ONNX, since all its copies have the same weights."""
    programs: dict[bytes, ExportedProgram] = {}
    converted: dict[int, bytes] = {}
    convert = formats.Onnx.write

    def once(tagger: Tagger, example: Mapping[str, Tensor]) -> ExportedProgram:
        weights = b"".join(weight.numpy().tobytes() for weight in tagger.state_dict().values())
        if weights not in programs:
            programs[weights] = trace(tagger, example)
        return programs[weights]

    def write(self: formats.Onnx, program: ExportedProgram, names: list[str], path: Path) -> None:
        if id(program) in converted:
            path.write_bytes(converted[id(program)])
        else:
            convert(self, program, names, path)
            converted[id(program)] = path.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "trace", once)
        patch.setattr(formats.Onnx, "write", write)
        yield


@pytest.fixture(scope="module")
def exported(run: Path) -> Exported:
    for seed, f1 in SEEDS.items():
        copy_as(run, run.parent / f"seed-{seed}", seed=seed, f1=f1)
    return export(run, run / "export", format="both", number=100)


SEEDS = {2: 0.5, 3: 0.25, 4: 0.001}


def text_of(exported: Exported) -> str:
    return (exported.folder / "README.md").read_text()


def test_both_files_give_the_predictions_that_the_run_wrote(run: Path, exported: Exported) -> None:
    assert exported.checked.origin == "30 of dev, 40 of test, 30 random ones of its words and characters"
    assert exported.differences.keys() == {"model.pt2", "model.onnx"}
    assert {path.name for path in exported.folder.iterdir()} == {
        *("model.pt2", "model.onnx", "encoder.json", "tag.py", "tokens.py", "README.md"),
    }
    assert [path.name for path in run.glob(".export-*")] == []


def test_tag_py_gives_the_mentions_of_the_run_and_needs_neither_torch_nor_the_suite(
    run: Path, exported: Exported, tmp_path: Path
) -> None:
    text = "\n\n".join(" ".join(it.words) for it in read(run)) + "\nA word that is nówhere; 'é' in Paris's.\n"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    code = f"{WITHOUT_TORCH}\nimport runpy\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    code = f"import sys; sys.argv[:1] = []; sys.path.insert(0, {str(exported.folder)!r})\n{code}"
    command = [sys.executable, "-c", code, str(exported.folder / "tag.py"), str(tmp_path / "text.txt")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(it["line"], it["start"], it["text"], *map(tuple_of, it["mentions"])) for it in found] == [
        (it.sentence.line, it.sentence.start, it.sentence.text, *map(tuple_of, map(asdict, it.mentions)))
        for it in load(run).tag(text)
    ]
    assert {mention["type"] for it in found for mention in it["mentions"]} > {"PER"}


@pytest.mark.parametrize(
    ("arguments", "status", "begin"),
    [
        (["--help"], 0, "Tag text with the model beside this file"),
        (["nowhere.txt"], 1, "nowhere.txt: No such file or directory\n"),
        (["latin.txt"], 1, "latin.txt: 'utf-8' codec can't decode byte 0xe9 in position 3"),
    ],
)
def test_tag_py_answers_a_mistake_in_one_line(
    arguments: list[str],
    status: int,
    begin: str,
    exported: Exported,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client, "__file__", str(exported.folder / "tag.py"))
    Path("latin.txt").write_bytes(b"caf\xe9")
    assert client.main(arguments) == status
    printed = capsys.readouterr()
    assert (printed.err if status else printed.out).startswith(begin)
    assert printed.err.count("\n") == status


def test_tag_py_says_nothing_if_its_reader_has_gone(exported: Exported) -> None:
    command = [sys.executable, str(exported.folder / "tag.py")]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        command, input=b"Ann sat.\n" * 100, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, b"")


def tuple_of(mention: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(mention[key] for key in ("start", "end", "type", "text"))


def test_a_client_that_gives_other_tags_is_not_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        client.INPUTS, "RandomWords", lambda settings, learned: lambda words: [0] * len(words)
    )
    with pytest.raises(
        ValueError, match=r"^tag.py does not reproduce the run: \d+ of 30 sentences have diff"
    ):
        export(run, tmp_path / "export", format="onnx", number=30)
    assert not [*tmp_path.iterdir()]


def test_the_torch_file_needs_nothing_of_the_suite(run: Path, exported: Exported) -> None:
    tagger, encoder, corpus = build.load_with_corpus(run)
    batch = next(build.batches(encoder, corpus.splits["test"]))
    given = json.dumps({name: x.tolist() for name, x in tensors(batch).items()})
    code = """
import json, torch
given = {name: torch.tensor(x) for name, x in json.load(sys.stdin).items()}
print(torch.export.load(sys.argv[1]).module()(given)["tags"].tolist())
"""
    blocked = WITHOUT_TORCH.replace('"torch", ', "")
    command = [sys.executable, "-c", blocked + code, str(exported.folder / "model.pt2")]
    result = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == build.decode(tagger, batch).tolist()


def test_the_card_has_the_values_of_the_run(run: Path, exported: Exported) -> None:
    metrics, text = metrics_of(run), text_of(exported)
    assert text.startswith("# bilstm with crf on conll, seed 1\n")
    assert "`ner_experiments.models.bilstm.BiLSTM`: The BiLSTM network of Huang, Xu & Yu (2015)" in text
    assert (
        f"parameters: {metrics['parameters']:,} trained (words {metrics['parameters_of']['words']:,}, "
        in text
    )
    assert (
        f"- conll, checksum `{metrics['data']['checksum']}`\n- " + "\n- ".join(metrics["data"]["notes"])
        in text
    )
    assert f"on the dev set alone: epoch {metrics['best_epoch']} of {metrics['epochs']} (at most 6;" in text
    for split in ("dev", "test"):
        report = metrics[split]
        assert f"| {split} | {cells(report)} |\n" in text
        for kind, of_kind in report["types"].items():
            assert f"| {split}, {kind} | {cells(of_kind)} |\n" in text
    commit = f"commit {metrics['commit']}, " if metrics["commit"] else ""  # none outside a git checkout
    assert f"{commit}checksum `{metrics['code']}`" in text
    assert f"torch {metrics['versions']['torch']}, lightning" in text
    settings = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    assert settings["model"]["hidden_size"] == 20
    assert "files" not in settings["data"]


def cells(report: dict[str, Any]) -> str:
    """All scores in percent, and two of the counts."""
    counts = ("correct", "predicted", "gold", "illegal_tags", "types")
    scores = [f"{100 * score:.2f}" for name, score in report.items() if name not in counts]
    return " | ".join([*scores, str(report["gold"]), str(report["predicted"])])


def test_the_card_has_the_distribution_over_the_seeds(run: Path, exported: Exported) -> None:
    """Student's interval of four scores, whose quantile is 3.182 in any table."""
    own = metrics_of(run)["test"]["f1"]
    scores = [100 * score for score in (own, *SEEDS.values())]
    centre, sd = mean(scores), stdev(scores)
    half = 3.182446 * sd / 2
    text = text_of(exported)
    assert "| seed | 1 | 2 | 3 | 4 |\n" in text
    assert f"| F1 | {' | '.join(f'{score:.2f}' for score in scores)} |\n" in text
    assert f"- mean {centre:.2f}, standard deviation {sd:.2f}, 4 runs\n" in text
    assert (
        f"- 95% confidence interval of the mean (Student's t): {centre - half:.2f} to {centre + half:.2f}\n"
        in text
    )
    rank = sorted(scores, reverse=True).index(scores[0]) + 1
    away = (scores[0] - centre) / sd
    assert f"- this run, seed 1: rank {rank} of 4, {away:+.2f} standard deviations" in text


def test_the_card_has_no_word_of_the_corpus(run: Path, exported: Exported) -> None:
    names = {
        word
        for sentence in toy.sentences("en", "train", 150)
        for word, tag in zip(sentence.words, sentence.tags, strict=True)
        if tag.endswith("PER")
    }
    assert len(names) > 20
    assert not names & set(re.findall(r"\w+", text_of(exported)))


def test_one_run_says_nothing_of_seeds(run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "experiment" / "seed-1"
    shutil.copytree(run, alone, ignore=shutil.ignore_patterns("export"))
    copy_as(run, tmp_path / "another" / "seed-2", seed=2, f1=0.5, identity="0" * 64)
    code = ["export", str(alone), "--format", "torch", "--sentences", "5"]
    assert cli(code) == 0
    assert "This is the only run" in (alone / "export" / "README.md").read_text()
    assert not (alone / "export" / "model.onnx").exists()


def test_without_the_corpus_sentences_are_made_up(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(folder: Path) -> None:
        raise ValueError("the corpus is gone")

    monkeypatch.setattr("ner_experiments.export.export.corpus_of", gone)
    options = ["--format", "torch", "--sentences", "7", "--output", str(tmp_path / "made")]
    assert cli(["export", str(run), *options]) == 0
    made_up = (
        "(7 random ones of its words and characters, because the run's corpus is missing or has changed)"
    )
    assert made_up in capsys.readouterr().out
    assert "the corpus is gone" in caplog.text


def test_what_is_not_equal_is_not_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = module.trace

    def other(tagger: Any, example: Any) -> ExportedProgram:
        program = own(tagger, example)
        weights, name = program.state_dict, "tagger.output.weight"
        zeros = torch.nn.Parameter(torch.zeros_like(weights[name]), requires_grad=False)
        monkeypatch.setitem(weights, name, zeros)
        return program

    monkeypatch.setattr(module, "trace", other)
    arguments = ["--format", "torch", "--sentences", "100", "--output", str(tmp_path / "made")]
    code = cli(["export", str(run), *arguments])
    assert code == 1
    said = capsys.readouterr().err
    assert re.match(
        r"model\.pt2 does not reproduce the run: \d+ of 100 sentences have different tags, and", said
    )
    assert said.endswith("; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def damage(folder: Path) -> None:
    with (folder / "encoder.json").open("a") as file:
        file.write(" ")


def unfinish(folder: Path) -> None:
    (folder / "metrics.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "arguments", "message"),
    [
        (damage, (), r".*encoder\.json is damaged: "),
        (unfinish, (), r".*: expected the folder of a finished run, but it has no metrics\.json"),
        (lambda folder: (folder / "export").mkdir(), (), r".*export already exists: remove it, or "),
        (lambda folder: None, ("--sentences", "0"), r"--sentences must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_exported_is_said(
    spoil: Callable[[Path], None],
    arguments: tuple[str, ...],
    message: str,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("export"))
    spoil(copy)
    before = sorted(path.name for path in copy.iterdir())
    assert cli(["export", str(copy), *arguments]) == 1
    assert re.match(message, capsys.readouterr().err)
    assert sorted(path.name for path in copy.iterdir()) == before


def test_what_is_not_installed_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "find_spec", lambda name: None if name == "onnxruntime" else name)
    assert cli(["export", str(run), "--output", str(tmp_path / "made")]) == 1
    needs = 'ONNX needs onnxruntime: pip install -e ".[export]"; --format torch needs no extra packages\n'
    assert capsys.readouterr().err == needs
