"""How column files and CoNLL-U are laid out: small files in the shapes of public corpora, with counts made by hand."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from corpus_files import data_command
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


HIPE = """\
TOKEN\tNE-COARSE-LIT\tNE-COARSE-METO\tNE-FINE-LIT\tNE-NESTED\tNEL-LIT\tMISC
# hipe2022:document_id = d1
# hipe2022:language = de
In\tO\tO\tO\tO\t_\t_
Bern\tB-loc\tB-org\tB-loc.adm.town\tO\tQ70\tNoSpaceAfter
lag\tO\tO\tO\tO\t_\t_
Schnee\tO\tO\tO\tO\t_\tNoSpaceAfter
.\tO\tO\tO\tO\t_\tEndOfSentence

# hipe2022:document_id = d2
Anna\tB-pers\tO\tB-pers.ind\tO\tNIL\t_
Roe\tI-pers\tO\tI-pers.ind\tO\tNIL\t_
"""
UNER = """\
# newdoc id = weblog-1
# sent_id = weblog-1-0001
# text = Mia left Oslo #
1\tMia\tB-PER\t-\tann1
2\tleft\tO\t-\tann1
3\tOslo\tB-LOC\t-\tann1
4\t#\tO\t-\tann1

# sent_id = weblog-1-0002
# text = # rain in Oslo
1\t#\tO\t-\tann1
2\train\tO\t-\tann1
3\tin\tO\t-\tann1
4\tOslo\tB-LOC\t-\tann1
"""
GERMEVAL = """\
#\thttp://example.org/a\t[2009-10-17]\t
1\tDer\tO\tO
2\tFC\tB-ORG\tO
3\tBonn\tI-ORG\tB-LOC
4\tspielt\tO\tO

