"""Raw text for `predict`, tagged by an untrained model."""

from __future__ import annotations

import json
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any
from unicodedata import category

import torch

from fuzz import oracle
from fuzz.corpora import WORDS
from fuzz.readers import Case, Reader
from ner_experiments.build import build
from ner_experiments.config.compose import compose
from ner_experiments.data.corpus import load
from ner_experiments.data.sentence import Tokens
from ner_experiments.experiment_data import make_encoder, source
from ner_experiments.predict.input import InputReader
from ner_experiments.predict.output import WRITERS
from ner_experiments.predict.tagger import TaggedSentence, TextTagger

JOINS = [" ", " ", " ", "\n", "\n\n", "", ". ", "! ", "。", '" ', "\r\n", "\u3000", "\t"]


@cache
def tagger() -> TextTagger:
    """A tiny untrained tagger, whose random tags are of every kind."""
    torch.manual_seed(0)
    sentences = "data.sentences={train: 20, dev: 1, test: 1}"
    cfg = compose(["data=toy_en", sentences, "model.hidden_size=8", "words.module.dim=8"], "fuzz")
    encoder = make_encoder(cfg)
    encoder.fit(load(source(cfg)))
    made = TextTagger(build(cfg, encoder).eval(), encoder, InputReader(source=source(cfg), tokens="words"))
    made.tag("Kernels are compiled, or found compiled.")
    return made


def check_output(found: list[TaggedSentence], types: list[str]) -> None:
    """Check that every output format reports the predictions of each sentence on lines of its own."""
    written = {}
    for name, write in WRITERS.items():
        file = StringIO()
        write(found, file, types)
        written[name] = file.getvalue()
    for tagged, line in zip(found, written["jsonl"].removesuffix("\n").split("\n"), strict=bool(found)):
        record, it = json.loads(line), tagged.sentence
        assert [record["text"][b - it.start : e - it.start] for b, e in record["tokens"]] == list(it.words)
        assert all(
            m["text"] == record["text"][m["start"] - it.start : m["end"] - it.start]
            for m in record["mentions"]
        )
        assert all(0 <= m["probability"] <= 1 for m in record["mentions"])
    rows = [line.split(" ") for line in written["conll"].split("\n") if line]
    assert [row[-1] for row in rows] == [tag for it in found for tag in it.tags]
    assert {len(row) for row in rows} <= {5}
    shown = written["terminal"].removesuffix("\n").split("\n")
    assert len(shown) == max(1, len(found))
    harmless = {"\u200c", "\u200d"}  # joiners
    assert all(c.isprintable() or c in harmless or category(c) == "Zs" for line in shown for c in line)
    assert written["html"].count("<p ") == len(found)
    assert written["html"].count("<mark ") == sum(len(it.mentions) for it in found)


class RawText(Reader):
    """Compares the characters of all tokens, which are known without the tokenizer's rules."""

    inputs = 10_000

    def __init__(self, folder: Path, tokens: Tokens) -> None:
        super().__init__(folder)
        self.tokens, self.name = tokens, f"predict, {tokens}"

    def case(self, rng: Random) -> Case:
        tagger()  # outside of what is timed
        return super().case(rng)

    def whole(self, rng: Random) -> Case:
        words = rng.choices(WORDS, k=rng.randint(0, 12))
        text = "".join(word + rng.choice(JOINS) for word in words)
        with_mark = text[:1] == "\ufeff" or rng.random() < 0.1
        return Case(("\ufeff" * with_mark + text).encode(), "".join(text.split()))

    def expected(self, content: bytes) -> Any:
        """The characters of all tokens: everything but white space."""
        faults, text = set(), ""
        for number, line in enumerate(content.split(b"\n"), 1):
            try:
                text += line.decode() + "\n"
            except UnicodeDecodeError:
                faults.add(number)
            if b"\0" in line:
                faults.add(number)
        if faults:
            raise oracle.Faulty(faults)
        return "".join(text.removeprefix("\ufeff").split())

    def read(self) -> Any:
        made = tagger()
        reader = InputReader(source=made.reader.source, tokens=self.tokens)
        found = list(made.stream(reader.read(self.path, "text")))
        check_output(found, made.types)
        return "".join(word for it in found for word in it.sentence.words)
