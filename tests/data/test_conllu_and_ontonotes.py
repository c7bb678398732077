"""The readers of CoNLL-U and of CoNLL-2012's named entities: what they read, and what they refuse."""

from functools import partial

import pytest
from read_files import pairs, read_conllu, read_gold_conll, written

from ner_experiments.data.sentence import Sentence


@pytest.fixture
def file(tmp_path):
    return partial(written, tmp_path)


# CoNLL-U


def conllu(*rows: str) -> str:
    """Rows `id form upos xpos` filled up to 10 columns."""
    lines = []
    for row in rows:
        id_, form, upos, xpos = row.split()
        lines.append("\t".join((id_, form, form.lower(), upos, xpos, "_", "_", "_", "_", "_")) + "\n")
    return "".join(lines)


def test_conllu(file):
    text = (
        "# sent_id = 1\n# text = I don't\n"
        + conllu("1 I PRON PRP", "2-3 don't _ _", "2 do AUX VBP", "3 n't PART RB", "3.1 go VERB VB")
        + "\n# only a comment\n\n# text = # Yes\n"
        + conllu("0.1 so ADV RB", "1 # SYM NN", "2 Yes INTJ UH")
    )
    assert list(read_conllu(file(text))) == [
        Sentence(("I", "do", "n't"), ("PRP", "VBP", "RB"), {"upos": ("PRON", "AUX", "PART")}, 3),
        Sentence(("#", "Yes"), ("NN", "UH"), {"upos": ("SYM", "INTJ")}, 13),
    ]
    (first, second) = read_conllu(file("\ufeff" + text.replace("\n", "\r\n")), tag="upos")
    assert first.tags == ("PRON", "AUX", "PART")
    assert second.columns == {"xpos": ("NN", "UH")}


def test_conllu_keeps_spaces_in_forms_and_underscores_in_the_other_tag(file):
    (sentence,) = read_conllu(file(conllu("1 100x000 NUM _", "2 _ PUNCT _").replace("x", " ")), tag="upos")
    assert sentence == Sentence(("100 000", "_"), ("NUM", "PUNCT"), {"xpos": ("_", "_")}, 1)


# CoNLL-2012


def gold_conll(*rows: str, arguments: str = "") -> str:
    """Rows `word pos names` as lines of a `*_gold_conll` file."""
    lines = []
    for i, row in enumerate(rows):
        word, pos, names = row.split()
        lines.append(f"nw/a/00   0  {i}   {word}  {pos}  *  -  -  -  Ann   {names}  {arguments} -\n")
    return "".join(lines)


def test_gold_conll(file):
    text = (
        "#begin document (nw/a/00); part 000\n"
        + gold_conll("Mia NNP (PERSON*", "B. NNP *", "Roe NNP *)", "in IN *", "Oslo NNP (GPE)", "/. . *")
        + "\n"
        + gold_conll("-LRB- -LRB- *", "Day NN (DATE*)", "One CD (WORK_OF_ART*", "# # *)", arguments="(V*) *")
        + "#end document\n#begin document (nw/a/00); part 001\n"
        + gold_conll("Yes UH *")
        + "#end document\n"
    )
    sentences = list(read_gold_conll(file(text)))
    assert pairs(sentences) == [
        [
            ("Mia", "B-PERSON"),
            ("B.", "I-PERSON"),
            ("Roe", "I-PERSON"),
            ("in", "O"),
            ("Oslo", "B-GPE"),
            ("/.", "O"),
        ],
        [("-LRB-", "O"), ("Day", "B-DATE"), ("One", "B-WORK_OF_ART"), ("#", "I-WORK_OF_ART")],
        [("Yes", "O")],
    ]
    assert sentences[1].columns == {"pos": ("-LRB-", "NN", "CD", "#")}
    assert [sentence.line for sentence in sentences] == [2, 9, 15]
