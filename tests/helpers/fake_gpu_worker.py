"""A worker of `hydra/launcher=local` that trains nothing and says it takes 1,000 MiB of a GPU; fake_gpu.py has its GPU.

Jobs are known by their seeds. All end once as many processes have been there at a time as the file `beside` says; 5
only with its parent or by a signal. 3 runs out of memory the first time, 4 every time.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

STATES = Path(os.environ["STATES"])
OUT_OF_MEMORY = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total of 9 GiB"


def note(event: str) -> None:
    with (STATES / "events").open("a") as events:
        events.write(f"{event}\n")


def number() -> int:
    return len([*STATES.glob("process_*")])


def run(seed: int) -> dict[str, Any]:
    parent, end = os.getppid(), time.monotonic() + 60
    while not (STATES / "met").exists():
        if number() >= int((STATES / "beside").read_text()):
            (STATES / "met").touch()
        if time.monotonic() > end:
            return {"failed": f"only {number()} processes at a time"}
        time.sleep(0.02)
    while seed == 5 and os.getppid() == parent:
        time.sleep(0.02)
    first = STATES / f"failed_{seed}"
    if seed == 4 or (seed == 3 and not first.exists()):
        first.touch()
        return {"failed": OUT_OF_MEMORY}
    if seed == 3 and number() > 1:
        return {"failed": "not alone"}
    peak = {"main": 1, "device": 1}
    return {"result": {"folder": f"none/seed-{seed}", "seconds": 1.0, "peak_memory_bytes": peak}}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    own = STATES / f"process_{os.getpid()}"
    own.touch()
    try:
        for line in sys.stdin:
            path, message = json.loads(line)
            seed = message["config"]["seed"]
            mps = "MPS" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else "-"
            note(f"job {seed} {os.environ['CUDA_VISIBLE_DEVICES']} {mps}")
            Path(f"{path}.part").write_text(json.dumps(run(seed)))
            Path(f"{path}.part").rename(path)
    finally:
        own.unlink()
        note("end")


main()
