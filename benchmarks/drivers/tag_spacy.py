"""Trains spaCy's named-entity recognizer for one epoch, and tags the lines of a text with `nlp.pipe`.

python tag_spacy.py FOLDER OUTPUT TEXT
"""

from collections.abc import Iterable, Iterator

import outcome
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, biluo_tags_to_spans
from spacy.util import minibatch


def main() -> None:
    task, text = outcome.text_task()
    torch.set_num_threads(task.settings["threads"])
    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = list(read(task, nlp))
    optimizer = nlp.initialize(lambda: examples)
    for batch in minibatch(examples, task.settings["batch"]):
        nlp.update(batch, sgd=optimizer)

    def tag(lines: Iterable[str]) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
        for document in nlp.pipe(lines):
            yield document.text, [(it.start_char, it.end_char, it.label_) for it in document.ents]

    outcome.tag_lines(task, text, tag, spacy.__version__)


def read(task: outcome.Task, nlp: Language) -> Iterator[Example]:
    """The sentences of train, with their mentions."""
    for block in task.train.read_text(encoding="utf-8").strip().split("\n\n"):
        words, tags = zip(*(line.split(" ") for line in block.split("\n")), strict=True)
        biluo = [tag.replace("S-", "U-").replace("E-", "L-") for tag in tags]
        annotated = Doc(nlp.vocab, words=list(words))
        annotated.ents = biluo_tags_to_spans(annotated, biluo)
        yield Example(Doc(nlp.vocab, words=list(words)), annotated)


if __name__ == "__main__":
    main()
