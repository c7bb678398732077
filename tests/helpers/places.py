"""Paths of the checkout and its folders."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
CONF, RESULTS, DOCS, BENCHMARKS = (ROOT / name for name in ("conf", "results", "docs", "benchmarks"))
