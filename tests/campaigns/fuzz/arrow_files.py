"""Parquet files, Arrow files, and folders of `Dataset.save_to_disk`, made by pyarrow and Hugging Face `datasets`.

The oracle takes the rows of a damaged file from pyarrow, and the names of labels from the JSON in its schema.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from fuzz.corpora import SCHEMES, Known, draw, tags_of
from fuzz.damage import damaged, rubbish
from fuzz.format_files import AnnotatedReader, Sentence, mentions
from fuzz.oracle import Faulty
from fuzz.readers import Case
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.remarks import Remarks


class ArrowReader(AnnotatedReader):
    format = "hf"
    package = "datasets"

    def case(self, rng: Random) -> Case:
        """As of other formats, with damage to the bytes or to the rows."""
        if rng.random() < 0.05:
            return Case(rubbish(rng))
        if rng.random() < 0.5:
            return self.whole(rng)
        table = table_of(rng, draw(rng, "mentions"))
        if rng.random() < 0.5:
            return Case(damaged(rng, self.packed(rng, table)))
        return Case(self.packed(rng, altered(rng, table)))

    def write(self, rng: Random, corpus: list[Known]) -> bytes:
        return self.packed(rng, table_of(rng, corpus))

    @abstractmethod
    def packed(self, rng: Random, table: Any) -> bytes:
        """A file of the table, in one of the layouts that its format allows."""

    def expected(self, content: bytes) -> Any:
        return list(sentences(content))


class ParquetFile(ArrowReader):
    name = "hf, parquet"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "input.parquet"

    def packed(self, rng: Random, table: Any) -> bytes:
        from datasets import Dataset, disable_progress_bars
        from pyarrow import parquet

        disable_progress_bars()
        file = io.BytesIO()
        if rng.random() < 0.2 and table.num_columns == len(set(table.column_names)):
            Dataset(table, fingerprint="fuzz").to_parquet(file)
        else:
            parquet.write_table(
                table,
                file,
                compression=rng.choice(("none", "snappy", "gzip", "zstd")),
                row_group_size=rng.choice((None, 1, 2)),
                data_page_version=rng.choice(("1.0", "2.0")),
                use_dictionary=rng.random() < 0.5,
            )
        return file.getvalue()


class ArrowFile(ArrowReader):
    """Arrow's format for streams, in which `datasets` writes, or the one for files."""

    name = "hf, arrow"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "input.arrow"

    def packed(self, rng: Random, table: Any) -> bytes:
        from pyarrow import ipc

        file = io.BytesIO()
        options = ipc.IpcWriteOptions(compression=rng.choice((None, None, "lz4", "zstd")))
        with rng.choice((ipc.new_stream, ipc.new_file))(file, table.schema, options=options) as writer:
            writer.write_table(table, rng.choice((None, 1, 2)))
        return file.getvalue()


class DatasetFolder(ArrowReader):
    """The files of a folder in a row, each after its name; one that `map` cached may be among them."""

    name = "hf, folder"
    inputs = 10_000
    whole_file = "mine: not found in "  # without any file

    def packed(self, rng: Random, table: Any) -> bytes:
        from datasets import Dataset, disable_progress_bars

        disable_progress_bars()
        folder = self.path.with_suffix(".made")
        shutil.rmtree(folder, ignore_errors=True)
        table = table.select([table.column_names.index(name) for name in dict.fromkeys(table.column_names)])
        shards = rng.randint(1, max(1, table.num_rows))
        Dataset(table, fingerprint="fuzz").save_to_disk(folder, num_shards=shards)
        if rng.random() < 0.2:
            shutil.copy(folder / f"data-00000-of-{shards:05}.arrow", folder / "cache-1a.arrow")
        files = sorted(folder.iterdir(), key=lambda _: rng.random())
        return b"".join(f"\n=== {path.name} ===\n".encode() + path.read_bytes() for path in files)

    def read(self) -> Any:
        folder = self.path.with_suffix(".read")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in unpacked(self.path.read_bytes()).items():
            (folder / name).write_bytes(content)
        source = AnnotatedFiles(
            name="mine", folder="", files={"train": str(folder)}, format="hf", tag_style="B-ORG"
        )
        try:
            return self.shown(iter(source.annotated(Remarks())["train"]))
        except ValueError as error:  # of the folder or one of its files
            raise ValueError(re.sub(rf"^{folder}(/[\w.-]+)?", str(self.path), str(error))) from None

    def expected(self, content: bytes) -> Any:
        files = unpacked(content)
        if "state.json" in files:
            names = [it["filename"] for it in json.loads(files["state.json"])["_data_files"]]
        else:
            names = sorted(name for name in files if name.endswith(".arrow"))
        return [sentence for name in names for sentence in sentences(files[name])]


