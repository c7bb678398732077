"""Further test sets (`audit.extra_tests`): scored once, by the selected weights, and shown as the rows of a table."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import Ner
from seqeval.metrics import f1_score
from tiny_runs import TINY

from ner_experiments import train as training
from ner_experiments.analysis.archive import archive
from ner_experiments.config.compose import compose
from ner_experiments.data import toy
from ner_experiments.data.tags import convert
from ner_experiments.predict.tagger import load
from ner_experiments.runs import predictions
from ner_experiments.runs.archived_run import open_archived_run
from ner_experiments.runs.artifacts import DamagedError
from ner_experiments.runs.run import open_run
from ner_experiments.training.scoring import Scorer


def write_columns(
    path: Path, number: int, *, first: int = 0, layout: str = "{word} {tag}", scheme: Any = "iob2"
) -> Path:
    """Sentences of the toy language in columns."""
    blocks = []
    for it in toy.sentences("en", "test", first + number)[first:]:
        tags = convert(it.tags, scheme)
        blocks.append(
            "".join(layout.format(word=w, tag=t) + "\n" for w, t in zip(it.words, tags, strict=True))
        )
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in columns, and two further test sets: in its format, and in IOB1 with offsets."""
    folder = tmp_path_factory.mktemp("corpus")
    blocks = [
        "".join(f"{w} {t}\n" for w, t in zip(it.words, it.tags, strict=True))
        for it in toy.sentences("en", "train", 150)
    ]
    (folder / "train.conll").write_text("\n".join(blocks), encoding="utf-8")
    write_columns(folder / "test.conll", 30, scheme="bioes")
    write_columns(folder / "more.conll", 25, first=30, scheme="bioes")
    write_columns(folder / "offsets.conll", 20, first=60, layout="{word} 0 5 {tag}", scheme="iob1")
    return folder


def overrides(corpus: Path, output: Path, *more: str) -> list[str]:
    data = [
        "data=conll",
        "data.name=own",
        f"data.folder={corpus}",
        "data.files={train: train.conll, dev: null, test: test.conll}",
        "data.held_out=0.2",
        "data.max_sentences=100",
    ]
    return [*TINY, *data, "model.hidden_size=16", "model.dropout=0.0", f"output_dir={output}", *more]


def run(corpus: Path, output: Path, *more: str) -> Path:
    return Path(training.train(compose(overrides(corpus, output, *more)))["folder"])


def both(corpus: Path) -> str:
    offsets = f"{{path: {corpus}/offsets.conll, columns: {{word: 0, tag: 3}}, scheme: iob1}}"
    return f"audit.extra_tests={{more: {corpus}/more.conll, offsets: {offsets}}}"


