"""DocBin, Parquet and Arrow files with damage or gaps that spaCy, pyarrow and `datasets` let pass."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from corpus_files import data_command

from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.remarks import Remarks


def texts(path: Path, format: str) -> list[list[tuple[str, str]]]:
    """Type and text of the mentions of each sentence."""
    source = AnnotatedFiles(name="mine", folder="", files={"train": str(path)}, format=format)
    return [sentence.texts() for sentence in source.annotated(Remarks())["train"]]


def refusal(path: Path, format: str) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        texts(path, format)
    message = str(error.value)
    assert message.isprintable()
    return message


# DocBin


@pytest.fixture
def docbin(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of one document, "Ada met Charles", with the entity Ada and the given spans."""
    spacy = pytest.importorskip("spacy")

    def write(*spans: tuple[int, int, str], words: str = "Ada met Charles", **attributes: Any) -> Path:
        vocab = spacy.vocab.Vocab()
        made = spacy.tokens.Doc(vocab, words=words.split(" "))
        made.set_ents([spacy.tokens.Span(made, 0, 1, label="PER")])
        made.spans["sc"] = [spacy.tokens.Span(made, *it) for it in spans]
        path = tmp_path / "a.spacy"
        spacy.tokens.DocBin(docs=[made], **attributes).to_disk(path)
        return path

    return write


