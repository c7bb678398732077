"""Config of a job, and its report to its sweep: of a failed job one line, the same for every launcher."""

import hydra
import pytest

from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.launch.worker import RefusedError, compose_job, failed, reason


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
    assert reason(failed([], line)._return_value) == line


def test_of_a_long_failure_the_traceback_can_still_be_found() -> None:
    line = reason(with_note(ValueError("and more " * 500)))
    assert line.endswith(" ... (traceback: here)")
    assert len(line) < 640
    assert reason(RefusedError(line)) == line


@pytest.mark.parametrize(
    "overrides",
    [
        ["seed=3"],
        ["hydra.mode=MULTIRUN", "hydra.verbose=false", "model=residual", "layers=3", "sweep.row='a b'"],
    ],
)
def test_a_job_has_the_config_that_hydra_composes(overrides: list[str]) -> None:
    with hydra_context():
        expected = hydra.compose(CONFIG_NAME, overrides=overrides)
    found = compose_job(overrides)
    assert found == expected
    assert "hydra" not in found
