"""The digest of a test set's gold, by which runs are known to be scored on one test set, whatever files they read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from ner_experiments.data.sentence import Sentence, Task


def gold_digest(sentences: Iterable[Sentence], task: Task) -> str:
    """SHA-256 of the task and of all that the score depends on: the tokens and the gold of each sentence, in order."""
    digest = hashlib.sha256(task.encode())
    for it in sentences:
        digest.update(b"\n" + json.dumps([it.words, it.tags, *it.unreachable]).encode())
    return digest.hexdigest()
