"""What a page of the report consists of: sections with grids, plots, remarks and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ner_experiments.report.cases import Pieces
from ner_experiments.report.svg import Plot
from ner_experiments.table_page import Grid


@dataclass(frozen=True)
class Shown:
    """A grid on a page. `links`: by first cell; `cited`: lines that are; `text`: columns that are words.

    heat: how deep the cells behind the first are coloured, from 0 to 1.
    """

    grid: Grid
    caption: str
    links: Mapping[str, str] = field(default_factory=dict)
    cited: frozenset[int] = frozenset()
    text: int = 0
    heat: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Tagged:
    """A sentence: its gold mentions, and in which ways it was tagged, by whom, and whether that is right."""

    title: str
    gold: Pieces
    predicted: Sequence[tuple[str, Pieces, bool]]


@dataclass(frozen=True)
class Section:
    """`texts` stand above, `notes` below; `small`: many small plots in a grid; `folded`: what opens."""

    key: str
    title: str
    texts: Sequence[str] = ()
    grids: Sequence[Shown] = ()
    plots: Sequence[Plot] = ()
    small: bool = False
    notes: Sequence[str] = ()
    points: Sequence[str] = ()
    sentences: Sequence[Tagged] = ()
    links: Sequence[tuple[str, str]] = ()
    folded: Sequence[tuple[str, str]] = ()
