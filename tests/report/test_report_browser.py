"""The report in headless Chromium: it opens from disk, asks for nothing, runs nothing, and can be used."""

import csv
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import close_rows
import pytest
from chromium import (
    BODY_AND_PLOT_TEXT,
    STRUCTURE,
    TEXT_BEYOND_ITS_PICTURE,
    Browser,
    contrast,
    found_chromium,
    opened,
)
from hostile_pages import HOSTILE, page_of_pairs, report_of_runs
from PIL import Image
from places import RESULTS
from playwright.sync_api import Page

from ner_experiments.main import cli
from ner_experiments.tables import spec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),  # one worker, and so one report
    pytest.mark.skipif(not found_chromium(), reason="there is no Chromium (CHROMIUM names one)"),
]
TABLES = (
    "huang2015_table2",
    "li2020_table1",
    "li2020_table3",
    "xor",
    "yang2020_table12",
    "yang2020_table14",
    "zukov2018_table2",
    "zukov2018_table5",
)
"""A sample with each kind: several measures, an analysis, trials, several settings, and a table without runs."""
UNITS = "zukov2018_table2-c220eb98.html"
WEIBO = "yang2020_table12-data-weibo-trainer.max-epochs-3.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of_runs(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_of_pairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of these tables, with the runs in results/."""
    folder = tmp_path_factory.mktemp("report") / "site"
    assert cli(["report", *TABLES, "--results", str(RESULTS), "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as found:
        yield found


def test_every_page_asks_for_nothing_is_described_and_fits_a_phone(
    report: Path, hostile: Path, pairs: Path, browser: Browser
) -> None:
    """No request, message or dialog; language, one h1, no level left out, headers with a scope, names of controls,
    plots and regions; no text beyond its picture; nothing beyond 390 pixels."""
    with browser.page(pairs) as (page, seen):
        for path in (*report.glob("*.html"), *hostile.glob("*.html"), pairs):
            page.set_viewport_size({"width": 1280, "height": 900})
            browser.go(page, path)
            assert page.evaluate("document.querySelector('#theme').textContent.startsWith('Theme')")
            assert page.evaluate(TEXT_BEYOND_ITS_PICTURE) == [], path.name
            found = page.evaluate(STRUCTURE)
            levels, identifiers = found.pop("levels"), found.pop("identifiers")
            assert levels[0] == 1
            assert levels.count(1) == 1
            assert all(later <= level + 1 for level, later in pairwise(levels)), path.name
            assert len(set(identifiers)) == len(identifiers), path.name
            assert found.pop("lang") == "en"
            assert set(found.values()) == {0}, (path.name, found)
            page.set_viewport_size({"width": 390, "height": 900})
            page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") == 390, path.name
            assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []
            assert (seen.messages, seen.errors, seen.dialogs) == ([], [], []), path.name


def test_links_lead_to_what_is_there(report: Path, hostile: Path, browser: Browser) -> None:
    for folder in (report, hostile):
        pages = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}
        targets = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in pages.items()}
        for name, text in pages.items():
            for link in re.findall(r'<a [^>]*?href="([^"]+)"', text):
                page, _, place = link.partition("#")
                assert (page or name) in pages, f"{name}: {link}"
                assert not place or "=" in place or place in targets[page or name], f"{name}: {link}"
        linked = {
            link.partition("#")[0] for text in pages.values() for link in re.findall(r'href="([^"]+)"', text)
        }
        assert pages.keys() <= linked
    with browser.page(report / "index.html") as (page, _):
        page.get_by_role("link", name="Number of BiLSTM layers").first.click()
        assert page.url.endswith(WEIBO)
        page.get_by_role("link", name="residual, 3 layers").first.click()
        assert page.locator("h1").text_content() == "residual, 3 layers"
        page.get_by_role("link", name="All tables").click()
        assert page.url.endswith("index.html")


def test_a_corpus_is_text_and_nothing_of_it_runs(hostile: Path, pairs: Path, browser: Browser) -> None:
    (attention,) = hostile.glob("attention-*.html")
    shown = ("⟨U+202E⟩evil", "a⟨U+2067⟩b", *(word for word in HOSTILE if word.isprintable()))
    for path in (*hostile.glob("*.html"), pairs):
        with browser.page(path) as (page, seen):
            assert page.locator("script:not([src], [type])").count() == 1
            assert page.locator("h1").count() == 1
            assert page.locator("img, b, i, iframe, object").count() == 0
            assert seen.dialogs == []
            text = page.locator("body").text_content() or ""
            assert not set("\u202e\u2067") & set(text)
            if path in (pairs, attention) or path.name.startswith("runs-"):
                assert [word for word in shown if word not in text] == []
    (row, *_) = hostile.glob("runs-*.html")
    assert "<b>X</b>" in text_of(browser, row)


