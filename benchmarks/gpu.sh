#!/usr/bin/env bash
# Benchmarks the suite on a GPU in under nine minutes and writes the tables: bash benchmarks/gpu.sh
# Uses the Python of .venv; for another: PYTHON=a-python bash benchmarks/gpu.sh
# Peers, unpatched, are measured where they are: NCRFPP=a clone of github.com/jiesutd/NCRFpp, a folder that can be copied,
# and FLAIR_PYTHON=the Python of an environment with flair. For a machine without a network: `pip download flair -d wheels`,
# and there `python -m venv --system-site-packages flair; flair/bin/pip install --no-index --find-links wheels flair`.
# NCRF++ gives pack_padded_sequence lengths on the GPU, which PyTorch has come to refuse; it is then left out and named.
# TINY=FILE tries everything that a CPU can run, on tiny data, and writes the result to that file alone.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH=".${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1
peers=(${NCRFPP:+--ncrfpp "$NCRFPP"} ${FLAIR_PYTHON:+--flair-python "$FLAIR_PYTHON"})
if [ -n "${TINY:-}" ]; then
  exec timeout 525 "$python" benchmarks/gpu.py --tiny --rounds 1 --output "$TINY" ${peers[@]+"${peers[@]}"}
fi
lack=$("$python" -c 'from ner_experiments.config.values import lack_of_gpu; print(lack_of_gpu())')
[ -z "$lack" ] || { echo "benchmarks/gpu.sh needs a GPU: $lack" >&2; exit 1; }
# gpu.py stops after eight minutes. If timeout ends it (124), its results so far are on disk.
timeout 525 "$python" benchmarks/gpu.py ${peers[@]+"${peers[@]}"} || [ $? = 124 ]
"$python" benchmarks/tables.py
echo "The tables are in benchmarks/RESULTS.md, the figures in benchmarks/results.json."
