"""Published tables: their YAML, the experiments of their rows, scores, plots and pages."""
