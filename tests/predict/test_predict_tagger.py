"""Finished runs on new text: the same tags as in their evaluation, at the correct offsets."""

import itertools
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from tiny_runs import columns_of_test, finished

import ner_experiments
from ner_experiments.data.toy import sentences
from ner_experiments.predict import tagger as tagging
from ner_experiments.predict.input import InputReader
from ner_experiments.predict.tagger import TaggedSentence, load
from ner_experiments.runs.predictions import read

RUNS = {
    "attention": ["data=toy_en", "model=attention", "decoder=softmax", "chars=lstm"],
    "constrained": ["data=toy_zh", "model=residual", "layers=1", "decoder.constrained=true", "chars=none"],
    "features": ["data=toy_en", "model=none", "words=none", "chars=none", "direct=tagging"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, toy_run: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {"bilstm": toy_run, **{name: finished(folder, *overrides) for name, overrides in RUNS.items()}}


def mentions(tagged: Iterable[TaggedSentence]) -> list[tuple[str, str]]:
    return [(mention.text, mention.type) for it in tagged for mention in it.mentions]


@pytest.mark.parametrize("name", ["bilstm", *RUNS])
def test_the_columns_of_the_test_file_get_the_tags_of_the_evaluation(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    language = "zh" if name == "constrained" else "en"
    path = columns_of_test(tmp_path / "test.conll", language)
    tagger = load(runs[name])
    found = list(tagger.stream(tagger.reader.read(path, "conll")))
    expected = read(runs[name])
    assert [it.sentence.words for it in found] == [it.words for it in expected]
    assert [it.tags for it in found] == [it.predicted for it in expected]
    assert any(mention for it in found for mention in it.mentions)


def test_raw_text_and_its_words_are_tagged_alike(runs: dict[str, Path]) -> None:
    tagger = load(runs["bilstm"])
    texts = [" ".join(sentence.words) for sentence in sentences("en", "test", 30)]
    found = tagger.tag("\n\n".join(texts))
    assert [it.sentence.text for it in found] == texts
    by_words = [tagger.tag_words(text.split()) for text in texts]
    assert mentions(found) == mentions(by_words) != []
    document = "\n\n".join(texts)
    for it in found:
        for mention in it.mentions:
            assert document[mention.start : mention.end] == mention.text


def test_chunks_and_batches_change_nothing_and_keep_the_order(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger = load(runs["attention"])
    given = [tagger.reader.from_words(it.words, {}) for it in sentences("en", "dev", 40)]
    expected = list(tagger.stream(given))
    monkeypatch.setattr(tagging, "CHUNK", 50)
    found = list(tagger.stream(given))
    assert [it.sentence for it in found] == given
    assert [it.tags for it in found] == [it.tags for it in expected]


def test_no_more_than_a_chunk_is_read_ahead(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagging, "CHUNK", 50)
    tagger = load(runs["bilstm"])
    read: list[int] = []

    def endless() -> Iterable[object]:
        for number in itertools.count():
            read.append(number)
            yield tagger.reader.from_words(["Ann"] * 10, {}, number)

    found = tagger.stream(endless())
    for number in range(23):
        assert next(found).sentence.line == number
        assert len(read) == 5 * (number // 5 + 1)


def test_text_that_holds_nothing_or_nothing_known(runs: dict[str, Path]) -> None:
    for name in ("bilstm", "constrained", "features"):
        tagger = load(runs[name])
        assert tagger.tag("") == tagger.tag(" \n\t\u3000\n") == []
        (unknown,) = tagger.tag("\u200b😀ẞ-" + "x" * 10_000)
        assert len(unknown.tags) == len(unknown.sentence.offsets)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tagger: tagger.tag("a\0"), "NUL in the text"),
        (lambda tagger: tagger.tag("ab\ud800"), "half a surrogate pair in the text, at character 3"),
        (lambda tagger: tagger.tag_words([]), "a sentence must have at least one word"),
        (lambda tagger: tagger.tag_words(["a", ""]), "empty word: item 2 of words"),
        (lambda tagger: tagger.tag_words("ab"), "words must be a list of strings"),
    ],
)
def test_what_is_no_text_is_refused(call: object, message: str, runs: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        call(load(runs["bilstm"]))


def test_a_run_that_reads_columns_says_which(tmp_path: Path) -> None:
    """direct=ner, on columns of our own."""
    lines = [f"{word} T{len(word)} C {tag}" for word, tag in (("Ann", "B-PER"), ("sat", "O"))]
    for split in ("train", "dev", "test"):
        (tmp_path / split).write_text("\n".join(lines) + "\n\nBob T3 C B-PER\n", encoding="utf-8")
    files = [f"data.files.{split}={tmp_path}/{split}" for split in ("train", "dev", "test")]
    tagger = load(
        finished(tmp_path, "data=conll2003", "data.scheme=iob2", *files, "direct=ner", "chars=none")
    )
    with pytest.raises(ValueError, match=r"^the run reads the columns pos, chunk besides the words"):
        tagger.tag("Ann sat")
    with pytest.raises(ValueError, match="reads the columns pos, chunk, but chunk is missing"):
        tagger.tag_words(["Ann"], pos=["T3"])
    with pytest.raises(ValueError, match=r"pos must have one item per word \(1\), got 2"):
        tagger.tag_words(["Ann"], pos=["T3", "T4"], chunk=["C"])
    (first, second) = tagger.stream(tagger.reader.read(tmp_path / "test", "conll"))
    assert first.sentence.columns == {"pos": ("T3", "T3"), "chunk": ("C", "C")}
    assert tagger.tag_words(["Bob"], pos=["T3"], chunk=["C"]).tags == second.tags


def test_every_token_of_a_part_of_speech_run_has_its_tag_and_probability(tmp_path: Path) -> None:
    row = "{}\t{}\t_\tX\t{}\t_\t_\t_\t_\t_\n"
    text = "# a comment\n" + row.format(1, "Ann", "NNP") + row.format(2, "sat", "VBD") + "\n"
    for split in ("train", "dev", "test"):
        (tmp_path / split).write_text(text, encoding="utf-8")
    files = [f"data.files.{split}={tmp_path}/{split}" for split in ("train", "dev", "test")]
    tagger = load(finished(tmp_path, "data=conllu", "data.name=conllu", *files, "decoder=softmax"))
    assert tagger.types == ["NNP", "VBD"]
    (tagged,) = tagger.tag("Ann sat")
    assert not tagged.mentions
    assert set(tagged.tags) <= {"NNP", "VBD"}
    assert all(0.5 <= probability <= 1 for probability in tagged.probabilities)
    (by_columns,) = tagger.stream(tagger.reader.read(tmp_path / "test", "conll"))
    assert by_columns.tags == tagged.tags
    assert by_columns.probabilities == pytest.approx(tagged.probabilities)


def test_what_a_corpus_has_for_tokens_may_be_said_otherwise(runs: dict[str, Path]) -> None:
    assert load(runs["constrained"]).reader.tokens == "characters"
    (tagged,) = load(runs["constrained"], tokens="words").tag("中国 人")
    assert tagged.sentence.words == ("中国", "人")
    assert isinstance(load(runs["bilstm"], lines=True).reader, InputReader)
    assert len(load(runs["bilstm"], lines=True).tag("a. B\nc")) == 2


def test_the_package_brings_load_and_no_torch_with_it() -> None:
    assert ner_experiments.load is load
    code = "import sys, ner_experiments; assert not {'torch', 'hydra', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'laod'"):
        _ = ner_experiments.laod
