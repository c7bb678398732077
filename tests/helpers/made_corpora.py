"""Small corpora in the layout of the real files, with the oddities that those have, and what must be read from them.

The texts are made up. They are written in brackets, `[PER Mia Roe] sings .`, and each layout writes the tags itself, so
that words and mentions are known without the package's readers and conversions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

SPLITS = ("train", "dev", "test")

Mention = tuple[int, int, str]
"""First token, token after the last, type."""


@dataclass(frozen=True)
class Gold:
    """A sentence. tags: those of a corpus for tagging. illegal: numbers of the mentions whose B- is written as I-."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...] = ()
    tags: tuple[str, ...] = ()
    illegal: frozenset[int] = frozenset()


Corpus = dict[str, list[Gold]]


@dataclass
class Made:
    """The files of a corpus by their paths in its folder, and its sentences."""

    files: dict[str, str] = field(default_factory=dict)
    gold: Corpus = field(default_factory=dict)

    def write(self, folder: Path) -> Corpus:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        return self.gold


def sentence(text: str, *, characters: bool = False) -> Gold:
    """The sentence of a text in brackets; `!` after a type marks a mention that begins with I-."""
    words: list[str] = []
    mentions: list[Mention] = []
    illegal: set[int] = set()
    kind, first = "", 0
    for field_ in text.split(" "):
        if field_.startswith("[") and len(field_) > 1:
            kind, first = field_[1:], len(words)
            continue
        ends = bool(kind) and field_.endswith("]")
        word = field_.removesuffix("]") if ends else field_
        words += [*word] if characters else [word]
        if ends:
            if kind.endswith("!"):
                illegal.add(len(mentions))
            mentions.append((first, len(words), kind.removesuffix("!")))
            kind = ""
    return Gold(tuple(words), tuple(mentions), illegal=frozenset(illegal))


def repeated(texts: Sequence[str], number: int, *, characters: bool = False) -> list[Gold]:
    return [sentence(text, characters=characters) for text in islice(cycle(texts), number)]


def tags_of(gold: Gold, first: str, inner: str, last: str, single: str) -> list[str]:
    """Tags with these letters for the tokens of a mention."""
    tags = ["O"] * len(gold.words)
    for number, (start, end, kind) in enumerate(gold.mentions):
        letters = [first, *[inner] * (end - start - 2), last] if end - start > 1 else [single]
        if number in gold.illegal:
            letters[0] = inner
        tags[start:end] = [f"{letter}-{kind}" for letter in letters]
    return tags


def iob1(gold: Gold) -> list[str]:
    """B- only directly after a mention of the same type; an `illegal` mention has it elsewhere."""
    tags = tags_of(gold, "I", "I", "I", "I")
    for number, (start, _, kind) in enumerate(gold.mentions):
        follows = any(end == start and other == kind for _, end, other in gold.mentions)
        if follows or number in gold.illegal:
            tags[start] = f"B-{kind}"
    return tags


def iob2(gold: Gold) -> list[str]:
    return tags_of(gold, "B", "I", "I", "B")


def bmes(gold: Gold) -> list[str]:
    return tags_of(gold, "B", "M", "E", "S")


NEWS = [
    "[PER Mia Roe] flew to [LOC Oslo] on 7-11 .",
    "[ORG Glimsen & Co.] [ORG Tarn] merged in [LOC Stavstad] .",  # adjacent, of one type
    "SOCCER - [LOC ROVIA] BEAT [LOC TARNIA] 2-1 .",
    "[MISC! Rovian] exports fell 3 % ; [PER B. Roe] said so .",
    "-- -LRB- # \" ''",
    "[LOC Oslo]",
]


def conll2003() -> Made:
    """IOB1; documents begin with -DOCSTART-, of which test has another form; files end in two empty lines."""
    made = Made()
    for split, name, document in zip(
        SPLITS, ("eng.train", "eng.testa", "eng.testb"), ("-X- O O", "-X- O O", "-X- -X- O"), strict=True
    ):
        made.gold[split] = repeated(NEWS, 36 if split == "train" else 9)
        text = ""
        for number, gold in enumerate(made.gold[split]):
            if number % 4 == 0:
                text += f"-DOCSTART- {document}\n\n"
            text += lines(" ", gold.words, ["NN"] * len(gold.words), ["I-NP"] * len(gold.words), iob1(gold))
        made.files[name] = text + "\n"
    return made


CHUNKS = [
    "[NP Confidence] [PP in] [NP the pound] [VP is widely expected to fall] .",
    "[NP Rates] [VP rose] [ADVP sharply] [NP Tuesday] [SBAR because] [NP banks] [VP sold] .",  # adjacent
    "[NP He] [VP said] `` [INTJ Oh] '' .",
]


def conll2000() -> Made:
    """Three columns, and no development set."""
    made = Made()
    for split, name, number in (("train", "train.txt", 30), ("test", "test.txt", 6)):
        made.gold[split] = repeated(CHUNKS, number)
        made.files[name] = "".join(
            lines(" ", it.words, ["NN"] * len(it.words), iob2(it)) for it in made.gold[split]
        )
    return made


