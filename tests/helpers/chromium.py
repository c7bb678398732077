"""Debian's Chromium for tests of the report: opens pages from disk, offline, and records requests and messages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, sync_playwright

FLAGS = [
    "--no-sandbox",  # which a container lacks
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BODY_AND_PLOT_TEXT = """() => {
  const solid = (color) => { const n = color.match(/[\\d.]+/g); return n.length < 4 || n[3] === '1'; };
  const paper = (node) => {
    for (let it = node; it; it = it.parentElement) {
      const color = getComputedStyle(it).backgroundColor;
      if (solid(color)) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
    if (!own || !node.getClientRects().length || node.closest('td.heat, .map')) continue;
    const style = getComputedStyle(node);
    const ink = node.closest('svg') ? style.fill : style.color;
    found.push([node.tagName, ink, paper(node)]);
  }
  return found;
}"""
"""For every element with text of its own: its name, and the colors of the text and of its background."""
STRUCTURE = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  return {
    lang: document.documentElement.lang,
    levels: all('h1, h2, h3, h4').map((it) => Number(it.tagName[1])),
    identifiers: all('[id]').map((it) => it.id),
    unscoped: all('th:not([scope])').length,
    uncaptioned: all('table:not(:has(caption))').length,
    unlabelled: all('input, select').filter((it) => !it.labels.length).length,
    undescribed: all('.charts').filter((it) => it.getAttribute('role') !== 'img' || !it.ariaLabel).length,
    unreachable: all('.scroll:not([tabindex="0"][role=region][aria-label])').length,
  };
}"""
"""Checks for keyboards and screen readers: heading levels, names, captions, labels, descriptions."""
TEXT_BEYOND_ITS_PICTURE = """() => [...document.querySelectorAll('svg')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  const leaves = (it) => Math.max(
    it.right - box.right, box.left - it.left, it.bottom - box.bottom, box.top - it.top) > 2;
  return [...svg.querySelectorAll('text')].filter((it) => leaves(it.getBoundingClientRect()))
    .map((it) => `${svg.closest('.charts').ariaLabel}: ${it.textContent}`);
})"""
"""The texts that extend more than two pixels beyond their svg."""


@dataclass
class Seen:
    """Record of what a page did while it was open."""

    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


class Browser:
    def __init__(self, chromium: Chromium) -> None:
        self.chromium = chromium

    @contextmanager
    def page(self, path: Path, *, width: int = 1280, scheme: str = "light") -> Iterator[tuple[Page, Seen]]:
        """A page in a context of its own, with no network."""
        context = self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        page, seen = context.new_page(), Seen()
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("console", lambda message: seen.messages.append(message.text))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        self.go(page, path)
        try:
            yield page, seen
        finally:
            context.close()

    @staticmethod
    def go(page: Page, path: Path) -> None:
        """Open a page and wait until its charts are drawn."""
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-charts=ready]", state="attached")


def found_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


@contextmanager
def opened() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found_chromium(), args=FLAGS)
        try:
            yield Browser(chromium)
        finally:
            chromium.close()


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2.2 between two colors in the notation of browsers, rgb(0, 0, 0)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    shares = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
