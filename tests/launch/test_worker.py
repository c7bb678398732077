"""Report of a failed job to its sweep: one line, the same for every launcher."""

import pytest

from ner_experiments.launch.worker import RefusedError, failed, reason


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
