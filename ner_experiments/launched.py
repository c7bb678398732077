"""`python -m ner_experiments.launched OUTCOME OVERRIDE ...`: one job in a process of its own.

Leaves what came of it in the file OUTCOME, as JSON. Stops, with a checkpoint, when the process that started
it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from hydra.core.utils import JobReturn

from ner_experiments import job
from ner_experiments.atomic import replacing


def main(arguments: Sequence[str]) -> int:
    outcome, *overrides = arguments
    Thread(target=stop_with_parent, daemon=True).start()
    content: dict[str, Any]
    try:
        content, status = {"result": job.run(overrides)}, 0
    except Exception as error:
        if not isinstance(error, ValueError | OSError):  # these are what the user can cause
            traceback.print_exc()
        content, status = {"failed": job.reason(error)}, 1
    if os.environ.get("LOCAL_RANK", "0") == "0":
        with replacing(Path(outcome)) as part:
            part.write_text(json.dumps(content), encoding="utf-8")
    return status


def stop_with_parent() -> None:
    """The other end of stdin is the parent's, and is closed with it, however it dies."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def told(outcome: Path, overrides: Sequence[str], status: int) -> JobReturn:
    """What a sweep is told of a process that ended with `status`, which is -N after signal N."""
    if outcome.exists():
        content = json.loads(outcome.read_text(encoding="utf-8"))
        if "result" in content:
            return job.finished(overrides, content["result"])
        return job.failed(overrides, content["failed"])
    if status == 143:
        return job.failed(overrides, "stopped; it goes on when the command is repeated")
    ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    memory = ", perhaps for want of memory" if status == -signal.SIGKILL else ""
    return job.failed(overrides, f"its process {ended}{memory}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
