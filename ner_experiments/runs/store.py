"""The store of runs: which runs a folder has, in which state, and which of them belong to an experiment.

A run lies in OUTPUT/NAME/seed-SEED. NAME keeps experiments apart and narrows a search; what a run is, its metrics.json
says, or its config.yaml while it is not finished. Archived runs lie in RESULTS/**/runs/*.json.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.config.identity import file_settings, files_digest, identity, unread_folder
from ner_experiments.runs import artifacts, code, progress
from ner_experiments.runs.archived_run import ArchivedRun, archived_runs
from ner_experiments.runs.artifacts import CODE, CONFIG, METRICS_FILE, SCORED, read_config
from ner_experiments.runs.run import Run, by_seed, log_once
from ner_experiments.utils.checks import Text, Texts, parsed
from ner_experiments.utils.files import State, state
from ner_experiments.utils.garbage import paused_garbage_collection
from ner_experiments.utils.text import read_json_object

if TYPE_CHECKING:
    from omegaconf import DictConfig

TABLE, RUNS = "table.json", "runs"
"""The file that describes an archive, and the folder of its runs."""

# Folders of runs in any state


def run_folders(output: Path, corpus: str = "", *, below: bool = False) -> list[Path]:
    """The folders of runs in an output folder, finished or not.

    corpus: the name of a corpus, to leave out most runs on others.
    below: also those of output folders within it; the folder may then be OUTPUT/NAME or that of a run, too.
    """
    pattern = f"{glob.escape(corpus)}-*/seed-*" if corpus else "*/seed-*"
    found = [output, *output.rglob("seed-*")] if below else output.glob(pattern)
    return sorted(path for path in found if path.name.removeprefix("seed-").isdecimal() and path.is_dir())


def is_row(folder: Path) -> bool:
    """Whether a folder is that of a run or OUTPUT/NAME, which has runs that differ in the seed alone."""
    return any(folder in (path, path.parent) for path in run_folders(folder, below=True))


def seed_of(folder: Path) -> int:
    return int(folder.name.removeprefix("seed-"))


def outdated(folder: Path) -> str:
    """Why the run in a folder is not of the present code, as `code.outdated`; empty if it is, or has not begun."""
    return code.outdated(folder / CODE) if (folder / CONFIG).exists() else ""


def experiment_key(cfg: DictConfig) -> str:
    """Name of the settings but for the seed, known before files are read: NAME of a run that has not read its data."""
    return unread_folder(cfg).parent.name


def experiment_and_seed(folder: Path) -> tuple[str, int] | None:
    """The `experiment_key` and the seed of the run in a folder; None if no config of it can be read.

    A run that fails before it has read its data leaves no config, and has not been moved.
    """
    seed = seed_of(folder)
    if not (folder / CONFIG).exists():
        return folder.parent.name, seed
    try:
        return experiment_in(folder.parent), seed
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def experiment_in(seeds: Path) -> str:
    """Experiment of the runs in OUTPUT/NAME, which differ in the seed alone, by the first config.yaml that can be read.

    ValueError if none can.
    """
    for path in sorted(seeds.glob(f"seed-*/{CONFIG}")):
        with suppress(ValueError, OSError, AttributeError):  # the last without a part or its class
            return experiment_key(read_config(path.parent))
    raise ValueError(f"{seeds}: no run in it has a {CONFIG} that can be read")


def reads(folder: Path, files: str) -> bool:
    """Whether the run in a folder reads the files of the settings with this digest, or failed to."""
    try:
        return files_digest(read_config(folder)) == files
    except OSError:
        return (folder / artifacts.unread_error_name(files)).exists()
    except ValueError:
        return False


def interrupted_by_other_code(cfg: DictConfig) -> Iterator[tuple[Path, str]]:
    """The folders of the config's run that have a checkpoint by other code, with the reason, as `code.outdated`."""
    for folder in run_folders(Path(cfg.output_dir), cfg.data.name):
        if seed_of(folder) == cfg.seed and (folder / progress.CHECKPOINT).exists():
            reason = code.outdated(folder / CODE)
            if reason and experiment_and_seed(folder) == (experiment_key(cfg), cfg.seed):
                yield folder, reason


