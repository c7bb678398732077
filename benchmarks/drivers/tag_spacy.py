"""Trains spaCy's named-entity recognizer for one epoch, and tags the lines of a text with `nlp.pipe`.

python tag_spacy.py FOLDER OUTPUT TEXT
"""

import json
import time

import outcome
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example, biluo_tags_to_spans
from spacy.util import minibatch


def main() -> None:
    parser = outcome.parser()
    parser.add_argument("text")
    arguments = parser.parse_args()
    task = outcome.task(arguments)
    torch.set_num_threads(task.settings["threads"])
    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = [*read(task, nlp)]
    optimizer = nlp.initialize(lambda: examples)
    for batch in minibatch(examples, task.settings["batch"]):
        nlp.update(batch, sgd=optimizer)
    started = time.perf_counter()
    path = task.folder / arguments.text
    with (
        path.open(encoding="utf-8") as lines,
        (task.folder / "spacy.jsonl").open("w", encoding="utf-8") as file,
    ):
        for document in nlp.pipe(line.rstrip("\n") for line in lines):
            mentions = [
                {"start": it.start_char, "end": it.end_char, "type": it.label_} for it in document.ents
            ]
            file.write(json.dumps({"text": document.text, "mentions": mentions}) + "\n")
    seconds = time.perf_counter() - started
    found = {"seconds": seconds, "version": spacy.__version__, "peak_memory_bytes": outcome.peak_memory()}
    task.output.write_text(json.dumps(found), encoding="utf-8")


def read(task, nlp):
    for block in task.train.read_text(encoding="utf-8").strip().split("\n\n"):
        words, tags = zip(*(line.split(" ") for line in block.split("\n")), strict=True)
        biluo = [tag.replace("S-", "U-").replace("E-", "L-") for tag in tags]
        annotated = Doc(nlp.vocab, words=list(words))
        annotated.ents = biluo_tags_to_spans(annotated, biluo)
        yield Example(Doc(nlp.vocab, words=list(words)), annotated)


if __name__ == "__main__":
    main()
