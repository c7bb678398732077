"""Architectures, one per file: `(x, lengths) -> "batch time size"`, with `output_size`."""
