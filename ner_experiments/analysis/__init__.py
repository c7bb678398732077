"""Analysis of finished runs: errors, breakdowns by group of mentions, calibration, significance, attention."""
