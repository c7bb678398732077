"""TensorBoard, Weights & Biases or CSV files alone: what is logged each epoch and at the end."""
