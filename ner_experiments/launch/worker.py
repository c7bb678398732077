"""One job of a sweep, or a single experiment: it is run by `run` in whatever process a launcher chose for it.

`python -m ner_experiments.launch.worker` is a process that runs one job after another. Each line on stdin is a job: a
JSON list of a path and the job's `message`. The outcome is written to the path, as JSON. With `--job FILE`, where the
file has such a line, the command runs that job alone. When stdin closes, because the process that started this one has
ended, a running job stops with a checkpoint.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from textwrap import shorten
from threading import Thread
from typing import Any

from hydra.core.utils import configure_log
from omegaconf import OmegaConf

from ner_experiments.config.job import Job, config_of
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.garbage import exit_without_collecting, paused_garbage_collection

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job, by its overrides: the result of `run`, or in one line why it failed."""

    overrides: Sequence[str]
    result: Mapping[str, Any] = field(default_factory=dict)
    failed: str = ""

    @property
    def busy(self) -> str | None:
        """The run's folder, if another process is working on it."""
        return self.result.get("busy")


def hide_statistics_of_torch() -> None:
    """Hide the cache statistics that PyTorch logs when a process ends: Hydra's logging would print them."""
    logging.getLogger("torch._subclasses.fake_tensor").addFilter(lambda each: each.levelno >= logging.WARNING)


def configure_logging(settings: Mapping[str, Any]) -> None:
    """Let this process log as `launch_settings.logging` says."""
    hide_statistics_of_torch()
    chosen = OmegaConf.create(dict(settings))
    configure_log(chosen.job_logging, chosen.verbose)


def main(arguments: Sequence[str]) -> int:
    """Run the job of `--job` and return the exit status; without it, run the jobs of stdin until it closes."""
    jobs: Queue[tuple[str, Message]] = Queue()
    Thread(target=receive, args=[jobs], daemon=True).start()
    if arguments:
        return work(*json.loads(Path(arguments[1]).read_text(encoding="utf-8")))
    while True:
        work(*jobs.get())


def receive(jobs: Queue[tuple[str, Message]]) -> None:
    """Put the jobs of stdin into the queue, and send this process SIGTERM when stdin ends.

    The parent holds the other end, which closes however the parent dies. Unbuffered, since Python aborts at exit if a
    daemon thread still holds the lock of a buffer.
    """
    with open(0, "rb", buffering=0, closefd=False) as lines:
        for line in lines:
            jobs.put(json.loads(line))
    os.kill(os.getpid(), signal.SIGTERM)


def work(path: str, message: Message) -> int:
    """Run a job, write its outcome, and return the exit status of a process that has no other job."""
    content = outcome(message)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        with atomic_write(Path(path)) as part:
            part.write_text(json.dumps(content), encoding="utf-8")
    return int("failed" in content)


def outcome(message: Message) -> dict[str, Any]:
    """Run a job. Returns {"result": ...}, or {"failed": the reason}."""
    try:
        return {"result": run(message)}
    except Exception as error:
        if not isinstance(error, ValueError | OSError):  # these are user errors
            traceback.print_exc()
        return {"failed": reason(error)}


def title(jobs: Sequence[Job]) -> str:
    """`12 jobs of layers`, by which `watch` finds them meanwhile."""
    return f"{len(jobs)} jobs{f' of {jobs[0].sweep}' if jobs[0].sweep else ''}"


def message(job: Job, logging: Mapping[str, Any]) -> Message:
    """All that a process needs to run a job: its composed config, and `launch_settings.logging`."""
    return {"config": job.config(), "logging": logging}


def run(message: Message, *, wait: bool = False) -> dict[str, Any]:
    """The result of `train.train`; without `wait`, the folder as "busy" if another process is working on the run.

    Configures the logging of this process.
    """
    configure_logging(message["logging"])
    return import_train()(config_of(message["config"]), wait=wait)


def import_train() -> Callable[..., dict[str, Any]]:
    """Import and return `train.train`, which takes seconds: it needs torch and Lightning, and launchers do not."""
    with paused_garbage_collection():
        from ner_experiments.train import train

    return train


def outcome_of_process(path: Path, overrides: Sequence[str], status: int) -> Outcome:
    """The outcome of a process that ended with `status`, which is -N after signal N."""
    if path.exists():
        return Outcome(overrides, **json.loads(path.read_text(encoding="utf-8")))
    if status in (130, 143):
        return Outcome(overrides, failed="stopped; repeat the command to resume")
    ended = f"killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    memory = ", possibly out of memory" if status == -signal.SIGKILL else ""
    return Outcome(overrides, failed=f"worker {ended}{memory}")


def reason(error: BaseException) -> str:
    """An error in one line, followed by the path of its traceback. The class is left out for user errors."""
    text = str(error) if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {error}"
    return " ".join([shorten(text, 600, placeholder=" ..."), *getattr(error, "__notes__", [])])


def python_path() -> str:
    """PYTHONPATH for a job's process, so that it runs this code from whatever folder the sweep was started in."""
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


if __name__ == "__main__":
    exit_without_collecting()
    sys.exit(main(sys.argv[1:]))
