"""Faults of whole runs: killed, terminated, out of memory, diverged, on a clock that jumps."""

import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import crafted
import killed
from faulty import AtLine, Clock, Impatient, MemoryLimit, SkewedClock, command, nothing, run, start, status
from places import ROOT
from resumed import RUN, SWEEP, lines_of, outcome, stamps
from waiting import is_running, until
from wandb_server import served

from ner_experiments.utils.locks import LOCK_FILE

KILLED = "its process is killed"
SHORT = [*RUN[1:], "trainer.max_epochs=2", "runtime.progress=false"]


def whole_run(folder: Path, *arguments: str) -> dict[str, Any]:
    assert run(*SHORT, *arguments, f"output_dir={folder / 'whole'}", log=folder / "log") == 0
    return outcome(folder / "whole")


def killed_sweeps(chance: random.Random, folder: Path) -> Iterator[str]:
    """A sweep of four runs that `kill -9` stops ten times at a random line ends as if never killed."""
    whole, log = folder / "whole", folder / "log"
    assert killed.run([*SWEEP, f"output_dir={whole}"], log) == 0
    lines = lines_of(log)
    assert killed.run([*SWEEP, f"output_dir={whole}"], log) == 0
    idle = lines_of(log)
    while True:
        output, finished = folder / "broken", dict[Path, int]()
        for _ in range(10):
            point = chance.randint(1, idle + (lines - idle) // 4)
            assert killed.run([*SWEEP, f"output_dir={output}"], log, point) in (-SIGKILL, 0)
            finished |= {path: stamp for path, stamp in stamps(output).items() if path not in finished}
        assert killed.run([*SWEEP, f"output_dir={output}"], log) == 0
        assert outcome(output) == outcome(whole)
        assert finished.items() <= stamps(output).items()
        shutil.rmtree(output)
        yield from ["resumes to the same weights"] * 10


def terminated(chance: random.Random, folder: Path) -> Iterator[str]:
    """A run that SIGTERM stops twice at a random line, with status 143, ends as if never interrupted."""
    right = whole_run(folder)
    while True:
        output = folder / "broken"
        for _ in range(2):
            fault = AtLine(chance.randint(100, 4_000), killed.COUNTED, SIGTERM)
            ended = run(*SHORT, f"output_dir={output}", fault=fault, log=folder / "log")
            # before there is anything to save, Python's own end of a process
            assert ended in (143, -SIGTERM), ended
        assert run(*SHORT, f"output_dir={output}", log=folder / "log") == 0
        assert outcome(output) == right
        shutil.rmtree(output)
        yield from ["status 143, resumes to the same weights"] * 2


def jumping_clocks(chance: random.Random, folder: Path) -> Iterator[str]:
    """time.time jumps by up to a day at every call: the same weights, checkpoints at the same steps."""
    right = whole_run(folder, "runtime.checkpoint_seconds=1000")
    while True:
        output = folder / "clock"
        arguments = [*SHORT, "runtime.checkpoint_seconds=1000", f"output_dir={output}"]
        assert run(*arguments, fault=Clock(chance.getrandbits(32)), log=folder / "log") == 0
        assert outcome(output) == right
        ((metrics),) = output.glob("*/seed-1/metrics.json")
        assert 0 < json.loads(metrics.read_text())["seconds"] < 120
        shutil.rmtree(output)
        yield "the same weights, seconds as they were"


def skewed_clocks(chance: random.Random, folder: Path) -> Iterator[str]:
    """Hosts with clocks up to two days apart take a run up in turn: the same weights, and `watch` reads it."""
    right = whole_run(folder)
    while True:
        output, log = folder / "broken", folder / "log"
        for _ in range(2):
            skew = chance.uniform(-86_400, 86_400)
            fault = SkewedClock(skew, AtLine(chance.randint(100, 4_000), killed.COUNTED))
            assert run(*SHORT, f"output_dir={output}", fault=fault, log=log) == -SIGKILL
            for path in output.rglob("*"):
                status_ = path.stat()
                os.utime(path, (status_.st_atime + skew, status_.st_mtime + skew))
            if output.exists():
                crafted.check(["watch", "--once", f"output_dir={output}"], output)
        fault = SkewedClock(chance.uniform(-86_400, 86_400), nothing)
        assert run(*SHORT, f"output_dir={output}", fault=fault, log=log) == 0
        assert outcome(output) == right
        ((metrics),) = output.glob("*/seed-1/metrics.json")
        assert 0 < json.loads(metrics.read_text())["seconds"] < 120
        shutil.rmtree(output)
        yield "the same weights, seconds as they were"


def no_numbers(chance: random.Random, folder: Path) -> Iterator[str]:
    """A learning rate that soon makes the loss of one run of a sweep NaN or infinite: only that run fails."""
    while True:
        output, log = folder / "o", folder / "log"
        rate = chance.choice(["1e30", "3e28", "1e20"])
        arguments = ["-m", *SHORT, f"optimizer.lr={rate},0.01", f"seed={chance.randrange(100)}"]
        try:
            ended = run(*arguments, f"output_dir={output}", log=log)
            assert ended == 1, ended
            text = log.read_text()
            assert re.search(r"the loss is (nan|-?inf) in epoch \d+, step \d+, on sentences \d+", text), text
            assert len(list(output.rglob("metrics.json"))) == 1
        finally:
            log.unlink()
        shutil.rmtree(output)
        yield "named with its sentences, the other run finished"


def no_memory(chance: random.Random, folder: Path) -> Iterator[str]:
    """A job of a sweep that allocates terabytes, or is killed as by the kernel, is named; the others finish."""
    while True:
        log, output = folder / "log", folder / "o"
        sweep = ["-m", *SHORT, "hydra/launcher=local", "hydra.launcher.jobs=2", f"output_dir={output}"]
        if killing := chance.random() < 0.5:
            process = start(command, *sweep, "trainer.max_epochs=20", "seed=1,2", log=log)
            os.kill(until(partial(job_that_trains, output)), SIGKILL)
            reason = "worker killed by SIGKILL, possibly out of memory"
        else:
            process = start(command, *sweep, "model.hidden_size=8,400000", log=log)
            reason = "you tried to allocate"
        assert status(process) == 1
        assert reason in log.read_text()
        assert "1 of 2 jobs failed" in log.read_text()
        assert len(list(output.glob("*/seed-*/metrics.json"))) == 1
        log.unlink()
        shutil.rmtree(output)
        yield "killed, named, the other finished" if killing else "refused, named, the other finished"


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def job_that_trains(output: Path) -> int | None:
    """Process of the first job of a sweep that has written a checkpoint: it holds the lock of the run's folder."""
    locks = (path.with_name(LOCK_FILE) for path in output.glob("*/seed-*/last.ckpt"))
    return next((int(lock.read_text().split()[0]) for lock in locks), None)


def column_files(folder: Path, chance: random.Random) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    names = ["Ada", "Bob", "Cid", "Dee"]
    paths = {}
    for split in ("train", "dev", "test"):
        blocks = [f"{chance.choice(names)} B-PER\nsees O\n{chance.choice(names)} B-PER\n" for _ in range(30)]
        paths[split] = folder / f"{split}.conll"
        paths[split].write_text("\n".join(blocks))
    return paths


def changed_data(chance: random.Random, folder: Path) -> Iterator[str]:
    """A file with a word changed before the second half of a sweep is refused, with both checksums."""
    paths = column_files(folder / "data", chance)
    files = [f"data.files.{split}={path}" for split, path in paths.items()]
    while True:
        log, output = folder / "log", folder / "o"
        arguments = ["data=conll", "data.name=conll", *SHORT, *files, f"output_dir={output}"]
        arguments = [item for item in arguments if not item.startswith("data.sentences")]
        assert run(*arguments, "seed=1", log=log) == 0
        victim = paths[chance.choice(list(paths))]
        before = victim.read_text()
        words = before.split("sees")
        place = chance.randrange(1, len(words))
        victim.write_text("sees".join(words[:place]) + "saw" + "sees".join(words[place:]))
        assert run("-m", *arguments, "seed=1", "model.hidden_size=8,9", log=log) == 1
        said = re.findall(r"their checksum is (\w+), and was (\w+) for", log.read_text())
        (was,) = {json.loads(path.read_text())["checksum"] for path in output.rglob("metrics.json")}
        assert len(said) == 2 * 2  # when each job ends, and in the summary
        assert {old for _, old in said} == {was} != {now for now, _ in said}
        victim.write_text(before)
        assert run("-m", *arguments, "seed=1,2", log=log) == 0
        assert len(list(output.rglob("metrics.json"))) == 2
        log.unlink()
        shutil.rmtree(output)
        yield f"{victim.name} refused with both checksums"


def wandb_troubles(chance: random.Random, folder: Path) -> Iterator[str]:
    """A W&B server that never answers or stops answering during a run, and a W&B process that is killed."""
    for name in [name for name in os.environ if name.startswith("WANDB")]:
        del os.environ[name]
    os.environ |= {"WANDB_API_KEY": "0" * 40, "HOME": str(folder), "no_proxy": "127.0.0.1"}
    troubles = {"a server that never answers": 0, "one that stops answering": 1, KILLED: math.inf}
    for number, (trouble, seconds) in enumerate(itertools.cycle(troubles.items())):
        output = folder / str(number)
        with served(seconds) as server:
            arguments = [*SHORT, "trainer.max_epochs=8", "logger=wandb", f"output_dir={output}"]
            process = start(wandb_command, server.url, *arguments, fault=Impatient(), log=folder / "log")
            if trouble == KILLED:
                until(partial(exists, output, "*/seed-1/log.csv"))
                os.kill(until(partial(service_of, process.pid)), SIGKILL)
            assert status(process, 90) == 0
        assert len(list(output.glob("*/seed-1/metrics.json"))) == 1
        assert list(output.glob("*/seed-1/wandb/*run*/*.wandb"))
        yield trouble


def wandb_command(url: str, *arguments: str) -> int:
    os.environ |= {"WANDB_BASE_URL": url, "WANDB_API_KEY": "0" * 40, "no_proxy": "127.0.0.1"}
    os.environ.pop("WANDB_MODE", None)
    return command(*arguments)


def service_of(process: int) -> int | None:
    for child in children(process):
        with suppress(OSError):  # it has ended meanwhile
            if "wandb-core" in Path(f"/proc/{child}/cmdline").read_text():
                return child
    return None


def processes_of_one_model(chance: random.Random, folder: Path) -> Iterator[str]:
    """One of two processes that train a model is killed or hangs: an error within the time limit, no process left."""
    for number in range(10**6):
        output, hangs, first = folder / str(number), number % 2 == 1, chance.random() < 0.5
        arguments = ["trainer=ddp", *SHORT, "data.max_sentences=300", "trainer.max_epochs=500"]
        arguments += ["runtime.ddp_seconds=30", f"output_dir={output}"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen([sys.executable, ROOT / "run.py", *arguments], stdout=log, stderr=log)
        until(partial(exists, output, "*/seed-1/last.ckpt"))
        (follower,) = children(process.pid)
        victim, other = (process.pid, follower) if first and not hangs else (follower, process.pid)
        os.kill(victim, signal.SIGSTOP if hangs else SIGKILL)
        assert process.wait(90) != 0
        until(partial(have_ended, victim, other), 60)
        assert not list(output.rglob("metrics.json"))
        which = "first" if victim == process.pid else "second"
        yield f"the {which} {'hangs' if hangs else 'is killed'}: an error, none left"


def exists(output: Path, pattern: str) -> bool:
    return any(output.glob(pattern))


def have_ended(*processes: int) -> bool:
    return not any(map(is_running, processes))


def process_groups(chance: random.Random, folder: Path) -> Iterator[str]:
    """A sweep whose whole process group, or whose first process alone, gets a signal: none is left, and it resumes."""
    whole, log = folder / "whole", folder / "log"
    assert killed.run([*SWEEP, f"output_dir={whole}"], log) == 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a campaign in a script's background ignores it
    ways = [(signal.SIGINT, True), (SIGTERM, True), (SIGKILL, True), (SIGKILL, False)]
    for number in range(10**6):
        output, (how, group) = folder / "broken", ways[number % len(ways)]
        sweep = [*SWEEP[1:], "hydra.launcher.jobs=2", f"output_dir={output}"]
        command = [sys.executable, ROOT / "run.py", *sweep]
        with log.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        until(partial(exists, output, "*/seed-*/last.ckpt"), 120)
        (os.killpg if group else os.kill)(process.pid, how)
        assert process.wait(90) != 0, log.read_text()
        until(lambda session=process.pid: not in_session(session), 60)
        assert killed.run([*SWEEP, f"output_dir={output}"], log) == 0
        assert outcome(output) == outcome(whole)
        shutil.rmtree(output)
        yield f"{how.name} to {'the group' if group else 'the first process'}: none left, the same weights"


def in_session(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            state, _, _, its_session = path.read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found.append(int(path.parent.name))
    return found


def memory_limits(chance: random.Random, folder: Path) -> Iterator[str]:
    """An address space limited as by `ulimit -v`: a failed run counts for nothing, and ends as any other without it."""
    right = whole_run(folder)
    while True:
        output, log = folder / "broken", folder / "log"
        fault = MemoryLimit(chance.choice([1, 2, 5, 10, 20, 50, 100, 200]) * 2**20)
        ended = run(*SHORT, f"output_dir={output}", fault=fault, log=log)
        if ended:
            assert not list(output.rglob("metrics.json"))
        assert run(*SHORT, f"output_dir={output}", log=log) == 0
        assert outcome(output) == right
        shutil.rmtree(output)
        yield "failed, resumes to the same weights" if ended else "had memory enough"
