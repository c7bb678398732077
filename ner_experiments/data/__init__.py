"""Corpora: reading, checking, converting, encoding and batching. Knows no model."""
