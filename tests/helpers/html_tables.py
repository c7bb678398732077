"""Tables of a page of the report."""

import html
import re


def rows(page: str, caption: str = "") -> list[list[str]]:
    """Cells of the first table with the caption, or of all tables, as text, line by line."""
    if caption:
        start = page.index(f"<caption><span>{caption}</span></caption>")
        page = page[start : page.index("</table>", start)]
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in lines]
    return [[html.unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in line] for line in cells]
