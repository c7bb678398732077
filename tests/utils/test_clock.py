"""The clock of training stands still while it is stopped."""

from types import SimpleNamespace

import pytest

from ner_experiments.utils import clock


def test_the_time_of_a_stop_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([100.0, 110.0, 111.0, 114.0, 120.0])
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: next(moments)))
    monkeypatch.setattr(clock, "lost", [0.0])
    began = clock.now()
    with clock.stopped():
        with clock.stopped():
            assert clock.now() - began == 10.0
        assert clock.now() - began == 10.0
    assert clock.now() - began == 16.0
