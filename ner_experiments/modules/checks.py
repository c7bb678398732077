"""Checks of hyper-parameters that all architectures share."""


def check_sizes(**sizes: int) -> None:
    """Raise ValueError unless each is at least 1: `check_sizes(num_layers=num_layers, hidden_size=hidden_size)`."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def check_rates(**rates: float) -> None:
    """Raise ValueError unless each is in [0, 1): dropout at rate 1 would drop everything."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, got {rate}")
