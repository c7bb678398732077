"""One architecture a file: `(x, lengths) -> "batch time size"`, and `output_size`."""
