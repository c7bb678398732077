"""The error analysis of predictions."""

from collections.abc import Sequence

from ner_experiments.analysis.archive import Errors, errors_in_predictions
from ner_experiments.analysis.breakdown import dimensions
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.runs.predictions import Predicted


def errors_of(
    sentences: Sequence[Predicted], train: Sequence[Sentence] | None, task: Task = "mentions"
) -> Errors:
    (errors,) = errors_in_predictions([sentences], task, dimensions(train, task))
    return errors
