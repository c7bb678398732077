"""`hydra/launcher=slurm` submits a sweep to SLURM as one array job and waits for it.

The command line imports this file at every start, so submitit is imported where it is used.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ner_experiments.config.job import Job
from ner_experiments.launch import worker
from ner_experiments.launch.slurm_array import OUTCOME, SlurmArray
from ner_experiments.launch.worker import Outcome, title
from ner_experiments.tables.experiments import output_dir
from ner_experiments.utils.files import atomic_write

if TYPE_CHECKING:
    from submitit import JobEnvironment
    from submitit.core.utils import DelayedSubmission


@dataclass
class SlurmLauncher:
    """Submits one task of an array job per job of the sweep; the task's index is the job's position in the sweep.

    If the waiting process ends, the array job continues; `scancel` ends it. Its settings are the resources of each job;
    null leaves the choice to the cluster.

    folder: where submitit's files and the jobs' logs go; every node must see it; null: `output_dir`/slurm
    partition, account, qos: as for sbatch
    nodes, tasks_per_node: above 1 for `trainer=ddp`, with one task per process of the run
    cpus_per_task: `runtime.threads` of them are used for training
    gpus_per_node: shared by the tasks of a node
    mem_gb: memory per node
    timeout_min: the time limit; a run that reaches it is requeued, and resumed from its checkpoint
    max_num_timeout: how often a run is requeued because of the time limit before it fails; preemption does not count
    signal_delay_s: how long before the time limit the run is signaled to stop
    max_jobs_at_once: how many jobs of the sweep run at a time
    setup: shell commands that run before each job, such as `module load cuda`
    additional_parameters: other options of sbatch by their long names, such as {constraint: a100}
    """

    folder: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    nodes: int = 1
    tasks_per_node: int = 1
    cpus_per_task: int = 1
    gpus_per_node: int | None = None
    mem_gb: float | None = None
    timeout_min: int = 240
    max_num_timeout: int = 10
    signal_delay_s: int = 90
    max_jobs_at_once: int = 256
    setup: list[str] = field(default_factory=list)
    additional_parameters: dict[str, Any] = field(default_factory=dict)

    def launch(self, jobs: Sequence[Job], logging: Mapping[str, Any]) -> list[Outcome]:
        """The outcomes of jobs, which log as `launch_settings.logging` says. ValueError if SLURM rejects the jobs."""
        folder = Path(self.folder) if self.folder else output_dir(jobs[0].overrides) / "slurm"
        submitted = self.submit(folder, jobs, logging)
        if len(jobs) > 1:
            print(f"{title(jobs)}, submitted to SLURM", file=sys.stderr, flush=True)
        return SlurmArray(folder, dict(zip(submitted, [job.overrides for job in jobs], strict=True))).wait()

    def submit(self, folder: Path, jobs: Sequence[Job], logging: Mapping[str, Any]) -> list[str]:
        """SLURM's job ids."""
        from submitit import SlurmExecutor  # slow to import, and only for SLURM
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        folder.mkdir(parents=True, exist_ok=True)
        executor = SlurmExecutor(folder, max_num_timeout=self.max_num_timeout)
        name = jobs[0].sweep or "ner_experiments"  # squeue shows its first eight letters
        executor.update_parameters(job_name=name, **self.parameters())
        try:
            with job_environment():
                tasks = [ArrayTask(worker.message(job, logging)) for job in jobs]
                submitted = executor.submit_array(tasks)
        except (FailedJobError, FailedSubmissionError) as error:
            message = " ".join(str(error).split())
            raise ValueError(f"hydra/launcher=slurm: sbatch rejected the jobs: {message}") from error
        return [job.job_id for job in submitted]

    def parameters(self) -> dict[str, Any]:
        """The settings under submitit's names. A preempted job is requeued.

        srun does not inherit cpus_per_task since SLURM 22.05. A process that crashes ends the other processes of
        its run, which would otherwise wait for it.
        """
        settings = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "gpus_per_node": self.gpus_per_node,
            "mem": None if self.mem_gb is None else f"{round(self.mem_gb * 1024)}M",
            "nodes": self.nodes,
            "ntasks_per_node": self.tasks_per_node,
            "cpus_per_task": self.cpus_per_task,
            "time": self.timeout_min,
            "signal_delay_s": self.signal_delay_s,
            "array_parallelism": self.max_jobs_at_once,
            "setup": list(self.setup),
            "srun_args": [f"--cpus-per-task={self.cpus_per_task}", "--kill-on-bad-exit=1"],
            "stderr_to_stdout": True,
            "additional_parameters": {"requeue": True, **self.additional_parameters},
        }
        return {name: value for name, value in settings.items() if value is not None}


@contextmanager
def job_environment() -> Iterator[None]:
    """Context with the environment that sbatch passes on: with this code on PYTHONPATH, and without SLURM_* variables.

    If the sweep itself runs in a SLURM job, its jobs would mistake that job's variables for their own.
    """
    before = dict(os.environ)
    for name in before:
        if name.startswith("SLURM_") and name != "SLURM_CONF":
            del os.environ[name]
    os.environ["PYTHONPATH"] = worker.python_path()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class ArrayTask:
    """One job of the sweep, pickled by submitit and called on a node.

    Its outcome is written as JSON, so that nothing has to be unpickled.
    """

    def __init__(self, message: worker.Message) -> None:
        self.message = message

    def __call__(self) -> None:
        """Write the result of `worker.run`, or the reason for its failure; the error also stops submitit."""
        from submitit import JobEnvironment

        environment = JobEnvironment()
        # submitit's handler only logs; training installs its own
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limit = getattr(signal, f"SIG{environment.USR_SIG}")
        requeue = signal.getsignal(limit)
        assert callable(requeue)

        def requeue_near_limit(number: int, frame: FrameType | None) -> None:
            """Let submitit requeue the job, but do not exit at once as submitit would.

            SLURM then sends SIGTERM, on which the run writes its checkpoint and ends.
            """
            try:
                requeue(number, frame)
            except SystemExit:
                return

        signal.signal(limit, requeue_near_limit)
        try:
            write_outcome(environment, {"result": worker.run(self.message)})
        except Exception as error:
            write_outcome(environment, {"failed": worker.reason(error)})
            raise

    def checkpoint(self) -> "DelayedSubmission":
        """The task that submitit starts when the requeued job runs again: the same one, resumed from its checkpoint."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


def write_outcome(environment: "JobEnvironment", outcome: dict[str, Any]) -> None:
    """Write the file that `SlurmArray` waits for, in place of an earlier one if the job was requeued."""
    path = environment.paths.folder / f"{environment.job_id}_{environment.global_rank}{OUTCOME}"
    with atomic_write(path) as part:
        part.write_text(json.dumps(outcome), encoding="utf-8")
