"""Runs the commands of a page in an empty folder, and writes what they print into the page.

The folder is outputs/transcripts/PAGE, and stays there for screenshots.

`python docs/transcript.py docs/search.md` runs each `sh` block whose next block is a `text` block, and replaces that
one. Left out are the lines on stderr and those of single runs: data, parameters. A comment
`<!-- omit: PATTERN -->` between the two blocks shortens the output: consecutive lines that the regular expression
matches are replaced by one line `...`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCKS = re.compile(
    r"^```sh\n(?P<command>(?:(?!^```).)*)^```\n\n(?P<marker><!-- omit: (?P<omitted>[^\n]+) -->\n\n)?"
    r"```text\n(?:(?!^```).)*^```$",
    re.MULTILINE | re.DOTALL,
)
OF_RUNS = re.compile(r"^raw text |: [\d,]+ parameters \(|^outputs/\S+ is finished")


def main(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folder = ROOT / "outputs" / "transcripts" / page.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "docs").symlink_to(ROOT / "docs")  # files that commands read
    for match in list(BLOCKS.finditer(text)):
        output = shortened(printed(match["command"], folder), match["omitted"])
        block = f"```sh\n{match['command']}```\n\n{match['marker'] or ''}```text\n{output}\n```"
        text = text.replace(match[0], block)
    page.write_text(text, encoding="utf-8")


def printed(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    start = (
        [str(ROOT / "run.py"), *arguments[1:]]
        if program == "python"
        else ["-m", "ner_experiments", *arguments]
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, *start],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    lines = [line.rstrip() for line in result.stdout.splitlines() if not OF_RUNS.search(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def shortened(text: str, omitted: str | None) -> str:
    """The text with each run of lines that match `omitted` replaced by `...`."""
    lines: list[str] = []
    for line in text.splitlines():
        if not (omitted and re.search(omitted, line)):
            lines.append(line)
        elif not lines or lines[-1] != "...":
            lines.append("...")
    return re.sub(r"\.\.\.(\n+\.\.\.)+", "...", "\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
