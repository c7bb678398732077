"""Rules that all paths of the CRF share: which masks and tags are valid, and when Viterbi rescales its sums."""

MASK_RULE = "mask must have at least one real token in each sentence, and padding only after the real tokens"
TAG_RULE = "tags must be at least 0, and below the number of tags"
RESCALED = 8
"""Viterbi's sums are moved to a maximum of 0 at tokens 7, 15, 23, ...: they would grow until float32 loses digits.

All paths do so at the same tokens, so that they round alike and find the same path among equals.
"""
