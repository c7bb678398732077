"""`ner-experiments data new`: what it sees in files of several kinds, and the config that it writes."""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import yaml
from in_process import Ner
from linear_time import growth
from omegaconf import OmegaConf
from places import CONF, ROOT
from read_files import read_columns

from ner_experiments.config import config_dirs
from ner_experiments.config.conf import hydra_context, options
from ner_experiments.config.config_dirs import VARIABLE, take_config_dirs
from ner_experiments.data.new_corpus import by_split, character_tokens
from ner_experiments.data.text_files import guessed_encoding
from ner_experiments.main import cli

PLAIN = "Mia B-PER\nsaw O\nBonn B-LOC\n\nBob B-PER\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # restored at the end, whatever a command adds


def written(**texts: str | bytes) -> list[str]:
    """Files by their names, in which two underscores stand for a dot."""
    for name, text in texts.items():
        path = Path(name.replace("__", "."))
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [name.replace("__", ".") for name in texts]


def new(*arguments: str) -> dict[str, object]:
    """The config that `data new mine` writes into ./conf."""
    assert cli(["data", "new", "mine", *arguments]) == 0
    config = yaml.safe_load(Path("conf/data/mine.yaml").read_text(encoding="utf-8"))
    assert isinstance(config, dict)
    return config


def test_columns_header_and_encoding_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    text = "id\ttoken\tpos\tner\n1\tMia\tN\tS-PER\n2\tlief\tV\tO\n\n1\tKöln\tN\tS-LOC\n"
    files = written(train__tsv=text.encode("utf-16"), valid__tsv=text.encode("utf-16"))
    config = new(*files, "data.held_out=0.2")
    assert config["columns"] == {"word": "token", "tag": "ner"}
    assert (config["encoding"], config["held_out"]) == ("utf-16", 0.2)
    assert config["files"] == {"train": "train.tsv", "dev": "valid.tsv", "test": None}
    out = capsys.readouterr().out
    assert "train: train.tsv; dev: valid.tsv\nno test file: no test score until files.test is set\n" in out
    said = "tab-separated, header in line 1, 4 columns, word 1 (token), tag 3 (ner), bioes"
    assert said in " ".join(out.split())
    assert "mine (mentions, bioes)" in out
    assert "written: conf/data/mine.yaml\nnext: ner-experiments train data=mine --config-dir conf" in out


