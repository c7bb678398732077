"""Faults of single files: downloads, caches, checkpoints and results, truncated or damaged."""

import hashlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL, SIGTERM, SIGXFSZ
from typing import Any

import crafted
import killed
import numba
import numpy as np
import torch
from faulty import AtByte, AtLine, Fault, flipped, run, start, status
from local_server import Quiet, served
from resumed import RUN
from tiny_bert import fitted, random_text, save

from ner_experiments.data.download import download
from ner_experiments.data.frozen import FrozenPieces
from ner_experiments.data.vectors import load_vectors
from ner_experiments.modules.kernels.compilation import compiled
from ner_experiments.runs import artifacts
from ner_experiments.training.checkpoints import resumable_checkpoint
from ner_experiments.utils.files import remove_partial_files

CORPUS = b"Ada B-PER\nlaughs O\n\n" * 20_000
CHECKSUM = hashlib.sha256(CORPUS).hexdigest()
KILLED = (-SIGKILL, -SIGXFSZ)


class Owner(Quiet):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CORPUS)))
        self.end_headers()
        self.wfile.write(CORPUS)


def fetch(url: str, folder: Path) -> None:
    download({"train": f"{url}/train"}, {"train": CHECKSUM}, {"train": len(CORPUS)}, folder)


def killed_downloads(chance: random.Random, folder: Path) -> Iterator[str]:
    """A download killed at a byte of the file leaves nothing behind; repeated, it leaves the whole file only."""
    with served(Owner) as url:
        while True:
            there = folder / "data"
            fault = AtByte("train", chance.randrange(len(CORPUS)))
            assert status(start(fetch, url, there, fault=fault, log=folder / "log")) in KILLED
            assert not (there / "train").exists()
            assert status(start(fetch, url, there, log=folder / "log")) == 0
            assert [path.name for path in there.iterdir()] == ["train"]
            assert (there / "train").read_bytes() == CORPUS
            shutil.rmtree(there)
            yield "fetched again"


WORDS = [f"word{number}" for number in range(300)]


def look_up(file: Path, cache: Path) -> None:
    load_vectors(file, WORDS, cache=cache)


def vector_file(folder: Path) -> Path:
    path = folder / "vectors.txt"
    rows = np.random.default_rng(1).normal(size=(len(WORDS), 50))
    path.write_text(
        "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, rows, strict=True))
    )
    return path


def same(found: Any, right: Any) -> bool:
    return (
        np.array_equal(found.matrix, right.matrix)
        and np.array_equal(found.rows, right.rows)
        and (found.keys, found.steps, found.checksum) == (right.keys, right.steps, right.checksum)
    )


def killed_vector_caches(chance: random.Random, folder: Path) -> Iterator[str]:
    """A process killed at a byte of the cache's files or at a line of code; sometimes a second one fills it too."""
    file = vector_file(folder)
    right = load_vectors(file, WORDS, cache=folder / "right")
    while True:
        cache = folder / "cache"
        fault: Fault = AtLine(chance.randint(1, 2_500), ("data/vectors", "data/cache_files", "utils/files"))
        if chance.random() < 0.6:
            fault = AtByte("*.vectors.npz", chance.randrange(64_000))
        processes = [start(look_up, file, cache, fault=fault, log=folder / "log")]
        if chance.random() < 0.3:
            processes.append(start(look_up, file, cache, log=folder / "log"))
        assert status(processes[0]) in (*KILLED, 0)
        assert all(status(process) == 0 for process in processes[1:])
        assert same(load_vectors(file, WORDS, cache=cache), right)
        remove_partial_files(cache)  # as whatever is made there next does
        assert [path.suffix for path in cache.iterdir()] == [".npz"]
        shutil.rmtree(cache)
        yield "made again" if len(processes) == 1 else "made by the other"


def damaged_vector_caches(chance: random.Random, folder: Path) -> Iterator[str]:
    """The file of the cache with a flipped bit, or truncated."""
    file = vector_file(folder)
    cache = folder / "cache"
    right = load_vectors(file, WORDS, cache=folder / "right")
    while True:
        load_vectors(file, WORDS, cache=cache)
        (victim,) = cache.iterdir()
        victim.write_bytes(flipped(victim.read_bytes(), chance))
        assert same(load_vectors(file, WORDS, cache=cache), right)
        yield "made again"


def kernel() -> Any:
    """A kernel as a new process has it: with nothing compiled."""

    def twice(x: int) -> int:
        return 2 * x

    return compiled(twice)


def damaged_kernel_caches(chance: random.Random, folder: Path) -> Iterator[str]:
    """One of the files in which numba caches a kernel with a flipped bit, or truncated."""
    cache = folder / "cache"
    numba.core.config.CACHE_DIR = str(cache)
    try:
        while True:
            assert kernel()(21) == 42
            victim = chance.choice(sorted(cache.rglob("*.nb[ic]")))
            victim.write_bytes(flipped(victim.read_bytes(), chance))
            second, third = kernel(), kernel()
            assert second(21) == third(21) == 42
            assert third.stats.cache_misses.total() == 0
            shutil.rmtree(cache)
            again = second.stats.cache_misses.total() == 1
            yield f"{victim.suffix}: compiled again" if again else f"{victim.suffix}: a byte without meaning"
    finally:
        numba.core.config.CACHE_DIR = ""


def text_of_bert() -> Any:
    return random_text(*[5] * 20)


