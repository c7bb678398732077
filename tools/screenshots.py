"""Pictures of the report for docs/: of what results/ keeps, and of a small sweep on the toy corpus.

Needs Chromium, as the tests of the report do. Without arguments it trains the sweep first, in a few minutes.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from chromium import opened  # noqa: E402

from ner_experiments.commands.smoke import write_vectors  # noqa: E402
from ner_experiments.main import cli  # noqa: E402

SMALL = (
    "data=toy_en",
    "data.sentences={train:300,dev:80,test:80}",
    "model.hidden_size=16",
    "model.dropout=0.0",
    "decoder=softmax",
    "batches=tokens",
    "batches.tokens=60",
    "optimizer=adam",
    "optimizer.lr=0.02",
    "trainer.max_epochs=5",
)
PICTURES = (
    ("index", "index.html", 1280, 860, "light", 0),
    ("table", "huang2015_table3-*2015.html", 1280, 1400, "light", 0),
    ("errors", "runs-*.html", 1280, 1250, "dark", 680),
    ("pairs-phone", "*-pairs-0.html", 390, 800, "dark", 610),
)
"""Name, page, width and height, scheme, and how far it is scrolled."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, help="the sweep's run folders, instead of training it")
    parser.add_argument("--work", type=Path, default=ROOT / "outputs" / "screenshots")
    arguments = parser.parse_args()
    runs = arguments.runs or arguments.work / "runs"
    further = [*SMALL, f"data_dir={arguments.work / 'data'}"]
    write_vectors(arguments.work / "data")
    if arguments.runs is None:
        train(further, runs)
    kept, toy = arguments.work / "kept", arguments.work / "toy"
    command("report", "--results", str(ROOT / "results"), "--output", str(kept))
    of_toy = ["--runs", str(runs), "--results", "none", "--output", str(toy)]
    command("report", "li2020_table1", *further, *of_toy)
    with opened() as browser:
        for name, pattern, width, height, scheme, scrolled in PICTURES:
            folder = kept if pattern.startswith(("index", "huang2015")) else toy
            path = sorted(folder.glob(pattern))[0]
            with browser.page(path, width=width, scheme=scheme) as (page, _):
                page.set_viewport_size({"width": width, "height": height})
                page.evaluate(f"scrollTo(0, {scrolled})")
                save(page.screenshot(), ROOT / "docs" / f"report-{name}.png")
    return 0


def train(further: list[str], runs: Path) -> None:
    models = ["paper=li2020", "model=baseline,cross,attention", "seed=1,2"]
    command("train", "-m", *models, *further, f"output_dir={runs}", "runtime.progress=false")


def command(*arguments: str) -> None:
    if cli(arguments):
        raise SystemExit(1)  # it has said why


def save(png: bytes, path: Path) -> None:
    """With 256 colours, which is enough for pages and much smaller."""
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    raise SystemExit(main())
