"""Fuzzing of every reader with generated files: valid, damaged and random ones (`make fuzz`)."""
