"""Tagging new text: input formats, sentence splitting and tokenization, the tagger, output formats."""