@pytest.mark.parametrize("width", [390, 1280])
def test_plots_fit_the_screen_and_tables_show_that_they_scroll(
    width: int, report: Path, browser: Browser
) -> None:
    for name in (UNITS, WEIBO, "index.html"):
        with browser.page(report / name, width=width) as (page, _):
            plots = page.evaluate(PLOTS)
            assert bool(plots) == (name != "index.html")
            assert [
                plot for plot in plots if not 0.9 * plot["room"] <= plot["width"] <= plot["room"] + 1
            ] == []
            tables = page.evaluate(SCROLLING_TABLES)
            assert all("local" in table["attachment"] for table in tables)
            if width == 390:
                assert any(table["scrolls"] for table in tables)


PLOTS = """() => [...document.querySelectorAll('.charts svg.marks')].map((plot) => ({
  width: plot.getBoundingClientRect().width, room: plot.closest('.charts > div').clientWidth,
}))"""
SCROLLING_TABLES = """() => [...document.querySelectorAll('.scroll:has(> table)')].map((it) => ({
  scrolls: it.scrollWidth > it.clientWidth, attachment: getComputedStyle(it).backgroundAttachment,
}))"""


def text_of(browser: Browser, path: Path) -> str:
    with browser.page(path) as (page, _):
        return page.locator("body").text_content() or ""


def cells(page: Page, column: int) -> list[str]:
    return page.locator(f"#index tbody tr:not([hidden]) > :nth-child({column})").all_text_contents()


def test_tables_are_sorted_by_click_and_by_keyboard(report: Path, browser: Browser) -> None:
    with browser.page(report / "index.html") as (page, _):
        missing = page.locator("#index thead th", has_text="missing")
        missing.get_by_role("button").click()
        assert missing.get_attribute("aria-sort") == "ascending"
        numbers = [int(cell) for cell in cells(page, 4) if cell]
        assert numbers == sorted(numbers)
        assert len(set(numbers)) > 5
        missing.get_by_role("button").press("Enter")
        assert missing.get_attribute("aria-sort") == "descending"
        assert [int(cell) for cell in cells(page, 4) if cell] == sorted(numbers, reverse=True)
        assert page.locator("[aria-sort]").count() == 1
    with browser.page(report / WEIBO) as (page, _):
        table = page.locator("table").first
        table.get_by_role("button", name="ours").first.click()
        means = [
            float(text.split()[0]) for text in table.locator("tbody td:nth-child(3)").all_text_contents()
        ]
        assert means == sorted(means)
        assert means[-1] == 33.71


def test_tables_and_plots_are_saved(report: Path, browser: Browser, tmp_path: Path) -> None:
    def saved(label: str) -> Path:
        with page.expect_download() as download:
            page.get_by_label(label).first.click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    with browser.page(report / WEIBO) as (page, _):
        page.wait_for_selector("html[data-charts=ready]")
        path = saved("Save as CSV: Number of BiLSTM layers")
        assert path.name == "Number of BiLSTM layers, MSRA, test F1.csv"
        rows = [*csv.reader(path.read_text(encoding="utf-8").splitlines())]
        shown = page.locator("table").first.locator("tr")
        assert rows[1] == shown.nth(1).locator("th, td").all_inner_texts()
        assert len(rows) == shown.count()
        path = saved("Save as SVG: test F1 by layers")
        assert path.name == "test F1 by layers.svg"
        picture = path.read_text(encoding="utf-8")
        assert "var(" not in picture
        for text in ("layers", "stacked, published"):
            assert f">{text}</text>" in picture
        path = saved("Save as PNG: test F1 by layers")
        assert len(Image.open(path).convert("RGB").getcolors(2**20) or ()) > 50  # text and lines in colors


def test_tables_are_filtered_by_text_paper_and_state(report: Path, browser: Browser) -> None:
    archived = [path.parent.parent.name for path in RESULTS.glob("*/*/table.json")]
    deviating = {name: archived.count(spec.load(name).runs_of) for name in TABLES}
    shown = sum(1 + number for name, number in deviating.items() if name.startswith("zukov2018"))
    with browser.page(report / "index.html") as (page, _):
        every = len(cells(page, 1))
        page.get_by_label("Paper", exact=True).select_option("zukov2018")
        assert len(cells(page, 1)) == shown
        assert page.locator("output").text_content() == f"{shown} of {every} shown"
        page.get_by_label("Text", exact=True).press_sequentially("penal")
        assert cells(page, 1) == []
        page.get_by_label("Text", exact=True).fill("taken away")
        assert len(cells(page, 1)) == 1 + deviating["zukov2018_table5"]
        page.get_by_label("Text", exact=True).fill("")
        page.get_by_label("Paper", exact=True).select_option("")
        page.get_by_label("State", exact=True).select_option("deviating")
        assert len(cells(page, 1)) == sum(deviating.values())
        assert any("data=weibo trainer.max_epochs=3" in text for text in cells(page, 1))


