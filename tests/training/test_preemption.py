"""SIGTERM and Ctrl-C are not lost where a run fails, and stay ignored where they were."""

import signal

import pytest

from ner_experiments.training.preemption import SIGNALS, sigterm_handler


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("fails", [True, False])
def test_a_signal_ends_the_process_even_if_the_run_fails(number: signal.Signals, fails: bool) -> None:
    """An error alone would end the job, and the sweep would go on to the next one."""
    before = signal.getsignal(number)

    def run() -> None:
        with sigterm_handler() as sigterm:
            signal.raise_signal(number)
            assert sigterm.received
            if fails:
                raise ValueError("the loss is not finite")

    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_process_where_it_arrives_if_there_is_no_work_to_lose(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the compilation of kernels before the first step, which takes many seconds."""

    def run() -> None:
        with sigterm_handler(at_once=True):
            signal.raise_signal(number)
            raise AssertionError("not reached")

    with pytest.raises(SystemExit) as ended:
        run()
    assert (ended.value.code, capsys.readouterr().err) == (128 + number, "")


def test_a_failure_without_a_signal_stays_a_failure() -> None:
    with pytest.raises(ValueError, match="not finite"), sigterm_handler():
        raise ValueError("the loss is not finite")


def test_ctrl_c_stays_ignored_in_the_background_of_a_script() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with sigterm_handler() as sigterm:
            signal.raise_signal(signal.SIGINT)
            assert not sigterm.received
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
