"""The folder of a run that is trained: what it has before, the files that begin and end it, and its errors.

`config/identity.py` names it, and `artifacts.py` names and verifies its files.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.runs import artifacts, progress
from ner_experiments.runs.artifacts import CODE, CONFIG, METRICS_FILE
from ner_experiments.runs.code import Code
from ner_experiments.runs.store import candidates
from ner_experiments.utils.files import atomic_write, remove_partial_files, write_json

if TYPE_CHECKING:
    from omegaconf import DictConfig

log = logging.getLogger(__name__)

REUSED = "its result is reused"
"""The end of the note on a run that is not trained again."""


def finished_result(folder: Path) -> dict[str, Any] | None:
    """Content of metrics.json; None if the run is not finished or, with a warning, if one of its files is damaged."""
    path = folder / METRICS_FILE
    if not path.exists():
        return None
    try:
        result = artifacts.read_metrics(path)
        artifacts.verify(folder, result)
    except artifacts.DamagedError as error:
        log.warning("%s; the run is repeated", error)
        return None
    log.info("%s is finished (by commit %s); %s", folder, result["commit"], REUSED)
    return result


def prepare_folder(folder: Path, config: str, code: Code) -> None:
    """Remove partial files, set a damaged metrics.json aside, and write config.yaml and code.json.

    config: the run's settings as YAML.
    """
    remove_partial_files(folder)
    if (folder / METRICS_FILE).exists():
        (folder / METRICS_FILE).replace(folder / f"{METRICS_FILE}.damaged")
    with atomic_write(folder / CONFIG) as part:
        part.write_text(config, encoding="utf-8")
    write_json(folder / CODE, dict(code))


def write_metrics(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Write metrics.json with the checksums of all files, delete the checkpoint, and return the content.

    From then on the run counts as finished.
    """
    whole = artifacts.add_checksum(result | {artifacts.FILES: artifacts.checksums(folder)})
    write_json(folder / METRICS_FILE, whole)
    for name in (progress.CHECKPOINT, progress.PROGRESS_FILE):
        (folder / name).unlink(missing_ok=True)
    return whole


def refuse_changed_data(cfg: DictConfig, sources: Mapping[str, str]) -> None:
    """Raise ValueError if a finished run under `output_dir` read other content from the same place.

    `sources` are the checksums of `checksums_by_source`.
    """
    for run in candidates(cfg):
        for place, checksum in run.metrics.get("read", {}).items():
            if sources.get(place, checksum) != checksum:
                raise ValueError(
                    f"{cfg.data.name}: files have changed between two runs: their checksum is {sources[place]}, "
                    f"and was {checksum} for {run.folder}; restore those files, or keep both "
                    "results: give the new files another name, or choose another output_dir"
                )


@contextmanager
def saved_traceback(path: Path) -> Iterator[None]:
    """Write the traceback of an exception in the block to a file; after a success remove the file."""
    try:
        yield
    except Exception as error:
        with suppress(OSError):  # such as a full disk, which the exception then reports
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as part:
                part.write_text(traceback.format_exc(), encoding="utf-8")
            error.add_note(f"(traceback: {path})")
        raise
    if path.exists():  # on a read-only disk removing a file that does not exist fails
        path.unlink()
