"""Formats of annotated text. Each is a file with a reader and a writer, and an entry in `registry.py`."""
