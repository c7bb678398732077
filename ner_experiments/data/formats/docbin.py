"""spaCy's DocBin (`.spacy`), read and written by spaCy where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ner_experiments.data.formats.annotated import Annotated, Characters, Options, of_text
from ner_experiments.data.remarks import Remarks
from ner_experiments.utils.files import atomic_write

SPANS = "sc"
"""spaCy's usual key of spans, which may be nested."""


def read(path: Path, options: Options, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of a file with spaCy's tokens: those of a document's `sents` if it has them, else whole documents.

    Mentions are the entities and the spans of every key. Raises ValueError for a file that spaCy cannot read, and for a
    mention that crosses the end of a sentence.
    """
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    try:
        documents = list(DocBin().from_disk(path).get_docs(Vocab()))
    except Exception as error:  # spaCy's, zlib's and msgpack's
        raise ValueError(f"{path}: not a DocBin of spaCy ({type(error).__name__}: {error})") from None
    for number, document in enumerate(documents, 1):
        place = f"{path.name}: document {number}"
        marked = {*document.ents, *(span for group in document.spans.values() for span in group)}
        parts = list(document.sents) if document.has_annotation("SENT_START") else [document[:]]
        left = len(marked)
        for part in parts:
            start = part.start_char
            inside = [it for it in marked if part.start <= it.start and it.end <= part.end]
            left -= len(inside)
            yield from of_text(
                part.text,
                [Characters(it.start_char - start, it.end_char - start, it.label_) for it in inside],
                options,
                remarks,
                place=place,
                tokens=[(it.idx - start, it.idx - start + len(it)) for it in part],
                line=number,
            )
        if left:
            raise ValueError(f"{place}: {left} mentions cross the end of a sentence")


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write a document per sentence. Mentions become entities; if they are nested, spans of the key `sc`."""
    from spacy.tokens import Doc, DocBin
    from spacy.util import filter_spans
    from spacy.vocab import Vocab

    vocab = Vocab()
    written = DocBin()
    for sentence in sentences:
        ends = [start for start, _ in sentence.offsets[1:]]
        spaces = [end < following for (_, end), following in zip(sentence.offsets, ends, strict=False)]
        document: Any = Doc(vocab, words=list(sentence.words), spaces=[*spaces, False])
        spans = [document.char_span(*_characters(document, it), label=it[2]) for it in sentence.mentions]
        if len(filter_spans(spans)) == len(spans):
            document.set_ents(spans)
        else:
            document.spans[SPANS] = spans
        written.add(document)
    with atomic_write(path) as part:
        part.write_bytes(written.to_bytes())


def _characters(document: Any, span: tuple[int, int, str]) -> tuple[int, int]:
    first, last = document[span[0]], document[span[1] - 1]
    return first.idx, last.idx + len(last)