@pytest.fixture(scope="module")
def made(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is scored on both, and started for a registration."""
    return run(corpus, tmp_path_factory.mktemp("made"), both(corpus), "sweep.registration=abc")


@pytest.fixture(scope="module")
def plain(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run without them."""
    return run(corpus, tmp_path_factory.mktemp("plain"))


def metrics(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return content


def test_they_are_no_part_of_the_run(made: Path, plain: Path) -> None:
    assert made.parent.name == plain.parent.name
    assert (made / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()
    assert metrics(made)["test"] == metrics(plain)["test"]
    assert (made / "predictions/test.conll").read_bytes() == (plain / "predictions/test.conll").read_bytes()
    assert "extra_tests" not in metrics(plain)


@pytest.mark.parametrize(("name", "first", "number"), [("more", 30, 25), ("offsets", 60, 20)])
def test_the_scores_are_those_of_what_predict_gives(made: Path, name: str, first: int, number: int) -> None:
    """All sentences are scored, also with data.max_sentences; the gold is that of the generator."""
    gold = toy.sentences("en", "test", first + number)[first:]
    tagger = load(made)
    predicted = [tagger.tag_words(it.words).tags for it in gold]
    expected = f1_score(
        *([list(convert(tags, "iob2")) for tags in sides] for sides in ((it.tags for it in gold), predicted))
    )
    found = metrics(made)["extra_tests"][name]
    assert found["test"]["f1"] == pytest.approx(float(expected), abs=1e-12)
    assert found["test"]["f1"] > 0
    stored = predictions.read(made, name)
    assert [it.words for it in stored] == [it.words for it in gold]
    assert [it.predicted for it in stored] == [tuple(tags) for tags in predicted]


def test_words_that_the_corpus_lacks_have_vectors_there_and_in_predict(corpus: Path, tmp_path: Path) -> None:
    """The weights that are written have no row for them."""
    sentences = toy.sentences("en", "test", 80)
    words = sorted({word for it in sentences for word in it.words})
    draw = np.random.default_rng(0)
    rows = (f"{word} {' '.join(map(str, draw.normal(size=8).round(3)))}" for word in words)
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    pretrained = [
        "words=glove",
        f"words.input.path={tmp_path}/vectors.txt",
        f"cache_dir={tmp_path}/cache",
        both(corpus),
    ]
    folder = run(corpus, tmp_path / "outputs", *pretrained)
    gold = sentences[60:]
    known, unknown = load(folder, vectors=tmp_path / "vectors.txt"), load(folder)
    num_rows = len(unknown.tagger.inputs["words"].vectors)
    stored = [it.predicted for it in predictions.read(folder, "offsets")]
    assert stored == [known.tag_words(it.words).tags for it in gold]
    assert stored != [unknown.tag_words(it.words).tags for it in gold]
    assert len(known.tagger.inputs["words"].vectors) == num_rows
    (note,) = [it for it in metrics(folder)["extra_tests"]["offsets"]["notes"] if "vectors" in it]
    assert re.fullmatch(r"\d+ pre-trained vectors of words that the run's corpus lacks", note)
    (tmp_path / "others.txt").write_text("a 1 2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"expected vectors of 8 numbers, as the run has, got 2"):
        load(folder, vectors=tmp_path / "others.txt")


def test_vectors_are_refused_for_a_run_that_reads_none(made: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the run reads no file of word vectors, got vectors=any"):
        load(made, vectors="any")


def test_a_finished_run_is_scored_later_without_training_and_each_set_once(
    corpus: Path, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path
) -> None:
    output = tmp_path / "outputs"
    shutil.copytree(plain.parents[1], output)
    monkeypatch.setattr(training, "run", None)  # training again would fail
    first = run(
        corpus,
        output,
        f"audit.extra_tests={{more: {corpus}/more.conll}}",
        "sweep.claims=[a]",
        "sweep.registration=abc",
    )
    assert [*metrics(first)["extra_tests"]] == ["more"]
    assert metrics(made)["registration"] == "abc"
    assert not {"claims", "registration"} & metrics(first).keys()  # the run was not started for them
    scored: list[str] = []
    score = Scorer.score_extra_tests

    def noted(self: Scorer, extra: Any) -> Any:
        scored.extend(extra)
        return score(self, extra)

    monkeypatch.setattr(Scorer, "score_extra_tests", noted)
    folder = run(corpus, output, both(corpus))
    run(corpus, output, both(corpus))
    run(corpus, output)
    assert scored == ["offsets"]
    assert metrics(folder)["extra_tests"] == metrics(made)["extra_tests"]
    assert metrics(folder)["test"] == metrics(plain)["test"]


def test_another_file_under_a_scored_name_is_refused(corpus: Path, made: Path) -> None:
    with pytest.raises(
        ValueError, match=r"audit\.extra_tests\.more: the run was scored on another text or gold"
    ):
        run(corpus, made.parents[1], f"audit.extra_tests={{more: {corpus}/test.conll}}")


def test_a_search_scores_none(corpus: Path, tmp_path: Path) -> None:
    folder = run(corpus, tmp_path, "audit.test=false", both(corpus), "trainer.max_epochs=1")
    assert not {"test", "extra_tests"} & metrics(folder).keys()


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (
            "{test: FILE}",
            "audit.extra_tests.test: expected a name of letters, digits, - and _ that is no split's",
        ),
        ("{a.b: FILE}", "audit.extra_tests.a.b: expected a name of letters"),
        ("{x: 3}", "audit.extra_tests.x: expected a file or {path: FILE, ...}, got 3"),
        ("{x: {columns: {word: 0, tag: 1}}}", "audit.extra_tests.x: expected a file or {path: FILE, ...}"),
        ("{x: {path: FILE, colums: {word: 0}}}", "data has no setting 'colums'; did you mean 'columns'?"),
        ("{x: /no/such.conll}", "audit.extra_tests.x: x: not found: /no/such.conll"),
        ("{x: OTHER}", "other.conll has the tag S-NEW, which own has not"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_training(
    corpus: Path, tmp_path: Path, tests: str, message: str
) -> None:
    (tmp_path / "other.conll").write_text("Ann S-NEW\n")
    tests = tests.replace("FILE", f"{corpus}/more.conll").replace("OTHER", f"{tmp_path}/other.conll")
    with pytest.raises(ValueError, match=re.escape(message)):
        run(corpus, tmp_path / "outputs", f"audit.extra_tests={tests}")
    assert not [*(tmp_path / "outputs").rglob("log.csv")]


def test_a_column_that_the_run_reads_is_required(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "train.conll").read_text(encoding="utf-8")
    with_pos = re.sub(r"(?m)^(\S+) (\S+)$", r"\1 N \2", lines)
    (tmp_path / "train.conll").write_text(with_pos, encoding="utf-8")
    settings = [
        "data.files={train: train.conll, dev: null, test: null}",
        "data.columns={word: 0, pos: 1, tag: 2}",
        "direct=context",
        "direct.context.input.columns=[pos]",
        f"audit.extra_tests={{more: {{path: {corpus}/more.conll, columns: {{word: 0, tag: 1}}}}}}",
    ]
    with pytest.raises(ValueError, match=r"audit\.extra_tests\.more: .*more\.conll has no column 'pos'"):
        run(tmp_path, tmp_path / "outputs", *settings)


def test_the_predicted_tags_are_archived_and_checked(made: Path, tmp_path: Path) -> None:
    own = open_run(made)
    archive(own, tmp_path / "run.json", "row")
    archived = open_archived_run(tmp_path / "run.json")
    assert archived.extra_tests == own.extra_tests == ["more", "offsets"]
    for name in ("more", "offsets"):
        assert (archived.on(name).counts() == own.on(name).counts()).all()
        assert archived.on(name).predicted_tags() == own.on(name).predicted_tags()
        assert archived.on(name).score == own.on(name).score != own.score
        assert not own.on(name).shares_test_set(own)
    copy = Path(shutil.copytree(made, tmp_path / "copy"))
    with (copy / "predictions/more.conll").open("a") as file:
        file.write("x O O\n\n")
    with pytest.raises(DamagedError, match=r"predictions/more\.conll is damaged"):
        open_run(copy).on("more").predicted()


def test_a_table_shows_them(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner) -> None:
    monkeypatch.chdir(tmp_path)
    rows = overrides(corpus, tmp_path / "outputs", both(corpus))
    for size in ("8", "16"):
        training.train(compose([*rows, f"model.hidden_size={size}"]))
    settings = [it for it in rows if not it.startswith(("audit.", "output_dir=", "model.hidden_size"))]
    command = ["table", "--over", *settings, "model.hidden_size=8,16", "--output", str(tmp_path / "outputs")]
    shown = ner.json(*command, "--on", "offsets")
    runs = [open_run(path.parent) for path in (tmp_path / "outputs").glob("*/seed-1/metrics.json")]
    expected = sorted(100 * run.metrics["extra_tests"]["offsets"]["test"]["f1"] for run in runs)
    assert sorted(row["measured"]["scores"]["1"] for row in shown["rows"]) == pytest.approx(expected)
    assert "none of its runs was scored on ofsets; they were on more, offsets" in ner.error(
        *command, "--on", "ofsets"
    )
