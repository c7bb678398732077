"""`-m`: composes every job before the first starts, runs them all, and prints one table. A Hydra sweeper."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn


@dataclass
class RowsSweeperConfig:
    _target_: str = "hydra_plugins.rows_sweeper.RowsSweeper"


ConfigStore.instance().store(group="hydra/sweeper", name="rows", node=RowsSweeperConfig)


class RowsSweeper(BasicSweeper):
    """The cartesian product of the overrides' values, as Hydra's own sweeper; a failed job stops no other."""

    def __init__(self) -> None:
        super().__init__(max_batch_size=None)

    def sweep(self, arguments: list[str]) -> Sequence[JobReturn]:
        from ner_experiments import summary

        assert self.hydra_context is not None
        assert self.launcher is not None
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        (jobs,) = self.split_arguments(parser.parse_overrides(arguments), max_batch_size=None)
        self.validate_batch_is_legal(jobs)
        results = self.launcher.launch(jobs, initial_job_idx=0)
        if summary.show(results):
            sys.exit(1)
        return results
