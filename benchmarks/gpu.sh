#!/usr/bin/env bash
# Measures what a GPU does, in under nine minutes, and writes the tables: bash benchmarks/gpu.sh
# It runs the Python of .venv; another: PYTHON=a-python bash benchmarks/gpu.sh
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH=. OMP_NUM_THREADS=1
lack=$("$python" -c 'from ner_experiments.config.values import lack_of_gpu; print(lack_of_gpu())')
[ -z "$lack" ] || { echo "benchmarks/gpu.sh measures a GPU: $lack" >&2; exit 1; }
# gpu.py stops after eight minutes by itself, and has written what it measured even if timeout stops it (124)
timeout 525 "$python" benchmarks/gpu.py "$@" || [ $? = 124 ]
"$python" benchmarks/tables.py
echo "The tables are in benchmarks/RESULTS.md, the figures in benchmarks/results/gpu.json."
