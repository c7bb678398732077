"""The readers: text written here, with every flaw that real files have, and counts of the real files."""

import os
from pathlib import Path

import pytest

from ner_experiments.data.brackets import read_gold_conll
from ner_experiments.data.columns import read_columns
from ner_experiments.data.conllu import read_conllu
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import convert, illegal, spans, strict_spans

DATA = os.environ.get("NER_DATA_DIR")
needs_data = pytest.mark.skipif(not DATA, reason="NER_DATA_DIR names no folder of real corpora")

WORD_TAG = {"word": 0, "tag": -1}


@pytest.fixture
def file(tmp_path):
    """Writes bytes or text to a file, line ends as they stand, and gives its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "corpus.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def pairs(sentences):
    return [list(zip(sentence.words, sentence.tags, strict=True)) for sentence in sentences]


def message_of(read, path, **options) -> str:
    """The message of the ValueError that reading ends in, with the folder cut off."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        list(read(path, **options))
    return str(error.value).replace(f"{path}:", "corpus.txt:")


# Column files


def test_columns_of_conll2003(file):
    text = (
        "-DOCSTART- -X- O O\n\nMia NNP I-NP I-PER\nsleeps VBZ I-VP O\n\nNone NN I-NP I-ORG\n\n"
        '-DOCSTART- -X- -X- O\n\n" " O O\nNA NNP I-NP B-ORG\n\n\n'
    )
    columns = {"word": 0, "pos": 1, "chunk": 2, "tag": 3}
    assert list(read_columns(file(text), columns=columns)) == [
        Sentence(("Mia", "sleeps"), ("I-PER", "O"), {"pos": ("NNP", "VBZ"), "chunk": ("I-NP", "I-VP")}, 3),
        Sentence(("None",), ("I-ORG",), {"pos": ("NN",), "chunk": ("I-NP",)}, 6),
        Sentence(('"', "NA"), ("O", "B-ORG"), {"pos": ('"', "NNP"), "chunk": ("O", "I-NP")}, 10),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a O\nb B-X\n\nc O\n",
        "a O\nb B-X\n\nc O",  # no final line end
        "a O\nb B-X\n\nc O\n\n\n\n",
        "\n\na O\nb B-X\n\n\n\nc O\n",
        "a O\r\nb B-X\r\n\r\nc O\r\n",
        "a O\r\nb B-X\r\n\r\nc O\r",
        "\ufeffa O\nb B-X\n\nc O\n",
        "a\tO\nb\tB-X\n\t\nc\tO\n",  # WNUT's sentence end: a single tab
        "a O\nb B-X\n \t \nc O\n",
        "a   O\n b  B-X \n\nc O\n",
        "a O\nb\tB-X\n\nc O\n",
        "-DOCSTART- O\na O\nb B-X\n-DOCSTART- O\nc O\n",  # documents without blank lines
        "-DOCSTART-\n\na O\nb B-X\n\n-DOCSTART- -X- -X- O\n\nc O\n-DOCSTART-",
    ],
)
def test_the_same_sentences_however_they_are_laid_out(file, text):
    sentences = list(read_columns(file(text), columns=WORD_TAG))
    assert pairs(sentences) == [[("a", "O"), ("b", "B-X")], [("c", "O")]]


@pytest.mark.parametrize(
    "word",
    [
        *("\u00a0", "a\u00a0b", "\u3000", "\u200b", "a\u200bb", "a\ufeff", "\ufe0f", "\u2028", "a\u2029"),
        *("\u0085", "\x0b", "\x0c", "\x1c", "\x1e", "#", "# a", "#begin", "😀", "e\u0301", "x" * 195),
    ],
)
def test_only_space_and_tab_separate_and_nothing_comments(file, word):
    for line in (f"{word}\tO", f"{word}  O")[: 1 if " " in word else 2]:
        path = file(f"{line}\nb\tB-X\n")
        assert pairs(read_columns(path, columns=WORD_TAG)) == [[(word, "O"), ("b", "B-X")]]


def test_a_byte_order_mark_is_dropped_once_and_only_at_the_start(file):
    path = file("\ufeff\ufeffa O\n\ufeffb O\n")
    assert pairs(read_columns(path, columns=WORD_TAG)) == [[("\ufeffa", "O"), ("\ufeffb", "O")]]


def test_line_is_that_of_the_first_token(file):
    path = file("\ufeff\n-DOCSTART- O\na O\nb O\n\n\nc O\n")
    assert [sentence.line for sentence in read_columns(path, columns=WORD_TAG)] == [3, 7]


def test_columns_in_any_order_and_empty_fields_between_tabs(file):
    path = file("1\tB-X\t\tMia\n2\tO\tVBZ\tsleeps\n")
    assert list(read_columns(path, columns={"word": -1, "tag": 1, "pos": 2})) == [
        Sentence(("Mia", "sleeps"), ("B-X", "O"), {"pos": ("", "VBZ")}, 1)
    ]


def test_an_empty_file_has_no_sentences(file):
    for text in ("", "\n", "\ufeff", "-DOCSTART- O\n\n"):
        assert list(read_columns(file(text), columns=WORD_TAG)) == []


