"""The Lightning trainer and its callbacks: checkpoints, gradients, progress, preemption."""
