"""A fake SLURM in a few lines of shell: jobs are local processes, and their states are files.

While a file `full` is among these, no job starts; while a file `silent` is, squeue fails.
"""

import os
from pathlib import Path

import pytest

SBATCH = r"""
echo "$(env | grep -E '^(SLURM|PYTHONPATH)' | sort)" > $STATES/environment
cp $1 $STATES/script
if grep -q -- --partition=closed $1; then echo "sbatch: error: invalid partition: closed" >&2; exit 1; fi
if [ -e $STATES/full ]; then echo Submitted batch job 7; exit; fi
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\)%.*/\1/p' $1)
for task in $(seq 0 ${last:-0}); do
    (
        export SLURM_JOB_ID=$((7 + task)) SLURM_NTASKS=1 SLURM_PROCID=0
        if [ -n "$last" ]; then export SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$task; fi
        name=7${last:+_$task}
        echo "$name|RUNNING|node" > $STATES/$name
        if bash $1; then state=COMPLETED; else state=FAILED; fi
        echo "$name|$state|node" > $STATES/$name
    ) < /dev/null &> $STATES/output_$task &
done
echo Submitted batch job 7
"""

SRUN = r"""
while [ "${1#--}" != "$1" ]; do
    if [ $1 = --output ]; then shift; log=$1; fi
    shift
done
log=${log//%A_%a/7_$SLURM_ARRAY_TASK_ID}
log=${log//%j/7}
exec "$@" >> ${log//%t/0} 2>&1
"""

SQUEUE = r"""
if [ -e $STATES/silent ]; then echo "error: Unable to contact slurm controller" >&2; exit 1; fi
cat $STATES/7* 2> /dev/null || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
"""

SACCT = "cat $STATES/accounting 2> /dev/null\n"

SCONTROL = 'echo "$@" >> $STATES/scontrol\n'


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the commands of the fake SLURM in PATH; return the folder of the jobs' states."""
    commands, states = install(folder)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STATES", str(states))
    return states


def install(folder: Path) -> tuple[Path, Path]:
    """Folders to put into PATH and into STATES."""
    commands, states = folder / "bin", folder / "states"
    commands.mkdir()
    states.mkdir()
    scripts = {"sbatch": SBATCH, "srun": SRUN, "squeue": SQUEUE, "sacct": SACCT, "scontrol": SCONTROL}
    for name, script in scripts.items():
        (commands / name).write_text(f"#!/bin/bash\n{script}")
        (commands / name).chmod(0o755)
    return commands, states