def encode(bert: Path, cache: Path) -> np.ndarray:
    text = text_of_bert()
    input = FrozenPieces(path=str(bert), max_length=16, overlap=4, cache=str(cache))
    return fitted(input, text).encode(text).to(torch.device("cpu")).table


def encode_only(bert: Path, cache: Path) -> None:
    encode(bert, cache)


def killed_bert_caches(chance: random.Random, folder: Path) -> Iterator[str]:
    """A process killed at a line of the code that fills the cache, or at a byte of its file."""
    bert = save(folder / "bert")
    right = np.array(encode(bert, folder / "right"))
    size = right.nbytes + 128
    while True:
        cache = folder / "cache"
        fault: Fault = AtLine(chance.randint(1, 110), ("data/frozen", "data/cache_files", "utils/files"))
        if chance.random() < 0.3:
            fault = AtByte("*.bert.npy", chance.randrange(size))
        processes = [start(encode_only, bert, cache, fault=fault, log=folder / "log")]
        if chance.random() < 0.3:
            processes.append(start(encode_only, bert, cache, log=folder / "log"))
        assert status(processes[0]) in (*KILLED, 0)
        assert all(status(process) == 0 for process in processes[1:])
        assert np.array_equal(encode(bert, cache), right)
        remove_partial_files(cache)
        assert len(list(cache.iterdir())) == 1
        shutil.rmtree(cache)
        yield "made again" if len(processes) == 1 else "made by the other"


def damaged_bert_caches(chance: random.Random, folder: Path) -> Iterator[str]:
    """Damage anywhere in the file, or every other time in its header, which describes the rest."""
    bert = save(folder / "bert")
    cache = folder / "cache"
    right = np.array(encode(bert, cache))
    (file,) = cache.iterdir()
    while True:
        content = file.read_bytes()
        header = chance.random() < 0.5
        file.write_bytes(
            flipped(content[:128], chance) + content[128:] if header else flipped(content, chance)
        )
        assert np.array_equal(encode(bert, cache), right)
        yield "made again"


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


def damaged_checkpoints(chance: random.Random, folder: Path) -> Iterator[str]:
    """A damaged checkpoint is refused by name, or loads the same content: some bytes of a zip file are unused."""
    fault = AtLine(1_000, killed.COUNTED, SIGTERM)
    assert run(*RUN[1:], f"output_dir={folder}", fault=fault, log=folder / "log") == 143
    (checkpoint,) = folder.glob("*/seed-1/last.ckpt")
    whole = checkpoint.read_bytes()
    right = torch.load(checkpoint, weights_only=True)
    while True:
        checkpoint.write_bytes(flipped(whole, chance))
        if resumable_checkpoint(checkpoint.parent) is None:
            yield "refused"
        else:
            assert alike(torch.load(checkpoint, weights_only=True), right)
            yield "a byte without meaning"


def damaged_results(chance: random.Random, folder: Path) -> Iterator[str]:
    """metrics.json or a file beside it with a flipped bit or truncated: refused by name."""
    assert run(*RUN[1:], "audit.test_every_epoch=true", f"output_dir={folder}", log=folder / "log") == 0
    (metrics,) = folder.glob("*/seed-1/metrics.json")
    right = artifacts.read(metrics)
    files = [metrics, *(metrics.parent / name for name in right["files"])]
    assert len(files) == 10
    while True:
        victim = chance.choice(files)
        whole = victim.read_bytes()
        victim.write_bytes(flipped(whole, chance))
        said = complaint(metrics)
        if not said:  # a space that JSON does not need
            assert victim == metrics
            assert json.loads(victim.read_text()) == right
        victim.write_bytes(whole)
        assert str(victim) in said or not said
        yield f"{victim.name} refused" if said else "a byte without meaning"


def complaint(metrics: Path) -> str:
    try:
        artifacts.verify(metrics.parent, artifacts.read(metrics))
    except artifacts.DamagedError as error:
        return str(error)
    return ""


def crafted_runs(chance: random.Random, folder: Path) -> Iterator[str]:
    """A run's file with another value and checksums that fit: a result, or a line with its place; nothing elsewhere."""
    tiny = [*RUN[1:], "trainer.max_epochs=1", "data.sentences={train: 30, dev: 10, test: 10}"]
    assert run(*tiny, f"output_dir={folder / 'whole'}", log=folder / "log") == 0
    (whole,) = folder.glob("whole/*/seed-1")
    text = folder / "text"
    text.write_text("Glimsen works for Stavstad .\n")
    while True:
        there = crafted.copy_of(whole, folder / "copy")
        name = crafted.craft(there, chance)
        output = there.parents[1]
        outside = crafted.content(folder, besides=output)
        for number, command in enumerate(
            (
                ["predict", str(there), str(text), f"--output={chance.choice(['jsonl', 'conll', 'html'])}"],
                ["errors", str(there), *chance.choice([[], ["--json"]])],
                ["cases", str(there), str(whole)],
                ["watch", "--once", f"output_dir={output}"],
                ["report", f"--runs={output}", f"--results={folder / 'none'}"],
                ["export", str(there), "--format=torch", "--sentences=2"],
            )
        ):
            if number < 5 or chance.random() < 0.2:
                crafted.check(command, output)
        assert crafted.content(folder, besides=output) == outside
        yield f"{name}: a result, or a line with its place"
