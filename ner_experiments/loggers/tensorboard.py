"""TensorBoard: event files in the folder of a run, with everything that W&B gets.

Hydra's `instantiate` imports this file, and must not fail. TensorBoard is slow to import and may be broken, so it is
imported where a `SafeLogger` catches what it raises.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from PIL import Image

from ner_experiments.config.row_settings import flat
from ner_experiments.loggers.base import NOTHING, Logger, Rows, RunInfo, safe_logger
from ner_experiments.utils.text import markdown_table

FOLDER, EVENTS = "tensorboard", "events.out.tfevents.*"
MAX_NAME = 255
"""Bytes of a file's name that file systems accept."""


@contextmanager
def tensorboard(about: RunInfo, *, sentences: int) -> Iterator[Logger]:
    """TensorBoard's event files in the run's folder; `tensorboard --logdir outputs` shows them."""
    if about.finished and not about.resumed and any((about.folder / FOLDER).glob(EVENTS)):
        yield NOTHING
        return
    with safe_logger("TensorBoard", lambda: TensorBoardLogger(about, sentences)) as logger:
        yield logger


class TensorBoardLogger(Logger):
    """Writes event files, with the epoch as step. The file of a resumed run replaces the earlier one.

    That of a run which was finished before has no epochs if an earlier file has them.
    """

    def __init__(self, about: RunInfo, sentences: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # see above

        self.sentences = sentences
        folder = about.folder / FOLDER
        earlier = [*folder.glob(EVENTS)]
        self.has_epochs = about.finished and bool(earlier)
        for old in () if self.has_epochs else earlier:
            old.unlink()
        self.writer = SummaryWriter(str(folder))
        if about.sweep:
            link_from_sweep(about)
        self.config = {name: plain(value) for name, value in flat(about.config) if name != "seed"}
        self.config |= {"seed": about.config.get("seed", ""), "group": about.group}
        self.epoch = 0
        if about.tags:
            self.writer.add_text("tags", ", ".join(about.tags))

    def scalars(self, values: Mapping[str, float], epoch: int) -> None:
        self.epoch = epoch
        for name, value in () if self.has_epochs else values.items():
            self.writer.add_scalar(name, value, epoch)
        self.writer.flush()

    def summary(self, values: Mapping[str, str | float]) -> None:
        """Log numbers as scalars, the best scores with the settings under HPARAMS as well, and strings as text."""
        from torch.utils.tensorboard.summary import hparams  # here for the same reason as SummaryWriter

        numbers = {name: value for name, value in values.items() if not isinstance(value, str)}
        for name, number in numbers.items():
            self.writer.add_scalar(name, number, self.epoch)
        for name, value in values.items():
            if isinstance(value, str):
                self.writer.add_text(name, value, self.epoch)
        metrics = {name: number for name, number in numbers.items() if name.startswith("best/")}
        file: Any = self.writer.file_writer
        for part in hparams(self.config, metrics):  # type: ignore[no-untyped-call]
            file.add_summary(part)

    def picture(self, name: str, draw: Callable[[], bytes]) -> None:
        pixels = np.asarray(Image.open(io.BytesIO(draw())).convert("RGB"))
        self.writer.add_image(name, pixels, self.epoch, dataformats="HWC")

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        lines = [columns, ["---"] * len(columns), *rows()]
        text = markdown_table(*(list(map(cell, line)) for line in lines))
        self.writer.add_text(name, text, self.epoch)

    def close(self, *, failed: bool) -> None:
        self.writer.close()


def link_from_sweep(about: RunInfo) -> None:
    """Link the run from OUTPUT_DIR/sweeps/SWEEP/tensorboard, since TensorBoard names a run after its folder.

    The link of a row that is run again, with other settings, is replaced.
    """
    output = about.folder.absolute().parent.parent
    folder = output / "sweeps" / about.sweep / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / file_name(about.name)
    target = os.path.relpath(about.folder.absolute() / FOLDER, folder)
    if link.is_symlink() and os.readlink(link) != target:
        link.unlink(missing_ok=True)
    with suppress(FileExistsError):  # as before, or by another process that runs the same job
        link.symlink_to(target)


def file_name(name: str) -> str:
    """The name as that of a file. Of a name that is too long the end is replaced by its digest."""
    flat = name.replace("/", "_")
    if len(content := flat.encode()) <= MAX_NAME:
        return flat
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{content[: MAX_NAME - len(digest) - 1].decode(errors='ignore')}-{digest}"


def plain(value: Any) -> str | float | bool:
    """Texts, numbers and truth values unchanged, anything else as text."""
    return value if isinstance(value, str | int | float | bool) else str(value)


def cell(value: str | float) -> str:
    """Text of a cell with Markdown's special characters escaped, except bars, which `markdown_table` escapes."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#~" else letter for letter in text)
