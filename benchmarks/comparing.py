"""`ner-experiments compare`: seconds, with the start of the process, and peak memory.

    python benchmarks/comparing.py [--threads N] [--rounds N] [--clock processor] [--output FILE]

Files are columns of random words, with a mention in 12 % of the tokens, as in the test set of CoNLL-2003, of which a
file of predictions gets nine in ten right. One comparison has two systems with five files each, of as many sentences as
that test set; the other ten systems with a file each, of 100,000 sentences.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import timing
from tables import Result, at_most, figure, spread, table

MEASURES = ("analysis.randomization", "comparison.aligning", "comparison.reading", "comparison.systems")

ROOT = timing.FOLDER.parent
SIZES = {"CoNLL-2003's test": (3453, 2, 5), "large": (100_000, 10, 1)}
"""Number of sentences, of systems, and of files of each."""
TOKENS = 13
TAGS = ["B-PER", "B-LOC", "B-ORG", "B-MISC"]


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=3))
    measured = {}
    for name, (sentences, systems, files) in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            size = sentences // 1000 if arguments.tiny else sentences
            command = written(Path(folder), size, systems, files)
            peaks: list[int] = []
            times = timing.measure({name: partial(run, command, peaks)}, arguments.rounds, slow=20)[name]
        measured[name] = {"sentences": size, "files": systems * files, "seconds": times, "bytes": max(peaks)}
        timing.say(name, {name: times})
    timing.write("comparing", {"rounds": arguments.rounds, "comparisons": measured}, arguments.output)


def written(folder: Path, sentences: int, systems: int, files: int) -> list[str]:
    """Write the files; return the command that compares them."""
    draws = random.Random(0)
    words = ["".join(draws.choices("etaoinshrdlu", k=draws.randint(2, 10))) for _ in range(20_000)]
    text = [draws.choices(words, k=TOKENS) for _ in range(sentences)]
    gold = [[draws.choice(TAGS) if draws.random() < 0.12 else "O" for _ in it] for it in text]

    def write(name: str, tags: list[list[str]]) -> None:
        pairs = (zip(*it, strict=True) for it in zip(text, tags, strict=True))
        blocks = ("\n".join(f"{word} {tag}" for word, tag in it) for it in pairs)
        (folder / name).write_text("\n\n".join(blocks) + "\n", encoding="utf-8")

    write("gold.conll", gold)
    for system in range(systems):
        for seed in range(files):
            found = [
                [tag if tag == "O" or draws.random() < 0.9 else draws.choice(["O", *TAGS]) for tag in it]
                for it in gold
            ]
            write(f"{system}-{seed}.conll", found)
    named = [f"{system}={folder}/{system}-*.conll" for system in range(systems)]
    return [sys.executable, "-m", "ner_experiments", "compare", "--gold", f"{folder}/gold.conll", *named]


def run(command: list[str], peaks: list[int]) -> None:
    """Run a comparison, and note its peak memory in bytes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
    peaks.append(1024 * usage.ru_maxrss)


def tables(result: Result) -> list[str]:
    rows = [
        [
            f"{it['files']} files of {it['sentences']:,} sentences",
            spread(it["seconds"]),
            figure(it["bytes"] / 1e6),
        ]
        for it in result["comparisons"].values()
    ]
    return [table("`compare`", "seconds", "MB", rows=rows)]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    for it, most, memory in zip(
        results["comparing"]["comparisons"].values(), (3, 60), (None, 2), strict=True
    ):
        what = f"`compare` of {it['files']} files of {it['sentences']:,} sentences"
        yield at_most(what, most, " s", it["seconds"]["median"])
        if memory:
            yield at_most(f"{what}, peak memory", memory, " GB", it["bytes"] / 1e9)


if __name__ == "__main__":
    main()
