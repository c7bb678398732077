"""CoNLL-2012's `*_gold_conll` files (OntoNotes 5), read for their named entities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ner_experiments.data.formats.columns import check_tags
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.layout import fields_of
from ner_experiments.data.formats.options import Options
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence, intern_all
from ner_experiments.data.text_files import Line, PathOrFile, malformed, name_of, read_blocks, split_blocks
from ner_experiments.utils.text import truncated_repr

# document, part, number, word, POS, parse, lemma, frameset, sense, speaker, entities, arguments ..., coreference
_WORD, _POS, _ENTITIES = 3, 4, 10
_FEWEST_COLUMNS = 12  # a sentence without predicates has no argument column
_ENTITY = re.compile(r"\*\)?|\([^()*]+(\*|\*?\))")
_DOCUMENT = ("#begin document", "#end document")


def read(path: PathOrFile, options: Options, remarks: Remarks) -> Iterator[Sentence]:
    """Sentences with their named entities as iob2 tags, and part-of-speech tags in `columns["pos"]`.

    An entity is bracketed over its tokens: `(PERSON*`, `*`, `*)`, or `(GPE)` for a single token. Words stay
    as the file writes them: `-LRB-` is not turned into a bracket, nor `/.` into a full stop. Raises
    ValueError, with file and line, for fewer than 12 columns, lines of unequal width in a sentence, an empty
    word, entities that are nested, not closed or not opened, a type with an invisible character, and bytes that
    are not UTF-8.
    """
    for block in split_blocks(read_blocks(path), lambda line: line.startswith(_DOCUMENT), " document"):
        lines = block.lines
        rows = [fields_of(line, "tabs" if "\t" in line else "spaces") for _, line in lines]
        width = len(rows[0])
        if width < _FEWEST_COLUMNS:
            raise malformed(path, lines[0], f"expected at least {_FEWEST_COLUMNS} columns, got {width}")
        for row, line in zip(rows, lines, strict=True):
            if len(row) != width:
                raise malformed(path, line, f"expected {width} columns, got {len(row)}")
        words, pos = (intern_all(row[column] for row in rows) for column in (_WORD, _POS))
        if "" in words:
            raise malformed(path, lines[words.index("")], "empty word")
        tags: tuple[str, ...] = ("O",) * len(rows)
        if options.gold != "none":
            tags = intern_all(_iob2([row[_ENTITIES] for row in rows], path, lines))
            check_tags(tags, path, lines)
        yield Sentence(words, tags, {"pos": pos}, line=lines[0][0], file=name_of(path))


def _iob2(entities: Sequence[str], path: PathOrFile, block: Sequence[Line]) -> Iterator[str]:
    inside, opened = "", block[0]
    for field, line in zip(entities, block, strict=True):
        if not _ENTITY.fullmatch(field):
            raise malformed(
                path, line, f"expected an entity as (TYPE*, *, *) or (TYPE), got {truncated_repr(field)}"
            )
        if field.startswith("("):
            if inside:
                raise malformed(
                    path,
                    line,
                    f"{truncated_repr(field)} opens an entity inside another, {truncated_repr(inside)}",
                )
            inside, opened = field.strip("(*)"), line
            yield f"B-{inside}"
        else:
            yield f"I-{inside}" if inside else "O"
        if field.endswith(")"):
            if not inside:
                raise malformed(path, line, f"{truncated_repr(field)} closes an entity that was not opened")
            inside = ""
    if inside:
        raise malformed(path, opened, f"entity {truncated_repr(inside)} is not closed in its sentence")


FORMATS = {
    "ontonotes": Format(
        about="OntoNotes 5 as *_gold_conll files",
        config="ontonotes5",
        read=read,
        options=Options,
        streams=True,
    )
}
