"""Parquet and Arrow files, and folders of them, read and written by Hugging Face `datasets` where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ner_experiments.data.formats.annotated import FILE, Annotated, Tagged
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.jsonl import TAGS, from_records, with_tags
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import on_one_line, read_json_object, truncated_repr

SUFFIXES = (".parquet", ".arrow")


def files(path: Path) -> list[Path]:
    """The file, or those of a folder: that of `Dataset.save_to_disk` lists them, of others all are taken, by name.

    Raises ValueError for a folder without one of its listed files.
    """
    if not path.is_dir():
        return [path] if path.is_file() else []
    if not (state := path / "state.json").is_file():
        return sorted(it for it in path.iterdir() if it.suffix in SUFFIXES)
    try:
        found = [path / it["filename"] for it in read_json_object(state)["_data_files"]]
        if any(it.parent != path or it.name == ".." for it in found):
            raise ValueError("a file of another folder")
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{state}: expected the files of a data set, as save_to_disk lists them") from None
    if missing := next((it for it in found if not it.is_file()), None):
        raise ValueError(f"{path}: no file {truncated_repr(missing.name)}, which state.json lists")
    return found


def read(path: Path, options: TextOptions, remarks: Remarks) -> Iterator[Tagged | Annotated]:
    """Sentences of a file, whose rows are read as records of JSON lines.

    Numbers of tags have the names of their ClassLabel, unless `options.names` has others. Raises ValueError, with the
    row, as the reader of JSON lines does, and for a file that `datasets` cannot read.
    """
    from datasets import Features

    try:
        table = _table(path)
        features = Features.from_arrow_schema(table.schema)
        rows = table.to_pylist()
    except Exception as error:  # those of pyarrow and datasets
        raise ValueError(f"{path}: not {path.suffix[1:]} ({on_one_line(error)})") from None
    names = options.names or next((_names(kind) for name, kind in features.items() if name in TAGS), ())
    records = ((f"{path}: row {number}", number, row) for number, row in enumerate(rows, 1))
    yield from from_records(records, replace(options, names=names), remarks)


@cache
def hub_splits(path: str, subset: str | None, revision: str | None) -> dict[str, list[Path]]:
    """Split -> its Arrow files in the cache of `datasets`, which fetches them first, by a name or a local folder.

    Raises ValueError for a data set that `datasets` cannot load, and for a version of it that would run its scripts.
    """
    import datasets

    if int(datasets.__version__.partition(".")[0]) < 4:
        raise ValueError(
            f"data.path needs datasets 4 or newer, which runs no scripts, not {datasets.__version__}"
        )
    try:
        found = datasets.load_dataset(path, subset, revision=revision)
    except Exception as error:  # those of datasets, huggingface_hub, pyarrow and the network
        sort = "" if Path(path).exists() else "no such folder, and as a data set on the hub: "
        raise ValueError(f"data.path={path}: {sort}{on_one_line(error)}") from None
    return {split: [Path(it["filename"]) for it in part.cache_files] for split, part in found.items()}


def _table(path: Path) -> Any:
    """The table of pyarrow, with which `datasets` stores its data. Raises an error of its own for damage."""
    import pyarrow
    from pyarrow import parquet

    if path.suffix != ".arrow":
        with parquet.ParquetFile(path) as file:
            table = file.read()
    else:
        with pyarrow.memory_map(str(path)) as file:
            opened = pyarrow.ipc.open_file if file.read(6) == b"ARROW1" else pyarrow.ipc.open_stream
            file.seek(0)
            table = opened(file).read_all()
    table.validate(full=True)
    if len(set(table.column_names)) < table.num_columns:
        raise ValueError("two columns of one name")
    return table


def _names(feature: Any) -> list[str]:
    """Names of the labels of a list of ClassLabel; empty for another feature."""
    return list(getattr(getattr(feature, "feature", feature), "names", None) or ())


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write a Parquet file of tokens, the names of their IOB2 tags, and, of several files, the name of each one's file.

    Raises ValueError for nested mentions.
    """
    import pyarrow
    from datasets import Features, Value
    from pyarrow import parquet

    rows = [
        with_tags(it) | {key: str(it.keys[key]) for key in (FILE,) if key in it.keys}
        for it in sentences
        if it.tags()
    ]
    columns: dict[str, Any] = {key: [Value("string")] for key in ("tokens", "ner_tags")}
    features = Features(columns | ({FILE: Value("string")} if any(FILE in row for row in rows) else {}))
    with atomic_write(path) as part:
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema=features.arrow_schema), part)


FORMATS = {
    "hf": Format(
        about="Parquet or Arrow, by Hugging Face datasets",
        config="hf",
        read=read,
        write=write,
        suffixes=SUFFIXES,
        package="datasets",
        encodings=False,
        files=files,
    )
}
