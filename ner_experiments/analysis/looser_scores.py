"""Scores beside F1: its mean over types, and F1 by the looser matches of SemEval-2013.

Source: Segura-Bedmar, Martinez & Herrero-Zazo (2013), "SemEval-2013 Task 9", section 4.1, which leaves open what
happens if a mention overlaps two. Reading: one matching for all scores and for the kinds of errors (`errors.compare`),
in which the pair with the largest overlap comes first, whatever its types. nervaluate matches anew for each score,
prediction by prediction: for `type` it prefers a gold mention of the same type, and an earlier prediction of another
type can take the gold mention of a later one. Either score can be the higher one; they are equal if no mention overlaps
two.
"""

from __future__ import annotations

from ner_experiments.analysis.archive import Errors
from ner_experiments.analysis.breakdown import TYPE
from ner_experiments.analysis.errors import BOTH, BOUNDARY, WRONG_TYPE

MACRO = "mean F1 of the types"
ANY_TYPE = "F1 of the boundaries, of any type"
ANY_OVERLAP = "F1 of the types, with any overlap"
PARTIAL = "F1 of the boundaries, an overlap counts half"


def looser_scores(errors: Errors) -> dict[str, float]:
    """Scores of a run on test by name, in [0, 1]; empty if the kinds of its errors are unknown or do not apply.

    MACRO: mean F1 of all types that are gold or predicted, as seqeval's macro average.
    ANY_TYPE: F1 of mentions with the right boundaries, whatever their type (`exact`).
    ANY_OVERLAP: F1 of mentions whose match has their type (`type`).
    PARTIAL: as ANY_TYPE, with half a match for a mention that only overlaps a gold one (`partial`).
    """
    if not errors.kinds:
        return {}
    types = errors.breakdown[TYPE].values()
    correct, mentions = (
        sum(counts) for counts in zip(*((it.correct, it.predicted + it.gold) for it in types), strict=True)
    )
    matches = {
        ANY_TYPE: correct + errors.kinds[WRONG_TYPE].count,
        ANY_OVERLAP: correct + errors.kinds[BOUNDARY].count,
    }
    matches[PARTIAL] = matches[ANY_TYPE] + (errors.kinds[BOUNDARY].count + errors.kinds[BOTH].count) / 2
    macro = sum(it.f1 for it in types) / len(types)
    return {MACRO: macro} | {name: 2 * count / mentions for name, count in matches.items()}
