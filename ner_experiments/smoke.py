"""`ner-experiments smoke`: every row of every published table, tried, scored and printed.

The rows' own settings and readers are at work. Only the files are not the real ones (see `smoke_data`), and
each run is trained for two steps, so that the scores mean nothing. The trainings of the XOR table are made
in full, with one seed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from omegaconf import OmegaConf

from ner_experiments import smoke_data, table_page, table_records, tables
from ner_experiments.results import write_json
from ner_experiments.table_command import as_value
from ner_experiments.table_runs import Experiment, experiments
from ner_experiments.table_scores import collect
from ner_experiments.tables import Table

SHORT = ("trainer.max_epochs=1", "trainer.train_batches=2")
QUIET = ("runtime.progress=false", "runtime.accelerator=cpu")


def main(argv: Sequence[str]) -> int:
    """Returns the exit status: 1 if any row failed. ValueError or OSError for what the user caused."""
    arguments = parser().parse_args(argv)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.output or Path(folder)
        chosen = [tables.load(name) for name in arguments.names or tables.names()]
        failed = sum(try_table(table, place.absolute()) for table in chosen)
    verdict = f"{failed} rows failed" if failed else "all rows train, decode and are aggregated"
    print(f"{verdict}; {time.perf_counter() - started:.0f} s. On tiny files made for it: no score counts.")
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    text = (
        "Every row of the published tables trains two steps on tiny files made for it, and is scored; those "
        "of the XOR table train in full."
    )
    parser = argparse.ArgumentParser(prog="ner-experiments smoke", description=text)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these tables")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keeps the files and runs there")
    return parser


def try_table(table: Table, place: Path) -> int:
    """The number of rows that failed, or that are not in the printed table afterwards."""
    started = time.perf_counter()
    if table.command:
        further = [f"output_dir={as_value(str(place / 'runs'))}"]
        try_trials(table, place / "runs")
        failed = 0
    else:
        further = replaced(table, place)
        failed = sum(not try_row(table, experiment) for experiment in experiments(table, further))
    page = collect(table, further)
    for write in (table_page.markdown, table_page.latex, table_records.as_csv, table_records.as_json):
        write(page)
    to_measure = [result for result in page.results if result.row.run is not None or result.row.trial]
    absent = sum(result.measured is None for result in to_measure)
    seconds = time.perf_counter() - started
    print(
        f"{table.name:<18} {len(table.rows):>3} rows, {len(to_measure):>2} run {seconds:6.1f} s", flush=True
    )
    return max(failed, absent)  # those that failed are absent too, unless the table is an analysis of them


def replaced(table: Table, place: Path) -> list[str]:
    """The overrides that lead a table's rows to files made for them, which are written here."""
    data_dir = place / "data"
    further = [
        *SHORT,
        *QUIET,
        f"data_dir={as_value(str(data_dir))}",
        f"output_dir={as_value(str(place / 'runs'))}",
        f"cache_dir={as_value(str(place / 'cache'))}",
    ]
    if not (data_dir / "gazetteer").exists():
        smoke_data.write_vectors(data_dir)
        smoke_data.write_gazetteer(data_dir)
    found = experiments(table, further)
    for experiment in found:
        data = OmegaConf.to_container(experiment.cfg.data, resolve=True)
        assert isinstance(data, dict)
        smoke_data.write_corpus({str(key): value for key, value in data.items()})
    if any(experiment.cfg.first for experiment in found):
        if find_spec("transformers") is None:
            raise ValueError(f"{table.name}: needs transformers: pip install -e '.[bert]'")
        smoke_data.write_bert(place / "bert")
        further += [f"first.{item}" for item in SHORT] + [f"words.input.path={as_value(str(place / 'bert'))}"]
    return further


def try_row(table: Table, experiment: Experiment) -> bool:
    """Whether it went well."""
    from ner_experiments.train import train

    try:
        train(experiment.cfg)
    except Exception as error:  # whatever it is, the other rows are to be tried
        print(f"{table.name}, {experiment.row.label}: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


def try_trials(table: Table, output: Path) -> None:
    """As `ner-experiments xor` does, with one seed and the table's architectures alone."""
    from ner_experiments.xor import suite
    from ner_experiments.xor.trials import FILE

    names = dict.fromkeys(row.trial[0] for row in table.rows if row.trial)
    made = suite.trials(list(names), [], num_seeds=1, num_processes=1)
    (output / "xor").mkdir(parents=True, exist_ok=True)
    write_json(output / "xor" / FILE, made.content)
