"""How many of a corpus's own tokens and sentences the suite's tokenizer finds in its raw text.

    python benchmarks/tokens.py [--tokens UNIT] [--column N] [--first-character] FILE ...

FILE is CoNLL-U, or columns with the word in column N (0). The raw text of CoNLL-U is its `# text =`, else its words
by `SpaceAfter=No`, with a blank line between paragraphs; that of columns is the words joined by spaces as in print, or
without spaces for units such as `characters`, and all sentences of a document on one line. A token counts as found if
its first and last characters are those of one of ours, and so does a sentence; F1 is in percent. A multiword token
counts as its words where they spell it (`do`, `n't`), else as one.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from ner_experiments.data.tokenize import joint, tokenize

Pairs = set[tuple[int, int]]
NO_SPACE_BEFORE = re.compile(r"[.,;:!?%)\]}…»”’]+|n['’]t|['’](?:s|m|re|ve|ll|d)|''", re.IGNORECASE)
NO_SPACE_AFTER = re.compile(r"[(\[{$£€«“‘#]|``")


class Document:
    """A raw text that is written word by word, and where its tokens and sentences are."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens: Pairs = set()
        self.sentences: Pairs = set()

    def add(self, words: list[tuple[str, list[str]]], text: str, joint: str) -> None:
        """Add a sentence: each surface form, with its tokens, in this text, which `joint` separates from the last."""
        self.text += joint if self.text else ""
        start = end = len(self.text)
        self.text += text
        for form, parts in words:
            begin = self.text.index(form, end)
            end = begin + len(form)
            for part in parts if "".join(parts) == form else [form]:
                self.tokens.add((begin, begin + len(part)))
                begin += len(part)
        self.sentences.add((start, end))


def conllu(lines: list[str]) -> Iterator[Document]:
    document, joint = Document(), " "
    for block in "\n".join(lines).strip("\n").split("\n\n"):
        comments = [line for line in block.split("\n") if line.startswith("#")]
        if any(line.startswith("# newdoc") for line in comments):
            if document.text:
                yield document
            document = Document()
        if any(line.startswith(("# newpar", "# newdoc")) for line in comments):
            joint = "\n\n"
        rows = [line.split("\t") for line in block.split("\n") if line and not line.startswith("#")]
        words: list[tuple[str, list[str]]] = []
        spelled, last = "", 0
        for row in rows:
            number = row[0].partition("-")
            if number[1]:
                words.append((row[1], []))
                last = int(number[2])
            elif row[0].isdigit():
                if int(row[0]) <= last:
                    words[-1][1].append(row[1])
                    continue
                words.append((row[1], [row[1]]))
            else:
                continue
            spelled += row[1] + ("" if "SpaceAfter=No" in row[9] else " ")
        text = next((line[9:] for line in comments if line.startswith("# text = ")), spelled.strip())
        document.add(words, text, joint)
        joint = " "
    yield document


def columns(lines: list[str], column: int, length: int | None, between: str) -> Iterator[Document]:
    document, words = Document(), list[str]()
    for line in [*lines, ""]:
        fields = line.split()
        if fields and fields[0] != "-DOCSTART-":
            words.append(fields[column][:length])
            continue
        if words:
            text = printed(words) if between else "".join(words)
            document.add([(word, [word]) for word in words], text, between)
            words = []
        if fields and document.text:
            yield document
            document = Document()
    yield document


def printed(words: list[str]) -> str:
    """The words as in print. Straight quotation marks open and close in turn."""
    text, glued, opened = "", True, False
    for word in words:
        closes = word == '"' and opened
        if word == '"':
            opened = not opened
        text += ("" if glued or closes or NO_SPACE_BEFORE.fullmatch(word) else " ") + word
        glued = bool(NO_SPACE_AFTER.fullmatch(word)) or (word == '"' and opened)
    return text


def f1(found: int, ours: int, theirs: int) -> str:
    return f"{200 * found / (ours + theirs):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--tokens", default="words", help="as data.tokens (words)")
    parser.add_argument(
        "--first-character", action="store_true", help="words are a character and its place in a word"
    )
    parser.add_argument("--column", type=int, default=0, help="of the word, in columns (0)")
    arguments = parser.parse_args()
    print("| file | tokens | token F1 | sentences | sentence F1 |\n|---|--:|--:|--:|--:|")
    for path in arguments.files:
        lines = path.read_text(encoding="utf-8").split("\n")
        if path.suffix == ".conllu":
            documents = conllu(lines)
        else:
            length = 1 if arguments.first_character else None
            documents = columns(lines, arguments.column, length, joint(arguments.tokens))
        counts = [0] * 6
        for document in documents:
            sentences = list(tokenize(document.text, arguments.tokens))
            tokens = {pair for it in sentences for pair in it.offsets}
            spans = {(it.offsets[0][0], it.offsets[-1][1]) for it in sentences}
            for place, (ours, theirs) in enumerate(((tokens, document.tokens), (spans, document.sentences))):
                counts[3 * place] += len(ours & theirs)
                counts[3 * place + 1] += len(ours)
                counts[3 * place + 2] += len(theirs)
        print(f"| {path.name} | {counts[2]:,} | {f1(*counts[:3])} | {counts[5]:,} | {f1(*counts[3:])} |")


if __name__ == "__main__":
    main()
