"""Kernels of the CRF and of LSTM recurrences: numba on CPUs, Triton on GPUs. See docs/contributing/kernels.md.

`cpu` and `cuda` decide when kernels apply and call them; `crf_numba`, `lstm_numba`, `numba_ops`, `crf_triton` and
`lstm_triton` contain them. Without numba or Triton, PyTorch computes the same, more slowly.
"""
