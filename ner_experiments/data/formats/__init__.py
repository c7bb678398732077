"""Formats of annotated text: a reader and a writer each, in one file, and a line in `registry.py`."""
