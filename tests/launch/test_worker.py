"""Config of a job, and its report to its sweep: of a failed job one line, the same for every launcher."""

import json

import hydra
import pytest
from omegaconf import OmegaConf

from ner_experiments.commands.train import with_new_keys
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.config.job import Job, config_of
from ner_experiments.launch.worker import reason


def with_note(error: Exception) -> Exception:
    error.add_note("(traceback: here)")
    return error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("dropout must be\nbelow 1"), "dropout must be below 1"),
        (OSError("no space"), "no space"),
        (KeyError("x"), "KeyError: 'x'"),
        (with_note(RuntimeError("a\n b")), "RuntimeError: a b (traceback: here)"),
    ],
)
def test_a_failure_is_one_line_wherever_it_is_reported(error: Exception, line: str) -> None:
    assert reason(error) == line


def test_of_a_long_failure_the_traceback_can_still_be_found() -> None:
    line = reason(with_note(ValueError("and more " * 500)))
    assert line.endswith(" ... (traceback: here)")
    assert len(line) < 640


@pytest.mark.parametrize(
    "overrides",
    [
        ["seed=3", "output_dir=a b", "trainer.gradient_clip=inf"],
        [
            "model=residual",
            "layers=3",
            "model.dropout=0.0",
            "data=csv",
            "data.columns.pos=POS",
            "data.name='1e3'",
        ],
    ],
)
def test_a_job_has_the_config_that_hydra_composes(overrides: list[str]) -> None:
    """The config that reaches a worker, as a line of JSON."""
    job = Job(tuple(overrides), "mine", 'a "b" 1')
    with hydra_context():
        expected = hydra.compose(CONFIG_NAME, overrides=with_new_keys(overrides))
    expected.sweep.update(name="mine", row=job.row)
    found = config_of(json.loads(json.dumps(job.config())))
    assert found == expected
    assert repr(OmegaConf.to_container(found)) == repr(OmegaConf.to_container(expected))
    assert OmegaConf.is_struct(found)
    assert found.sweep.row == job.row
