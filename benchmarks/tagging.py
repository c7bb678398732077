"""Raw text tagged by this suite's `predict`, by spaCy and by flair: megabytes and words per second.

    python benchmarks/tagging.py [--spacy-python PYTHON] [--flair-python PYTHON] [--megabytes N] [--peer-megabytes N]

The text is generated: lines of 5 to 20 words from 50,000 forms with Zipfian frequencies. The taggers are trained for
one epoch on 2,000 generated sentences: ours and flair's the BiLSTM-CRF of end_to_end.py, spaCy's the named-entity
recognizer of `spacy.blank("en")` with its default sizes, a convolutional network with transitions. Ours is the whole
command, `ner-experiments predict RUN FILE --lines --output jsonl`, start-up included; the others' seconds begin when
the tagger is loaded, and include reading the lines, tokenization, tagging, and writing the mentions as JSON Lines.
Ours tags all of the text, and then a part of it in turn with the others. A peer (the Python of an environment that
has it) is left out if it is not given.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import timing
from drivers import corpus
from end_to_end import DATA, DRIVERS, MODEL, TINY, Contestant, run
from tables import Result, figure, spread, table

MEASURES = ("data.tokenize", "data.word_tokens", "predict.tagger")

FORMS = 50_000


def main() -> None:
    parser = timing.options(__doc__, rounds=3)
    parser.add_argument("--spacy-python", help="the Python of an environment with spaCy")
    parser.add_argument("--flair-python", help="the Python of an environment with flair")
    parser.add_argument("--megabytes", type=float, default=100, help="size of the text")
    parser.add_argument(
        "--peer-megabytes", type=float, default=2, help="size of the part that all tag in turn"
    )
    arguments = timing.begin(parser)
    if arguments.clock == "processor":
        parser.error("the drivers measure by the wall clock")
    sizes = (0.02, 0.01) if arguments.tiny else (arguments.megabytes, arguments.peer_megabytes)
    pythons = {"ours": sys.executable, "spaCy": arguments.spacy_python, "flair": arguments.flair_python}
    installed = {name: python for name, python in pythons.items() if python}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus.write(folder, **(TINY["data"] if arguments.tiny else DATA), dim=MODEL["word_dim"])
        settings = {**MODEL, "epochs": 1, "threads": arguments.threads}
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        whole, part = (
            write_text(folder / text, size) for text, size in zip(("whole", "part"), sizes, strict=True)
        )

        def tag(name: str, text: str) -> dict[str, Any]:
            driver = str(DRIVERS / f"tag_{name.lower()}.py")
            outcome = run(Contestant(name, installed[name], [driver, text]), folder, arguments.threads)
            print(f"{name}, {text}: {outcome['seconds']:.1f} s", flush=True)
            return outcome

        whole["seconds"] = tag("ours", "whole")["seconds"]
        rounds = [{name: tag(name, "part") for name in installed} for _ in range(arguments.rounds)]
    result = {
        "rounds": arguments.rounds,
        "whole": whole,
        "part": part,
        "contestants": {
            name: {
                "seconds": timing.summary([outcomes[name]["seconds"] for outcomes in rounds]),
                "version": rounds[0][name]["version"],
            }
            for name in installed
        },
        "left_out": [name for name in pythons if name not in installed],
    }
    timing.write("tagging", result, arguments.output)


def write_text(path: Path, megabytes: float) -> dict[str, Any]:
    """Write a text of at least this size; returns its size and the number of words."""
    rng = np.random.default_rng(0)
    forms = np.array(corpus.vocabulary(rng, FORMS))
    weights = 1 / (np.arange(FORMS) + 3)
    weights /= weights.sum()
    written = words = 0
    with path.open("w", encoding="utf-8") as file:
        while written < 1e6 * megabytes:
            lengths = rng.integers(5, 21, size=1000)
            drawn = forms[rng.choice(FORMS, size=lengths.sum(), p=weights)]
            lines = [" ".join(part) + " .\n" for part in np.split(drawn, lengths.cumsum()[:-1])]
            written += file.write("".join(lines))
            words += int(lengths.sum()) + len(lines)
    return {"megabytes": written / 1e6, "words": words}


def tables(result: Result) -> list[str]:
    whole, part, contestants = result["whole"], result["part"], result["contestants"]
    ours = contestants["ours"]["seconds"]["median"]
    rows = []
    for name, one in contestants.items():
        seconds = one["seconds"]["median"]
        rates = figure(part["megabytes"] / seconds), figure(part["words"] / seconds), figure(seconds / ours)
        rows.append([f"{name} {one['version']}".strip(), spread(one["seconds"]), *rates])
    title = f"{part['megabytes']:.1f} MB, {part['words']:,} words, by"
    rate = figure(whole["megabytes"] / whole["seconds"])
    size = f"{whole['megabytes']:.0f} MB, {whole['words']:,} words"
    return [
        table(title, "seconds", "MB/s", "words/s", "times our seconds", rows=rows),
        f"`predict` tags {size}, in {whole['seconds']:,.0f} s: {rate} MB/s.",
    ]


if __name__ == "__main__":
    main()
