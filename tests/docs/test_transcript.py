"""docs/transcript.py replaces the lines that a page omits, and finds the block that it rewrites."""

import runpy

from page_commands import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs/transcript.py"))


def test_each_run_of_omitted_lines_becomes_one_ellipsis() -> None:
    text = "a 1\na 2\nb\na 3\nc"
    assert SCRIPT["shortened"](text, r"^a \d") == "...\nb\n...\nc"
    assert SCRIPT["shortened"](text, None) == text


def test_a_marker_between_the_blocks_belongs_to_them() -> None:
    page = "```sh\nls\n```\n\n<!-- omit: ^a|b -->\n\n```text\nold\n```\n"
    (match,) = SCRIPT["BLOCKS"].finditer(page)
    assert match["omitted"] == "^a|b"
    (match,) = SCRIPT["BLOCKS"].finditer(page.replace("<!-- omit: ^a|b -->\n\n", ""))
    assert match["omitted"] is None


def test_the_printed_outputs_are_as_short_as_their_markers_say() -> None:
    for name in ("sweeps", "search"):
        page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        for match in SCRIPT["BLOCKS"].finditer(page):
            output = match[0].split("```text\n")[1]
            assert SCRIPT["shortened"](output, match["omitted"]) == output.removesuffix("\n")