def test_a_folder_stands_for_the_files_in_it_whose_names_tell_their_split(ner: Ner) -> None:
    Path("mine").mkdir()
    written(**{f"mine/{name}": PLAIN for name in ("train__txt", "dev__txt", "test__txt", "notes__txt")})
    config = new("mine")
    assert config["files"] == {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
    report = ner.json("data", "check", "mine", "--json")
    assert [*report["splits"]] == ["train", "dev", "test"]
    assert "train: mine/train.txt; dev: mine/dev.txt; test: mine/test.txt" in report["remarks"]
    left_out = "left out, as their names tell no split (to use them, name the files): notes.txt"
    assert left_out in report["remarks"]
    assert left_out in ner("data", "new", "other", "mine")


def test_dev_and_test_of_a_folder_are_read_as_such(ner: Ner) -> None:
    Path("mine").mkdir()
    records = {"train": ["Mia ran", "Leo ran"], "dev": ["Mia ran"], "test": ["Mia ran"]}
    for split, texts in records.items():
        end = 3 if split == "train" else 2  # inside a token
        lines = [json.dumps({"text": text, "label": [[0, end, "PER"]]}) for text in texts]
        written(**{f"mine/{split}__jsonl": "\n".join(lines)})
    report = ner.json("data", "check", "mine")
    assert report["duplicates"] == {"train/dev": 1, "train/test": 1, "dev/test": 1}
    rule = "gold mentions start or end inside a token; they count as missing"
    assert {f"dev: 1 of 1 {rule}", f"test: 1 of 1 {rule}"} <= {*report["remarks"]}


@pytest.mark.parametrize("command", [("check",), ("new", "mine")])
def test_a_folder_without_train_is_refused_with_its_files(command: tuple[str, ...], ner: Ner) -> None:
    Path("doc").mkdir()
    written(**{f"doc/{name}": PLAIN for name in ("all__txt", "dev__txt")})
    rule = "doc: neither a file name that tells train nor .ann of BRAT; to use its files, name them: all.txt, dev.txt"
    assert ner.error("data", *command, "doc") == f"{rule}\n"


def test_a_config_that_is_not_read_names_the_option_that_reads_it(ner: Ner) -> None:
    new(*written(train__txt=20 * "Mia\tS-PER\nlief\tO\n\n", dev__txt="Mia\tS-PER\n"))
    said = "data=mine: data has no 'mine'; for conf/data/mine.yaml: --config-dir conf\n"
    assert ner.error("train", "data=mine").startswith(said)


def test_a_file_too_short_to_hold_out_dev_is_named(capsys: pytest.CaptureFixture[str], ner: Ner) -> None:
    files = written(train__txt=5 * "Mia\tS-PER\nlief\tO\n\n")
    new(*files)
    out = " ".join(capsys.readouterr().out.split())
    assert "train will refuse this corpus: mine: there is no development set, and held_out=0.1" in out
    assert "next: give it a dev set, then ner-experiments train data=mine --config-dir conf" in out
    out = " ".join(ner("data", "check", "conll", "data.name=mine", "data.files.train=train.txt").split())
    assert "train will refuse this corpus: mine: there is no development set" in out
    assert "next: ner-experiments train data=longer" in ner(
        "data", "new", "longer", *files, "data.held_out=0.4"
    )


def test_weibo_and_characters_are_recognized(capsys: pytest.CaptureFixture[str]) -> None:
    config = new(*written(a="中0\tB-GPE.NAM\n国1\tI-GPE.NAM\n好0\tO\n"))
    assert (config["first_character"], config["tokens"]) == (True, "characters")
    out = capsys.readouterr().out
    assert "the first character of each word (first_character)" in " ".join(out.split())
    assert "predict splits text into these (tokens)" in out


@pytest.mark.parametrize(
    ("codec", "word"),
    [("gb18030", "中国"), ("gb18030", "T恤中国"), ("cp1252", "Ré–è"), ("cp1252", "Köln-Übersee")],
)
def test_other_encodings_are_found(codec: str, word: str) -> None:
    config = new(*written(a=f"{word} B-LOC\n{word} O\n".encode(codec)))
    assert config["encoding"] == codec


def test_json_lines_brat_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"text": "Mia ran", "entities": [[0, 3, "PER"]]}
    config = new(*written(a__txt=json.dumps(record)), "data.lines=true")
    assert (config["format"], config["lines"]) == ("jsonl", True)
    Path("conf/data/mine.yaml").unlink()
    assert new(*written(a__csv="sentence,word,tag\n1,Mia,B-PER\n1,ran,O\n"))["format"] == "csv"
    Path("conf/data/mine.yaml").unlink()
    Path("notes").mkdir()
    written(**{"notes/a__txt": "Mia ran", "notes/a__ann": "T1\tPER 0 3\tMia\n"})
    assert new("notes")["format"] == "brat"
    assert "format: brat (a folder of BRAT's .txt and .ann); encoding: utf-8" in capsys.readouterr().out


def test_every_comment_of_the_format_stays_and_the_config_is_read() -> None:
    new(*written(a=PLAIN))
    made, template = (Path("conf/data/mine.yaml").read_text(), (CONF / "data/conll.yaml").read_text())
    assert made.startswith("# mine: mentions in a\n_target_: ner_experiments.data.files.ColumnFiles\n")
    comments = [line.partition("    # ")[2] for line in template.splitlines()[1:]]
    assert [line.partition("    # ")[2] for line in made.splitlines()[1:]] == comments
    assert OmegaConf.load("conf/data/mine.yaml").folder == str(Path.cwd())