TWEETS = [
    "@mia It 's [location Oslo] 's view &amp; &gt; 😂 ..",
    "RT : [person Dubbz\ufeff] plays [creative-work The Long Tarn] 2nite !",  # a byte order mark in a word
    "http://t.co/x1 #np [group Glimsen] [product Tarn 7] \u200d lol",
    "idk",
]


def wnut17() -> Made:
    """Sentences of train end in a line with a tab; words contain a byte order mark, emoji and joiners."""
    made = Made()
    names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
    for split, name in zip(SPLITS, names, strict=True):
        made.gold[split] = repeated(TWEETS, 32 if split == "train" else 8)
        end = "\t\n" if split == "train" else "\n"
        made.files[name] = "".join(lines("\t", it.words, iob2(it), end=end) for it in made.gold[split])
    return made


WEIBO = [
    "[GPE.NAM! 罗 马] 的 [PER.NOM 老 师] 说 p1i c 。",  # I- after O
    "[PER.NAM 米 娅] [ORG.NAM! 塔 恩] 好 ！",  # I- after another type
    "我 [LOC.NOM 家] 4 3 😀",
]


def weibo() -> Made:
    """Each character is followed by its position in the word; some mentions begin with I-."""
    made = Made()
    for split in SPLITS:
        made.gold[split] = repeated(WEIBO, 30 if split == "train" else 6, characters=True)
        text = ""
        for gold in made.gold[split]:
            words = [f"{word}{position % 12}" for position, word in enumerate(gold.words)]
            text += lines("\t", words, iob2(gold))
        made.files[f"weiboNER_2nd_conll.{split}"] = text
    return made


MSRA = [
    "当 [PER 米 娅] 在 [LOC 奥 斯 陆] 时 ， 0 0 。",
    "[ORG 塔 恩 公 司] [LOC 罗 马] 分 部",
    "\u3000 “ 好 ” ①",
]


def msra() -> Made:
    """An empty tag on some lines of train; a sentence of thousands of characters in test; no development set."""
    made = Made()
    long = sentence(" ".join([MSRA[0]] * 200), characters=True)
    for split, number in (("train", 40), ("test", 6)):
        made.gold[split] = repeated(MSRA, number, characters=True)
        if split == "test":
            made.gold[split].append(long)
        text = "".join(lines("\t", it.words, iob2(it)) for it in made.gold[split])
        made.files[f"msra_{split}_bio"] = text.replace("0\tO\n", "0\t\n", 5) if split == "train" else text
    return made


def ontonotes4() -> Made:
    """A character and its BMES tag, separated by a space."""
    made = Made()
    for split in SPLITS:
        made.gold[split] = repeated(MSRA[:2], 30 if split == "train" else 6, characters=True)
        made.files[f"{split}.char.bmes"] = "".join(lines(" ", it.words, bmes(it)) for it in made.gold[split])
    return made


TAGGED = [
    "I/PRP do/VBP n't/RB know/VB ./.",
    "_/NFP 1\\/2/CD 100/CD #/SYM -LRB-/-LRB-",
    "Yes/UH",
]


def tagged(text: str) -> Gold:
    pairs = [item.rpartition("/") for item in text.split(" ")]
    return Gold(tuple(word for word, _, _ in pairs), tags=tuple(tag for _, _, tag in pairs))


def ud_ewt() -> Made:
    """Comments, words of several tokens (2-3), empty nodes (0.1, 3.1), and no empty line after the last sentence."""
    made = Made()
    for split in SPLITS:
        made.gold[split] = [tagged(text) for text in islice(cycle(TAGGED), 30 if split == "train" else 6)]
        blocks = []
        for number, gold in enumerate(made.gold[split]):
            block = f"# newdoc id = made-{number}\n# sent_id = {number}\n# text = # {' '.join(gold.words)}\n"
            if number % 3 == 2:
                block += conllu("0.1", "so", "_", "_")
            for position, (word, tag) in enumerate(zip(gold.words, gold.tags, strict=True), start=1):
                if word == "do":
                    block += conllu("2-3", "don't", "_", "_")
                block += conllu(str(position), word, "X", tag)
                if word == "n't":
                    block += conllu("3.1", "go", "VERB", "VB")
            blocks.append(block)
        made.files[f"en_ewt-ud-{split}.conllu"] = "\n".join(blocks)
    return made


def conllu(number: str, word: str, upos: str, xpos: str) -> str:
    return "\t".join([number, word, word, upos, xpos, "_", "_", "_", "_", "SpaceAfter=No"]) + "\n"


def ptb() -> Made:
    made = Made()
    for split in SPLITS:
        made.gold[split] = [tagged(text) for text in islice(cycle(TAGGED), 30 if split == "train" else 6)]
        made.files[f"{split}.txt"] = "".join(lines(" ", it.words, it.tags) for it in made.gold[split])
    return made


def lines(separator: str, *columns: Sequence[str], end: str = "\n") -> str:
    """A token a line; `end` after the last one."""
    return "".join(separator.join(fields) + "\n" for fields in zip(*columns, strict=True)) + end


