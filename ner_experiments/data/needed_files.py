"""Checks that the files named in a config exist. They precede the start of a run, and so do not import PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ner_experiments.data import bert_files, vectors


def gazetteer_lists(folder: str) -> dict[str, Path]:
    """Type -> its list, in alphabetical order. Raises ValueError if there is none."""
    place = Path(folder).expanduser()
    paths = {path.stem: path for path in sorted(place.glob("*.txt"))}
    if not paths:
        raise ValueError(
            f"gazetteer: no list in {place.absolute()}; put a file there for each type of name, such as "
            "PER.txt, with one name per line, or set direct.gazetteer.input.folder=..."
        )
    return paths


def check_vectors(path: str) -> None:
    vectors.check_file(Path(path))


INPUTS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "PretrainedWords": ("path", check_vectors),
    "WordsWithCase": ("path", check_vectors),
    "Pieces": ("path", bert_files.check_path),
    "FrozenPieces": ("path", bert_files.check_path),
    "Gazetteer": ("folder", gazetteer_lists),
}
"""Class of an input that reads files -> the setting that names them, and the check of its value."""


def check_input(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for a missing file of an input, given by its settings in the config."""
    setting, check_place = INPUTS.get(settings.get("_target_", "").rpartition(".")[2], ("", None))
    if check_place is not None:
        check_place(settings[setting])