#\thttp://example.org/b\t[2009-10-18]\t
1\t#\tO\tO
2\tKiel\tB-LOC\tO
"""
CASES = {  # name: (text, sentences, tokens, mentions, line)
    "hipe.tsv": (
        *(HIPE, 2, 7, 2),
        "tab-separated, header in line 1, comments #, 7 columns, word 0 (TOKEN), tag 1 (NE-COARSE-LIT), iob2; "
        "column 2 (NE-COARSE-METO) has tags, too (org): data.columns.tag=2 takes them; column 3 (NE-FINE-LIT) has "
        "tags, too (loc.adm.town, pers.ind): data.columns.tag=3 takes them; column 4 (NE-NESTED) has no mentions",
    ),
    "uner.iob2": (UNER, 2, 8, 3, "tab-separated, comments #, 5 columns, word 1, tag 2, iob2"),
    "germeval.tsv": (
        *(GERMEVAL, 2, 6, 2),
        "tab-separated, comments #, 4 columns, word 1, tag 2, iob2; "
        "column 3 has tags, too (LOC): data.columns.tag=3 takes them",
    ),
    "masakha.txt": (  # MasakhaNER: one space, -DOCSTART-like lines are absent, dates as mentions
        "Rais B-PER\nwa O\nKenya B-LOC\n\nJana B-DATE\n# O\n",
        *(2, 5, 3),
        "space-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "phoner.conll": (  # PhoNER: words joined by _
        "Bệnh_nhân O\n523 B-PATIENT_ID\n\nĐà_Nẵng B-LOCATION\n",
        *(2, 3, 2),
        "space-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "lener.conll": (  # LeNER-Br: a space, a blank line at the start
        "\nTribunal B-ORGANIZACAO\nde I-ORGANIZACAO\nJustiça I-ORGANIZACAO\n\nLei B-LEGISLACAO\n",
        *(2, 4, 2),
        "space-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "header-below-comments.tsv": (
        "# made by hand\n# in two days\ntoken\tner\nMia\tB-PER\nran\tO\n",
        *(1, 2, 1),
        "tab-separated, header in line 3, comments #, 2 columns, word 0 (token), tag 1 (ner), iob2",
    ),
    "documents.tsv": (  # the comments of bare types, which look like tags if they are split at spaces
        "# doc1\nMia\tPER\nRoe\tPER\nsaw\tO\n\n# doc2\nBob\tPER\n",
        *(2, 4, 2),
        "tab-separated, comments #, 2 columns, word 0, tag 1, iob1",
    ),
    "documents.txt": (
        "# doc1\nMia PER\nsaw O\n\n# doc2\nBob PER\n",
        *(2, 3, 2),
        "space-separated, comments #, 2 columns, word 0, tag 1, iob1",
    ),
    "inner-last.tsv": (
        "Mia\tB-PER\tO\nof\tO\tO\nOslo\tB-LOC\tO\n",
        *(1, 3, 2),
        "tab-separated, 3 columns, word 0, tag 1, iob2; column 2 has no mentions",
    ),
    "chunks.txt": (
        "Mia NNP B-NP B-PER\nran VBD B-VP O\nhome NN B-NP O\n",
        *(1, 3, 1),
        "space-separated, 4 columns, word 0, tag 3, iob2; "
        "column 2 has tags, too (NP, VP): data.columns.tag=2 takes them",
    ),
    "trailing-tabs.tsv": (
        "Mia\tB-PER\t\nran\tO\t\n",
        *(1, 2, 1),
        "tab-separated, 3 columns, word 0, tag 1, iob2",
    ),
    "trailing-tabs.txt": (
        "Mia B-PER\t\nran O\t\n",
        1,
        2,
        1,
        "space-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "mixed.txt": ("Mia\tB-PER\nran O\nto O\n", 1, 3, 1, "space-separated, 2 columns, word 0, tag 1, iob2"),
    "crlf.tsv": (
        "\ufeffMia\tB-PER\r\nran\tO\r\n\r\n",
        1,
        2,
        1,
        "tab-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "only-o.txt": ("it O\nrains O\n", 1, 2, 0, "space-separated, 2 columns, word 0, tag 1, iob2"),
    "docstart.txt": (
        "-DOCSTART- (1 EU)\n\nMia B-PER\n\n-DOCSTART-\nBob B-PER\n",
        *(2, 2, 2),
        "space-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "quotes.tsv": ('"\tO\n"Mia\tB-PER\n\x0c\tO\n', 1, 3, 1, "tab-separated, 2 columns, word 0, tag 1, iob2"),
    "hashes.tsv": (  # words of tweets
        "#\tO\n#oslo\tB-LOC\n\n# 1\tB-LOC\nfan\tO\n",
        *(2, 4, 2),
        "tab-separated, 2 columns, word 0, tag 1, iob2",
    ),
    "spaces-in-words.tsv": (
        "New York\tB-LOC\nis\tO\n",
        1,
        2,
        1,
        "tab-separated, 2 columns, word 0, tag 1, iob2",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_files_of_many_corpora_are_read_without_a_setting(name: str, tmp_path: Path) -> None:
    text, sentences, tokens, mentions, line = CASES[name]
    counts, said = checked(tmp_path, name, text)
    assert [counts[key] for key in ("sentences", "tokens", "mentions")] == [sentences, tokens, mentions]
    assert said == line


@pytest.mark.parametrize("name", CASES)
def test_data_new_train_and_check_decide_alike(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, sentences, _, mentions, line = CASES[name]
    monkeypatch.chdir(tmp_path)
    for split in ("train", "dev"):
        Path(f"{split}-{name}").write_bytes(text.encode())
    assert data_command(["new", "mine", f"train-{name}", f"dev-{name}"]) == 0
    assert f"read as: {line}" in " ".join(capsys.readouterr().out.split())
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
def test_tags_without_types_come_back_from_every_format(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_text("The\tO\nbattery\tB\nlife\tI\nof\tO\nit\tB\n")
    for target in (f"to-{to}", f"again-{to}"):
        source = tmp_path / ("a.tsv" if target.startswith("to") else f"to-{to}")
        known = [] if target.startswith("to") else ["--from", to]
        arguments = ["convert", str(source), str(tmp_path / target), "--to", to, *known]
        assert data_command(arguments) == 0, capsys.readouterr()
        assert ", 2 mentions" in capsys.readouterr().out
    assert data_command(["check", "--format", to, "--json", str(tmp_path / f"again-{to}")]) == 0
    assert '"_": 2' in capsys.readouterr().out


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


def test_conllu_without_mentions_says_why_it_has_parts_of_speech(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(conllu("Entity=(person-1 Entity=1) _").replace("X\t_", "X\tY"))
    assert data_command(["check", str(path)]) == 0
    assert (
        "format: conllu, by its name and lines: parts of speech, as no column and no key of MISC has the tags of "
        "mentions; the key Entity has brackets of coreference, which are not read;"
    ) in " ".join(capsys.readouterr().out.split())
    path.write_text(conllu("_ _ _"))
    assert data_command(["check", str(path)]) == 1
    assert "word without xpos (data.tag=upos reads the other column)" in capsys.readouterr().err
    assert data_command(["check", str(path), "data.tag=upos"]) == 0


# Faults and what reads a file in spite of them

FAULTS = {
    "a\tO\nb\t\nc\tO\n\nd\t\n\ne\t\nf\t\n": (
        "2: empty tag 5: empty tag 7: empty tag",
        "4 faults, the first 3: ",
        "data.empty_tag=O",
    ),
    "a\tO\n\tB-X\n": ("2: empty word", "", "data.empty_word=_"),
    "a B-X\nb\nc O\n\nd O\n": ("2: expected 2 columns, got 1", "", "data.bad_lines=skip"),
    "a O\n#id=1\nc O\n": ("2: expected 2 columns, got 1", "", "\"data.comments='#'\""),
    "a O\n#id=1\nc O\n\n#oslo B-LOC\n": ("2: expected 2 columns, got 1", "", "data.bad_lines=skip"),
    "a O\nb B-X,B-Y\n": ("2: a tag with several labels", "", "data.multi_label=first"),
    "a O\nb B-X\n\nc X\n": ("4: not a tag of iob2", "", "data.bad_lines=skip"),
    "a\tB-X\u200b\nb\tO\n\nc\t\n\nd\tO\n": (
        "1: tag 'B-X\\u200b' contains an invisible character 4: empty tag",
        "",
        "data.bad_lines=skip data.empty_tag=O",
    ),
    b"caf\xe9 B-LOC\nb O\n": ("1: not UTF-8", "", "data.encoding=cp1252"),
}


@pytest.mark.parametrize("text", FAULTS)
def test_all_faults_are_counted_and_the_settings_proposed_read_the_file(
    text: str | bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, count, proposed = FAULTS[text]
    path = tmp_path / "a.tsv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    assert data_command(["check", str(path)]) == 1
    message = capsys.readouterr().err
    faults = re.findall(rf"{re.escape(str(path))}:(\d+: .*?)(?=; {re.escape(str(path))}|$)", message.strip())
    expected = re.split(r" (?=\d+: )", shown)
    assert [fault[: len(it)] for fault, it in zip(faults, expected, strict=True)] == expected
    assert count in message
    assert message.endswith(f" (to read it: {proposed})\n")
    assert data_command(["check", str(path), *shlex.split(proposed)]) == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "Mia,B-PER\nran,O\n", "of 1 (columns are split at tabs and spaces): 'Mia,B-PER'"),
        (
            "a.csv",
            "word,tag\nMia,B-PER\n",
            "(data.columns.sentence=NAME states its name; columns that are split at tabs or spaces: --format conll)",
        ),
    ],
)
def test_commas_between_columns_get_a_message_that_says_what_separates_them(
    name: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert data_command(["check", str(tmp_path / name)]) == 1
    assert message in capsys.readouterr().err


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
