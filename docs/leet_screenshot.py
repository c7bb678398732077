"""The terminal of `wandb leet` as docs/wandb-leet.png: the offline W&B runs of a folder. Needs tmux and Chromium.

`python docs/leet_screenshot.py DIR`: DIR/outputs holds runs made with logger=wandb.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/helpers"))

from chromium import opened  # noqa: E402

COLUMNS, LINES, SECONDS = 150, 40, 20
PAGE = (
    "<html data-charts=ready><meta charset=utf-8><style>"  # ready: what `opened` waits for
    "body {{ background: {background}; color: {foreground}; margin: 12px }} "
    "pre {{ width: fit-content; font: 13px/1.2 'DejaVu Sans Mono', monospace }} "
    "i {{ display: inline-block; width: 1ch; overflow: hidden; font-style: normal; vertical-align: top }} "
    "{stylesheet}</style><pre>{code}</pre>"
)
BRAILLE = re.compile("[\u2800-\u28ff]")
"""Dots of curves, which monospaced fonts lack; other fonts have them in another width."""


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary) / "wandb"
        runs.mkdir()
        for run in folder.absolute().glob("outputs/*/seed-*/wandb/offline-run-*"):
            (runs / run.name).symlink_to(run)
        page = Path(temporary) / "terminal.html"
        page.write_text(as_html(terminal(runs)), encoding="utf-8")
        with opened() as browser, browser.page(page) as (shown, _):
            png = shown.locator("pre").screenshot()
    with Image.open(io.BytesIO(png)) as image:
        path = ROOT / "docs" / "wandb-leet.png"
        image.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def terminal(runs: Path) -> str:
    """Output of the program, with escape sequences."""
    tmux = ["tmux", "-L", "leet-screenshot"]
    program = f"COLORTERM=truecolor {sys.executable} -m wandb leet run {runs}"
    size = ["-x", str(COLUMNS), "-y", str(LINES)]
    subprocess.run([*tmux, "new-session", "-d", *size, program], check=True)
    time.sleep(SECONDS)
    drawn = subprocess.run([*tmux, "capture-pane", "-p", "-e"], check=True, capture_output=True, text=True)
    subprocess.run([*tmux, "kill-server"], check=True)
    return drawn.stdout


def as_html(drawn: str) -> str:
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(drawn), soft_wrap=True)
    html = console.export_html(code_format=PAGE, theme=MONOKAI)
    return BRAILLE.sub(lambda match: f"<i>{match[0]}</i>", html)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
