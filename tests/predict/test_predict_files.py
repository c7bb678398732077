"""`ner-experiments predict` on several files, encodings and processes, and into the formats of `data convert`."""

import csv
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ner_experiments.config.corpora import open_source
from ner_experiments.data.format_files import AnnotatedFiles, annotated_splits
from ner_experiments.data.formats.registry import FORMATS
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tokenize import TokenizedSentence
from ner_experiments.data.toy import sentences
from ner_experiments.main import cli
from ner_experiments.predict.output import WRITERS, write_brat
from ner_experiments.predict.tagger import Mention, TaggedSentence, TextTagger

LINES = [" ".join(it.words) for it in sentences("en", "test", 12)]
TEXT = "\n".join(LINES) + "\n"


def predict(capsys: pytest.CaptureFixture[str], run: Path, *arguments: str) -> str:
    folders = any(map(os.path.isdir, arguments))
    assert cli(["predict", str(run), *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("files tagged: ") if folders else captured.err == ""
    return captured.out


def mentions(records: str) -> list[tuple[str, str]]:
    """Type and text of each mention in predict's own JSON lines."""
    return [
        (it["type"], "".join(it["text"].split()))
        for line in records.splitlines()
        for it in json.loads(line)["mentions"]
    ]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


JSON_LINES = ("jsonl_text", "doccano", "prodigy", "jsonl")


@pytest.mark.parametrize("name", [*JSON_LINES, "csv", "conllu_ner", "conll", "docbin", "hf"])
def test_every_format_has_the_mentions_and_is_read_again(
    name: str, toy_run: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if package := FORMATS[name].package if name in FORMATS else "":
        pytest.importorskip(package)
    expected = mentions(predict(capsys, toy_run, str(text), "--lines"))
    target = tmp_path / f"out{FORMATS[name].suffixes[0] if package else ''}"
    to = ("--lines", "--output", name)
    assert predict(capsys, toy_run, str(text), *to, "--to", str(target)) == ""
    assert package or target.read_text(encoding="utf-8") == predict(capsys, toy_run, str(text), *to)
    in_json = name in JSON_LINES
    more = ["data.lines=true"] if in_json else []
    source = open_source("jsonl" if in_json else name, more, {"files": {"file": str(target)}})
    read = annotated_splits(source, Remarks())["file"]
    assert [pair for it in read for pair in it.texts()] == expected
    assert len(expected) > 5


def test_brat_has_the_text_as_it_is_and_offsets_in_it(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"a": f"\ufeff  {TEXT}", "b": "é 🎉 " + LINES[0].replace(" ", "  "), "c": ""}
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, content in texts.items():
        (folder / f"{name}.txt").write_text(content, encoding="utf-16-le", newline="")
    (folder / "a.ann").write_text("left alone")
    (folder / ".hidden").write_text("\0")
    arguments = (str(folder), "--encoding", "utf-16-le", "--lines")
    records = [json.loads(line) for line in predict(capsys, toy_run, *arguments).splitlines()]
    predict(capsys, toy_run, *arguments, "--output", "brat", "--to", str(tmp_path / "brat"))
    assert (tmp_path / "brat/c.ann").read_text() == ""
    for name in "ab":
        written = (tmp_path / f"brat/{name}.txt").read_text(encoding="utf-8")
        assert written == texts[name].removeprefix("\ufeff")
        rows = [
            line.split("\t")
            for line in (tmp_path / f"brat/{name}.ann").read_text(encoding="utf-8").splitlines()
        ]
        for _, place, shown in rows:
            _, start, end = place.split(" ")
            assert written[int(start) : int(end)] == shown
        found = [
            it for record in records if record["file"].endswith(f"{name}.txt") for it in record["mentions"]
        ]
        assert [place for _, place, _ in rows] == [f"{it['type']} {it['start']} {it['end']}" for it in found]
    assert predict(capsys, toy_run, str(tmp_path / "brat"), "--lines").count("\n") == len(records)


@pytest.mark.parametrize("kind", ["jsonl", "conll", "text"])
def test_brat_has_a_line_per_sentence_of_what_is_no_text_of_a_file(
    kind: str,
    toy_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """JSON lines, columns, and text on standard input."""
    contents = {
        "jsonl": "".join(json.dumps({"text": line, "id": line}) + "\n" for line in LINES),
        "conll": "".join("".join(f"{word}\n" for word in line.split()) + "\n" for line in LINES),
        "text": "".join(f"{line}\n" for line in LINES),
    }
    file = tmp_path / "some.in"
    file.write_text(contents[kind], encoding="utf-8")
    arguments = ("--input", kind, *(["--lines"] if kind == "text" else []))
    records = [json.loads(line) for line in predict(capsys, toy_run, str(file), *arguments).splitlines()]
    with file.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        name = "-" if kind == "text" else str(file)
        predict(capsys, toy_run, name, *arguments, "--output", "brat", "--to", str(tmp_path / "brat"))
    document = tmp_path / "brat" / ("stdin" if kind == "text" else "some")
    text = document.with_suffix(".txt").read_text(encoding="utf-8")
    assert text == "".join(f"{record['text']}\n" for record in records)
    rows = [
        line.split("\t") for line in document.with_suffix(".ann").read_text(encoding="utf-8").splitlines()
    ]
    expected = [(it["type"], it["text"]) for record in records for it in record["mentions"]]
    assert [(place.split()[0], shown) for _, place, shown in rows] == expected
    for _, place, shown in rows:
        _, start, end = place.split()
        assert text[int(start) : int(end)] == shown
    assert len(expected) > 2


def tagged_brat(text: str, offsets: tuple[tuple[int, int], ...], mention: Mention) -> TaggedSentence:
    """The only sentence of a.txt, with one mention."""
    sentence = TokenizedSentence(text, 0, offsets, 1, keys={"file": "a.txt"})
    return TaggedSentence(sentence, ("O",) * len(offsets), (mention,))


def test_a_mention_in_brat_is_one_line_whatever_is_between_its_words(tmp_path: Path) -> None:
    text = "in New\r\n\tYork"
    tagged = tagged_brat(text, ((0, 2), (3, 6), (9, 13)), Mention(3, 13, "LOC", text[3:], 1.0))
    write_brat([tagged], {"a.txt": text}, {"a.txt": "a"}, tmp_path)
    assert (tmp_path / "a.txt").read_bytes().decode() == text
    assert (tmp_path / "a.ann").read_bytes() == b"T1\tLOC 3 13\tNew  \tYork\n"


def test_a_type_with_white_space_is_refused_for_brat(tmp_path: Path) -> None:
    tagged = tagged_brat("Ada", ((0, 3),), Mention(0, 3, "my type", "Ada", 1.0))
    with pytest.raises(ValueError, match=r"^a.txt:1: BRAT types cannot contain white space, got 'my type'$"):
        write_brat([tagged], {"a.txt": "Ada"}, {"a.txt": "a"}, tmp_path / "out")
    assert not [*tmp_path.iterdir()]


def test_a_run_with_a_type_that_brat_cannot_hold_is_refused_before_it_tags(
    toy_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tagged: list[TokenizedSentence] = []
    monkeypatch.setattr(TextTagger, "types", ["PER", "my type"])
    monkeypatch.setattr(TextTagger, "stream", lambda _, sentences: tagged.extend(sentences) or iter(()))
    target = text.parent / "out"
    assert cli(["predict", str(toy_run), str(text), "--output", "brat", "--to", str(target)]) == 1
    expected = f"{toy_run}: BRAT types cannot contain white space, got 'my type'\n"
    assert capsys.readouterr().err == expected
    assert not tagged
    assert not target.exists()


def test_an_interrupted_brat_folder_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    tagged = tagged_brat("Ada", ((0, 3),), Mention(0, 3, "PER", "Ada", 1.0))
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_brat([tagged], {"a.txt": "Ada"}, {"a.txt": "a"}, tmp_path / "out")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "gb18030"])
def test_offsets_are_the_same_in_every_encoding(
    encoding: str, toy_run: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, other = (tmp_path / name for name in ("plain", "other"))
    plain.write_text(f"é {TEXT}", encoding="utf-8")
    other.write_text(f"é {TEXT}", encoding=encoding)
    expected = predict(capsys, toy_run, str(plain), "--lines")
    assert predict(capsys, toy_run, str(other), "--lines", "--encoding", encoding) == expected


def test_columns_and_json_lines_have_encodings_too(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in"
    path.write_text("Mél\tO\n", encoding="latin-1")
    arguments = ("--input=conll", "--encoding=latin-1", "--columns=word=0")
    assert json.loads(predict(capsys, toy_run, str(path), *arguments))["text"] == "Mél"
    path.write_text('{"words": ["Mél"]}', encoding="latin-1")
    assert (
        json.loads(predict(capsys, toy_run, str(path), "--input=jsonl", "--encoding=latin-1"))["text"]
        == "Mél"
    )


def test_keys_of_a_record_are_copied(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {"id": 7, "meta": {"source": "x"}, "tags": ["news"]}
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": f"{LINES[0]}\n\n{LINES[1]}", "start": 5, "mentions": 3, **keys}))
    for output in ("jsonl", "doccano", "prodigy", "jsonl_text"):
        printed = predict(capsys, toy_run, str(path), "--input=jsonl", "--output", output)
        records = [json.loads(line) for line in printed.splitlines()]
        assert len(records) == 2
        assert all(record.items() >= keys.items() for record in records)
    assert "# id = 7\n" in predict(capsys, toy_run, str(path), "--input=jsonl", "--output=conllu_ner")


@pytest.mark.parametrize("output", JSON_LINES)
def test_mentions_and_tags_of_a_record_are_not_copied(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    text, words = "He lives in Essen .", ["He", "lives", "in", "Essen", "."]
    tags = ["O"] * len(words)
    old: list[dict[str, Any]] = [
        {"text": text, "label": [[0, 2, "OLD"]], "labels": ["news"], "ents": []},
        {"text": text, "tokens": words, "spans": [{"start": 0, "end": 2, "label": "OLD"}]},
        {"text": text, "data": {"text": text}, "annotations": [{"result": []}]},
        {"words": words, "ner_tags": tags, "tags": tags},
    ]
    path, written = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    expected = []
    for records in ([{"text": text}] * 3 + [{"words": words}], old):
        path.write_text("".join(json.dumps(it) + "\n" for it in records))
        written.write_text(predict(capsys, toy_run, str(path), "--input=jsonl", "--output", output))
        splits = AnnotatedFiles(name="it", folder=".", files={"test": str(written)}, format="jsonl").read()
        expected.append([(it.words, it.tags) for it in splits["test"]])
    assert expected[0] == expected[1]
    assert not re.search("ner_tags|ents", written.read_text())


def test_the_file_of_each_sentence_is_named_whatever_keys_its_record_has(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    for name in names:
        Path(name).write_text(json.dumps({"id": 7, "file": "mine", "text": LINES[0]}))
    printed = predict(capsys, toy_run, *names, "--input=jsonl")
    records = [json.loads(line) for line in printed.splitlines()]
    assert [(it["id"], it["file"]) for it in records] == [(7, name) for name in names]
    assert json.loads(predict(capsys, toy_run, names[0], "--input=jsonl"))["file"] == "mine"


def names_in(output: str, path: Path) -> list[str]:
    """The file named for each sentence of an output; in headings and folders, each once."""
    if output == "docbin":
        tokens = pytest.importorskip("spacy.tokens")
        vocab = pytest.importorskip("spacy.vocab").Vocab()
        return [it.user_data["file"] for it in tokens.DocBin().from_disk(path).get_docs(vocab)]
    if output == "hf":
        parquet = pytest.importorskip("pyarrow.parquet")
        return [row["file"] for row in parquet.read_table(path).to_pylist()]
    if output == "brat":
        return [f"texts/{it.relative_to(path)}" for it in sorted(path.rglob("*.txt"))]
    text = path.read_text(encoding="utf-8")
    if output == "csv":
        return [
            row[3] for _, row in sorted({row[0]: row for row in csv.reader(text.splitlines()[1:])}.items())
        ]
    if output in ("conll", "conllu_ner"):
        return re.findall(r"(?m)^# file = (.+)$", text)
    if output == "html":
        return re.findall("<h2>(.+)</h2>", text)
    if output == "terminal":
        return [line for line in text.splitlines() if line.endswith(".txt")]
    return [json.loads(line)["file"] for line in text.splitlines()]


@pytest.mark.parametrize("output", [*WRITERS, "brat", "docbin", "hf"])
def test_every_output_of_a_folder_names_the_files(
    output: str,
    toy_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    if package := output in FORMATS and FORMATS[output].package:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names = ["texts/a.txt", "texts/sub/a.txt", "texts/sub/sub/c.txt"]
    for name, line in zip(names, LINES, strict=False):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(line, encoding="utf-8")
    Path("texts/sub/logo.png").write_bytes(b"\x89PNG\r\n\0")
    Path("texts/zeros").write_bytes(b"PK\0")
    Path("texts/readme.md").write_text("# Texts\n")
    Path("texts/.git").mkdir()
    Path("texts/.git/hidden.txt").write_text("hidden")
    assert cli(["predict", str(toy_run), "texts", "--lines", "--output", output, "--to", "out"]) == 0
    assert names_in(output, Path("out")) == names
    assert [it.split(": ")[:3] for it in caplog.messages] == [
        ["passed over", "texts/readme.md", "not plain text, by its name; to tag it, name it"],
        ["passed over", "texts/sub/logo.png:1", "not UTF-8 (invalid start byte at byte 1 of the line)"],
        ["passed over", "texts/zeros:1", "NUL byte"],
    ]
    said = capsys.readouterr().err
    found = len(mentions(predict(capsys, toy_run, *names, "--lines")))
    assert said == f"files tagged: 3, 3 passed over; written to out: 3 sentences, {found} mentions\n"


def test_the_other_files_are_tagged_beside_one_in_another_encoding(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = tmp_path / "a.txt", tmp_path / "b.txt"
    good.write_text(LINES[0], encoding="utf-8")
    bad.write_bytes("Café\n".encode("latin-1"))
    assert cli(["predict", str(toy_run), str(bad), str(good)]) == 1
    (message,) = caplog.messages
    assert message.startswith(
        f"passed over: {bad}:1: not UTF-8 (invalid continuation byte at byte 4 of the line)"
    )
    assert message.endswith("; another encoding: --encoding")
    assert [json.loads(line)["file"] for line in capsys.readouterr().out.splitlines()] == [str(good)]


def test_a_folder_without_text_is_refused(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zeros").write_bytes(b"PK\0")
    assert cli(["predict", str(toy_run), str(tmp_path)]) == 1
    assert capsys.readouterr().err == "no file is text (another encoding: --encoding)\n"


def test_records_without_a_token_are_counted(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(f'{{"text": "{LINES[0]}"}}\n{{"text": " "}}\n{{"words": []}}\n')
    assert cli(["predict", str(toy_run), str(path), "--input=jsonl", "--lines"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert caplog.messages == ["records without tokens, left out of the output: 2 (first: in.jsonl:2)"]


@pytest.mark.slow
def test_several_processes_tag_as_one(
    toy_run: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text.write_text(200 * TEXT, encoding="utf-8")  # two chunks
    expected = predict(capsys, toy_run, str(text), "--lines")
    code = "import sys; from ner_experiments.main import cli; sys.exit(cli(sys.argv[1:]))"
    arguments = ["predict", str(toy_run), str(text), "--lines", "--jobs", "2"]
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout == expected


REFUSED = {
    "gone.txt": "gone.txt",
    "empty": "empty: the folder has no file to tag",
    "a.txt --output brat": "--output brat writes texts and their mentions into a folder: add --to FOLDER",
    "a.txt --output docbin": "--output docbin writes a file that is no text: add --to FILE",
    "a.txt --to a.txt": "a.txt: already exists: remove it, or choose another name with --to",
    "a.txt same/a.txt --output brat --to x": "same/a.txt: another file is named a, too",
    "a.txt --encoding klingon": "there is no encoding 'klingon'",
    "a.txt --columns word=0": "--columns is for --input conll",
    "a.txt --input jsonl --columns word=0": "--columns is for --input conll",
    "a.txt --input conll --lines": "--lines is for raw text, not for --input conll",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_missing_is_said_before_torch_is_imported(
    arguments: str, toy_run: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(text.parent)
    Path("empty").mkdir()
    Path("same").mkdir()
    Path("same/a.txt").write_text("b")
    code = (
        "import sys; from ner_experiments.main import cli; status = cli(sys.argv[1:]); "
        "sys.exit(9 if 'torch' in sys.modules else status)"
    )
    command = [sys.executable, "-c", code, "predict", str(toy_run), *arguments.split()]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert REFUSED[arguments] in result.stderr
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)


def test_a_number_of_processes_is_at_least_one(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli(["predict", str(toy_run), "--jobs", "0"])
    assert "expected a number from 1, got '0'" in capsys.readouterr().err
