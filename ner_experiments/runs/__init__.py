"""What a run leaves in its folder: artifacts, checksums, predictions, provenance, progress."""
