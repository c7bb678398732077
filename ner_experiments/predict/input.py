"""Input of `predict`: raw text, JSON lines, or columns in the format of the run's corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from ner_experiments.data.corpus import Source
from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats.columns import ColumnOptions, read_columns
from ner_experiments.data.formats.jsonl import other_keys
from ner_experiments.data.formats.layout import Columns
from ner_experiments.data.remarks import Remarks, place_of
from ner_experiments.data.sentence import Tokens
from ner_experiments.data.text_files import (
    UTF_8,
    Line,
    PathOrFile,
    malformed,
    name_of,
    read_lines,
    read_text,
)
from ner_experiments.data.tokenize import TokenizedSentence, joint, tokenize, tokenize_lines
from ner_experiments.utils.text import check_string, check_strings, json_object

log = logging.getLogger(__name__)

InputFormat = Literal["text", "conll", "jsonl"]


@dataclass(frozen=True, kw_only=True)
class InputReader:
    """Reader of input text for a run that was trained on the corpus `source`.

    tokens: the unit that raw text is tokenized into. lines: whether each line of raw text is a sentence.
    required_columns: the columns that the run reads besides the words.
    columns: the columns of input files, such as {"word": 0, "pos": 2}; None if they are those of the corpus.
    encoding: of input files; None for UTF-8, and for that of the corpus in files of its format.
    """

    source: Source
    tokens: Tokens
    required_columns: Sequence[str] = ()
    lines: bool = False
    columns: Columns | None = None
    encoding: str | None = None

    def read(self, path: PathOrFile, format: InputFormat) -> Iterator[TokenizedSentence]:
        """Yield sentences lazily. Raises ValueError, with file and line, for malformed input.

        Raw text and JSON lines may contain any character but NUL. A byte order mark is dropped; offsets start after it.
        """
        if format == "text":
            self.check_raw_text()
            document = (line for _, line in read_text(path, self.encoding or UTF_8))
            return tokenize_lines(document, self.tokens, lines=self.lines)
        return self._columns(path) if format == "conll" else self._json_lines(path)

    def check_raw_text(self) -> None:
        """Raise ValueError if the run reads columns, which raw text does not have."""
        if self.required_columns:
            keys = ", ".join(f'"{name}": [...]' for name in self.required_columns)
            raise ValueError(
                f"the run reads the columns {', '.join(self.required_columns)} besides the words, which raw text does "
                f"not have: give it a file in the format of the run's corpus (conll), or JSON lines as "
                f'{{"words": [...], {keys}}} (jsonl)'
            )

    def from_words(
        self, words: Sequence[str], columns: Mapping[str, Sequence[str]], line: int = 0
    ) -> TokenizedSentence:
        """A sentence from its tokens: words joined by spaces, or characters joined directly.

        Raises ValueError for a word that is empty or not a string, and for missing or misaligned columns.
        """
        check_strings("words", words)
        for name in self.required_columns:
            if name not in columns:
                raise ValueError(
                    f"the run reads the columns {', '.join(self.required_columns)}, but {name} is missing"
                )
            check_strings(name, columns[name])
            if len(columns[name]) != len(words):
                raise ValueError(
                    f"{name} must have one item per word ({len(words)}), got {len(columns[name])}"
                )
        separator = joint(self.tokens)
        starts = accumulate((len(word) + len(separator) for word in words), initial=0)
        offsets = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=False))
        required = {name: tuple(columns[name]) for name in self.required_columns}
        return TokenizedSentence(separator.join(words), 0, offsets, line, required)

    def _columns(self, path: PathOrFile) -> Iterator[TokenizedSentence]:
        source, encoding, remarks = self.source, self.encoding, Remarks()
        if self.columns is not None:
            options = ColumnOptions(columns=self.columns, encoding=encoding or UTF_8, gold="none")
            sentences = read_columns(path, options, remarks)
        elif encoding is None:
            sentences = source.untagged(path, remarks)
        elif isinstance(source, ColumnFiles | AnnotatedFiles):
            sentences = replace(source, encoding=encoding).untagged(path, remarks)
        else:
            raise ValueError(f"{name_of(path)}: files of {source.name} are UTF-8, so encoding has no meaning")
        for number, sentence in enumerate(sentences):
            if not number:
                self._say(path, remarks)
            yield self.from_words(sentence.words, sentence.columns, sentence.line)

    def _say(self, path: PathOrFile, remarks: Remarks) -> None:
        for line in remarks.layouts():
            log.warning("%s: %s", name_of(path), line)

    def _json_lines(self, path: PathOrFile) -> Iterator[TokenizedSentence]:
        empty = Remarks()
        for line in read_lines(path, self.encoding or UTF_8):
            if line[1].strip(" \t"):
                try:
                    sentences = self._from_json(line)
                except ValueError as error:
                    raise malformed(path, line, str(error)) from None
                yield from sentences
                if not sentences:
                    empty.add(
                        "records without tokens, left out of the output",
                        place_of(name_of(path), line[0]),
                    )
        for remark in empty.with_places():
            log.warning("%s", remark)

    def _from_json(self, line: Line) -> Sequence[TokenizedSentence]:
        number, text = line
        record = json_object(text)
        if ("text" in record) == ("words" in record):
            raise ValueError('expected either "text" or "words"')
        keys = {name: it for name, it in other_keys(record).items() if name not in self.required_columns}
        if "words" in record:
            if record["words"] == []:
                return []
            columns = {name: record[name] for name in self.required_columns if name in record}
            return [replace(self.from_words(record["words"], columns, number), keys=keys)]
        self.check_raw_text()
        check_string("text", record["text"])
        sentences = tokenize(record["text"], self.tokens, lines=self.lines)
        return [replace(sentence, line=number, keys=keys) for sentence in sentences]
