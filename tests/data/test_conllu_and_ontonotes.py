"""The readers of CoNLL-U and of CoNLL-2012's named entities: what they read, and what they refuse."""

from functools import partial

import pytest
from read_files import message_of, pairs, read_conllu, read_gold_conll, written

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# c\n1\ta\tb\n", "corpus.txt:2: expected 10 columns, got 3: '1\\ta\\tb'"),
        ("1 a a X X _ _ _ _ _\n", "corpus.txt:1: expected 10 columns, got 1: '1 a a X X _ _ _ _ _'"),
        (
            conllu("1 a X X", "3 b X X"),
            "corpus.txt:2: expected word 2, got '3': '3\\tb\\tb\\tX\\tX\\t_\\t_\\t_\\t_\\t_'",
        ),
        (
            conllu("1 a X X") + conllu("1 b X X"),
            "corpus.txt:2: expected word 2, got '1': '1\\tb\\tb\\tX\\tX\\t_\\t_\\t_\\t_\\t_'",
        ),
        (
            conllu("1 a X X", "2 b X _"),
            "corpus.txt:2: word without xpos (data.tag=upos reads the other column): "
            "'2\\tb\\tb\\tX\\t_\\t_\\t_\\t_\\t_\\t_'",
        ),
        (
            conllu("1 a X X").replace("\ta\t", "\t\t", 1),
            "corpus.txt:1: empty word: '1\\t\\ta\\tX\\tX\\t_\\t_\\t_\\t_\\t_'",
        ),
        ("1\ta\0\n", "corpus.txt:1: NUL byte: '1\\ta\\x00'"),
    ],
)
def test_bad_conllu_is_refused_with_its_place(file, text, message):
    assert message_of(read_conllu, file(text)) == message


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


@pytest.mark.parametrize(
    ("rows", "place_and_rule"),
    [
        (["a X (ORG*", "b X (GPE)", "c X *)"], "2: '(GPE)' opens an entity inside another, 'ORG': "),
        (["a X (ORG*", "b X (ORG*"], "2: '(ORG*' opens an entity inside another, 'ORG': "),
        (["a X *", "b X *)"], "2: '*)' closes an entity that was not opened: "),
        (["a X (GPE)", "b X *)"], "2: '*)' closes an entity that was not opened: "),
        (["a X *", "b X (ORG*", "c X *"], "2: entity 'ORG' is not closed in its sentence: "),
        (["a X (ORG(GPE)"], "1: expected an entity as (TYPE*, *, *) or (TYPE), got '(ORG(GPE)': "),
        (["a X *))"], "1: expected an entity as (TYPE*, *, *) or (TYPE), got '*))': "),
        (["a X -"], "1: expected an entity as (TYPE*, *, *) or (TYPE), got '-': "),
        (["a X (ORG"], "1: expected an entity as (TYPE*, *, *) or (TYPE), got '(ORG': "),
    ],
)
def test_malformed_entities_are_refused_with_their_place(file, rows, place_and_rule):
    text = gold_conll(*rows)
    line = text.splitlines()[int(place_and_rule[0]) - 1]
    assert message_of(read_gold_conll, file(text)) == f"corpus.txt:{place_and_rule}{line!r}"


def test_gold_conll_of_wrong_width_is_refused(file):
    line = "nw/a/00 0 0 a X (S* - - - Ann *"
    assert message_of(read_gold_conll, file(line)) == (
        f"corpus.txt:1: expected at least 12 columns, got 11: {line!r}"
    )
    text = gold_conll("a X *") + gold_conll("b X *", arguments="*")
    assert message_of(read_gold_conll, file(text)).startswith("corpus.txt:2: expected 12 columns, got 13: ")
