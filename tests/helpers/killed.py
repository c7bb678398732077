"""A command of the suite that is killed after a number of its own lines: at the same place on every machine."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path
from signal import Signals
from types import FrameType
from typing import Any
from unittest.mock import patch

import ner_experiments

COUNTED = (
    "train",
    "runs/folder",
    "training/checkpoints",
    "training/callbacks",
    "utils/files",
    "utils/locks",
    "tagger",
)
"""Modules that train and write, whose lines count. Those that read commands, corpora and predictions have far more."""
FILES = {str(Path(ner_experiments.__file__).parent / f"{name}.py") for name in COUNTED}
assert all(map(os.path.exists, FILES))
CONTEXT = get_context("forkserver")
if "preloaded" not in sys.modules:  # it is in a forked process
    # now, before another module starts the server: a process has only one
    CONTEXT.set_forkserver_preload(["preloaded"])
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(path)):
        forkserver.ensure_running()


def run_jobs_here() -> None:
    """Let `hydra/launcher=local` run jobs in this process, unless it gets settings or a job has several processes."""
    from ner_experiments.config.processes import num_processes
    from ner_experiments.launch import local

    launch = local.LocalLauncher.launch

    def here(self: local.LocalLauncher, jobs: Sequence[Any], logging: Any) -> Any:
        several = any(num_processes(job.cfg) > 1 for job in jobs)
        if self.jobs or self.minutes or self.gpus or several:
            return launch(self, jobs, logging)
        return local.BasicLauncher().launch(jobs, logging)

    local.LocalLauncher.launch = here


def command(arguments: list[str], lines: int, how: int, log: str, environment: dict[str, str]) -> None:
    """Run the command in the child process, which sends itself the signal `how` after `lines` lines."""
    gc.freeze()  # a search for garbage would copy all that the processes share
    from ner_experiments import train
    from ner_experiments.main import cli
    from ner_experiments.tables import sweeps

    run_jobs_here()
    # the service of the tests' own process would outlive this one
    os.environ.pop("WANDB_SERVICE", None)
    os.environ.update(environment)
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    left = [lines]

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), how)
        return trace

    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            sys.settrace(trace)
            try:
                return function(*arguments, **options)
            finally:
                sys.settrace(None)

        return call

    # not the whole command: tracing makes it several times as slow, and elsewhere it writes nothing
    train.train = traced(train.train)
    sweeps.record = traced(sweeps.record)
    status = cli(arguments)
    print(f"{lines - left[0]} lines", flush=True)
    sys.exit(status)


def run(
    arguments: list[str], log: Path, lines: int = 0, how: Signals = Signals.SIGKILL, **environment: str
) -> int:
    """Exit status of the command, -N after signal N. With 0 lines it is not killed."""
    process = CONTEXT.Process(target=command, args=(arguments, lines, how, str(log), environment))
    process.start()
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode
