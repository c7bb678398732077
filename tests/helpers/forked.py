"""Commands as `python run.py` executes them, in processes forked from one that has imported the suite already."""

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import killed
from places import ROOT


def command(arguments: list[str], folder: str, environment: dict[str, str], cwd: str) -> None:
    """Run the command in the child process, with its output in files of the folder.

    A sweep runs in this process, too: its workers would have to import everything.
    """
    gc.freeze()  # as in `killed.command`
    from ner_experiments.main import cli

    killed.run_jobs_here()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for stream, number in (("stdout", 1), ("stderr", 2)):
        with open(f"{folder}/{stream}", "w") as file:
            os.dup2(file.fileno(), number)
    sys.argv = [str(ROOT / "run.py"), *arguments]
    sys.exit(cli(["train", *arguments]))


class Command:
    """A started command, with the interface of `subprocess.Popen`."""

    def __init__(self, *arguments: str, cwd: Path = ROOT, environment: Mapping[str, str] = os.environ):
        self.folder = tempfile.TemporaryDirectory()
        self.process = killed.CONTEXT.Process(
            target=command, args=([*arguments], self.folder.name, dict(environment), str(cwd))
        )
        self.process.start()
        assert self.process.pid is not None
        self.pid = self.process.pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def finish(self, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Wait for the command to end. Returns its exit status, -N after signal N, and what it printed."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError(f"still running after {seconds} seconds")
        printed = [Path(self.folder.name, stream).read_text() for stream in ("stdout", "stderr")]
        self.folder.cleanup()
        return subprocess.CompletedProcess([], self.process.exitcode, *printed)


def run(
    *arguments: str, cwd: Path = ROOT, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    return Command(*arguments, cwd=cwd, environment=environment).finish()
