"""Logging to TensorBoard, Weights & Biases or CSV files alone, after each epoch and at the end of a run."""