# Finished runs


def finished_runs(output: Path, corpus: str = "", *, below: bool = False) -> Iterator[Run]:
    """The finished runs of the `run_folders`. One with a damaged metrics.json is named in a warning and left out."""
    for folder in run_folders(output, corpus, below=below):
        path = folder / METRICS_FILE
        if any(found := state(path)):
            try:
                yield Run(folder, _metrics(path, found))
            except (artifacts.DamagedError, OSError) as error:
                leave_out(error)


def intact(runs: Iterable[Run]) -> Iterator[Run]:
    """The runs but for those with a damaged or missing file that tables read, which are named in a warning."""
    for run in runs:
        files = (METRICS_FILE, *SCORED)
        try:
            _verify(run.folder, tuple(state(run.folder / name) for name in files))
        except (artifacts.DamagedError, OSError) as error:
            leave_out(error)
        else:
            yield run


@lru_cache(maxsize=10_000)
def _metrics(path: Path, _state: State) -> Mapping[str, Any]:
    """`artifacts.read_metrics`, once for each state of the file: tables share runs, and sweeps ask again."""
    return artifacts.read_metrics(path)


@lru_cache(maxsize=10_000)
def _verify(folder: Path, states: tuple[State, ...]) -> None:
    """`artifacts.verify` the files that tables read, once for each state of metrics.json and of theirs."""
    artifacts.verify(folder, _metrics(folder / METRICS_FILE, states[0]), SCORED)


def leave_out(error: Exception) -> None:
    log_once(f"{error}; this run is left out")


def corpora_in(output: Path) -> set[str]:
    """Names of the corpora of the finished runs in an output folder, by one run of each experiment."""
    names: dict[Path, str] = {}
    for path in output.glob(f"*/seed-*/{METRICS_FILE}"):
        if path.parents[1] not in names:
            with suppress(artifacts.DamagedError, OSError):
                names[path.parents[1]] = str(_metrics(path, state(path))["data"]["name"])
    return {*names.values()}


# Runs of an experiment


def candidates(cfg: DictConfig) -> Iterator[Run]:
    """The finished runs under `output_dir` that may be of a config's experiment."""
    return finished_runs(Path(cfg.output_dir), cfg.data.name)


def of_experiment(cfg: DictConfig, runs: Iterable[Run]) -> list[Run]:
    """Runs whose identity matches `cfg`, given the data each was trained on."""
    expected = cache(partial(identity, cfg))  # most runs read the same data
    return [run for run in runs if expected(run.metrics["checksum"]) == run.metrics["identity"]]


FindRuns = Callable[[Any, str], Mapping[int, Run]]
"""Finds the runs of an experiment by seed, given its config and the label of its row.

Raises ValueError or OSError if they cannot be identified.
"""


def in_output_dir(fingerprint: Callable[[DictConfig], str]) -> FindRuns:
    """Finds runs under `output_dir`, which it reads once, if they read the data files as they are now.

    Runs whose code has changed since count only with runtime.reuse=any, and only for seeds without another run.
    ValueError if all runs of the experiment used other files or other code.
    fingerprint: computes the checksum of the files that a config reads, such as `experiment_data.Fingerprints()`;
        called only if there is a run, and its exceptions propagate.
    """

    @cache
    def finished(output: str, corpus: str) -> list[Run]:
        with paused_garbage_collection(keeps=True):
            return [*finished_runs(Path(output), corpus)]

    def find(cfg: DictConfig, _label: str) -> dict[int, Run]:
        matching = [*intact(of_experiment(cfg, finished(cfg.output_dir, cfg.data.name)))]
        if not matching:
            return {}
        read = fingerprint(cfg)
        if own := [run for run in matching if run.metrics["checksum"] == read]:
            return by_seed(of_present_code(own, reuse=cfg.runtime.reuse))
        files = file_settings(cfg)
        run = next((run for run in matching if file_settings(run.config) == files), matching[0])
        checksum = run.metrics["checksum"]
        raise ValueError(f"{run.folder} read other files: their checksum was {checksum}, now it is {read}")

    return find


