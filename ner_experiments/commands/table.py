"""`ner-experiments table`: a published table beside its finished runs. And what `table=` asks of a sweep."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import OverrideParseException

from ner_experiments.config import compose
from ner_experiments.tables import spec
from ner_experiments.tables.experiments import experiments
from ner_experiments.tables.spec import Table

if TYPE_CHECKING:
    from ner_experiments.tables.scores import Page

FORMATS = ("latex", "csv", "json")


def main(argv: Sequence[str]) -> int:
    """Returns the exit status. ValueError or OSError for what the user caused."""
    arguments = parser().parse_intermixed_args(argv)
    if arguments.name is None:
        if arguments.keep or arguments.format or arguments.output:
            raise ValueError("--keep, --output and formats are of one table, named first: table NAME ...")
        for name in spec.names():
            table = spec.load(name)
            print(f"{name:<18} {table.title} ({table.source})")
    elif arguments.keep is not None:
        print(f"kept in {keep(arguments)}")
    else:
        print(printed(arguments), end="")
    return 0


def parser() -> argparse.ArgumentParser:
    text = "A published table beside the finished runs that belong to its rows; without a name: all tables."
    parser = argparse.ArgumentParser(prog="ner-experiments table", description=text)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a table of sweeps/")
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="with which the runs were made, such as data=weibo"
    )
    chosen = parser.add_mutually_exclusive_group()
    for name in FORMATS:
        chosen.add_argument(f"--{name}", dest="format", action="store_const", const=name)
    text = "copy its runs into a folder of DIR (results), and write the page there"
    chosen.add_argument("--keep", type=Path, metavar="DIR", nargs="?", const=Path("results"), help=text)
    parser.add_argument("--output", metavar="DIR", help="where the runs lie (outputs)")
    return parser


def printed(arguments: argparse.Namespace) -> str:
    from ner_experiments.tables import render

    formats = {"latex": render.latex, "csv": render.as_csv, "json": render.as_json}
    return formats.get(arguments.format, render.markdown)(page(arguments))


def keep(arguments: argparse.Namespace) -> Path:
    from ner_experiments.tables import pages

    return pages.add(page(arguments), arguments.keep)


def page(arguments: argparse.Namespace) -> Page:
    from ner_experiments.tables.scores import collect

    further = list(arguments.overrides)
    if arguments.output is not None:
        further.append(f"output_dir={as_value(arguments.output)}")
    return collect(spec.load(arguments.name), further)


def rewrite(argv: Sequence[str]) -> int:
    """`ner-experiments tables`: the pages of what is kept, from that alone."""
    from ner_experiments.tables import pages, paper_pages

    parser = argparse.ArgumentParser(
        prog="ner-experiments tables",
        description="Writes the pages of results/ anew, from the runs it keeps.",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results"), metavar="DIR")
    results = parser.parse_args(argv).folder
    for folder in pages.write_all(results):
        print(folder / pages.PAGE)
    for page in paper_pages.write_all(results):
        print(page)
    return 0


def for_the_sweeper(overrides: Sequence[str], *, sweep: bool) -> list[str] | None:
    """`table=NAME seeds=[1,2] ...` as settings of the sweeper; None where there is no table.

    They reach it as such because Hydra would hold the other overrides against conf/ alone, without the row's.
    Composes every row. ValueError for what is wrong with the table, a row, or the overrides.
    """
    if (asked := of_table(overrides)) is None:
        return None
    table, seeds, others = asked
    if not sweep:
        own = f"table={table.name}"
        raise ValueError(f"{own} is a sweep: add -m, as in `python run.py -m {own}`")
    further = [str(item.input_line) for item in others if not compose.is_for_hydra(item)]
    experiments(table, further)
    return [
        f"hydra.sweeper.table={table.name}",
        *([f"hydra.sweeper.seeds={seeds}"] if seeds else []),
        f"hydra.sweeper.overrides=[{','.join(map(as_value, further))}]",
        *(str(item.input_line) for item in others if compose.is_for_hydra(item)),
    ]


def of_table(overrides: Sequence[str]) -> tuple[Table, list[int], list[Override]] | None:
    """The table of `table=NAME seeds=[1,2] ...`, the seeds, none for its own, and what else there is.

    None where there is no table. ValueError for what is no table, and for seeds and overrides that are not as
    a table's have to be.
    """
    own = {key: item for item in overrides for key in compose.OF_SWEEPS if item.startswith(f"{key}=")}
    if "table" not in own:
        if own:
            raise ValueError(f"{own['seeds']} goes with table=NAME; else write seed=1,2,3")
        return None
    others = parsed([item for item in overrides if item not in own.values()])
    for item in others:
        check_further(item)
    seeds = seeds_of(own["seeds"]) if "seeds" in own else []
    return spec.load(own["table"].partition("=")[2]), seeds, others


def parsed(overrides: Sequence[str]) -> list[Override]:
    """ValueError for what is not written as overrides are."""
    try:
        return OverridesParser.create().parse_overrides(list(overrides))
    except OverrideParseException as error:
        raise ValueError(f"{error.override}: {error.message.splitlines()[0]}") from error


def check_further(item: Override) -> None:
    if item.key_or_group == "seed":
        raise ValueError(f"{item.input_line}: a table takes its seeds as a list: seeds=[1,2,3]")
    if item.is_sweep_override():
        raise ValueError(f"{item.input_line}: a table's rows are the sweep; here a setting has one value")


def seeds_of(override: str) -> list[int]:
    (item,) = parsed([override])
    seeds: Any = item.value()
    if not (spec.are(spec.is_count)(seeds) and 0 < len(seeds) == len(set(seeds))):
        raise ValueError(
            f"{override}: seeds must be a list of different whole numbers, such as seeds=[1,2,3]"
        )
    return [*seeds]


def as_value(text: str) -> str:
    """As one value in Hydra's grammar; what `${...}` stands for is left to whom it reaches."""
    return QuotedString(text.replace("${", "\\${"), Quote.double).with_quotes()
