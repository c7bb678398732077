"""A run's tagger as a file that runs without the suite: torch.export, ONNX, and a model card."""
