"""Screenshots of the report for docs/: of the archived runs in results/, and of a small sweep on the toy corpus.

Needs Chromium, like the tests of the report. Trains the sweep first, in a few minutes, unless `--runs` is given. The
pictures of docs/sweeps.md are of the runs that `python docs/transcript.py docs/sweeps.md` leaves.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/helpers"))

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
TRANSCRIPT = ROOT / "outputs" / "transcripts" / "sweeps"
PICTURES = (
    ("index", "index.html", 1280, 860, "light", 0),
    ("table", "huang2015_table3-*2015.html", 1280, 1400, "light", 0),
    ("errors", "runs-*.html", 1280, 1250, "dark", 628),
    ("pairs-phone", "*-pairs-0.html", 390, 800, "dark", 575),
    ("own-sweep", "layers.html", 1280, 1200, "light", 0),
)
"""Name, page, width, height, color scheme, and vertical scroll offset."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, help="the sweep's run folders, instead of training it")
    parser.add_argument("--work", type=Path, default=ROOT / "outputs" / "screenshots")
    arguments = parser.parse_args()
    runs = arguments.runs or arguments.work / "runs"
    extra_overrides = [*SMALL, f"data_dir={arguments.work / 'data'}"]
    write_vectors(arguments.work / "data")
    if arguments.runs is None:
        train(extra_overrides, runs)
    archived, toy = arguments.work / "archived", arguments.work / "toy"
    nothing = arguments.work / "nothing"
    nothing.mkdir(parents=True, exist_ok=True)
    command("report", "--results", str(ROOT / "results"), "--runs", str(nothing), "--output", str(archived))
    of_toy = ["--runs", str(runs), "--results", "none", "--output", str(toy)]
    command("report", "li2020_table1", *extra_overrides, *of_toy)
    own = arguments.work / "own"
    command(
        "report", "layers", "--runs", str(TRANSCRIPT / "outputs"), "--results", "none", "--output", str(own)
    )
    with opened() as browser:
        for name, pattern, width, height, scheme, scroll in PICTURES:
            folder = archived if pattern.startswith(("index", "huang2015")) else toy
            path = sorted((own if pattern == "layers.html" else folder).glob(pattern))[0]
            with browser.page(path, width=width, scheme=scheme) as (page, _):
                page.set_viewport_size({"width": width, "height": height})
                page.evaluate(f"scrollTo(0, {scroll})")
                save(page.screenshot(), ROOT / "docs" / f"report-{name}.png")
    return 0


def train(extra_overrides: list[str], runs: Path) -> None:
    models = ["paper=li2020", "model=baseline,cross,attention", "seed=1,2"]
    command("train", "-m", *models, *extra_overrides, f"output_dir={runs}", "runtime.progress=false")


def command(*arguments: str) -> None:
    if cli(arguments):
        raise SystemExit(1)  # the command has printed the reason


def save(png: bytes, path: Path) -> None:
    """Write the PNG with 256 colors, which is much smaller and enough for pages."""
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    raise SystemExit(main())