def unpacked(content: bytes) -> dict[str, bytes]:
    """The files of a folder by their names."""
    _, *parts = re.split(rb"\n=== ([\w.-]+) ===\n", content)
    return {name.decode(): part for name, part in zip(parts[::2], parts[1::2], strict=True)}


def table_of(rng: Random, corpus: list[Known]) -> Any:
    """A row for each sentence: its tokens, and their tags by name, by number or as mentions, among other columns."""
    import pyarrow
    from datasets import ClassLabel, Features, LargeList, Value

    strings = Value(rng.choice(("string", "large_string")))
    listed = rng.choice((LargeList, lambda feature: [feature]))
    kind, scheme = rng.choice(("names", "numbers", "mentions")), rng.choice(SCHEMES)
    tags = [tags_of(known, scheme) for known in corpus]
    columns: dict[str, Any] = {
        rng.choice(("tokens", "words")): (listed(strings), [known.words for known in corpus]),
        "id": (Value("int64"), list(range(len(corpus)))),
        "note": (strings, [rng.choice((None, "", "x")) for _ in corpus]),
    }
    name = rng.choice(("ner_tags", "tags"))
    if kind == "names":
        columns[name] = (listed(strings), tags)
    elif kind == "numbers":
        names = sorted({"O", *(tag for sentence in tags for tag in sentence)}, key=lambda _: rng.random())
        numbers = [[names.index(tag) for tag in sentence] for sentence in tags]
        columns[name] = (listed(ClassLabel(names=names)), numbers)
    else:
        place, key = Value(rng.choice(("int32", "int64"))), rng.choice(("label", "type"))
        keys = {"start": place, "end": place, key: strings}
        spans = [[dict(zip(keys, it, strict=True)) for it in known.found] for known in corpus]
        columns[rng.choice(("entities", "spans"))] = (listed(keys), spans)
    order = sorted(columns, key=lambda _: rng.random())
    features = Features({name: columns[name][0] for name in order})
    rows = {name: columns[name][1] for name in order}
    return pyarrow.Table.from_pydict(rows, schema=features.arrow_schema)


def altered(rng: Random, table: Any) -> Any:
    """The table with a wrong value, without a column, or with a column of another's name."""
    import pyarrow

    if rng.random() < 0.1:
        return table.drop_columns(rng.choice(table.column_names))
    if rng.random() < 0.1:
        return table.append_column(rng.choice(table.column_names), rng.choice(table.columns))
    rows = table.to_pylist()
    row, name = rng.choice(rows), rng.choice(table.column_names)
    if isinstance(row[name], list) and row[name] and rng.random() < 0.7:
        row[name] = list(row[name])
        place = rng.randrange(len(row[name]))
        row[name][place : place + 1] = rng.choice(
            ([], [None], [""], ["a\0b"], [99], [-1], ["B-"], ["Q-PER"], row[name])
        )
    else:
        row[name] = rng.choice((None, [], "x", 7, 1.5, [None], [["x"]], {"a": 1}))
    for schema in (table.schema, None):
        try:
            return pyarrow.Table.from_pylist(rows, schema=schema)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            pass
    return table.slice(1)


def sentences(content: bytes) -> Iterator[Sentence]:
    batches = list(batches_of(content))
    if any(len(set(it.schema.names)) < len(it.schema.names) for it in batches):
        raise Faulty(set())
    about = json.loads((batches[0].schema.metadata or {}).get(b"huggingface", b"{}")) if batches else {}
    features = about.get("info", {}).get("features", {})
    for batch in batches:
        batch.validate(full=True)
        columns = batch.to_pydict()
        for number in range(batch.num_rows):
            row = {name: values[number] for name, values in columns.items()}
            words = row["tokens"] if "tokens" in row else row["words"]
            if words:
                yield words, found_in(row, features)


def batches_of(content: bytes) -> Iterator[Any]:
    import pyarrow
    from pyarrow import parquet

    if content[-4:] == b"PAR1":
        yield from parquet.ParquetFile(io.BytesIO(content)).iter_batches()
    elif content[:6] == b"ARROW1":
        file = pyarrow.ipc.open_file(content)
        yield from map(file.get_batch, range(file.num_record_batches))
    else:
        yield from pyarrow.ipc.open_stream(content)


def found_in(row: Mapping[str, Any], features: Mapping[str, Any]) -> list[Any]:
    """The mentions of a row, of its tags or of a list of them."""
    for name in ("ner_tags", "tags"):
        if name in row:
            names = features.get(name, {}).get("feature", {}).get("names", [])
            return mentions([names[tag] if isinstance(tag, int) else tag for tag in row[name]])
    spans = row["entities"] if "entities" in row else row["spans"]
    found = {(it["start"], it["end"], it["label"] if "label" in it else it["type"]) for it in spans}
    return sorted(found, key=lambda it: (it[0], -it[1], it[2]))


def arrow_files(folder: Path) -> list[AnnotatedReader]:
    return [ParquetFile(folder), ArrowFile(folder), DatasetFolder(folder)]
