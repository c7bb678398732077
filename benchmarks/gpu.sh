#!/usr/bin/env bash
# Benchmarks the suite on a GPU in under nine minutes and writes the tables: bash benchmarks/gpu.sh
# Uses the Python of .venv; for another: PYTHON=a-python bash benchmarks/gpu.sh
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH=".${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1
lack=$("$python" -c 'from ner_experiments.config.values import lack_of_gpu; print(lack_of_gpu())')
[ -z "$lack" ] || { echo "benchmarks/gpu.sh needs a GPU: $lack" >&2; exit 1; }
# gpu.py stops after eight minutes. If timeout ends it (124), its results so far are on disk.
timeout 525 "$python" benchmarks/gpu.py || [ $? = 124 ]
"$python" benchmarks/tables.py
echo "The tables are in benchmarks/RESULTS.md, the figures in benchmarks/results.json."