def test_read_columns_reads_no_further_than_asked(file):
    sentences = read_columns(file("a O\n\nb O\n\nbroken\n"), columns=WORD_TAG)
    assert [next(sentences).words, next(sentences).words] == [("a",), ("b",)]
    with pytest.raises(ValueError, match="expected 2 columns, got 1"):
        next(sentences)


def test_first_character_keeps_one_code_point_per_line(file):
    path = file(
        "中0\tB-GPE.NAM\n国1\tI-GPE.NAM\np10\tO\n10\tO\n\ufffd\ufffd0\tO\n\ue41c0\tO\n\ufe0f0\tO\n😀0\tO\n"
    )
    (sentence,) = read_columns(path, columns=WORD_TAG, first_character=True)
    assert sentence.words == ("中", "国", "p", "1", "\ufffd", "\ue41c", "\ufe0f", "😀")


def test_empty_tag_is_read_as_told(file):
    (sentence,) = read_columns(file("0\t\n1\tB-X\n2\t\n"), columns=WORD_TAG, empty_tag="O")
    assert (sentence.words, sentence.tags) == (("0", "1", "2"), ("O", "B-X", "O"))


def test_tokens_and_tags_that_recur_are_one_object(file):
    first, second = read_columns(file("中国\tB-X\n\n中国\tB-X\n"), columns=WORD_TAG)
    assert first.words[0] is second.words[0]
    assert first.tags[0] is second.tags[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a b c O\n\na b O\n", "corpus.txt:3: expected 4 columns, got 3: 'a b O'"),
        ("a\tb\tO\na\tO\n", "corpus.txt:2: expected 3 columns, got 2: 'a\\tO'"),
        ("a\tO\na\t\tO\n", "corpus.txt:2: expected 2 columns, got 3: 'a\\t\\tO'"),
        ("a O\n" + "b " * 60 + "\n", f"corpus.txt:2: expected 2 columns, got 60: '{('b ' * 39)[:77]}...'"),
        ("a\n", "corpus.txt:1: word and tag are both column 0 of 1: 'a'"),
        ("a O\n\u3000\nb O\n", "corpus.txt:2: expected 2 columns, got 1: '\\u3000'"),
        ("a O\n\tO\n", "corpus.txt:2: empty word: '\\tO'"),
        ("a O\nb\t\n", "corpus.txt:2: empty tag (set empty_tag to what it means): 'b\\t'"),
        ("a O\nb\0 O\n", "corpus.txt:2: NUL byte: 'b\\x00 O'"),
        (
            "a O\rb O\n",
            "corpus.txt:1: carriage return inside a line (lines end in LF or CRLF): 'a O\\rb O'",
        ),
        (
            b"a O\n\xe4\xb8\xad O\ncaf\xe9 O\r\n",
            "corpus.txt:3: not UTF-8 (invalid continuation byte at byte 4 of the line): 'caf\ufffd O'",
        ),
        (
            "a O\n".encode("utf-16"),
            "corpus.txt:1: not UTF-8 (invalid start byte at byte 1 of the line): "
            "'\ufffd\ufffda\\x00 \\x00O\\x00'",
        ),
    ],
)
def test_a_bad_column_file_is_refused_with_its_place(file, content, message):
    assert message_of(read_columns, file(content), columns=WORD_TAG) == message


def test_bad_options_for_columns_are_refused(file):
    path = file("a b O\n")
    assert message_of(read_columns, path, columns={"word": 0}) == (
        "columns must name at least word and tag, got word"
    )
    assert message_of(read_columns, path, columns={}) == ("columns must name at least word and tag, got none")
    assert message_of(read_columns, path, columns={"word": 0, "tag": 3}) == (
        "corpus.txt:1: no column 3 for tag among 3 columns: 'a b O'"
    )
    assert message_of(read_columns, path, columns={"word": -4, "tag": 2}) == (
        "corpus.txt:1: no column -4 for word among 3 columns: 'a b O'"
    )
    for line in ("a O", "1 O", "ab O"):
        assert message_of(read_columns, file(line), columns=WORD_TAG, first_character=True) == (
            f"corpus.txt:1: first_character expects a character and its position, like 中0: '{line}'"
        )


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
            "corpus.txt:2: word without xpos: '2\\tb\\tb\\tX\\t_\\t_\\t_\\t_\\t_\\t_'",
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


def test_a_bad_option_for_conllu_is_refused(file):
    assert message_of(read_conllu, file(""), tag="pos") == "tag must be one of upos, xpos, got 'pos'"


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
        (["a X (ORG*", "b X (GPE)", "c X *)"], "2: '(GPE)' opens a name inside another, 'ORG': "),
        (["a X (ORG*", "b X (ORG*"], "2: '(ORG*' opens a name inside another, 'ORG': "),
        (["a X *", "b X *)"], "2: '*)' closes a name that was not opened: "),
        (["a X (GPE)", "b X *)"], "2: '*)' closes a name that was not opened: "),
        (["a X *", "b X (ORG*", "c X *"], "2: name 'ORG' is not closed in its sentence: "),
        (["a X (ORG(GPE)"], "1: expected a name as (TYPE*, *, *) or (TYPE), got '(ORG(GPE)': "),
        (["a X *))"], "1: expected a name as (TYPE*, *, *) or (TYPE), got '*))': "),
        (["a X -"], "1: expected a name as (TYPE*, *, *) or (TYPE), got '-': "),
        (["a X (ORG"], "1: expected a name as (TYPE*, *, *) or (TYPE), got '(ORG': "),
    ],
)
def test_bad_brackets_are_refused_with_their_place(file, rows, place_and_rule):
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


