"""`ner-experiments dashboard TABLE`: create a W&B workspace that compares the rows of a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ner_experiments.loggers.base import RunInfo, closing
from ner_experiments.loggers.wandb import begin, is_reachable
from ner_experiments.tables import experiments, sweeps
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.looks import at_looks
from ner_experiments.tables.spec import Table
from ner_experiments.utils.files import write_json
from ner_experiments.utils.text import on_one_line

XOR_PICTURE = Path("results/xor/xor.png")


def run(arguments: argparse.Namespace) -> None:
    """Save the workspace, and print where. Raises ValueError or OSError for user errors."""
    table, overrides = sweeps.requested([arguments.table, *arguments.overrides])
    print(log_xor_picture(arguments) if table.name == "xor" else save(arguments, table, overrides))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Create the W&B workspace that compares the rows of a table or sweep run with logger=wandb: F1 by what varies, "
        "F1 against parameters and seconds, learning curves, errors. For the table xor: log the picture in results/ "
        "as a run."
    )
    parser.description = text
    parser.add_argument(
        "table", metavar="TABLE", help="a table of sweeps/ or a recorded sweep, by its name or its overrides"
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="an override that the runs were started with"
    )
    parser.add_argument("--project", default="ner_experiments", help="(ner_experiments)")
    parser.add_argument("--entity", default="", help="a user or team (your own account)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the workspace to this JSON file instead of W&B; for xor: the run's folder (outputs/xor)",
    )


def save(arguments: argparse.Namespace, table: Table, overrides: Sequence[str]) -> str:
    """Save the workspace and return a line that says where.

    Raises ValueError without wandb-workspaces, and if W&B rejects the workspace.
    """
    try:
        from ner_experiments.tables.dashboard import workspace  # of an optional package
    except ImportError as error:
        raise ValueError("a dashboard needs wandb-workspaces: pip install -e '.[dashboard]'") from error
    rows = experiments.experiments(table, overrides)
    page = at_looks(collect(table, overrides)) if table.is_sweep else None
    if arguments.output is None and is_reachable():
        try:
            entity = arguments.entity or default_entity()
            board = workspace(table, rows, entity=entity, project=arguments.project, page=page)
            return f"saved: {board.save().url}"
        except Exception as error:  # W&B's client has no common exception class
            raise ValueError(f"W&B rejected the workspace: {error}") from error
    board = workspace(table, rows, entity=arguments.entity, project=arguments.project, page=page)
    path = arguments.output or experiments.output_dir(overrides) / f"{table.name}.workspace.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    # W&B has no public way to write a workspace to a file
    write_json(path, board._to_model().model_dump(mode="json", by_alias=True, exclude_none=True))
    return f"{path}: workspace written to this file; with an API key and a network connection, it is saved to W&B"


def default_entity() -> str:
    import wandb  # takes a second to import, for which `--help` does not wait

    return str(wandb.Api().default_entity)


def log_xor_picture(arguments: argparse.Namespace) -> str:
    """Log the picture of `ner-experiments xor` as a W&B run of its own and return a line that says where."""
    if refused := [*arguments.overrides, *filter(None, [arguments.entity])]:
        raise ValueError(f"xor: its dashboard takes no overrides and no --entity, got {refused[0]}")
    if not XOR_PICTURE.is_file():
        raise ValueError(
            f"{XOR_PICTURE}: no such file; create it with `ner-experiments xor --output results/xor`"
        )
    folder = arguments.output or Path("outputs/xor")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        about = RunInfo(folder, "xor", "picture", tags=["xor"])
        with closing(begin(about, arguments.project, sentences=0)) as logger:
            logger.picture("xor", XOR_PICTURE.read_bytes)
    except Exception as error:  # W&B's client has no common exception class
        raise ValueError(f"W&B failed: {on_one_line(error)}") from error
    return f"a run with {XOR_PICTURE}; if W&B cannot be reached, it is stored in {folder}/wandb"
