"""Hydra composition and validation, the identity of a run, and config.yaml files of strangers."""
