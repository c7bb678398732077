"""Small runs for tests of loggers, and their logs as TensorBoard reads them."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

SMALL = ["model.hidden_size=8", "data.max_sentences=20", "trainer=smoke", "runtime.progress=false"]


def scalars(folder: Path) -> EventAccumulator:
    (path,) = folder.glob("tensorboard/events.out.tfevents.*")
    return EventAccumulator(str(path)).Reload()