# The real files

CONLL2003 = {"word": 0, "pos": 1, "chunk": 2, "tag": 3}
CONLL2000 = {"word": 0, "pos": 1, "tag": 2}
WEIBO = "weibo/weiboNER_2nd_conll"


def read_real(name, columns, **options):
    return list(read_columns(Path(DATA or "") / name, columns=columns, **options))


@needs_data
@pytest.mark.parametrize(
    ("name", "columns", "options", "sentences", "tokens", "mentions", "longest"),
    [
        ("conll2003/eng.train", CONLL2003, {}, 14041, 203621, 23499, 113),
        ("conll2003/eng.testa", CONLL2003, {}, 3250, 51362, 5942, 109),
        ("conll2003/eng.testb", CONLL2003, {}, 3453, 46435, 5648, 124),
        ("conll2000/train.txt", CONLL2000, {}, 8936, 211727, 106978, None),
        ("conll2000/test.txt", CONLL2000, {}, 2012, 47377, 23852, None),
        ("wnut17/wnut17train.conll", WORD_TAG, {}, 3394, 62730, 1975, None),
        ("wnut17/emerging.dev.conll", WORD_TAG, {}, 1009, 15733, 836, None),
        ("wnut17/emerging.test.annotated", WORD_TAG, {}, 1287, 23394, 1079, None),
        (f"{WEIBO}.train", WORD_TAG, {"first_character": True}, 1350, 73778, 1895, None),
        (f"{WEIBO}.dev", WORD_TAG, {"first_character": True}, 270, 14509, 389, None),
        (f"{WEIBO}.test", WORD_TAG, {"first_character": True}, 270, 14842, 418, None),
        ("msra/msra_test_bio", WORD_TAG, {}, 3442, 172601, 6190, 2427),
    ],
)
def test_counts_of_real_column_files(name, columns, options, sentences, tokens, mentions, longest):
    read = read_real(name, columns, **options)
    assert (len(read), sum(map(len, read))) == (sentences, tokens)
    assert sum(len(spans(sentence.tags)) for sentence in read) == mentions
    assert longest in (None, max(map(len, read)))
    for sentence in read:
        assert strict_spans(convert(sentence.tags, "bioes")) == spans(sentence.tags)


@needs_data
def test_counts_of_msra_train():
    path = Path(DATA or "") / "msra/msra_train_bio"
    with pytest.raises(
        ValueError, match=r"msra_train_bio:\d+: empty tag .set empty_tag to what it means.: '0"
    ):
        list(read_columns(path, columns=WORD_TAG))
    read = list(read_columns(path, columns=WORD_TAG, empty_tag="O"))
    assert (len(read), sum(map(len, read)), max(map(len, read))) == (45000, 2171573, 746)
    assert sum(len(spans(sentence.tags)) for sentence in read) == 75059
    assert sum(len(strict_spans(convert(sentence.tags, "bioes"))) for sentence in read) == 75059


@needs_data
def test_conll2003_is_iob1_but_for_two_tags():
    read = read_real("conll2003/eng.train", CONLL2003)
    assert sum(len(illegal(sentence.tags, "iob1")) for sentence in read) == 2
    assert sum(tag.startswith("B-") for sentence in read for tag in sentence.tags) == 72


@needs_data
@pytest.mark.parametrize(
    ("split", "after_o", "after_other_type"), [("train", 9, 1), ("dev", 0, 0), ("test", 4, 0)]
)
def test_illegal_tags_of_weibo(split, after_o, after_other_type):
    read = read_real(f"{WEIBO}.{split}", WORD_TAG, first_character=True)
    before = [
        ("O", *sentence.tags)[position] for sentence in read for position in illegal(sentence.tags, "iob2")
    ]
    assert sum(tag == "O" for tag in before) == after_o
    assert sum(tag != "O" for tag in before) == after_other_type
    assert all(len(word) == 1 for sentence in read for word in sentence.words)


@needs_data
@pytest.mark.parametrize(
    ("split", "sentences", "words"), [("train", 12544, 204577), ("dev", 2001, 25147), ("test", 2077, 25094)]
)
def test_counts_of_ud_ewt(split, sentences, words):
    read = list(read_conllu(Path(DATA or "") / f"ud_ewt/en_ewt-ud-{split}.conllu"))
    assert (len(read), sum(map(len, read))) == (sentences, words)
    if split == "train":
        assert len({tag for sentence in read for tag in sentence.tags}) == 49
