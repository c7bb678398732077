"""Disk faults under whole runs: full, read-only, or failing at a byte of a file being written."""

import errno
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, SIGXFSZ

import killed
from faults_runs import SHORT, whole_run
from faulty import AtByte, AtLine, WithoutFlock, nothing, run
from resumed import outcome

WRITTEN = {
    **{"last.ckpt": 400_000, "model.safetensors": 100_000, "encoder.json": 8_000, "metrics.json": 3_000},
    **{"config.yaml": 1_400, "log.csv": 250, "dev.conll": 9_000, "test.conll": 9_000},
    "test.probabilities": 1_000,
}
"""Files of a run, and their approximate sizes in bytes."""


class Skipped(Exception):
    """Raised for a fault that cannot be tried on this machine."""


def killed_writes(chance: random.Random, folder: Path) -> Iterator[str]:
    """A run that the kernel kills three times at a byte of a file being written ends as if never killed."""
    right = whole_run(folder)
    while True:
        output, names = folder / "broken", []
        for _ in range(3):
            name = chance.choice(["last.ckpt", "metrics.json", *WRITTEN])
            fault = AtByte(name, chance.randrange(WRITTEN[name]), chance.randrange(3) * (name == "last.ckpt"))
            ended = run(*SHORT, f"output_dir={output}", fault=fault, log=folder / "log")
            assert ended in (-SIGXFSZ, 0), ended
            names.append(name if ended else "(too late)")
        assert run(*SHORT, f"output_dir={output}", log=folder / "log") == 0
        assert outcome(output) == right
        assert not list(output.rglob("*.part"))
        shutil.rmtree(output)
        yield from names


@contextmanager
def mounted(folder: Path, kilobytes: int) -> Iterator[Path]:
    place = folder / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise Skipped(f"no file system may be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def full_disks(chance: random.Random, folder: Path) -> Iterator[str]:
    """A nearly full disk: an error and status 1. With more space, the run ends as on any other disk."""
    right = whole_run(folder)
    with mounted(folder, 2_000) as disk:
        while True:
            free = chance.choice([4, 8, 16, chance.randrange(4, 700), chance.randrange(4, 700)])
            (disk / "ballast").write_bytes(bytes(1024 * (2_000 - free)))
            log = folder / "log"
            log.unlink()
            ended = run(*SHORT, f"output_dir={disk / 'o'}", log=log)
            if ended:
                assert ended == 1
                assert re.search(r"No space left on device: '.*/o/", log.read_text()), log.read_text()
                assert not list(disk.rglob("metrics.json"))
            (disk / "ballast").unlink()
            assert run(*SHORT, f"output_dir={disk / 'o'}", log=log) == 0
            assert outcome(disk / "o") == right
            shutil.rmtree(disk / "o")
            yield "named, resumes to the same weights" if ended else "had space enough"


def failed_writes(chance: random.Random, folder: Path) -> Iterator[str]:
    """A write that fails at a byte of a file: an error that names the file, and status 1; a second try succeeds."""
    right = whole_run(folder)
    while True:
        output, log = folder / "broken", folder / "log"
        name = chance.choice(list(WRITTEN))
        log.unlink()
        fault = AtByte(name, chance.randrange(WRITTEN[name]), deadly=False)
        assert run(*SHORT, f"output_dir={output}", fault=fault, log=log) == 1
        assert re.search(rf"File too large: '.*/{name}'", log.read_text()), log.read_text()
        assert not list(output.rglob("metrics.json"))
        assert run(*SHORT, f"output_dir={output}", log=log) == 0
        assert outcome(output) == right
        shutil.rmtree(output)
        yield name


def read_only(chance: random.Random, folder: Path) -> Iterator[str]:
    """A read-only output folder: finished runs in it are shown, unchanged; for others an error and status 1."""
    with mounted(folder, 4_000) as disk:
        for sweep in ([], ["-m"]):
            assert run(*sweep, *SHORT, f"output_dir={disk / 'o'}", log=folder / "log") == 0
        right = outcome(disk / "o")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        while True:
            log = folder / "log"
            log.unlink()
            seed, sweep = chance.choice([1, 2]), chance.choice([[], ["-m"]])
            status = run(*sweep, *SHORT, f"seed={seed}", f"output_dir={disk / 'o'}", log=log)
            said = log.read_text()
            assert outcome(disk / "o") == right
            assert "Traceback" not in said
            if seed == 1:
                assert status == 0, said
                assert ("finished before" if sweep else "its result is reused") in said
            else:
                assert status == 1
                assert re.search(r"Read-only file system: '.*/o/", said), said
            yield "finished there: shown" if seed == 1 else "not begun: named"


def without_flock(chance: random.Random, folder: Path) -> Iterator[str]:
    """A file system without flock: a run killed there is taken over, says so, and ends as on any other."""
    right = whole_run(folder)
    while True:
        output, log = folder / "broken", folder / "log"
        log.unlink()
        number = chance.choice([errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
        deadly = AtLine(chance.randint(200, 3_000), killed.COUNTED)
        assert run(*SHORT, f"output_dir={output}", fault=WithoutFlock(number, deadly), log=log) in (
            -SIGKILL,
            0,
        )
        assert run(*SHORT, f"output_dir={output}", fault=WithoutFlock(number, nothing), log=log) == 0
        assert "this file system does not support locks" in log.read_text()
        assert outcome(output) == right
        assert not list(output.rglob(".held"))
        shutil.rmtree(output)
        yield f"{errno.errorcode[number]}: named, resumes to the same weights"