ONTONOTES = [
    "[PERSON Mia B. Roe] flew to [GPE Oslo] /.",
    "-LRB- [WORK_OF_ART Day # 1] -RRB- [CARDINAL 7] [ORG the Tarn Co.] /?",
    "um %uh *PRO* *-1 0 uh",  # traces, if a tool has left them in
    "[DATE Sept. 9]",
]
"""Slashes before punctuation, bracket tokens, traces, disfluencies."""

GENRES = ("bc/cctv/00/cctv_0000", "bn/abc/01/abc_0101", "tc/ch/00/ch_0010", "nw/wsj/24/wsj_2400")


def bracketed(gold: Gold) -> list[str]:
    """The column of named entities."""
    column = ["*"] * len(gold.words)
    for start, end, kind in gold.mentions:
        column[start] = f"({kind})" if end - start == 1 else f"({kind}*"
        if end - start > 1:
            column[end - 1] = "*)"
    return column


def gold_conll(document: str, parts: Sequence[Sequence[Gold]]) -> str:
    """A document in parts, with speakers, and with as many columns of arguments as a sentence has predicates."""
    text = ""
    for part, sentences in enumerate(parts):
        text += f"#begin document ({document}); part {part:03d}\n"
        for number, gold in enumerate(sentences):
            speaker = ("-", "Speaker#1", "mia_roe")[number % 3]
            arguments = ["(V*)", "*"][: number % 3]
            for position, (word, names) in enumerate(zip(gold.words, bracketed(gold), strict=True)):
                fields = [document, part, position, word, "NN", "(TOP*)", "-", "-", "-", speaker, names]
                text += "   ".join(map(str, [*fields, *arguments, "(12)|(3"])) + "\n"
            text += "\n"
        text += "#end document\n"
    return text


def ontonotes_tree(root: str, suffix: str) -> Made:
    """The tree of one release: documents in parts, empty files, Chinese, pt/, and the files beside gold_conll."""
    made = Made(gold={split: [] for split in SPLITS})
    for split, folder in zip(SPLITS, ("train", "development", "test"), strict=True):
        tree = f"{root}{folder}/data/english/annotations"
        for name in GENRES:
            parts = [repeated(ONTONOTES, 5), repeated(ONTONOTES[::-1], 3 if split == "train" else 1), []]
            made.gold[split] += [gold for part in parts for gold in part]
            made.files[f"{tree}/{name}.{suffix}gold_conll"] = gold_conll(name, parts)
            made.files[f"{tree}/{name}.{suffix}gold_skel"] = gold_conll(name, parts).replace("Oslo", "[WORD]")
            made.files[f"{tree}/{name}.{suffix}auto_conll"] = gold_conll(name, parts).replace("GPE", "ORG")
            made.files[f"{tree}/{name}.parse"] = "(TOP (NN Oslo))\n"
        made.files[f"{tree}/wb/eng/00/eng_0000.{suffix}gold_conll"] = ""  # whose words a licence withholds
        without_names = [Gold(("Verily", ",", "Mia"))]
        made.files[f"{tree}/pt/nt/40/nt_4001.{suffix}gold_conll"] = gold_conll(
            "pt/nt/40/nt_4001", [without_names]
        )
        chinese = f"{root}{folder}/data/chinese/annotations/nw/xinhua/00/chtb_0001.{suffix}gold_conll"
        made.files[chinese] = gold_conll("nw/xinhua/00/chtb_0001", [[sentence("[GPE 罗马]")]])
    return made


def ontonotes5() -> Made:
    """The tree of https://github.com/ontonotes/conll-formatted-ontonotes-5.0, release 12."""
    return ontonotes_tree("conll-formatted-ontonotes-5.0-12/conll-formatted-ontonotes-5.0/data/", "")


def ontonotes5_v4() -> Made:
    """The tree of the shared task, https://conll.cemantix.org/2012/data.html, whose test set is apart as well."""
    made = ontonotes_tree("conll-2012/v4/data/", "v4_")
    made.files["conll-2012/v9/data/conll-2012-test/data/english/annotations/nw/x/00/x.v9_gold_conll"] = (
        gold_conll("nw/x/00/x", [repeated(ONTONOTES, 2)])
    )
    return made


def ontonotes5_columns() -> Made:
    """Columns with the tag in the last one, separated by tabs."""
    made = Made()
    for split, name in zip(SPLITS, ("train", "development", "test"), strict=True):
        made.gold[split] = repeated(ONTONOTES, 32 if split == "train" else 8)
        text = "".join(lines("\t", it.words, ["NN"] * len(it.words), iob2(it)) for it in made.gold[split])
        made.files[f"onto.{name}.ner"] = text
    return made


LAYOUTS: dict[str, Callable[[], Made]] = {
    it.__name__: it
    for it in (
        conll2003,
        conll2000,
        wnut17,
        weibo,
        msra,
        ud_ewt,
        ptb,
        ontonotes4,
        ontonotes5,
        ontonotes5_columns,
    )
}
"""By the names of the corpora in conf/data."""
