"""Raw text tagged by this suite's `predict`, by spaCy and by flair: megabytes and tokens per second.

    python benchmarks/tagging.py [--spacy-python PYTHON] [--flair-python PYTHON] [--megabytes N] [--peer-megabytes N]

The text is generated: lines of 5 to 20 words from 50,000 forms with Zipfian frequencies. The taggers are trained for
one epoch on 2,000 generated sentences: ours and flair's the BiLSTM-CRF of end_to_end.py, spaCy's the named-entity
recognizer of `spacy.blank("en")` with its default sizes, a convolutional network with transitions. Ours is the whole
command, `ner-experiments predict RUN FILE --lines --output jsonl`, start-up included; the others' seconds begin when
the tagger is loaded, and include reading the lines, tokenization, tagging, and writing the mentions as JSON Lines.
Ours tags all of the text, and then a part of it in turn with the others. A peer (the Python of an environment that
has it) is left out if it is not given.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import timing
from drivers import corpus
from end_to_end import MODEL

DRIVERS = Path(__file__).parent / "drivers"
ROOT = timing.FOLDER.parent
FORMS = 50_000


def main() -> None:
    parser = timing.options(__doc__, rounds=3)
    parser.add_argument("--spacy-python")
    parser.add_argument("--flair-python")
    parser.add_argument("--megabytes", type=float, default=100, help="size of the text")
    parser.add_argument(
        "--peer-megabytes", type=float, default=2, help="size of the part that all tag in turn"
    )
    arguments = timing.begin(parser)
    sizes = [0.02, 0.01] if arguments.tiny else [arguments.megabytes, arguments.peer_megabytes]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = {"sentences": 8, "forms": 60} if arguments.tiny else {"sentences": 2000, "forms": 5000}
        corpus.write(folder, dim=MODEL["word_dim"], **data)
        settings = MODEL | {"epochs": 1, "threads": arguments.threads}
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        texts = {size: write_text(folder / f"{size:g}.txt", int(1e6 * size)) for size in sizes}
        written = [{"megabytes": size_of(folder, size), "words": words} for size, words in texts.items()]
        run = train_ours(folder, arguments.threads)
        commands = peers(arguments)
        whole = tag_ours(run, folder, sizes[0], arguments.threads)
        print(f"ours, {sizes[0]:g} MB: {whole}", flush=True)
        outcomes: dict[str, list[dict[str, Any]]] = {"ours": [], **{peer: [] for peer in commands}}
        for _ in range(arguments.rounds):
            outcomes["ours"].append(tag_ours(run, folder, sizes[1], arguments.threads))
            for peer, command in commands.items():
                outcomes[peer].append(tag_with(command, folder, f"{sizes[1]:g}.txt", arguments.threads))
            print({peer: each[-1]["seconds"] for peer, each in outcomes.items()}, flush=True)
    result = {
        "rounds": arguments.rounds,
        "text": written,
        "whole": whole,
        "contestants": {peer: summarized(each) for peer, each in outcomes.items()},
        "left_out": [peer for peer in ("spaCy", "flair") if peer not in commands],
    }
    timing.write("tagging", result, arguments.output)


def peers(arguments: argparse.Namespace) -> dict[str, list[str]]:
    pythons = {"spaCy": arguments.spacy_python, "flair": arguments.flair_python}
    return {
        name: [python, str(DRIVERS / f"tag_{name.lower()}.py")] for name, python in pythons.items() if python
    }


def write_text(path: Path, size: int) -> int:
    """Write about `size` bytes of text; returns the number of words."""
    rng = np.random.default_rng(0)
    forms = np.array(corpus.vocabulary(rng, FORMS))
    weights = 1 / (np.arange(FORMS) + 3)
    weights /= weights.sum()
    written = words = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            lengths = rng.integers(5, 21, size=1000)
            drawn = forms[rng.choice(FORMS, size=lengths.sum(), p=weights)]
            lines = [" ".join(part) + " .\n" for part in np.split(drawn, lengths.cumsum()[:-1])]
            written += file.write("".join(lines))
            words += int(lengths.sum()) + len(lines)
    return words


def train_ours(folder: Path, threads: int) -> Path:
    """The folder of a trained run."""
    command = [
        *("run.py", "data=conll", "data.name=made", f"data.folder={folder}", "data.scheme=bioes"),
        *(
            "data.files={train: train.conll, dev: decode.conll}",
            "words=vectors",
            "chars=lstm",
            "model=bilstm",
        ),
        *(f"words.input.path={folder / 'vectors.txt'}", f"chars.module.dim={MODEL['char_dim']}"),
        *(f"chars.module.hidden_size={MODEL['char_hidden']}", f"model.hidden_size={MODEL['hidden']}"),
        *("trainer.max_epochs=1", f"output_dir={folder / 'outputs'}", f"runtime.threads={threads}"),
        "runtime.accelerator=cpu",
    ]
    called([sys.executable, *command], threads)
    (metrics,) = (folder / "outputs").glob("*/*/metrics.json")
    return metrics.parent


def tag_ours(run: Path, folder: Path, size: float, threads: int) -> dict[str, Any]:
    tagged = folder / "ours.jsonl"
    command = [
        sys.executable,
        "-m",
        "ner_experiments",
        "predict",
        str(run),
        str(folder / f"{size:g}.txt"),
        "--lines",
    ]
    started = timing.now()
    with tagged.open("w", encoding="utf-8") as file:
        called([*command, "--output", "jsonl"], threads, file)
    seconds = timing.now() - started
    return {"seconds": seconds, "megabytes_per_second": size_of(folder, size) / seconds}


def size_of(folder: Path, size: float) -> float:
    return (folder / f"{size:g}.txt").stat().st_size / 1e6


def tag_with(command: list[str], folder: Path, text: str, threads: int) -> dict[str, Any]:
    output = folder / "outcome.json"
    called([*command, str(folder), str(output), text], threads)
    outcome = json.loads(output.read_text(encoding="utf-8"))
    return outcome | {"megabytes_per_second": (folder / text).stat().st_size / 1e6 / outcome["seconds"]}


def called(command: list[str], threads: int, output: Any = subprocess.DEVNULL) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    if command[0] == sys.executable:
        environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def summarized(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    rates = timing.summary([each["megabytes_per_second"] for each in outcomes])
    versions = {each["version"] for each in outcomes if "version" in each}
    return {"megabytes_per_second": rates, **({"version": versions.pop()} if versions else {})}


if __name__ == "__main__":
    main()
