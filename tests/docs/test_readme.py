"""README and the other pages are correct: their commands run, and their links resolve."""

import re
import shlex
from pathlib import Path

import page_commands
import pytest

ROOT = page_commands.ROOT
README = ROOT / "README.md"
FOLDERS = ("docs", "results", "benchmarks", "sweeps")
PAGES = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])


@pytest.mark.slow
def test_the_pages_of_results_are_those_that_their_command_writes(tmp_path: Path) -> None:
    checkout = page_commands.copy_to(tmp_path / "copy")
    written = [checkout / path.relative_to(ROOT) for path in pages_of_results(ROOT)]
    for path in written:
        path.unlink()
    page_commands.run_in_checkout(["tables"], checkout)
    assert pages_of_results(checkout) == written
    for path in written:
        name = path.relative_to(checkout)
        assert path.read_bytes() == (ROOT / name).read_bytes(), f"{name} differs from what was committed"


def pages_of_results(folder: Path) -> list[Path]:
    found = (folder / "results").glob
    pages = [page for page in found("*.md") if page.name != "HISTORY.md"]  # which is written by hand
    return sorted([*pages, *found("plots/*"), *found("*/**/README.md")])


@pytest.mark.parametrize("page", [README, *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_a_command_within_a_sentence_has_valid_settings(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for command in re.findall(r"`python\s+run\.py\s+(?:-m\s+)?(\w[^`]*)`", text):
        if "model=highway" not in command:  # the guide adds it
            page_commands.check_settings(shlex.split(command))


def test_the_lines_of_python_print_mentions(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = page_commands.blocks(README, "python")[0]
    text = "Vera Stavsen of Brennholt lives in Vantora, and Hugo Lornsen in Dalmia."
    code = re.sub(r'load\(".*?"\)', f"load({str(toy_run)!r})", code)
    exec(re.sub(r'tag\(".*?"\)', f"tag({text!r})", code), {})
    for line in capsys.readouterr().out.splitlines():
        start, end, _, rest = line.split(" ", 3)
        assert rest.startswith(text[int(start) : int(end)] + " ")


def table(heading: str) -> list[list[str]]:
    """The cells of the rows of README's table under a heading."""
    section = README.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_a_result_is_that_of_the_page_it_links_to() -> None:
    for claim, *cells in table("What we found about the papers"):
        (target,) = re.findall(r"\]\((results/\w+\.md)", claim)
        line = " | ".join(["| " + claim.partition(": ")[2], *cells])
        assert line in (ROOT / target).read_text(encoding="utf-8")


def test_speeds_are_those_of_the_benchmarks() -> None:
    page = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    speeds = re.search(
        r"trains on (\S+) .*?PyTorch on (\S+),\s+NCRF\+\+ on (\S+)\s+and\s+flair on (\S+)",
        README.read_text(encoding="utf-8"),
    )
    assert speeds
    for name, speed in zip(("ours", "pytorch", "ncrfpp", "flair"), speeds.groups(), strict=True):
        assert re.search(rf"^\| {name} \| {speed} \(", page, re.MULTILINE), name


def test_the_places_that_assistants_are_told_are_there() -> None:
    places = re.findall(r"`([a-z_]+/[\w./]*)`", (ROOT / "AGENTS.md").read_text(encoding="utf-8"))
    assert [it for it in places if not (ROOT / it).exists()] == []


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match("https?://", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.is_relative_to(ROOT)
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target
