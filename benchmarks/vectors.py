"""Word vectors of a corpus from a large text file: our reader, at first and from its cache, and other readers.

    python benchmarks/vectors.py [--threads N] [--rounds N] [--output FILE]

A file of 400,000 words in GloVe's format is generated in a temporary folder; the corpus has 20,000 of them. All
return the same matrix, with a row for each of the corpus' words. Each reader runs in a process of its own, with its
library imported before; the file is in the page cache. The other readers hold the whole table in memory, by design.
"""

import argparse
import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timing
from tables import Result, at_most, spread, table

from ner_experiments.data.vectors import load_vectors

MEASURES = ("data.vectors",)

LINES, WORDS, WIDTH = 400_000, 20_000, 100
SLOW = 4.0
"""Seconds above which a reader is run once."""

Reader = Callable[[Path, list[str], Path], np.ndarray]


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    lines, words = (2000, 100) if arguments.tiny else (LINES, WORDS)
    names = timing.present(READERS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.txt"
        readers = measure(path, write_file(path, lines, words), names, arguments)
        size = path.stat().st_size
    about = {"lines": lines, "words": words, "width": WIDTH, "file_bytes": size}
    left_out = sorted(READERS.keys() - set(names))
    result = {"rounds": arguments.rounds, **about, "readers": readers, "left_out": left_out}
    timing.write("vectors", result, arguments.output)


def write_file(path: Path, lines: int, words: int) -> list[str]:
    """Write the file and return the corpus' words. Rows repeat every thousand lines, which does not affect parsers."""
    draws = np.random.default_rng(0).standard_normal((1000, WIDTH))
    rows = [" ".join(f"{number:.5f}" for number in row) for row in draws.tolist()]
    keys = ["".join(letters) for letters in itertools.product("etaoinsh", repeat=7)]
    random.Random(0).shuffle(keys)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{key} {rows[place % 1000]}\n" for place, key in enumerate(keys[:lines]))
    return random.Random(1).sample(keys[:lines], words)


def measure(path: Path, words: list[str], names: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in names}
    peaks = dict.fromkeys(names, 0)
    expected = None
    for number in range(arguments.rounds):
        for name in names:
            if seconds[name] and seconds[name][0] > SLOW:
                continue
            cache = path.with_name(f"cache-{number}")
            one = timing.alone(prepared, name, path, words, cache, threads=arguments.threads)
            seconds[name].append(one["seconds"])
            peaks[name] = max(peaks[name], one["bytes"])
            expected = one["result"] if expected is None else expected
            np.testing.assert_array_equal(one["result"], expected, err_msg=name)
    measured = {name: timing.summary(seconds[name]) | {"bytes": peaks[name]} for name in names}
    for name, times in measured.items():
        print(f"{name}: {times['median']:.3g} s, {times['bytes'] / 1e6:.0f} MB", flush=True)
    return measured


def prepared(name: str, path: Path, words: list[str], cache: Path) -> Callable[[], np.ndarray]:
    return partial(READERS[name](), path, words, cache)


def ours() -> Reader:
    def read(path: Path, words: list[str], cache: Path) -> np.ndarray:
        loaded = load_vectors(path, words, cache=cache)
        return loaded.matrix[loaded.rows]

    return read


def gensim() -> Reader:
    from gensim.models import KeyedVectors

    def read(path: Path, words: list[str], _: Path) -> np.ndarray:
        return KeyedVectors.load_word2vec_format(path, no_header=True)[words]

    return read


def loadtxt() -> Reader:
    def read(path: Path, words: list[str], _: Path) -> np.ndarray:
        with path.open(encoding="utf-8") as file:
            row_of = {line.partition(" ")[0]: row for row, line in enumerate(file)}
        table = np.loadtxt(path, np.float32, comments=None, usecols=range(1, WIDTH + 1))
        return table[[row_of[word] for word in words]]

    return read


def loop() -> Reader:
    def read(path: Path, words: list[str], _: Path) -> np.ndarray:
        table = {}
        with path.open(encoding="utf-8") as file:
            for line in file:
                word, *numbers = line.split()
                table[word] = np.array(numbers, dtype=np.float32)
        return np.stack([table[word] for word in words])

    return read


READERS: dict[str, Callable[[], Reader]] = {
    "ours, first": ours,
    "ours, from the cache": ours,
    "gensim": gensim,
    "numpy.loadtxt": loadtxt,
    "a loop into a dict": loop,
}


def tables(result: Result) -> list[str]:
    rows = [[name, spread(found), f"{found['bytes'] / 1e6:.0f}"] for name, found in result["readers"].items()]
    size = f"{result['lines']:,} x {result['width']}, {result['file_bytes'] / 1e6:.0f} MB"
    return [table(f"{size}; {result['words']:,} words of the corpus", "seconds", "MB", rows=rows)]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    cached = results["vectors"]["readers"]["ours, from the cache"]
    yield at_most("word vectors from the cache", 0.2, " s", cached["median"])
    yield at_most("word vectors from the cache, memory", 100, " MB", cached["bytes"] / 1e6)


if __name__ == "__main__":
    main()
