"""A process that has imported the suite of one checkout, and forks itself for each command that is run there.

`python warm.py` serves: it reads a command from each line of its standard input and answers with its exit status.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

SECONDS = 600
"""Time that a command may take."""


class Checkout:
    """The suite in `folder`, which may be a copy with files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        atexit.register(self.end)

    def run(self, arguments: list[str], **variables: str) -> tuple[int, str]:
        """Exit status of a command with these environment variables, and what it printed.

        arguments: those of `ner-experiments`; or those of `python` if they begin with -m or a file.
        """
        variables = {"PYTHONPATH": str(self.folder), **variables}
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        with TemporaryDirectory() as folder:
            printed = Path(folder) / "printed"
            print(json.dumps([arguments, variables, str(printed)]), file=self.server.stdin, flush=True)
            if not select.select([self.server.stdout], [], [], SECONDS)[0]:
                self.server.kill()
                raise TimeoutError(f"{arguments}: still running after {SECONDS} s")
            return int(self.server.stdout.readline()), printed.read_text(encoding="utf-8")

    def end(self) -> None:
        self.server.communicate()


@cache
def checkout(folder: Path) -> Checkout:
    """The one process for this folder; it ends with its standard input, and so with this process."""
    return Checkout(folder)


def serve() -> None:
    import preloaded  # noqa: F401

    gc.freeze()  # a search for garbage would copy all that the processes share
    for line in iter(sys.stdin.readline, ""):
        arguments, variables, printed = json.loads(line)
        child = os.fork()
        if child == 0:
            execute(arguments, variables, printed)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def execute(arguments: list[str], variables: Mapping[str, str], printed: str) -> None:
    """Run the command as a process of its own does, and exit; a sweep has no workers, which would import all again."""
    from ner_experiments.launch import local

    local.usable_cores = lambda: 1
    os.environ.update(variables)
    with open(printed, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0].endswith(".py"):
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        from ner_experiments.main import cli

        sys.argv = ["run.py", *arguments[arguments[0] == "train" :]]
        sys.exit(cli(arguments))
    sys.exit()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve()
