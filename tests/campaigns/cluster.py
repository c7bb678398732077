"""`make cluster`: one model trained on two nodes, by torchrun in two network namespaces and by SLURM with two daemons.

Needs root on Debian or Ubuntu, and iproute2. SLURM is installed if it is missing; its daemons are ended. The first step
that does not go as it must ends the campaign with AssertionError.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from places import ROOT
from resumed import outcome
from waiting import until

ADDRESSES = ("10.77.0.1", "10.77.0.2")
TINY = [
    *("data=toy_en", "data.sentences={train: 150, dev: 40, test: 41}", "model.hidden_size=8", "chars=none"),
    *("batches.tokens=60", "optimizer.lr=0.01", "trainer.patience=999", "runtime.accelerator=cpu"),
    *("runtime.progress=false", "runtime.ddp_seconds=60", "runtime.checkpoint_seconds=0"),
]
FROZEN = [*TINY, "trainer.max_epochs=1", "optimizer.lr=1e-30"]
TWO_NODES = ["trainer=ddp", "trainer.devices=1", "trainer.num_nodes=2"]


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    with two_nodes():
        the_counts_of_one_process(folder)
        a_killed_node(folder)
    with slurm():
        the_counts_by_slurm(folder)
        a_killed_node_of_slurm(folder)
    print("all steps went as they should")


def the_counts_of_one_process(folder: Path) -> None:
    """A model that learns nothing, and so is the same on one process and on two nodes, has the same scores."""
    command = [sys.executable, ROOT / "run.py", *FROZEN, f"output_dir={folder / 'one'}"]
    subprocess.run(command, check=True, capture_output=True)
    finish(*start(folder, *FROZEN, f"output_dir={folder / 'two'}"))
    test = check_counts(folder / "one", folder / "two")
    print(f"the same counts as one process: {test['predicted']} predicted, {test['gold']} gold")


def a_killed_node(folder: Path) -> None:
    """Both nodes in turn: the other one ends too, and the command resumes to the weights of an undisturbed run."""
    long = [*TINY, "trainer.max_epochs=8"]
    finish(*start(folder, *long, f"output_dir={folder / 'whole'}"))
    for victim in (0, 1):
        output = folder / f"killed{victim}"
        nodes = start(folder, *long, f"output_dir={output}")
        until(lambda output=output: epochs(output) >= 3)
        for process in processes_of(victim):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        began = time.monotonic()
        assert [node.wait(120) != 0 for node in nodes] == [True, True]
        seconds = time.monotonic() - began
        until(lambda: not [*processes_of(0), *processes_of(1)], 60)
        assert not list(output.glob("*/seed-1/metrics.json"))
        done = epochs(output)
        finish(*start(folder, *long, f"output_dir={output}"))
        assert "resuming from last.ckpt" in (folder / "node0.log").read_text()
        assert outcome(output) == outcome(folder / "whole")
        print(
            f"node {victim} killed after epoch {done}: the other one ended {seconds:.0f} s later; "
            "resumed to the same weights and scores"
        )


def the_counts_by_slurm(folder: Path) -> None:
    """Two nodes of SLURM score as one process does."""
    sweep = submit(folder, *FROZEN, f"output_dir={folder / 'slurm'}")
    assert sweep.wait(300) == 0, "see slurm.log"
    check_counts(folder / "one", folder / "slurm")
    print("SLURM: the same counts as one process")


def a_killed_node_of_slurm(folder: Path) -> None:
    """A node is reported down and killed: SLURM requeues the job, which resumes once the node is back."""
    output = folder / "requeued"
    sweep = submit(folder, *TINY, "trainer.max_epochs=8", f"output_dir={output}")
    until(lambda: epochs(output) >= 3)
    subprocess.run(["scontrol", "update", "nodename=trial2", "state=down", "reason=killed"], check=True)
    for process in [*Path("/proc").glob("[0-9]*")]:
        with suppress(OSError):  # it has ended meanwhile
            if b"SLURMD_NODENAME=trial2" in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
    os.kill(int(Path("/var/lib/slurm-trial/trial2.pid").read_text()), signal.SIGKILL)
    done = epochs(output)
    until(is_pending, 60)
    assert not list(output.glob("*/seed-1/metrics.json"))
    subprocess.run(["slurmd", "-N", "trial2"], check=True)
    assert sweep.wait(300) == 0, "see slurm.log"
    assert outcome(output) == outcome(folder / "whole")
    print(f"SLURM: a node killed after epoch {done}: requeued, resumed to the same weights and scores")


def is_pending() -> bool:
    """Whether SLURM's only job waits for nodes."""
    return "PENDING" in subprocess.check_output(["squeue", "--noheader", "--format=%T"], text=True)