def repacked(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The file with a change to its message, and a checksum that fits it."""
    from srsly import msgpack_dumps, msgpack_loads

    message = msgpack_loads(zlib.decompress(path.read_bytes()))
    change(message)
    path.write_bytes(zlib.compress(msgpack_dumps(message)))
    return path


def with_lengths(*lengths: int) -> Callable[[dict[str, Any]], None]:
    def change(message: dict[str, Any]) -> None:
        message["lengths"] = struct.pack(f"<{len(lengths)}i", *lengths)
        message.update({key: message[key] * len(lengths) for key in ("cats", "flags", "span_groups")})

    return change


def continue_at_once(message: dict[str, Any]) -> None:
    from spacy.attrs import ENT_IOB

    place = 8 * message["attrs"].index(ENT_IOB)
    tokens = message["tokens"]
    message["tokens"] = tokens[:place] + (1).to_bytes(8, "little") + tokens[place + 8 :]


HALF = ": entities need both ENT_IOB and ENT_TYPE in the attrs of the DocBin"
LENGTHS = ": not a DocBin of spaCy (ValueError: the lengths of its documents do not add up to its 3 tokens)"
REFUSED: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], None], str]] = {
    "a span without a label": (
        {"span": (1, 3, "")},
        dict,
        ": document 1: a span without a label: 'met Charles'",
    ),
    "entities by half": ({"attrs": ["ENT_IOB"]}, dict, HALF),  # spaCy reads a document without entities
    "entities by the other half": ({"attrs": ["ENT_TYPE"]}, dict, HALF),
    "a token left out": ({}, with_lengths(2), LENGTHS),  # spaCy reads the document without its last token
    "a negative length": ({}, with_lengths(-1), LENGTHS),
    "a negative length among others": ({}, with_lengths(3, -1, 1), LENGTHS),
    "a label without its string": (
        {},
        lambda message: message["strings"].remove("Charles"),
        ": not a DocBin of spaCy (KeyError: ",
    ),
    "an entity that never begins": ({}, continue_at_once, ": not a DocBin of spaCy (ValueError: [E093] "),
    "NUL in a token": ({"words": "A\0a met Charles"}, dict, ": document 1: NUL in its text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_spacy_lets_pass_is_refused_in_one_line(name: str, docbin: Callable[..., Path]) -> None:
    settings, change, message = REFUSED[name]
    settings = dict(settings)
    spans = [settings.pop("span")] if "span" in settings else []
    path = repacked(docbin(*spans, **settings), change)
    assert refusal(path, "docbin").startswith(f"{path}{message}")


def test_spans_beyond_the_document_are_refused(docbin: Callable[..., Path]) -> None:
    groups: list[bytes] = []
    repacked(docbin((1, 3, "X")), lambda message: groups.extend(message["span_groups"]))
    path = repacked(docbin(words="Ada"), lambda message: message.update(span_groups=groups))
    assert refusal(path, "docbin").startswith(f"{path}: not a DocBin of spaCy (")


def test_a_mention_is_where_its_tokens_are(docbin: Callable[..., Path]) -> None:
    """A span also has the offsets of its characters, which its text does not come from."""
    from srsly import msgpack_dumps, msgpack_loads

    def shift(message: dict[str, Any]) -> None:
        ((packed, keys),) = msgpack_loads(message["span_groups"][0]).items()
        group = msgpack_loads(packed)
        *others, start, end = struct.unpack(">QQQllll", group["spans"][0])
        group["spans"][0] = struct.pack(">QQQllll", *others, start + 1, end)
        message["span_groups"] = [msgpack_dumps({msgpack_dumps(group): keys})]

    path = docbin((2, 3, "PER"))
    assert texts(path, "docbin") == [[("PER", "Ada"), ("PER", "Charles")]]
    assert texts(repacked(path, shift), "docbin") == [[("PER", "Ada"), ("PER", "Charles")]]


# Parquet and Arrow

ROWS = {"tokens": [["Ada", "met"], ["Rain"], ["Bo"]], "ner_tags": [["B-PER", "O"], ["O"], ["B-PER"]]}
EXPECTED = [[("PER", "Ada")], [], [("PER", "Bo")]]


@pytest.fixture
def table() -> Any:
    pytest.importorskip("datasets")
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.Table.from_pydict(ROWS)


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_both_formats_of_arrow_are_read(kind: str, table: Any, tmp_path: Path) -> None:
    from pyarrow import ipc

    path = tmp_path / "a.arrow"
    with {"stream": ipc.new_stream, "file": ipc.new_file}[kind](path, table.schema) as writer:
        writer.write_table(table)
    assert texts(path, "hf") == EXPECTED


def test_values_beyond_their_buffer_are_refused(table: Any, tmp_path: Path) -> None:
    from pyarrow import ipc

    path = tmp_path / "a.arrow"
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    offsets, beyond = struct.pack("<4i", 0, 2, 3, 4), struct.pack("<4i", 0, 2, 3, 2**30)
    path.write_bytes(path.read_bytes().replace(offsets, beyond, 1))
    assert refusal(path, "hf").startswith(f"{path}: not arrow (ArrowInvalid: Column 0: ")


def test_two_columns_of_one_name_are_refused(table: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(table.append_column("tokens", table["tokens"].take([2, 1, 0])), path)
    assert refusal(path, "hf") == f"{path}: not parquet (ValueError: two columns of one name)"


def test_a_wrong_row_is_named_with_the_path_of_its_file(table: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(table.set_column(1, "ner_tags", table["ner_tags"].take([0, 1, 0])), path)
    assert refusal(path, "hf") == f"{path}: row 3: expected one tag per token (1), got 2"


def test_dates_beside_the_tokens_are_written_as_text_in_json_lines(table: Any, tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    dates = pyarrow.array([date(2026, 1, day) for day in (1, 2, 3)])
    parquet.write_table(table.append_column("day", dates), path)
    assert data_command(["convert", str(path), str(tmp_path / "b.jsonl")]) == 0
    lines = (tmp_path / "b.jsonl").read_text().splitlines()
    assert [json.loads(line)["day"] for line in lines] == ["2026-01-01", "2026-01-02", "2026-01-03"]


@pytest.fixture
def folder(table: Any, tmp_path: Path) -> Path:
    """A folder of two files, as `save_to_disk` writes it."""
    import datasets

    path = tmp_path / "folder"
    datasets.Dataset(table, fingerprint="toy").save_to_disk(path, num_shards=2)
    return path


def test_a_file_that_map_cached_is_no_part_of_a_data_set(folder: Path) -> None:
    assert texts(folder, "hf") == EXPECTED
    shutil.copy(folder / "data-00000-of-00002.arrow", folder / "cache-0123.arrow")
    assert texts(folder, "hf") == EXPECTED


def test_a_data_set_without_one_of_its_files_is_refused(folder: Path) -> None:
    (folder / "data-00001-of-00002.arrow").unlink()
    rule = "no file 'data-00001-of-00002.arrow', which state.json lists"
    assert refusal(folder, "hf") == f"{folder}: {rule}"


OUTSIDE = json.dumps({"_data_files": [{"filename": "../folder/data-00000-of-00002.arrow"}]})


@pytest.mark.parametrize("content", ["no", "{}", json.dumps({"_data_files": [1]}), OUTSIDE])
def test_a_data_set_with_a_damaged_list_is_refused(content: str, folder: Path) -> None:
    (folder / "state.json").write_text(content)
    rule = "expected the files of a data set, as save_to_disk lists them"
    assert refusal(folder, "hf") == f"{folder / 'state.json'}: {rule}"
