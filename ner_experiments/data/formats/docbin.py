"""spaCy's DocBin (`.spacy`), read and written by spaCy where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zlib import decompress

import numpy as np

from ner_experiments.data.formats.annotated import FILE, Annotated, Stated, of_text
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tags import Span
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import on_one_line, truncated_repr

SPANS = "sc"
"""spaCy's usual key of spans, which may be nested."""


def read(path: Path, options: TextOptions, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of a file with spaCy's tokens: those of a document's `sents` if it has them, else whole documents.

    Mentions are the entities and the spans of every key. Raises ValueError for a file that spaCy cannot read, for one
    with only the types or only the extents of entities, and for a mention without a label.
    """
    from spacy.attrs import ENT_IOB, ENT_TYPE
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    try:
        packed = DocBin().from_disk(path)
        _check_lengths(path)
        documents = [(it, _mentions(it)) for it in packed.get_docs(Vocab())]
    except Exception as error:  # spaCy's, zlib's and msgpack's
        raise ValueError(f"{path}: not a DocBin of spaCy ({on_one_line(error)})") from None
    if (ENT_IOB in packed.attrs) != (ENT_TYPE in packed.attrs):
        raise ValueError(f"{path}: entities need both ENT_IOB and ENT_TYPE in the attrs of the DocBin")
    for number, (document, mentions) in enumerate(documents, 1):
        place = f"{path}: document {number}"
        if "\0" in document.text:
            raise ValueError(f"{place}: NUL in its text")
        if unlabeled := next((document[start:end] for start, end, label in mentions if not label), None):
            raise ValueError(f"{place}: a span without a label: {truncated_repr(unlabeled.text)}")
        parts = list(document.sents) if document.has_annotation("SENT_START") else [document[:]]
        spans = [(document[start:end], label) for start, end, label in mentions]
        yield from of_text(
            document.text,
            [Stated(it.start_char, it.end_char, label, place) for it, label in spans],
            options,
            remarks,
            place=place,
            tokens=[[(it.idx, it.idx + len(it)) for it in part] for part in parts],
            line=number,
        )


def _check_lengths(path: Path) -> None:
    """Raise ValueError unless the documents' lengths add up to the tokens: spaCy leaves out what is beyond them."""
    from srsly import msgpack_loads

    message = msgpack_loads(decompress(path.read_bytes()))
    lengths = np.frombuffer(message["lengths"], "int32")
    num_tokens = len(message["tokens"]) // (8 * len(message["attrs"]))
    if lengths.min(initial=0) < 0 or lengths.sum() != num_tokens:
        raise ValueError(f"the lengths of its documents do not add up to its {num_tokens:,} tokens")


def _mentions(document: Any) -> set[Span]:
    """The entities and spans by their tokens."""
    spans = [*document.ents, *(span for group in document.spans.values() for span in group)]
    return {(it.start, it.end, it.label_) for it in spans}


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write a document per sentence. Mentions become entities; if they are nested, spans of the key `sc`.

    The name of its file is in the document's `user_data`.
    """
    from spacy import tokens
    from spacy.util import filter_spans
    from spacy.vocab import Vocab

    vocab = Vocab()
    written = tokens.DocBin(store_user_data=True)
    for sentence in sentences:
        ends = [start for start, _ in sentence.offsets[1:]]
        spaces = [end < following for (_, end), following in zip(sentence.offsets, ends, strict=False)]
        document: Any = tokens.Doc(vocab, words=list(sentence.words), spaces=[*spaces, False])
        if FILE in sentence.keys:
            document.user_data[FILE] = sentence.keys[FILE]
        spans = [tokens.Span(document, *it) for it in sentence.mentions]
        if len(filter_spans(spans)) == len(spans):
            document.set_ents(spans)
        else:
            document.spans[SPANS] = spans
        written.add(document)
    with atomic_write(path) as part:
        part.write_bytes(written.to_bytes())


FORMATS = {
    "docbin": Format(
        about="spaCy's DocBin",
        config="docbin",
        read=read,
        write=write,
        suffixes=(".spacy",),
        nested=True,
        package="spacy",
        encodings=False,
    )
}
