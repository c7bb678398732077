"""Kernels of the CRF and the LSTMs: compiled by numba on CPUs (`cpu`), by Triton on GPUs (`cuda`).

`cpu` and `cuda` say when kernels serve and call them; `crf_numba`, `lstm_numba`, `numba_ops`, `crf_triton` and
`lstm_triton` hold the kernels. Without numba or Triton, PyTorch does the same, more slowly.
"""
