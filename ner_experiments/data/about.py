"""The entry of metrics.json on the data of a run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ner_experiments.data import raw_text
from ner_experiments.data.corpus import Source, leakage
from ner_experiments.data.sentence import Corpus, gold_digest

log = logging.getLogger(__name__)


def about_data(corpus: Corpus, source: Source, notes: Sequence[str]) -> dict[str, Any]:
    """Name, checksum, notes and numbers of shared sentences of a corpus, and what of these there is: the splits that
    are not the published ones, the digest of test's gold, and the agreement of its tokens with those of `predict`.

    Logs the notes and the agreement.
    """
    agreement = raw_text.raw_text_of(corpus, source.tokens)
    for note in (*notes, *([raw_text.line(agreement)] if agreement else [])):
        log.info("%s", note)
    about: dict[str, Any] = {"name": corpus.name, "checksum": corpus.checksum, "notes": [*notes]}
    if corpus.unofficial:
        about["unofficial"] = [*corpus.unofficial]
    if "test" in corpus.splits:
        about["gold"] = gold_digest(corpus.splits["test"], corpus.task)
    if agreement:
        about["raw_text"] = agreement
    return {**about, "leakage": leakage(corpus.splits)}
