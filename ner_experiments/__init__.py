"""Four papers' named-entity taggers, and the sweeps that reproduce their tables."""

__version__ = "0.1.0"
