"""Formats of annotated text: toy files of each, round trips between all, and what cannot be kept."""

from __future__ import annotations

import errno
import json
import random
from pathlib import Path
from typing import Any

import pytest
from annotated_files import (
    ADA,
    AVAILABLE,
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
from corpus_files import data_command
from in_process import Ner

from ner_experiments.config.corpora import open_source
from ner_experiments.data.corpus import load
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats import registry
from ner_experiments.data.formats.annotated import Annotated, in_order, of_words
from ner_experiments.data.formats.registry import FORMATS
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tags import spans

# Formats that need a package


@pytest.mark.parametrize(("name", "package"), [("docbin", "spacy"), ("hf", "datasets")])
def test_a_missing_package_is_named(
    name: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ner: Ner,
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    path = tmp_path / "a"
    path.write_text("Ada B-PER\n")
    expected = f"the format {name} needs the package {package}: pip install {package}"
    assert message(path, name) == expected
    assert (
        ner.error("data", "convert", str(path), str(tmp_path / "b"), "--from", "conll", "--to", name)
        == f"{expected}\n"
    )
    assert not (tmp_path / "b").exists()


def test_docbin_as_spacy_writes_it(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    doc = spacy.blank("en")(TEXT + "\n\nHe slept.")
    doc.ents = [doc.char_span(start, end, label=kind) for start, end, kind in ADA]
    doc.spans["more"] = [doc.char_span(28, 31, label="X")]
    path = tmp_path / "a.spacy"
    spacy.tokens.DocBin(docs=[doc]).to_disk(path)
    (whole,), _ = read(path, "docbin")
    assert whole.texts() == [*EXPECTED, ("X", "New")]
    assert whole.words[-4:] == (".", "He", "slept", ".")
    doc[10].is_sent_start = True
    spacy.tokens.DocBin(docs=[doc]).to_disk(path)
    assert "nested or overlapping mentions" in message(path, "docbin")
    remarks = Remarks()
    sentences = source(path, "docbin", nested="innermost").read(remarks)["train"]
    assert [len(it) for it in sentences] == [10, 4]
    assert remarks.counts() == ["mentions left out beside the innermost: 1"]
    path.write_bytes(b"no")
    assert message(path, "docbin").startswith("a.spacy: not a DocBin of spaCy (")


def test_parquet_and_folders_as_datasets_writes_them(tmp_path: Path) -> None:
    datasets, pyarrow = (pytest.importorskip(name) for name in ("datasets", "pyarrow"))
    labels = datasets.ClassLabel(names=NAMES)
    features = datasets.Features(
        {"id": datasets.Value("string"), "tokens": [datasets.Value("string")], "ner_tags": [labels]}
    )
    rows = {"id": ["a", "b"], "tokens": [WORDS, WORDS], "ner_tags": [[NAMES.index(t) for t in TAGS]] * 2}
    made = datasets.Dataset(pyarrow.Table.from_pydict(rows, schema=features.arrow_schema), fingerprint="toy")
    made.to_parquet(tmp_path / "a.parquet")
    made.save_to_disk(tmp_path / "folder")
    for path in (tmp_path / "a.parquet", tmp_path / "folder"):
        sentences, _ = read(path, "hf")
        assert [it.texts() for it in sentences] == [EXPECTED, EXPECTED]
        assert [it.keys for it in sentences] == [{"id": "a"}, {"id": "b"}]
    (tmp_path / "b.parquet").write_bytes(b"no")
    assert message(tmp_path / "b.parquet", "hf").startswith("b.parquet: not parquet (")


def test_a_data_set_by_its_name_or_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets, pyarrow = (pytest.importorskip(name) for name in ("datasets", "pyarrow"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    labels = datasets.ClassLabel(names=NAMES)
    features = datasets.Features({"tokens": [datasets.Value("string")], "ner_tags": [labels]})
    rows = {"tokens": [WORDS, ["Rain"]], "ner_tags": [[NAMES.index(t) for t in TAGS], [0]]}
    made = datasets.Dataset(pyarrow.Table.from_pydict(rows, schema=features.arrow_schema), fingerprint="toy")
    for split in ("train", "validation"):
        (tmp_path / "toy").mkdir(exist_ok=True)
        made.to_parquet(tmp_path / "toy" / f"{split}.parquet")
    it = open_source("hf", [f"data.path={tmp_path / 'toy'}", "data.name=toy"])
    assert it.present() == ["train", "dev"]
    assert [list(spans(s.tags)) for s in it.read()["dev"]] == [
        [(0, 2, "PER"), (3, 4, "PER"), (5, 7, "LOC")],
        [],
    ]
    assert it.checksum() == open_source("hf", [f"data.path={tmp_path / 'toy'}"]).checksum()
    chosen = open_source("hf", [f"data.path={tmp_path / 'toy'}", "data.files.train=validation"])
    assert chosen.present() == ["train"]
    with pytest.raises(ValueError, match=r"^data\.path=.*/toy: no split x; there are: train, validation "):
        open_source("hf", [f"data.path={tmp_path / 'toy'}", "data.files.train=x"]).read()
    with pytest.raises(
        ValueError, match=r"^data\.path=.*/none: no such folder, and as a data set on the hub: \w+: "
    ):
        open_source("hf", [f"data.path={tmp_path / 'none'}"]).read()


# Files to tag


@pytest.mark.parametrize("name", [it for it in AVAILABLE if FORMATS[it].read and it != "conll"])
def test_predict_reads_a_file_and_standard_input(name: str, tmp_path: Path) -> None:
    path = tmp_path / "written"
    registry.write(name, [of_words(["Ada", "sang"], [(0, 1, "PER")]), of_words(["Rain"], [])], path)
    reader = source(path, name, lines=True)
    expected = [("Ada", "sang"), ("Rain",)]
    assert [it.words for it in reader.untagged(path)] == expected
    if not path.is_dir():
        with path.open("rb") as stream:
            assert [it.words for it in reader.untagged(stream)] == expected


def test_predict_reads_files_without_tags(tmp_path: Path) -> None:
    texts = {
        "conllu_ner": "# global.columns = ID FORM\n# a = b\n1\tAda\n2\t#sang\n",
        "csv": "sentence,word\n1,Ada\n1,#sang\n",
        "jsonl": '{"tokens": ["Ada", "#sang"]}\n',
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        (sentence,) = source(path, name, columns={"tag": "missing"}).untagged(path)
        assert (sentence.words, sentence.tags) == (("Ada", "#sang"), ("O", "O"))
        assert "tag" in message(path, name)
    path = tmp_path / "one_column"
    path.write_text("# global.columns = FORM\n# a = b\nAda\nsang\n")
    assert [it.words for it in source(path, "conllu_ner").untagged(path)] == [("Ada", "sang")]
    path = tmp_path / "folder"
    path.mkdir()
    (path / "a.txt").write_text("Ada sang")
    for place in (path, path / "a.txt"):
        assert [it.words for it in source(place, "brat").untagged(place)] == [("Ada", "sang")]


def test_what_predict_cannot_read_is_named(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", {"id": 1})
    with path.open("rb") as stream, pytest.raises(ValueError, match=r"^a\.jsonl:1: expected \"tokens\""):
        list(source(path, "jsonl").untagged(stream))
    with path.open("rb") as stream, pytest.raises(ValueError, match=r"^a\.jsonl: expected a folder of BRAT"):
        list(source(path, "brat").untagged(stream))


# BRAT


def test_an_interrupted_brat_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, *_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    source = lines_of(tmp_path / "a.jsonl", {"tokens": ["Ada"], "ner_tags": ["B-PER"]})
    target = tmp_path / "converted"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        assert data_command(["convert", str(source), str(target), "--to", "brat"]) == 1
    assert capsys.readouterr().err == f"{target}: No space left on device\n"
    assert [*tmp_path.iterdir()] == [source]
    assert data_command(["convert", str(source), str(target), "--to", "brat"]) == 0


def test_parts_of_a_brat_document_stay_together(tmp_path: Path) -> None:
    words = (("one", "Ada"), ("two", "Bob"), ("one", "Cid"))
    sentences = [of_words((word,), [(0, 1, "PER")], place="a:1", document=name) for name, word in words]
    registry.write("brat", sentences, tmp_path / "notes")
    assert (tmp_path / "notes" / "one.txt").read_text() == "Ada\nCid\n"
    assert (tmp_path / "notes" / "one.ann").read_text() == "T1\tPER 0 3\tAda\nT2\tPER 4 7\tCid\n"


# Writing


SIGNS = "Ada New York 中 国 é 😀 \" , # O B-PER - x. U.S. don't"


def random_sentences(rng: random.Random, *, nested: bool) -> list[Annotated]:
    words = ["# a", *SIGNS.split()]
    sentences = []
    for number in range(rng.randint(1, 6)):
        chosen = [rng.choice(words) for _ in range(rng.randint(1, 9))]
        cuts = sorted(rng.sample(range(len(chosen) + 1), rng.randint(0, len(chosen) + 1) // 2 * 2))
        mentions = [
            (a, b, rng.choice(("PER", "a-b", "人名"))) for a, b in zip(cuts[::2], cuts[1::2], strict=True)
        ]
        if nested and len(chosen) > 2:
            mentions.append((0, len(chosen), "ALL"))
        sentences.append(of_words(chosen, mentions, keys={"id": number, "meta": {"from": ["here"]}}))
    return sentences


@pytest.mark.parametrize("name", AVAILABLE)
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    for number in range(40):
        sentences = random_sentences(
            random.Random(f"{name} {number}"), nested=form.nested and number % 2 == 0
        )
        path = tmp_path / f"{number}.{name}"
        registry.write(name, sentences, path)
        if form.config == "conll":
            arguments = ["check", "--format", "conll", "--json", str(path)]
            assert data_command(arguments) == 0
            continue
        config, settings = registry.config_of(name)
        again, _ = read(path, settings.get("format", config), lines=not form.has_tokens)
        assert [text for it in again for text in it.texts()] == [
            text for it in sentences for text in it.texts()
        ]
        if form.has_tokens:
            assert [it.words for it in again] == [it.words for it in sentences]
            assert [it.mentions for it in again] == [in_order(it.mentions) for it in sentences]
        if config == "jsonl" and not settings:
            assert again[0].keys == sentences[0].keys


def test_a_format_without_nested_mentions_refuses_them(tmp_path: Path) -> None:
    (nested,) = [of_words(["a", "b"], [(0, 2, "X"), (0, 1, "Y")])]
    for name in AVAILABLE:
        form = FORMATS[name]
        if not form.nested:
            with pytest.raises(ValueError, match="overlaps"):
                registry.write(name, [nested], tmp_path / name)
            assert not (tmp_path / name).exists()


# data convert


def test_convert_says_what_cannot_be_kept(tmp_path: Path, ner: Ner) -> None:
    path = lines_of(tmp_path / "a.jsonl", NESTED)
    arguments = ["convert", str(path), str(tmp_path / "a.conll")]
    assert "nested or overlapping mentions" in ner.error("data", *arguments)
    kept = ner("data", *arguments, "data.nested=outermost")
    assert "mentions left out beside the outermost: 1 (first: " in kept
    assert "a.conll: already exists" in ner.error("data", *arguments)
    target = tmp_path / "b.conll.gz"
    rule = f"gzip files are not written; write {tmp_path / 'b.conll'} and compress it"
    refusal = ner.error("data", "convert", str(path), str(target), "data.nested=outermost")
    assert refusal == f"{target}: {rule}\n"
    assert not target.exists()


def test_sentences_across_whose_end_a_mention_goes_are_counted(tmp_path: Path, ner: Ner) -> None:
    record = json.dumps({"text": "Mia ran. Leo sat.", "label": [[4, 12, "X"]]})
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(record)
    report = ner.json("data", "check", str(tmp_path))
    assert [it["sentences"] for it in report["splits"].values()] == [1, 2]
    way_out = "data.lines=true makes each line of a text one sentence"
    rule = "1 of 1 gold mentions cross the end of a sentence; they count as missing"
    assert f"test: {rule} ({way_out})" in report["remarks"]
    lines = ner.json("data", "check", str(tmp_path), "data.lines=true")
    assert [it["sentences"] for it in lines["splits"].values()] == [1, 1]
    printed = ner("data", "convert", str(tmp_path / "test.jsonl"), str(tmp_path / "test.conll"))
    assert "1 mentions; joined to the one before, as a mention crosses its end: 1 sentence\n" in printed


def test_convert_names_the_columns_that_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = tmp_path / "a.conll", tmp_path / "a.jsonl"
    path.write_text("Ada NNP B-NP B-PER\n")
    columns = "data.columns={word: 0, pos: 1, chunk: 2, tag: 3}"
    assert data_command(["convert", str(path), str(target), columns]) == 0
    counts = f"{target}: 1 sentences, 1 tokens, 1 mentions"
    assert capsys.readouterr().out == f"{counts}\ncolumns left out: chunk, pos\n"


def test_convert_writes_a_file_per_split_of_a_corpus(tmp_path: Path, ner: Ner) -> None:
    arguments = ["convert", "toy_zh", str(tmp_path / "toy"), "data.sentences.train=20", "--to", "brat"]
    first, *_, last = ner("data", *arguments).splitlines()
    assert first.startswith(f"{tmp_path}/toy/train: 20 sentences, ")
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == ["dev", "test", "train"]
    assert last == "to be read with data.lines=true data.tokens=characters"
    again = ["check", str(tmp_path / "toy" / "train"), *last.split()[4:], "--format", "brat", "--json"]
    sizes = []
    for settings in (["check", "toy_zh", "data.sentences.train=20", "--json"], again):
        counts = next(iter(json.loads(ner("data", *settings))["splits"].values()))
        sizes.append([counts[key] for key in ("sentences", "tokens", "mentions")])
    assert sizes[0] == sizes[1]


def test_convert_writes_nothing_if_a_file_of_any_split_exists(tmp_path: Path, ner: Ner) -> None:
    taken = tmp_path / "toy" / "test.jsonl"
    taken.parent.mkdir()
    taken.write_text("mine")
    assert ner.error("data", "convert", "toy_en", str(tmp_path / "toy")) == (
        f"{taken}: already exists: remove it, or choose another name for TO\n"
    )
    assert [*taken.parent.iterdir()] == [taken]
    assert taken.read_text() == "mine"


def test_convert_makes_no_folder_for_a_corpus_that_cannot_be_written(tmp_path: Path, ner: Ner) -> None:
    """Neither one that cannot be read nor one with nested mentions in its last split."""
    nested = {"text": "University of Bonn", "entities": [[0, 18, "ORG"], [14, 18, "LOC"]]}
    flat = {"text": "Bonn", "entities": [[0, 4, "LOC"]]}
    files = {
        "train": lines_of(tmp_path / "train.jsonl", flat),
        "test": lines_of(tmp_path / "test.jsonl", nested),
    }
    settings = ["data.name=mine", *(f"data.files.{split}={path}" for split, path in files.items())]
    target = tmp_path / "converted"
    arguments = ["convert", "jsonl", str(target), *settings, "--to", "csv"]
    assert "test.jsonl:1: nested or overlapping mentions" in ner.error("data", *arguments)
    assert not target.exists()
    files["test"].write_text("{")
    assert "test.jsonl:1: not JSON" in ner.error("data", *arguments)
    assert not target.exists()


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        (
            {"text": "Ada", "entities": [[0, 3, "my type"]]},
            "test.jsonl:1: BRAT types cannot contain white space, got 'my type'\n",
        ),
        (
            {"tokens": ["Ada", " "], "ner_tags": ["O", "B-PER"]},
            "the format brat cannot hold these sentences; reading them back failed: ",
        ),
    ],
)
@pytest.mark.parametrize("folder", ["converted", "mine", ""])
def test_convert_writes_no_split_if_a_later_one_cannot_be_written(
    record: Any, rule: str, folder: str, tmp_path: Path, ner: Ner
) -> None:
    """Neither into a new folder nor into one that is there; and no single file."""
    other = tmp_path / "mine" / "other.txt"
    other.parent.mkdir()
    other.write_text("mine")
    train = lines_of(tmp_path / "train.jsonl", {"text": "Bonn", "entities": [[0, 4, "LOC"]]})
    test = lines_of(tmp_path / "test.jsonl", record)
    before = sorted(tmp_path.rglob("*"))
    settings = ["data.name=mine", f"data.files.train={train}", f"data.files.test={test}"]
    arguments = ["jsonl", str(tmp_path / folder), *settings] if folder else [str(test), str(tmp_path / "new")]
    assert rule in ner.error("data", "convert", *arguments, "--to", "brat")
    assert sorted(tmp_path.rglob("*")) == before


def in_format(name: str, folder: Path, sentences: list[str]) -> Path:
    """A file of sentences w0 w1 ... with these tags, in a format of tags."""
    rows = [[(f"w{n}", tag) for n, tag in enumerate(tags.split())] for tags in sentences]
    if name == "jsonl":
        records = ({"tokens": [w for w, _ in row], "ner_tags": [t for _, t in row]} for row in rows)
        return lines_of(folder / "a.jsonl", *records)
    if name == "csv":
        lines = [f"{n},{word},{tag}\n" for n, row in enumerate(rows) for word, tag in row]
        text = "sentence,word,tag\n" + "".join(lines)
    elif name == "conllu_ner":
        blocks = (
            "".join(f"{n}\t{word}" + 7 * "\t_" + f"\tNER={tag}\n" for n, (word, tag) in enumerate(row, 1))
            for row in rows
        )
        text = "".join(f"{block}\n" for block in blocks)
    else:
        text = "".join("".join(f"{word} {tag}\n" for word, tag in row) + "\n" for row in rows)
    path = folder / f"a.{name}"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("sentences", "scheme", "illegal"),
    [
        (["O B-X I-X", "B-Y"], "iob2", 0),
        (["O I-X B-X I-X", "B-Y O B-Y"], "iob2", 1),
        (["O I-X", "I-X I-X"], "iob1", 0),
        (["O E-X B-X O", "S-X"], "bioes", 2),
        (["B-X L-X", "U-X"], "bilou", 0),
    ],
)
@pytest.mark.parametrize("name", ["conll", "jsonl", "csv", "conllu_ner"])
def test_tags_that_break_their_scheme_are_counted_in_each_format_of_tags(
    name: str,
    sentences: list[str],
    scheme: str,
    illegal: int,
    tmp_path: Path,
    ner: Ner,
) -> None:
    path = in_format(name, tmp_path, sentences)
    report = ner.json("data", "check", str(path), "--format", name)
    (counts,) = report["splits"].values()
    assert (report["scheme"], counts["illegal_tags"]) == (scheme, illegal)
    assert counts["mentions"] == sum(len(spans(tags.split())) for tags in sentences)


@pytest.mark.parametrize("tags", ["B-PER M-PER E-PER", "B-PER I-PER E-PER", "I-PER I-PER I-PER"])
def test_tags_in_train_and_mentions_in_dev_are_read_together(tags: str, tmp_path: Path) -> None:
    train = in_format("jsonl", tmp_path, [tags, "O O"])
    dev = lines_of(tmp_path / "dev.jsonl", {"text": TEXT, "entities": ADA})
    files = {"train": str(train), "dev": str(dev)}
    corpus = load(AnnotatedFiles(name="mine", folder="", files=files, format="jsonl"))
    assert corpus.notes == ()
    assert corpus.splits["train"][0].tags == ("B-PER", "I-PER", "E-PER")
    assert corpus.splits["dev"][0].tags[:2] == ("B-PER", "E-PER")


@pytest.mark.parametrize("name", ["conll", "jsonl", "csv", "conllu_ner"])
def test_tags_that_are_read_in_another_style_are_counted_from_the_first(
    name: str, tmp_path: Path, ner: Ner
) -> None:
    path = in_format(name, tmp_path, ["O O", "B_X I_X O B_Y"])
    *_, remark = ner.json("data", "check", str(path), "--format", name)["remarks"]
    line = {"conll": 4, "jsonl": 2, "csv": 4, "conllu_ner": 4}[name]
    guess = "tags are written in another style, detected as B_ORG: B_X is read as B-X; such tags: 3"
    assert remark == f"{guess} (first: {path.name}:{line})"


def test_notes_of_a_corpus_say_which_tags_break_its_scheme(tmp_path: Path) -> None:
    path = in_format("jsonl", tmp_path, ["O I-X B-X I-X", "B-Y O B-Y"])
    files = {"train": str(path), "dev": str(path)}
    corpus = load(AnnotatedFiles(name="mine", folder="", files=files, format="jsonl"))
    assert corpus.notes == (
        f"tags that break iob2: 1 in train (first: {path.name}:1: 'I-X'), 1 in dev (first: {path.name}:1: 'I-X'); the "
        "mentions are read as conlleval reads them",
    )
    assert [it.tags for it in corpus.splits["dev"]] == [("O", "S-X", "B-X", "E-X"), ("S-Y", "O", "S-Y")]
