"""`ner-experiments data check` of files, and of corpora whose counts are known; and `data get`."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from cases import refused
from corpus_files import data_command
from in_process import Ner
from omegaconf import OmegaConf
from places import CONF

from ner_experiments.commands import data
from ner_experiments.data.corpus import ToyCorpus
from ner_experiments.data.files import ColumnFiles

DATA = os.environ.get("NER_DATA_DIR")
SOURCES = CONF / "data"


def test_files_of_any_name_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.conll").write_text("Ada B-PER x\nLovelace E-PER x\n")
    (tmp_path / "b.conll").write_text("rain  x\nsleet O x\n".replace(" ", "\t"))
    paths = [str(tmp_path / name) for name in ("one/a.conll", "two/a.conll", "b.conll")]
    settings = ["data.columns.tag=-2", "data.empty_tag=O"]
    assert data_command(["check", "--format", "conll", "--json", *paths, *settings]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["splits"]) == [paths[0], paths[1], "b.conll"]
    assert found["scheme"] == "bioes"
    assert [split["mentions"] for split in found["splits"].values()] == [1, 1, 0]
    assert list(found["duplicates"].values()) == [1, 0, 0]


def test_the_line_for_which_a_sentence_is_skipped_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)  # for a short path: lines are wrapped
    Path("a.conll").write_text("Ada B-PER\nsang\n\nrain O\n")
    assert data_command(["check", "a.conll", "data.bad_lines=skip"]) == 0
    assert "a.conll:2: expected 2 columns, got 1: 'sang')" in " ".join(capsys.readouterr().out.split())


FILES = {
    "a.conll": ("Ada B-PER\nsang O\n", "conll, by its name"),
    "columns": ("Ada B-PER\nsang O\n", "conll, by its lines"),
    "b.jsonl": ('{"text": "Ada sang", "label": [[0, 3, "PER"]]}\n', "jsonl, by its name"),
    "doccano.txt": ('{"text": "Ada sang", "label": [[0, 3, "PER"]]}\n', "jsonl, by its first line"),
    "kaggle.txt": ("Sentence #,Word,Tag\n1,Ada,B-PER\n1,sang,O\n", "csv, by its first line"),
    "long.txt": (
        f'{{"text": "Ada {"sang " * 30_000}", "label": [[0, 3, "PER"]]}}\n',
        "jsonl, by its first line",
    ),
    "excel.txt": ("sent_id;token;label\n1;Ada;B-PER\n1;sang;O\n", "csv, by its first line"),
    "tabs.csv": ("sent_id\ttoken\tlabel\n1\tAda\tB-PER\n1\tsang\tO\n", "csv, by its name"),
    "tabs.tsv": ("sent_id\ttoken\tlabel\n1\tAda\tB-PER\n1\tsang\tO\n", "conll, by its name"),
    "c.conllu": ("1\tAda" + "\t_" * 7 + "\tNER=B-PER\n", "conllu_ner, by its name and lines"),
    "plus": ("# global.columns = FORM NER\nAda\tB-PER\n", "conllu_ner, by its first line"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_format_of_a_file_is_found_and_said(
    name: str, tmp_path: Path, ner: Ner, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, said = FILES[name]
    (tmp_path / name).write_text(content)
    report = ner.json("data", "check", str(tmp_path / name))
    assert report["splits"][name]["mentions_by_type"] == {"PER": 1}
    assert report["remarks"][0] == f"format: {said}; --format sets another"
    if "by its first line" in said or "by its lines" in said:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert ner.json("data", "check", "-")["splits"]["<stdin>"]["mentions"] == 1


def test_files_that_are_missing_or_of_several_formats_are_named(tmp_path: Path, ner: Ner) -> None:
    paths = [str(tmp_path / name) for name in ("a.conll", "b.jsonl", "c.conll")]
    for path in paths[:2]:
        Path(path).write_text("Ada B-PER\n")
    assert ner.error("data", "check", paths[0], paths[2]) == f"{paths[2]}: no such file\n"
    assert ner.error("data", "check", paths[2]) == f"{paths[2]}: no such file\n"
    assert (
        ner.error("data", "check", *paths[:2])
        == f"{paths[0]} is conll, {paths[1]} is jsonl: check them one by one\n"
    )


def test_get_downloads_what_the_yaml_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(data, "download", lambda *arguments: asked.append(arguments))
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path / "data"))
    assert data_command(["get", "weibo"]) == 0
    ((urls, checksums, sizes, place),) = asked
    yaml: Any = OmegaConf.load(SOURCES / "weibo.yaml")
    names = [f"weiboNER_2nd_conll.{split}" for split in ("train", "dev", "test")]
    assert urls == {name: f"{yaml.url}/{name}" for name in names}
    assert checksums == {name: yaml.sha256[name.split(".")[1]] for name in names}
    assert sizes == {name: yaml.sizes[name.split(".")[1]] for name in names}
    assert place == tmp_path / "data" / "weibo"


def test_get_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    mine = ColumnFiles(
        name="mine",
        folder="",
        files={"train": "a.train"},
        columns={"word": 0, "tag": 2},
        licence="all rights reserved",
        source="My names, https://example.org",
    )
    toy = ToyCorpus(name="toy", language="en", sentences={"train": 1})
    for source, message in (
        (
            mine,
            "mine: no open license (all rights reserved), so it cannot be downloaded; source: My names, https://example.org\n",
        ),
        (toy, "toy: generated, nothing to download\n"),
    ):
        assert data_command(["get", source.name], source) == 1
        assert capsys.readouterr().err == message


# Sentences, tokens, mentions and illegal tags of each split, as the owners' files have them.
KNOWN: dict[str, list[tuple[int, int, int, int]]] = {
    "conll2003": [(14_041, 203_621, 23_499, 2), (3_250, 51_362, 5_942, 0), (3_453, 46_435, 5_648, 0)],
    "conll2000": [(8_936, 211_727, 106_978, 0), (2_012, 47_377, 23_852, 0)],
    "wnut17": [(3_394, 62_730, 1_975, 0), (1_009, 15_733, 836, 0), (1_287, 23_394, 1_079, 0)],
    "weibo": [(1_350, 73_778, 1_895, 10), (270, 14_509, 389, 0), (270, 14_842, 418, 4)],
    "msra": [(45_000, 2_171_573, 75_059, 0), (3_442, 172_601, 6_190, 0)],
    "ud_ewt": [(12_544, 204_577, 0, 0), (2_001, 25_147, 0, 0), (2_077, 25_094, 0, 0)],
}


@pytest.mark.skipif(DATA is None, reason="needs the corpora: NER_DATA_DIR")
@pytest.mark.parametrize("name", KNOWN)
def test_real_corpora_have_the_known_counts(name: str, ner: Ner) -> None:
    assert DATA is not None
    found = ner.json("data", "check", name)
    keys = ("sentences", "tokens", "mentions", "illegal_tags")
    assert [tuple(split[key] for key in keys) for split in found["splits"].values()] == KNOWN[name]
    assert found["official"] is True
    splits = found["splits"].values()
    if name == "conll2003":
        assert [split["sentences_with_docstart"] for split in splits] == [14_987, 3_466, 3_684]
        assert [split["longest_sentence"] for split in splits] == [113, 109, 124]
        assert found["duplicates"]["train/test"] == 126
    if name == "msra":
        assert [split["longest_sentence"] for split in splits] == [746, 2_427]
    if name == "ud_ewt":
        assert len({tag for split in splits for tag in split["tags"]}) == 49


def test_a_stated_scheme_is_used(tmp_path: Path, ner: Ner) -> None:
    path = tmp_path / "a.conll"
    path.write_text("Ada I-PER\n")
    for scheme, illegal in (("iob1", 0), ("iob2", 1)):
        found = ner.json("data", "check", "--format", "conll", f"data.scheme={scheme}", str(path))
        assert (found["scheme"], found["splits"]["a.conll"]["illegal_tags"]) == (scheme, illegal)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--format", "conll", "/absent/a.conll"], "conll: not found: /absent/a.conll\n"),
        (
            ["check", "--format", "conllu", "data.tag=pos", __file__],
            "conllu: tag must be one of upos, xpos, got 'pos'\n",
        ),
    ],
)
def test_what_cannot_be_read_gets_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data_command(arguments) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", message.format(here=Path.cwd()))


USAGE = refused("""
check weibo msra -> check takes one NAME of a corpus, or files
check --format conll data.scheme=iob1 -> --format takes files
check a --format xml -> argument --format: invalid choice: 'xml'
""")


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage_is_refused(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        data_command(arguments.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
