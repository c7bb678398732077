"""Trains flair's `SequenceTagger` for one epoch, and tags the lines of a text with its `predict`.

python tag_flair.py FOLDER OUTPUT TEXT
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import flair
import outcome
import torch
from flair.data import Corpus, Sentence
from flair.trainers import ModelTrainer
from run_flair import make_tagger, read_columns

LINES = 10_000
"""Lines that are tagged at a time: flair keeps kilobytes of objects for each."""


def main() -> None:
    task, text = outcome.text_task()
    torch.set_num_threads(task.settings["threads"])
    flair.set_seed(1)
    corpus = Corpus(train=read_columns(task).train, sample_missing_splits=False)
    tagger = make_tagger(task, corpus)
    ModelTrainer(tagger, corpus).train(
        task.folder / "flair",
        learning_rate=task.settings["lr"],
        mini_batch_size=task.settings["batch"],
        max_epochs=1,
        save_final_model=False,
    )

    def tag(lines: Iterable[str]) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
        lines = iter(lines)
        while block := [Sentence(line) for line in islice(lines, LINES)]:
            tagger.predict(block, mini_batch_size=task.settings["batch"], label_name="predicted")
            for sentence in block:
                spans = sentence.get_spans("predicted")
                yield sentence.text, [(it.start_position, it.end_position, it.tag) for it in spans]

    outcome.tag_lines(task, text, tag, flair.__version__)


if __name__ == "__main__":
    main()
