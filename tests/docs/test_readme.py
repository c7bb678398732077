"""README and the other pages are true: their commands run, and their links lead somewhere."""

import re
from pathlib import Path

import page_commands
import pytest

ROOT = page_commands.ROOT
README = ROOT / "README.md"
GUIDES = [README, *(page for page in sorted((ROOT / "docs").glob("*.md")) if not page_commands.files(page))]
"""Those with files of their own are tried by tests/docs/test_guides.py."""
FOLDERS = ("docs", "results", "benchmarks", "sweeps")
PAGES = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])
LINES = list(dict.fromkeys(line for guide in GUIDES for line in page_commands.commands(guide)))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the files that the README supposes you have."""
    folder = page_commands.copy_to(tmp_path_factory.mktemp("checkout") / "copy")
    for name in ("my", "my-dev", "my-test"):
        (folder / f"{name}.conll").write_text("Ann NNP B-PER\nsat VBD O\n\nBob NNP B-PER\n\n")
    (folder / "outputs").mkdir()
    (folder / "vectors.txt").write_text("the 0.1 0.2\nof 0.3 0.4\n")
    for name in ("news", "tweets", "chinese"):
        (folder / f"{name}.txt").write_text("Ann left Oslo.\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_a_command_runs(line: str, checkout: Path, toy_run: Path) -> None:
    page_commands.skip_without_corpus(line)
    page_commands.try_line(line, checkout, toy_run)


def test_the_lines_of_python_print_mentions(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = page_commands.blocks(README, "python")[0]
    text = "Vera Stavsen of Brennholt lives in Vantora, and Hugo Lornsen in Dalmia."
    code = re.sub(r'load\(".*?"\)', f"load({str(toy_run)!r})", code)
    exec(re.sub(r'tag\(".*?"\)', f"tag({text!r})", code), {})
    for line in capsys.readouterr().out.splitlines():
        start, end, _, rest = line.split(" ", 3)
        assert rest.startswith(text[int(start) : int(end)] + " ")


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match("https?://", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.is_relative_to(ROOT)
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target
