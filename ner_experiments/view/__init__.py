"""Charts of results: the report, results/, README, W&B and TensorBoard show the same ones."""
