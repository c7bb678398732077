"""Checks of hyper-parameters that all architectures share."""

from ner_experiments.utils.ranges import AT_LEAST_1, RATE

REDUCTIONS = ("sentence", "token", "sum")
"""Allowed reductions of the loss of a softmax."""


def check_sizes(**sizes: int) -> None:
    """Raise ValueError unless all sizes are at least 1. Example: `check_sizes(num_layers=num_layers)`."""
    for name, size in sizes.items():
        AT_LEAST_1.check(name, size)


def check_rates(**rates: float) -> None:
    """Raise ValueError unless all rates are in [0, 1): dropout at rate 1 would drop everything."""
    for name, rate in rates.items():
        RATE.check(name, rate)
