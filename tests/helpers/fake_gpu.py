"""Stand-ins for nvidia-smi, for the control program of NVIDIA's MPS, and for workers that take GPU memory.

Their states are files in a folder. `events` has a line per start of a job (seed, CUDA_VISIBLE_DEVICES, whether MPS
serves it), per end of a worker, and for the start and the end of MPS's daemon.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ner_experiments.config.job import Job
from ner_experiments.launch import local, packing
from ner_experiments.launch.sweep_progress import SweepProgress
from ner_experiments.launch.worker import Outcome

SMI = r"""
[ -e $STATES/silent ] && { echo "NVIDIA-SMI has failed"; exit 9; }
free=$(cat $STATES/free)
echo "0, GPU-aaaa, $((free - 1000 * $(ls $STATES | grep -c process_))), Disabled"
echo "1, GPU-bbbb, $free, [N/A]"
echo "2, GPU-cccc, 40000, Enabled"
"""

CONTROL = r"""
pipe=${CUDA_MPS_PIPE_DIRECTORY:-$STATES}
if [ "$1" = -d ]; then
    [ -e $STATES/refuse ] && { echo "a remark" >&2; echo "Cannot start the daemon" >&2; exit 1; }
    touch $pipe/control
    echo "MPS $CUDA_VISIBLE_DEVICES" >> $STATES/events
    exit
fi
[ -e $pipe/control ] || exit 1
read command
if [ "$command" = quit ]; then
    rm $pipe/control
    echo quit >> $STATES/events
fi
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *, free: int = 10_000, beside: int = 1) -> Path:
    """Let launchers of this process use them, on sixteen cores; return the folder of the states.

    free: MiB of each GPU. beside: how many workers there must be at a time before jobs end.
    """
    states = folder / "states"
    for each in (folder / "bin", states):
        each.mkdir(exist_ok=True)
    for name, script in (("nvidia-smi", SMI), (packing.CONTROL, CONTROL)):
        path = folder / "bin" / name
        path.write_text(f"#!/bin/bash\n{script}")
        path.chmod(0o755)
    (states / "free").write_text(str(free))
    (states / "beside").write_text(str(beside))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STATES", str(states))
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.setattr(
        local, "PROGRAM", (sys.executable, str(Path(__file__).with_name("fake_gpu_worker.py")))
    )
    monkeypatch.setattr(local, "usable_cores", lambda: 16)
    monkeypatch.setattr(local, "available_memory", lambda: 64 << 30)
    monkeypatch.setattr(packing, "CLIENT", ("true",))
    monkeypatch.setattr(packing, "REFRESH", 0.0)
    monkeypatch.setattr(SweepProgress, "has_ended_an_epoch", lambda *_: any(states.glob("process_*")))
    return states


def events(states: Path) -> list[str]:
    return (states / "events").read_text().splitlines()


def launcher(*devices: str, **settings: Any) -> local.LocalLauncher:
    found = local.LocalLauncher(**settings)
    found.slots = [*devices]
    return found


def launch(found: local.LocalLauncher, *seeds: int) -> list[Outcome]:
    """The outcomes of jobs."""
    place = f"output_dir={os.environ['STATES']}/runs"
    return found.launch([Job((f"seed={seed}", place)) for seed in seeds], {})


def sweep(folder: str) -> None:
    """A sweep in a process of its own, to be stopped: its jobs do not end."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(Path(folder), monkeypatch)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        launcher("0", jobs_per_gpu=2).launch([Job(("seed=5", f"data.name={name}")) for name in "ab"], {})
