"""`hydra/launcher=slurm` submits a sweep to SLURM as one array job and waits for it.

Hydra imports this file at every start, so what is slow to import is imported where it is used.
"""

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ner_experiments.config.job import Job, as_job
from ner_experiments.config.launch_settings import INSTALL, NO_SLURM, has_slurm
from ner_experiments.launch import worker
from ner_experiments.launch.slurm_array import OUTCOME, SlurmArray
from ner_experiments.tables.experiments import output_dir
from ner_experiments.utils.files import atomic_write

if TYPE_CHECKING:
    from submitit import JobEnvironment
    from submitit.core.utils import DelayedSubmission


@dataclass
class SlurmLauncherConfig:
    """The resources of each job of a sweep; null leaves the choice to the cluster.

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

    _target_: str = "hydra_plugins.ner_experiments_plugins.SlurmLauncher"
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


class SlurmError(CompactHydraException):
    """The reason why nothing was submitted. Hydra prints it without a traceback."""


class SlurmLauncher(Launcher):
    """Submits one task of an array job per job of the sweep; the task's index is the job's position in the sweep.

    If the waiting process ends, the array job continues; `scancel` ends it.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = SlurmLauncherConfig(**settings)
        self.logging: dict[str, Any] = {}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.logging = worker.logging_of(config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs = [*map(as_job, job_overrides)]
        folder = self.folder(jobs[0].overrides)
        submitted = self.submit(folder, jobs)
        overrides = [job.overrides for job in jobs]
        outcomes = SlurmArray(folder, dict(zip(submitted, overrides, strict=True))).wait()
        return [outcome.for_hydra() for outcome in outcomes]

    def folder(self, overrides: Sequence[str]) -> Path:
        return Path(self.settings.folder) if self.settings.folder else output_dir(overrides) / "slurm"

    def submit(self, folder: Path, jobs: Sequence[Job]) -> list[str]:
        """SLURM's job ids. SlurmError if submitit or SLURM is missing, or if SLURM rejects the jobs."""
        try:
            from submitit import SlurmExecutor  # slow to import, and only for SLURM
            from submitit.core.utils import FailedJobError, FailedSubmissionError
        except ImportError as error:
            raise SlurmError(INSTALL["hydra/launcher=slurm"][1]) from error
        if not has_slurm():
            raise SlurmError(NO_SLURM)
        folder.mkdir(parents=True, exist_ok=True)
        executor = SlurmExecutor(folder, max_num_timeout=self.settings.max_num_timeout)
        name = jobs[0].sweep or "ner_experiments"  # squeue shows its first eight letters
        executor.update_parameters(job_name=name, **self.parameters())
        try:
            with job_environment():
                tasks = [ArrayTask(worker.message(job, self.logging)) for job in jobs]
                submitted = executor.submit_array(tasks)
        except (FailedJobError, FailedSubmissionError) as error:
            message = " ".join(str(error).split())
            raise SlurmError(f"hydra/launcher=slurm: sbatch rejected the jobs: {message}") from error
        return [job.job_id for job in submitted]

    def parameters(self) -> dict[str, Any]:
        """The settings under submitit's names. A preempted job is requeued.

        srun does not inherit cpus_per_task since SLURM 22.05. A process that crashes ends the other processes of
        its run, which would otherwise wait for it.
        """
        chosen = self.settings
        optional = {
            "partition": chosen.partition,
            "account": chosen.account,
            "qos": chosen.qos,
            "gpus_per_node": chosen.gpus_per_node,
            "mem": None if chosen.mem_gb is None else f"{round(chosen.mem_gb * 1024)}M",
        }
        return {
            **{name: value for name, value in optional.items() if value is not None},
            "nodes": chosen.nodes,
            "ntasks_per_node": chosen.tasks_per_node,
            "cpus_per_task": chosen.cpus_per_task,
            "time": chosen.timeout_min,
            "signal_delay_s": chosen.signal_delay_s,
            "array_parallelism": chosen.max_jobs_at_once,
            "setup": list(chosen.setup),
            "srun_args": [f"--cpus-per-task={chosen.cpus_per_task}", "--kill-on-bad-exit=1"],
            "stderr_to_stdout": True,
            "additional_parameters": {"requeue": True, **chosen.additional_parameters},
        }


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
        """Write the result of `worker.run`, or the reason for its failure, which is also raised to stop submitit."""
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
            reason = worker.reason(error)
            write_outcome(environment, {"failed": reason})
            raise worker.RefusedError(reason) from error

    def checkpoint(self) -> "DelayedSubmission":
        """The task that submitit starts when the requeued job runs again: the same one, resumed from its checkpoint."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


def write_outcome(environment: "JobEnvironment", outcome: dict[str, Any]) -> None:
    """Write the file that `SlurmArray` waits for, in place of an earlier one if the job was requeued."""
    path = environment.paths.folder / f"{environment.job_id}_{environment.global_rank}{OUTCOME}"
    with atomic_write(path) as part:
        part.write_text(json.dumps(outcome), encoding="utf-8")