def submit(folder: Path, *overrides: str) -> subprocess.Popen[bytes]:
    """Start a sweep of one job, which SLURM runs on both nodes."""
    launcher = ["hydra/launcher=slurm", "hydra.launcher.nodes=2", "hydra.launcher.tasks_per_node=1"]
    command = [sys.executable, ROOT / "run.py", "-m", *launcher, *TWO_NODES, *overrides, "seed=1"]
    # only SLURM knows the names of its nodes, so the processes need an address at which they meet
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    with (folder / "slurm.log").open("w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


@contextmanager
def slurm() -> Iterator[None]:
    """Context with a SLURM of two nodes, trial1 and trial2."""
    script = ROOT / "tests/campaigns/slurm/start.sh"
    subprocess.run([script], check=True, env=os.environ | {"NODES": "2"})
    try:
        yield
    finally:
        subprocess.run([script, "stop"], check=True)


def start(folder: Path, *overrides: str) -> list[subprocess.Popen[bytes]]:
    """Start torchrun on both nodes."""
    nodes = []
    for node in (0, 1):
        torchrun = ["-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={node}", "--nproc-per-node=1"]
        torchrun += [f"--master-addr={ADDRESSES[0]}", "--master-port=29517", str(ROOT / "run.py")]
        environment = os.environ | {"GLOO_SOCKET_IFNAME": f"card{node}", "OMP_NUM_THREADS": "1"}
        with (folder / f"node{node}.log").open("w") as log:
            nodes.append(
                subprocess.Popen(
                    [*inside(node), sys.executable, *torchrun, *TWO_NODES, *overrides],
                    stdout=log,
                    stderr=log,
                    env=environment,
                )
            )
    return nodes


def finish(*nodes: subprocess.Popen[bytes]) -> None:
    assert [node.wait(300) for node in nodes] == [0, 0], "see node0.log and node1.log"


def check_counts(one: Path, two: Path) -> dict[str, Any]:
    """Scores on test, which must be the same of one process and of two; so must those on dev."""
    by_one, by_two = metrics(one), metrics(two)
    assert (by_one["processes"], by_two["processes"]) == (1, 2)
    assert [by_one[split] for split in ("dev", "test")] == [by_two[split] for split in ("dev", "test")]
    test: dict[str, Any] = by_one["test"]
    assert test["predicted"] > 0
    return test


def metrics(output: Path) -> dict[str, Any]:
    (path,) = output.glob("*/seed-1/metrics.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def epochs(output: Path) -> int:
    """Number of epochs in the log of a run."""
    return sum(len(path.read_text().splitlines()) - 1 for path in output.glob("*/seed-1/log.csv"))


@contextmanager
def two_nodes() -> Iterator[None]:
    """Context with two network namespaces, ner0 and ner1, that reach each other over virtual network cards."""
    try:
        for node in (0, 1):
            ip("netns", "add", f"ner{node}")
        ip("link", "add", "card0", "netns", "ner0", "type", "veth", "peer", "name", "card1", "netns", "ner1")
        for node, address in enumerate(ADDRESSES):
            ip("-n", f"ner{node}", "address", "add", f"{address}/24", "dev", f"card{node}")
            for card in ("lo", f"card{node}"):
                ip("-n", f"ner{node}", "link", "set", card, "up")
        yield
    finally:
        for node in (0, 1):
            for process in processes_of(node):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", f"ner{node}"], check=False, capture_output=True)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def inside(node: int) -> list[str]:
    return ["ip", "netns", "exec", f"ner{node}"]


def processes_of(node: int) -> list[int]:
    """The processes on a node."""
    listed = subprocess.run(
        ["ip", "netns", "pids", f"ner{node}"], check=False, capture_output=True, text=True
    )
    return [int(process) for process in listed.stdout.split()]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/cluster").absolute())
