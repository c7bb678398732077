"""How column files and CoNLL-U are laid out: small files in the shapes of public corpora, with counts made by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from corpus_files import data_command
from in_process import Ner
from seqeval.metrics.sequence_labeling import get_entities

from ner_experiments.data.corpus import load
from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tag_styles import respelled
from ner_experiments.data.tags import spans

AUTO = {"word": "auto", "tag": "auto"}


def checked(folder: Path, name: str, text: str, *more: str) -> tuple[dict[str, Any], str]:
    """Counts of a file by `data check`, and the line that says how it is read."""
    path = folder / name
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out := io.StringIO())
        assert data_command(["check", "--json", str(path), *more]) == 0
    report = json.loads(out.getvalue())
    (counts,) = report["splits"].values()
    said = [line.removeprefix("read as: ") for line in report["remarks"] if line.startswith("read as: ")]
    return counts, "".join(said)


CASES = yaml.safe_load(Path(__file__).with_name("layouts.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_data_check_new_and_train_decide_alike_without_a_setting(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ner: Ner
) -> None:
    text, (sentences, tokens, mentions), line = (CASES[name][key] for key in ("text", "counts", "read_as"))
    counts, said = checked(tmp_path, name, text)
    assert [counts[key] for key in ("sentences", "tokens", "mentions")] == [sentences, tokens, mentions]
    assert said == line
    monkeypatch.chdir(tmp_path)
    for split in ("train", "dev"):
        Path(f"{split}-{name}").write_bytes(text.encode())
    assert f"read as: {line}" in " ".join(ner("data", "new", "mine", f"train-{name}", f"dev-{name}").split())
    config = yaml.safe_load(Path("conf/data/mine.yaml").read_text(encoding="utf-8"))
    assert ("auto" in config["columns"].values()) == (name in ("trailing-tabs.txt", "mixed.txt"))
    assert data_command(["check", "mine", "--json"], ColumnFiles(**settings(config))) == 0
    counts = json.loads(capsys.readouterr().out)["splits"]["train"]
    assert (counts["sentences"], counts["mentions"]) == (sentences, mentions)
    files = {split: f"{split}-{name}" for split in ("train", "dev")}
    source = ColumnFiles(name="mine", folder="", files=files, columns=AUTO)
    assert load(source).notes[0] == f"read as: {line}"
    words = [it.words for it in source.read()["train"]]
    assert [it.words for it in source.untagged(Path(f"train-{name}"))] == words


def settings(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "_target_"}


# Tags without types


@pytest.mark.parametrize(
    "tags", ["B I O", "O B B I", "I I O I", "B E S O", "B L U O", "B M E S", "b i o b", "I O B I"]
)
def test_tags_without_types_are_of_one_type_as_seqeval_reads_them(tags: str) -> None:
    new, remark = respelled(tags.split(), "auto")
    assert remark.startswith("tags have no type: ")
    read = spans([new.get(tag, tag) for tag in tags.split()])
    upper = [tag.upper().replace("L", "E").replace("U", "S").replace("M", "I") for tag in tags.split()]
    assert read == [(start, end + 1, type_) for type_, start, end in get_entities(upper)]


@pytest.mark.parametrize("tags", [["B", "I-PER", "O"], ["B", "NN", "O"], ["B", "i", "O"], ["X", "O"]])
def test_letters_beside_other_tags_are_no_tags_without_types(tags: list[str]) -> None:
    new, _ = respelled(tags, "auto")
    assert not {"B-_", "I-_"} & {*new.values()}


@pytest.mark.parametrize("to", ["conll", "jsonl", "jsonl_text", "doccano", "prodigy", "csv", "conllu_ner"])
def test_tags_without_types_come_back_from_every_format(to: str, tmp_path: Path, ner: Ner) -> None:
    (tmp_path / "a.tsv").write_text("The\tO\nbattery\tB\nlife\tI\nof\tO\nit\tB\n")
    for target in (f"to-{to}", f"again-{to}"):
        source = tmp_path / ("a.tsv" if target.startswith("to") else f"to-{to}")
        known = [] if target.startswith("to") else ["--from", to]
        arguments = ["convert", str(source), str(tmp_path / target), "--to", to, *known]
        assert ", 2 mentions" in ner("data", *arguments)
    assert '"_": 2' in ner("data", "check", "--format", to, "--json", str(tmp_path / f"again-{to}"))


# CoNLL-U


def conllu(misc: str, header: str = "") -> str:
    words = ("Mia", "ran", "home")
    rows = [f"{n}\t{word}\t_\tX\t_{5 * chr(9)}" for n, word in enumerate(words, 1)]
    return header + "".join(
        f"{row.replace(5 * chr(9), 4 * (chr(9) + '_') + chr(9))}{it}\n"
        for row, it in zip(rows, misc.split(), strict=True)
    )


PLUS = "# global.columns = ID FORM UPOS CONLL:NER\n1\tMia\tX\tB-PER\n2\tran\tX\tO\n3\thome\tX\t_\n"
LAYERS = {
    "name=B-PER|SpaceAfter=No name=O _": "CoNLL-U, tag name, iob2",
    "SpaceAfter=No|NE=B-PER NE=O Lang=en": "CoNLL-U, tag NE, iob2",
    "Entity=B-PER Entity=O Entity=O": "CoNLL-U, tag Entity, iob2",
    "ner=PER ner=O ner=O": "CoNLL-U, tag ner, iob1",
    "NER=B NER=O NER=O": "CoNLL-U, tag NER, iob2",
    "NER=B-PER|MWE=B-X NER=O|MWE=I-X _": (
        "CoNLL-U, tag NER, iob2; MWE has tags, too: data.columns.tag=MWE takes them"
    ),
}


@pytest.mark.parametrize("misc", LAYERS)
def test_mentions_in_conllu_are_found_under_any_name(misc: str, tmp_path: Path) -> None:
    counts, said = checked(tmp_path, "a.conllu", conllu(misc))
    assert (counts["tokens"], counts["mentions"]) == (3, 1)
    assert said == LAYERS[misc]


def test_mentions_in_a_column_of_conllu_plus_are_found(tmp_path: Path) -> None:
    counts, said = checked(tmp_path, "a.conllup", PLUS)
    assert (counts["mentions_by_type"], said) == ({"PER": 1}, "CoNLL-U, tag CONLL:NER, iob2")


def test_conllu_without_mentions_says_why_it_has_parts_of_speech(tmp_path: Path, ner: Ner) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(conllu("Entity=(person-1 Entity=1) _").replace("X\t_", "X\tY"))
    assert (
        "format: conllu, by its name and lines: parts of speech, as no column and no key of MISC has the tags of "
        "mentions; the key Entity has brackets of coreference, which are not read;"
    ) in " ".join(ner("data", "check", str(path)).split())
    path.write_text(conllu("_ _ _"))
    assert "word without xpos (data.tag=upos reads the other column)" in ner.error("data", "check", str(path))
    ner("data", "check", str(path), "data.tag=upos")


# Faults and what reads a file in spite of them


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "Mia,B-PER\nran,O\n", "of 1 (columns are split at tabs and spaces): 'Mia,B-PER'"),
        (
            "a.csv",
            "word,tag\nMia,B-PER\n",
            "('data.columns={sentence: NAME}' states names; columns that are split at tabs or spaces: --format conll)",
        ),
    ],
)
def test_commas_between_columns_get_a_message_that_says_what_separates_them(
    name: str, text: str, message: str, tmp_path: Path, ner: Ner
) -> None:
    (tmp_path / name).write_text(text)
    assert message in ner.error("data", "check", str(tmp_path / name))


def test_tabs_in_a_file_called_csv_are_columns(tmp_path: Path) -> None:
    counts, said = checked(tmp_path, "a.csv", "Mia\tB-PER\nran\tO\n")
    assert (counts["mentions"], said) == (1, "tab-separated, 2 columns, word 0, tag 1, iob2")


def test_splits_with_and_without_a_header(tmp_path: Path) -> None:
    texts = {
        "train": "id\ttoken\tner\n1\tMia\tB-PER\n2\tran\tO\n",
        "dev": "1\tit\tO\n2\trained\tO\n",
        "test": "# c\n1\tBob\tB-PER\n2\tran\tO\n",
    }
    for split, text in texts.items():
        (tmp_path / split).write_text(text)
    source = ColumnFiles(name="m", folder=str(tmp_path), files={it: it for it in texts}, columns=AUTO)
    remarks = Remarks()
    splits = source.read(remarks)
    assert [it.words for sentences in splits.values() for it in sentences] == [
        ("Mia", "ran"),
        ("it", "rained"),
        ("Bob", "ran"),
    ]
    columns = "3 columns, word 1{}, tag 2{}"
    assert remarks.layouts() == [
        f"read as: train: tab-separated, header in line 1, {columns.format(' (token)', ' (ner)')}; "
        f"dev: tab-separated, {columns.format('', '')}; test: tab-separated, comments #, {columns.format('', '')}"
    ]


def test_a_split_with_other_columns_is_decided_by_itself(tmp_path: Path) -> None:
    texts = {"train": "Mia NNP B-PER\nran VBD O\n", "dev": "Mia B-PER\nran O\n"}
    for split, text in texts.items():
        (tmp_path / split).write_text(text)
    source = ColumnFiles(name="m", folder=str(tmp_path), files={it: it for it in texts}, columns=AUTO)
    assert [spans(it.tags) for sentences in source.read().values() for it in sentences] == 2 * [
        [(0, 1, "PER")]
    ]


def test_of_a_pipe_the_first_sentence_decides_and_is_read_before_the_second(tmp_path: Path) -> None:
    source = ColumnFiles(name="m", folder="", files={}, columns=AUTO)
    lines = iter([b"# sent 1\n", b"1\tMia\tB-PER\n", b"2\tran\tO\n", b"\n", b"# sent 2\n", b"1\tBob\tO\n"])

    class Pipe(io.RawIOBase):
        name = "pipe"

        def seekable(self) -> bool:
            return False

        def readline(self, size: int | None = -1, /) -> bytes:
            return next(lines, b"")

    sentences = source.untagged(Pipe())  # type: ignore[arg-type]
    assert next(sentences).words == ("Mia", "ran")
    assert len([*lines]) == 2
