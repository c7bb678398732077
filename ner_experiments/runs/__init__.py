"""The content of a run's folder: artifacts, checksums, predictions, provenance, progress."""
