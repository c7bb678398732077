"""Comparisons of any tools' predictions on one gold file: reading, aligning, and the statistics of tables."""