def of_present_code(runs: Sequence[Run], reuse: str) -> list[Run]:
    """The runs whose code is as it was, preceded by the others, the newest last, if `reuse` is "any".

    A warning names others that count, or that are left out. Raises ValueError if all would be left out.
    """
    earlier = sorted((run for run in runs if run.outdated), key=lambda run: finished_at(run.folder))
    present = [run for run in runs if not run.outdated]
    if not earlier:
        return present
    if reuse == "any":
        counted = [*by_seed([*earlier, *present]).values()]
        if others := [run for run in counted if run.outdated]:
            log_once(
                f"counted, as runtime.reuse=any: {and_others([it.folder for it in others])}: {others[0].outdated}"
            )
        return counted
    reason = f"{earlier[0].outdated}; runtime.reuse=any counts such runs"
    if not present:
        # the same for all rows, so that a table says it once
        raise ValueError(f"runs by other code: {reason}")
    log_once(f"left out: {and_others([it.folder for it in earlier])}: {reason}")
    return present


def and_others(folders: Sequence[Path]) -> str:
    """The first folder of a run, and the number of the others."""
    more = len(folders) - 1
    return f"{folders[0]}{f' and {more} other run' if more else ''}{'s' * (more > 1)}"


def finished_at(folder: Path) -> float:
    """When the metrics.json of a run's folder was written, in seconds; 0 without one."""
    path = folder / METRICS_FILE
    return path.stat().st_mtime if path.exists() else 0.0


def by_other_code(cfg: DictConfig, identity: str) -> Run | None:
    """The last finished run of this identity and the config's seed that is not of the present code, if there is one."""
    same = (
        run
        for run in candidates(cfg)
        if (run.metrics["identity"], run.metrics["seed"]) == (identity, cfg.seed)
    )
    outdated = (run for run in intact(same) if run.outdated)
    return max(outdated, key=lambda run: finished_at(run.folder), default=None)


# Archived runs


@dataclass(frozen=True)
class Archive:
    """A folder of archived runs of a table, which were made with these overrides.

    Both are in its table.json, by which it is found; its name is only a short form of them.
    """

    folder: Path
    table: Text
    overrides: Texts

    @cached_property
    def runs(self) -> list[ArchivedRun]:
        """Its runs, by file name."""
        return [*archived_runs(self.folder / RUNS)]

    def finished(self, cfg: DictConfig, label: str) -> dict[int, Run]:
        """The runs of an experiment that were archived for the row of this label, by seed.

        Whatever data they read; ValueError if these differ.
        """
        matching = of_experiment(cfg, [run for run in self.runs if run.label == label])
        for run in matching[1:]:
            first = matching[0]
            if run.metrics["checksum"] != first.metrics["checksum"]:
                read = f"{first.metrics['checksum']}, {run.metrics['checksum']}"
                raise ValueError(f"{first.folder} and {run.folder} read different files: {read}")
        return by_seed(matching)


def archives(results: Path, table: str = "") -> list[Archive]:
    """The archives in a folder, ordered by table and overrides; those of a table, if it is given."""
    found = (read_archive(path.parent) for path in (results / table).rglob(TABLE))
    return sorted(found, key=lambda it: (it.table, it.overrides))


def find_archive(results: Path, table: str, overrides: Sequence[str]) -> Archive | None:
    """The archive of a table's runs with these overrides; None if there is none."""
    return next((it for it in archives(results, table) if same_overrides(it.overrides, overrides)), None)


def read_archive(folder: Path) -> Archive:
    """The archive in a folder. ValueError, with the path, for a damaged table.json."""
    path = folder / TABLE
    try:
        content = read_json_object(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    archive = parsed(content, Archive, f"{path}", folder=folder)
    if references := [item for item in archive.overrides if "${" in item]:
        raise ValueError(f"{path}: overrides must be values, not references, got {references[0]!r}")
    return archive


def same_overrides(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of overrides are the same in any order.

    Paths are compared by their last component, as a file may lie elsewhere on another machine.
    """
    return sorted(map(without_folders, one)) == sorted(map(without_folders, other))


def without_folders(override: str) -> str:
    key, equals, value = override.partition("=")
    return key + equals + value.rstrip("/").rpartition("/")[2]
