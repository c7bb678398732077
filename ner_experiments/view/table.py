"""A table of text cells, and its form in Markdown and LaTeX. `utils.terminal` draws it; the report has HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ner_experiments.utils.text import markdown_table

LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": r"$<$",
    ">": r"$>$",
}


@dataclass(frozen=True)
class Grid:
    """Headings and lines of text; the first column names the lines, and the others are numbers.

    For the report's pages: caption; links: address by first cell; cited: indices of cited lines; text: number of
    columns of text after the first; heat: color depth of the cells after the first, from 0 to 1.
    """

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    caption: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    cited: frozenset[int] = frozenset()
    text: int = 0
    heat: Sequence[Sequence[float]] = ()

    @classmethod
    def by_heading(cls, lines: Sequence[Mapping[str, str]]) -> Grid:
        """The grid of lines whose cells are by heading, the same in all of them; at least one."""
        return cls([*lines[0]], [[*line.values()] for line in lines])

    def of(self, columns: Sequence[int]) -> Grid:
        """The grid with these columns alone, in this order."""
        lines = [[line[column] for column in columns] for line in self.lines]
        return replace(self, headings=[self.headings[column] for column in columns], lines=lines)

    def without(self, headings: Collection[str]) -> Grid:
        """The grid without the columns of these headings."""
        return self.of([number for number, heading in enumerate(self.headings) if heading not in headings])

    def without_empty(self, optional: Collection[str]) -> Grid:
        """The grid without those of the optional headings whose column is empty in every line."""
        filled = [any(line[number] for line in self.lines) for number in range(len(self.headings))]
        return self.of([it for it, name in enumerate(self.headings) if filled[it] or name not in optional])

    def renamed(self, names: Mapping[str, str]) -> Grid:
        """The grid with other headings for these."""
        return replace(self, headings=[names.get(heading, heading) for heading in self.headings])

    @property
    def with_rules(self) -> list[Sequence[str]]:
        """The headings, the rules that Markdown has below them, and the lines."""
        return [self.headings, [":--", *("--:" for _ in self.headings[1:])], *self.lines]

    def markdown(self) -> str:
        """A table of GitHub's Markdown."""
        return markdown_table(*self.with_rules)

    def aligned(self) -> str:
        """The table of `markdown`, with cells padded to columns."""
        first, *others = (max(map(len, column)) for column in zip(self.headings, *self.lines, strict=True))
        rule = ["-" * first, *("-" * (width - 1) + ":" for width in others)]
        lines = (
            [name.ljust(first), *map(str.rjust, row, others)]
            for name, *row in (self.headings, rule, *self.lines)
        )
        return markdown_table(*lines)

    def latex(self) -> str:
        """A tabular for \\usepackage{booktabs}."""
        heading, *lines = (" & ".join(map(latex, line)) + r" \\" for line in (self.headings, *self.lines))
        columns = "l" + "r" * (len(self.headings) - 1)
        begin, end = f"\\begin{{tabular}}{{{columns}}}\n\\toprule", "\\bottomrule\n\\end{tabular}"
        return "\n".join([begin, heading, "\\midrule", *lines, end])


def latex(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return "".join(LATEX.get(character, character) for character in text)