def test_sentences_are_filtered_by_which_row_has_them_right(pairs: Path, browser: Browser) -> None:
    with browser.page(pairs) as (page, _):
        shown, right, wrong = (
            page.locator(".case:not([hidden]) h3"),
            page.get_by_label("Correct with some seed"),
            page.get_by_label("Wrong with some seed"),
        )
        assert shown.count() == 4  # no row has the third one right, and both have the last
        page.get_by_role("link", name="correct in stacked, 2 layers, wrong in stacked, 3 layers").click()
        assert (right.input_value(), wrong.input_value()) == ("0", "1")
        assert sorted(shown.all_text_contents()) == ["Sentence 1", "Sentence 2"]
        assert page.locator("output").text_content() == "2 of 4 shown"
        right.select_option("")
        wrong.select_option("0")
        assert sorted(shown.all_text_contents()) == ["Sentence 4", "Sentence 5"]
        right.select_option("1")
        assert shown.count() == 2  # each is right with one seed of two
        right.select_option("")
        page.get_by_label("Text", exact=True).fill("EVIL")
        assert shown.count() == 2
        page.get_by_label("Text", exact=True).fill("no such words")
        assert shown.count() == 0


def test_each_number_of_close_rows_leads_to_as_many_sentences_as_it_says(
    tmp_path: Path, browser: Browser
) -> None:
    with browser.page(close_rows.page(tmp_path)) as (page, _):
        every = page.locator(".case").count()
        assert f"Shown: {every} of these" in (page.locator("main").text_content() or "")
        numbers = page.locator("td:has(a)")
        assert numbers.count() == 6
        for cell in numbers.all():
            cell.get_by_role("link").click()
            here, of, behind = (cell.locator("small").text_content() or "").split()
            assert (of, 0 < int(here) <= int(behind)) == ("of", True)
            assert page.locator(".case:not([hidden])").count() == int(here)
            assert page.locator("output").text_content() == f"{here} of {every} shown"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_plots_can_be_read_in(
    scheme: str, report: Path, hostile: Path, pairs: Path, browser: Browser
) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1."""
    (row, *_) = hostile.glob("runs-*.html")
    for path in (report / "index.html", report / WEIBO, row, pairs):
        with browser.page(path, scheme=scheme) as (page, _):
            pairs_of_colors = page.evaluate(BODY_AND_PLOT_TEXT)
            assert len(pairs_of_colors) > 30
            low = {(text, ink, paper) for text, ink, paper in pairs_of_colors if contrast(ink, paper) < 4.5}
            assert low == set(), path.name


def test_the_theme_can_be_chosen_and_is_remembered(report: Path, browser: Browser) -> None:
    with browser.page(report / "index.html", scheme="light") as (page, _):
        paper = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        page.get_by_role("button", name="Theme: system").click()
        page.get_by_role("button", name="Theme: light").click()
        assert page.evaluate(paper) == "rgb(20, 22, 26)"
        page.reload()
        assert page.evaluate(paper) == "rgb(20, 22, 26)"


def test_the_first_key_leads_past_the_navigation(report: Path, browser: Browser) -> None:
    with browser.page(report / "index.html") as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_a_chart_says_its_values_and_its_series_are_switched_off_and_on(
    report: Path, browser: Browser
) -> None:
    with browser.page(report / UNITS) as (page, _):
        chart = page.locator(".charts svg").first
        markers = chart.locator(".mark-symbol.role-mark path")
        markers.last.hover()
        assert "parallel units" in (page.locator("#vg-tooltip-element").text_content() or "")
        shown = "them => them.filter(it => it.getAttribute('opacity') !== '0').length"
        every = markers.evaluate_all(shown)
        entry = chart.locator(".role-legend-label text").first
        entry.click()
        assert 0 < markers.evaluate_all(shown) < every
        entry.click()
        assert markers.evaluate_all(shown) == every


def test_a_page_without_script_shows_the_numbers_that_one_with_it_folds(
    report: Path, browser: Browser
) -> None:
    context = browser.chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((report / UNITS).as_uri())
    assert page.locator("details.numbers table").first.is_visible()
    context.close()
    with browser.page(report / UNITS) as (page, _):
        assert not page.locator("details.numbers table").first.is_visible()