def test_a_line_of_another_width_is_found_in_linear_time() -> None:
    """20,000 lines took 8 seconds while their widths were counted again for each line."""
    message = r"^long.txt:\d+: expected 3 columns, got 2: 'two fields'$"

    def read(lines: int) -> None:
        written(long__txt="Mia N B-PER\nran V O\n" * (lines // 2) + "two fields\n")
        with pytest.raises(ValueError, match=message):
            list(read_columns(Path("long.txt"), columns={"word": "auto", "tag": "auto"}))

    assert growth(read, 5_000) < 9


def test_the_encoding_of_utf_8_is_found_in_little_memory() -> None:
    """The text is decoded, at up to 4 bytes a character; no character gets an object of its own."""
    written(a="中国 B-LOC\n" * 20_000)
    tracemalloc.start()
    try:
        assert guessed_encoding([Path("a")]) == "utf-8"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * Path("a").stat().st_size


REFUSED = {
    "a": "a:1: none of its 2 columns has the tags of mentions (columns are split at spaces and tabs; "
    "data.columns.tag=NUMBER states one): 'Mia PER'",
    "empty": "mine: train has no sentence: empty",
    "gone": "gone: no such file",
    "data.tokens=words": "mine: no file is named",
    "a empty a a": "expected a file for each of train, dev and test, got 4 files: a, empty, a, a",
    "test.b": "no file for train among test.b",
    "holes": "holes:2: empty tag (set empty_tag to the tag that it stands for)",
    "test.b data.colums=1": "did you mean 'data.columns'?",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_cannot_be_read_is_refused(arguments: str, ner: Ner) -> None:
    written(a="Mia PER\nran V\n", empty="\n", test__b=PLAIN, holes="a\tB-X\nb\t\nc\tO\n")
    message = REFUSED[arguments]
    if "colums" in arguments:
        arguments = "test.b holes data.colums=1"
    assert message in ner.error("data", "new", "mine", *arguments.split())
    assert not Path("conf").exists()


def test_a_name_that_is_taken_or_none_is_refused(ner: Ner) -> None:
    files = written(a=PLAIN)
    new(*files)
    for name, message in {
        "mine": "conf/data/mine.yaml: already exists: choose another name, or remove it",
        "weibo": "weibo.yaml: already exists",
        "a/b": "'a/b': expected a name of letters, digits, - and _",
    }.items():
        assert message in ner.error("data", "new", name, *files)


@pytest.mark.parametrize(
    ("names", "train", "dev", "test"),
    [
        ("eng.testb eng.train eng.testa", "eng.train", "eng.testa", "eng.testb"),
        ("testset.txt trainset.txt", "trainset.txt", None, "testset.txt"),
        ("x", "x", None, None),
        ("x y", "x", None, "y"),
        ("x y z", "x", "y", "z"),
        ("contest train", "train", None, "contest"),
        ("dev x", "x", "dev", None),
        ("my-dev my-test my", "my", "my-dev", "my-test"),
        ("dev eval train", "train", "dev", "eval"),
        ("z train a", "train", "z", "a"),
        ("test_corpus_test test_corpus_train", "test_corpus_train", None, "test_corpus_test"),
    ],
)
def test_splits_by_name_and_by_order(names: str, train: str, dev: str | None, test: str | None) -> None:
    expected = {"train": train, "dev": dev, "test": test}
    found = by_split([*map(Path, names.split())])
    assert found == {split: Path(name) for split, name in expected.items() if name}


def test_single_letters_of_latin_are_no_characters() -> None:
    assert not character_tokens(["a", "b"])
    assert character_tokens(["中", "国"])


def test_config_dirs_of_a_command_line(tmp_path: Path, ner: Ner) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    typed = ["--config-dir", "one", "-m", "hydra.searchpath=[file://two, 'three']", "layers=2"]
    assert take_config_dirs(typed) == ["-m", "layers=2"]
    assert take_config_dirs(["-cd=two"]) == []
    assert config_dirs.config_dirs() == [tmp_path / name for name in ("one", "two", "three")]
    for item in ("--config-dir=no", "hydra.searchpath=[no]"):
        assert ner.error("table", item) == f"{item.partition('=')[0]}=no: there is no such folder\n"
    assert "--config-dir: expected the folder of your configs" in ner.error("table", "--config-dir")


def test_conf_comes_before_a_folder_of_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("toy_en", "mine"):
        (tmp_path / f"data/{name}.yaml").write_text("name: other\n")
    os.environ[VARIABLE] = str(tmp_path)
    with hydra_context():
        found = options.__wrapped__("data")
        from hydra import compose

        assert compose("config", ["data=toy_en"]).data.name == "toy_en"
        assert compose("config", ["data=mine"]).data.name == "other"
    assert {"mine", "weibo"} <= {*found}


COMMANDS = (
    ("data", "check", "--json", "mine", "data.max_sentences=null"),
    ("train", "-m", "data=mine", "seed=1,2", "hydra.launcher.jobs=2"),
    ("table", "data=mine", "seed=1,2"),
    ("data", "convert", "mine", "--to", "csv", "copy", "data.encoding=utf-8"),
    ("report", "seed=1,2", "data=mine", "--output", "page"),
)
SMALL = ("trainer=smoke", "model=none", "chars=none", "words.module.dim=4", "runtime.accelerator=cpu")


@pytest.mark.slow
def test_every_command_takes_the_corpus() -> None:
    new(*written(train=20 * PLAIN, dev=PLAIN, test=PLAIN))
    for command in COMMANDS:
        more = SMALL if command[0] in ("train", "table", "report") else ()
        arguments = [*command, *more, "--config-dir", "conf"]
        result = subprocess.run(
            [sys.executable, "-m", "ner_experiments", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, (command, result.stderr, result.stdout)
    assert len([*Path("outputs").glob("mine-*/seed-*/metrics.json")]) == 2
    assert Path("copy/test.csv").read_text().count("\n") == 5
    assert "mine" in Path("page/index.html").read_text()
