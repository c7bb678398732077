"""A published table's experiments, composed, and which of them have not been run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.compose import compose
from ner_experiments.config.identity import NOT_THE_EXPERIMENT, identity, inputs
from ner_experiments.tables import spec
from ner_experiments.tables.spec import Row, Table


@dataclass(frozen=True)
class Experiment:
    """A row that is run: what makes it on the command line, and the composed config, whose seed is any."""

    row: Row
    overrides: tuple[str, ...]
    cfg: DictConfig

    def reads(self) -> tuple[str, ...]:
        """Its corpus, and by their names the files and folders that its inputs are made of."""
        settings = OmegaConf.to_container(self.cfg, resolve=True)
        assert isinstance(settings, dict)
        places = [it[key] for it in inputs(settings) for key in ("path", "folder") if key in it]
        return (self.cfg.data.name, *(Path(place).name for place in places))


def experiments(table: Table, further: Sequence[str] = ()) -> list[Experiment]:
    """The rows that are run, composed; `further` overrides take the place of the table's own.

    An analysis has those of the table whose runs it analyses. ValueError, with the row, for what Hydra or
    `settings.check` refuse, and for overrides that make two rows one.
    """
    if table.command:
        raise ValueError(f"{table.name}: its rows are no training runs; `{table.command}` measures them")
    if table.analysis:
        return experiments(spec.load(table.analysis), further)
    found: dict[str, Experiment] = {}
    for row in table.rows:
        if row.run is None:
            continue
        overrides = joined(table.base, row.run, further)
        experiment = Experiment(row, overrides, compose(overrides, f"{table.name}, row {row.label!r}"))
        same = found.setdefault(OmegaConf.to_yaml(experiment.cfg, resolve=True), experiment)
        if same is not experiment:
            raise ValueError(
                f"{table.name}: rows {same.row.label!r} and {row.label!r} are one experiment"
                + (f" with {' '.join(further)}" if further else "")
            )
    return list(found.values())


def joined(*parts: Sequence[str]) -> tuple[str, ...]:
    """All overrides, of several with the same key only the last."""
    return tuple({key(item): item for part in parts for item in part}.values())


def deviations(table: Table, further: Sequence[str]) -> list[str]:
    """The overrides that make other experiments of the rows, and not only another place or machine.

    What words are read from counts as another experiment: the name of a model on a hub is no place.
    """
    others = [item for item in further if root(item) not in NOT_THE_EXPERIMENT]
    if not others:
        return []
    pairs = zip(experiments(table), experiments(table, further), strict=True)
    if all(identity(own.cfg, "") == identity(other.cfg, "") for own, other in pairs):
        return [item for item in others if item.partition("=")[0].endswith("input.path")]
    return others


def key(override: str) -> str:
    """layers of layers=2, +layers=2 and ++layers=2."""
    return override.partition("=")[0].lstrip("+~")


def root(override: str) -> str:
    """data of data=weibo, data.max_sentences=80 and data/any=thing."""
    return key(override).replace("/", ".").partition(".")[0]


def unfinished(table: Table, further: Sequence[str], seeds: Sequence[int]) -> tuple[list[list[str]], int]:
    """The jobs that a sweep over the table has to launch, and how many it need not as they are finished.

    No seeds: the table's own. Rows whose files cannot be read are launched: their jobs fail, and say why.
    """
    from ner_experiments.build import Fingerprints  # with torch, which a look at the tables does not need
    from ner_experiments.runs import run

    jobs, finished, fingerprints = [], 0, Fingerprints()
    seeds = seeds or seeds_of_table(table)
    for experiment in experiments(table, further):
        try:
            done = run.finished(experiment.cfg, fingerprints)
        except (ValueError, OSError):
            done = {}
        left = [seed for seed in seeds if seed not in done]
        jobs += [[*experiment.overrides, f"seed={seed}"] for seed in left]
        finished += len(seeds) - len(left)
    return jobs, finished


def seeds_of_table(table: Table) -> tuple[int, ...]:
    """Its own; of an analysis those of the table whose runs it analyses."""
    return (spec.load(table.analysis) if table.analysis else table).seeds


def output_dir(further: Sequence[str]) -> Path:
    """Where the runs lie that the overrides speak of."""
    return Path(compose(further, "output_dir").output_dir)
