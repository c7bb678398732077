"""Hydra composition and validation, the identity of a run, and safe reading of config.yaml."""
