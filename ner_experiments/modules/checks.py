"""The rules that every architecture's hyper-parameters obey."""


def check_sizes(**sizes: int) -> None:
    """ValueError unless each is at least 1: `check_sizes(num_layers=num_layers, hidden_size=hidden_size)`."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def check_rates(**rates: float) -> None:
    """ValueError unless each lies in [0, 1): a dropout of 1 would leave nothing."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, got {rate}")
