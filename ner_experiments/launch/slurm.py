"""`hydra/launcher=slurm`: submits a sweep to SLURM as one array job, and waits for it. A Hydra launcher."""

import json
import os
import shutil
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
from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from submitit import JobEnvironment
    from submitit.core.utils import DelayedSubmission


@dataclass
class SlurmLauncherConfig:
    """What each job of a sweep asks SLURM for; null asks for nothing, and takes what the cluster gives.

    folder: where submitit's files and the jobs' logs go; every node must see it. null: `output_dir`/slurm
    partition, account, qos: as sbatch's
    nodes, tasks_per_node: above 1 for `trainer=ddp`, one task per process of the run
    cpus_per_task: of each task; `runtime.threads` says how many of them training uses
    gpus_per_node: shared by the tasks of a node
    mem_gb: memory per node
    timeout_min: the time limit; a run that reaches it is put back into the queue, and goes on from there
    max_num_timeout: how often it may be put back for that before it fails; preemption does not count
    signal_delay_s: how long before the time limit that begins
    max_jobs_at_once: of the sweep's jobs
    setup: lines of shell that are run before each job, such as `module load cuda`
    additional_parameters: further ones of sbatch, by their long names, such as {constraint: a100}
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
    """Nothing was submitted. Hydra prints these without a traceback."""


class SlurmLauncher(Launcher):
    """One task of an array job for each job of the sweep; its index is the job's place in the sweep.

    If the waiting process is ended the array job goes on; `scancel` ends that.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = SlurmLauncherConfig(**settings)
        self.name = ""
        self.for_hydra: list[str] = []

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from ner_experiments.launch.worker import for_hydra

        self.for_hydra = for_hydra(config)
        table = OmegaConf.select(config, "hydra.sweeper.table")
        self.name = table or "ner_experiments"  # of which squeue shows eight letters

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from ner_experiments.launch import worker as job
        from ner_experiments.launch.slurm_array import SlurmArray

        jobs = [list(overrides) for overrides in job_overrides]
        folder = self.folder(jobs[0])
        submitted = self.submit(folder, jobs)
        outcomes = SlurmArray(folder, dict(zip(submitted, jobs, strict=True))).wait()
        return [
            job.failed(overrides, outcome) if isinstance(outcome, str) else job.finished(overrides, outcome)
            for overrides, outcome in zip(jobs, outcomes, strict=True)
        ]

    def folder(self, overrides: Sequence[str]) -> Path:
        from ner_experiments.tables.experiments import output_dir

        return Path(self.settings.folder) if self.settings.folder else output_dir(overrides) / "slurm"

    def submit(self, folder: Path, jobs: Sequence[list[str]]) -> list[str]:
        """SLURM's ids of the jobs. SlurmError for what is missing here, or what SLURM does not accept."""
        try:
            from submitit import SlurmExecutor
            from submitit.core.utils import FailedJobError, FailedSubmissionError
        except ImportError as error:
            raise SlurmError("hydra/launcher=slurm needs submitit: pip install -e '.[slurm]'") from error
        if not (shutil.which("sbatch") and shutil.which("srun")):
            raise SlurmError("hydra/launcher=slurm: there is no SLURM here, the command sbatch is not found")
        folder.mkdir(parents=True, exist_ok=True)
        executor = SlurmExecutor(folder, max_num_timeout=self.settings.max_num_timeout)
        executor.update_parameters(**self.parameters())
        try:
            with environment_of_jobs():
                submitted = executor.submit_array([ArrayTask([*self.for_hydra, *job]) for job in jobs])
        except (FailedJobError, FailedSubmissionError) as error:
            said = " ".join(str(error).split())
            raise SlurmError(f"hydra/launcher=slurm: SLURM does not take these jobs: {said}") from error
        return [each.job_id for each in submitted]

    def parameters(self) -> dict[str, Any]:
        """The settings under submitit's names. The job that SLURM preempts is put back into the queue.

        srun has not taken over cpus_per_task since SLURM 22.05. One process that crashes ends the others
        of its run, which would wait for it.
        """
        chosen = self.settings
        asked = {
            "partition": chosen.partition,
            "account": chosen.account,
            "qos": chosen.qos,
            "gpus_per_node": chosen.gpus_per_node,
            "mem": None if chosen.mem_gb is None else f"{round(chosen.mem_gb * 1024)}M",
        }
        return {
            **{name: value for name, value in asked.items() if value is not None},
            "job_name": self.name,
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
def environment_of_jobs() -> Iterator[None]:
    """What sbatch hands on: with this code's place, and without what SLURM says of the sweep's own process.

    In a sweep that is itself a job, its jobs would take that for theirs.
    """
    from ner_experiments.launch.worker import python_path

    before = dict(os.environ)
    for name in before:
        if name.startswith("SLURM_") and name != "SLURM_CONF":
            del os.environ[name]
    os.environ["PYTHONPATH"] = python_path()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class ArrayTask:
    """One job of the sweep, as submitit pickles it and calls it on a node.

    What came of it is left as JSON: nobody has to unpickle what submitit leaves.
    """

    def __init__(self, overrides: list[str]) -> None:
        self.overrides = overrides

    def __call__(self) -> None:
        """Leaves what `job.run` returns, or a failure in one line, which it raises so that submitit stops."""
        from submitit import JobEnvironment

        from ner_experiments.launch import worker as job

        environment = JobEnvironment()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # submitit's only logs; training sets its own
        limit = getattr(signal, f"SIG{environment.USR_SIG}")
        put_back = signal.getsignal(limit)
        assert callable(put_back)

        def near_the_limit(number: int, frame: FrameType | None) -> None:
            """Has submitit put the job back, but does not stop at once as it would.

            SLURM answers with a SIGTERM, on which the run writes its checkpoint and ends.
            """
            try:
                put_back(number, frame)
            except SystemExit:
                return

        signal.signal(limit, near_the_limit)
        try:
            leave(environment, {"result": job.run(self.overrides)})
        except Exception as error:
            reason = job.reason(error)
            leave(environment, {"failed": reason})
            raise job.RefusedError(reason) from error

    def checkpoint(self) -> "DelayedSubmission":
        """What submitit starts when the job comes out of the queue again: the same; the rest is on disk."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


def leave(environment: "JobEnvironment", outcome: dict[str, Any]) -> None:
    """Where `SlurmArray` looks for it; what the process left before it was put back is no longer so."""
    from ner_experiments.launch.slurm_array import OUTCOME
    from ner_experiments.utils.files import replacing

    path = environment.paths.folder / f"{environment.job_id}_{environment.global_rank}{OUTCOME}"
    with replacing(path) as part:
        part.write_text(json.dumps(outcome), encoding="utf-8")
