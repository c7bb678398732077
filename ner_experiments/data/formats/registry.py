"""The formats by name, those of every file of this folder; and the one that a file has, by its name and lines."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from ner_experiments.data import formats
from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.text_files import UTF_8, guessed_encoding, is_blank, read_lines
from ner_experiments.utils.files import atomic_write

FORMATS: dict[str, Format] = {
    name: it
    for module in iter_modules(formats.__path__)
    if module.name != "registry"
    for name, it in getattr(import_module(f"{formats.__name__}.{module.name}"), "FORMATS", {}).items()
}
WRITABLE = [name for name, it in FORMATS.items() if it.lines or it.write]


def config_of(name: str) -> tuple[str, dict[str, Any]]:
    """The file of conf/data that reads a format, and the setting by which it does so."""
    it = FORMATS[name]
    return it.config, {"format": name} if it.read and it.options is TextOptions else {}


def write(name: str, sentences: Iterable[Annotated], path: Path) -> None:
    """Write sentences in a format of `WRITABLE`. ValueError for what it cannot hold."""
    it = FORMATS[name]
    if not it.nested:
        sentences = map(not_nested, sentences)
    if it.write:
        it.write(sentences, path)
        return
    assert it.lines
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(it.lines(sentences))


def not_nested(sentence: Annotated) -> Annotated:
    """The sentence. Raises ValueError if its mentions overlap."""
    sentence.tags()
    return sentence


def require(name: str) -> None:
    """Raise ValueError if the package that a format needs is not installed."""
    package = FORMATS[name].package
    if package and find_spec(package) is None:
        raise ValueError(f"the format {name} needs the package {package}: pip install {package}")


def format_of(path: Path) -> str:
    """The format that a path's suffix stands for; brat for a folder without Parquet or Arrow files.

    Raises ValueError for an unknown suffix.
    """
    if path.is_dir() or (not path.suffix and not path.exists()):
        return "hf" if path.is_dir() and FORMATS["hf"].files(path) else "brat"
    name = path.with_suffix("") if path.suffix == ".gz" else path
    for key, it in FORMATS.items():
        if name.suffix.lower() in it.suffixes:
            return key
    known = ", ".join(suffix for it in FORMATS.values() for suffix in it.suffixes)
    raise ValueError(f"{path}: its format is not known by its name (known: {known}); state it")


def detect(path: Path, encoding: str | None) -> tuple[str, str]:
    """The format of a file, and what tells it: "its name", or "its first line".

    Columns are the format of what nothing tells. The encoding of a file that is not in UTF-8 is guessed, unless given;
    its reader refuses it later.
    """
    try:
        return _detect(path, encoding or UTF_8)
    except ValueError:
        if encoding:
            raise
        return _detect(path, guessed_encoding([path]))


def _detect(path: Path, encoding: str) -> tuple[str, str]:
    try:
        named = format_of(path)
    except ValueError:
        named = "conll"
    it = FORMATS[named]
    if not it.package and path.is_file():
        first = next((line for _, line in read_lines(path, encoding) if not is_blank(line)), "")
        if it.chosen:
            return it.chosen(path, first, encoding)
        claims = {name: other.claims(first) for name, other in FORMATS.items()}
        if claims[named] != "claimed" and (others := [name for name in claims if claims[name] == "claimed"]):
            return others[0], "its first line"
        if claims[named] == "refused":
            return "conll", "its first line"
    return named, "its name" if path.suffix else "its lines"
