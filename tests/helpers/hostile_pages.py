"""Pages of the report for a corpus whose words and types contain HTML."""

from pathlib import Path

from ner_experiments.commands.smoke import write_vectors
from ner_experiments.config.compose import compose
from ner_experiments.main import cli
from ner_experiments.report import pair_page
from ner_experiments.report.site import Site
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Result
from ner_experiments.train import train

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img/src=x/onerror=alert(2)>',
    "</title><h1>no</h1>",
    "{{7*7}}",
    "&lt;&amp;",
    "'`${1}",
    "\u202eevil",
    "a\u2067b",
    "$x_{",
    "北京",
)


def sentence(shift: int) -> str:
    """A sentence of all words, rotated by `shift`, with a mention of each type."""
    words = [*HOSTILE[shift % len(HOSTILE) :], *HOSTILE[: shift % len(HOSTILE)]]
    tags = ("O", "B-<b>X</b>", "I-<b>X</b>", "O", "B-Y&Z", "O", "O", "O", "B-Y&Z", "O")
    return "".join(f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True))


def report_of_runs(place: Path) -> Path:
    """Report of runs of two models on the hostile corpus."""
    write_vectors(place)
    for split, count in (("train", 10), ("dev", 5), ("test", 10)):
        (place / split).write_text("\n".join(map(sentence, range(count))), encoding="utf-8")
    settings = [
        "data=conll",
        "data.name=conll",
        *(f"data.files.{split}={place / split}" for split in ("train", "dev", "test")),
        *(f"{name}_dir={place}" for name in ("data", "cache")),
        "model.hidden_size=8",
        "decoder=softmax",
        "optimizer=adam",
        "optimizer.lr=0.02",
        "trainer.max_epochs=1",
    ]
    quiet = ["runtime.progress=false", "runtime.accelerator=cpu", f"output_dir={place}/runs"]
    for model, seed in (("attention", 1), ("baseline", 1)):
        train(compose(["paper=li2020", f"model={model}", *settings, *quiet, f"seed={seed}"], "test"))
    arguments = ["--runs", f"{place}/runs", "--results", f"{place}/none", "--output", f"{place}/site"]
    assert cli(["report", "li2020_table1", "li2020_figure2", *settings, *arguments]) == 0
    return place / "site"


class Tagged(Run):
    """A run that tags these sentences of test correctly, and finds no mention in the others."""

    def predicted(self) -> list[Predicted]:
        found = []
        for number in range(6):
            words, tags = zip(*(line.rsplit(" ", 1) for line in sentence(number).splitlines()), strict=True)
            found.append(
                Predicted(words, tags, tags if number in self.metrics["right"] else ("O",) * len(tags))
            )
        return found


def page_of_pairs(folder: Path) -> Path:
    """The page of two rows, the second with two seeds, on hostile sentences."""
    row, other = spec.load("yang2020_table12").rows[:2]
    right = {1: {3, 5}, 2: {4, 5}}
    runs = {seed: Tagged(folder, {"task": "mentions", "right": own}) for seed, own in right.items()}
    first = {1: Tagged(folder, {"task": "mentions", "right": {0, 1, 5}})}
    context = pair_page.context([Result(row, runs=first), Result(other, runs=runs)])
    about = {"heading": "<i>Pairs</i>", "lead": "of two rows", "trail": [("Table", "")]}
    site = Site(folder, None)
    site.write("pairs.html", "pair.html", {**about, **context})
    site.finish()
    return folder / "pairs.html"
