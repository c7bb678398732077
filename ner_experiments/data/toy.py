"""Two toy corpora, English and Chinese, generated from grammars: identical on every machine and Python version.

A symbol of a grammar stands for one of its alternatives, which are separated by `|` or line ends; `{symbol}`
in an alternative is expanded in turn. A symbol in capitals makes a mention: `{LOC}` a LOC expanded from the
symbol LOC, `{LOC=any}` a LOC expanded from `any`, whose names all four types share, so that only the context
determines the type. A repeated alternative is more frequent. In dev and test, symbols that have held-out words take
some of their words from these. All names are fictitious.

Families of patterns. near: the cue is beside the name, or the name's own form is the cue. shared: a shared name
with the cue nearby. far: a shared name with the cue several tokens before or after it. log: a shared name
whose type is the exclusive or of the words before and after it: neither side alone suffices. none: no mention,
but words that look like parts of one.
"""

from __future__ import annotations

import random
import re
import zlib
from functools import lru_cache
from typing import Literal, get_args

from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span, encode

Language = Literal["en", "zh"]
Split = Literal["train", "dev", "test"]

TYPES = ("PER", "LOC", "ORG", "PROD")
SPLITS: tuple[Split, ...] = get_args(Split)

_LENGTHS = range(3, 36)
_HELD_OUT_SHARE = 0.2
_SLOT = re.compile(r"\{([^}]+)\}")

Grammar = dict[str, str]


def sentences(language: Language, split: Split, count: int) -> list[Sentence]:
    """The first `count` sentences of a split, tagged in BIOES. Chinese tokens are characters.

    Sentences have 3 to 35 tokens and are unique within and across splits. Some names in dev and test are made of
    words that never occur in train. Raises ValueError for an unknown language or split.
    """
    if language not in GRAMMARS or split not in SPLITS:
        raise ValueError(
            f"toy corpora: language must be one of {', '.join(get_args(Language))} and split one of "
            f"{', '.join(SPLITS)}, got {language!r} and {split!r}"
        )
    return [*_written(language, split, count)]


@lru_cache(maxsize=len(SPLITS))  # a source reads its sentences again for their checksum
def _written(language: Language, split: Split, count: int) -> tuple[Sentence, ...]:
    writer = _Writer(language, split)
    by_words: dict[tuple[str, ...], Sentence] = {}
    while len(by_words) < count:
        sentence = writer.sentence()
        if len(sentence) in _LENGTHS and _split_of(sentence.words) == split:
            by_words.setdefault(sentence.words, sentence)
    return tuple(by_words.values())


def _split_of(words: tuple[str, ...]) -> str:
    """The only split that may contain the sentence, independent of the sizes of the splits."""
    return SPLITS[zlib.crc32(" ".join(words).encode()) % len(SPLITS)]


class _Writer:
    """Expands a grammar from the symbol `sentence` and records the mentions."""

    def __init__(self, language: Language, split: Split) -> None:
        self.tokenize = str.split if language == "en" else list
        self.known = _alternatives(GRAMMARS[language])
        self.held_out = _alternatives(HELD_OUT[language].get(split, {}))
        self.draws = random.Random(f"{language} {split}")

    def sentence(self) -> Sentence:
        self.words: list[str] = []
        self.spans: list[Span] = []
        self._write(self._choose("sentence"))
        self.words[0] = self.words[0][0].upper() + self.words[0][1:]
        return Sentence(tuple(self.words), encode(self.spans, len(self.words), "bioes"))

    def _write(self, pattern: str) -> None:
        for index, piece in enumerate(_SLOT.split(pattern)):
            if index % 2 == 0:
                self.words += self.tokenize(piece)
            elif piece[0].isupper():
                self._mention(*piece.partition("=")[::2])
            else:
                self._write(self._choose(piece))

    def _mention(self, type_: str, symbol: str) -> None:
        start = len(self.words)
        self.words += self.tokenize(self._name(symbol or type_))
        self.spans.append((start, len(self.words), type_))

    def _name(self, symbol: str) -> str:
        return _SLOT.sub(lambda slot: self._name(slot[1]), self._choose(symbol))

    def _choose(self, symbol: str) -> str:
        options = self.known[symbol]
        if symbol in self.held_out and self.draws.random() < _HELD_OUT_SHARE:
            options = self.held_out[symbol]
        # Only random() is guaranteed to draw the same numbers in every version of Python.
        return options[int(self.draws.random() * len(options))]


def _alternatives(grammar: dict[str, str]) -> dict[str, list[str]]:
    return {
        symbol: [option for option in map(str.strip, re.split(r"[|\n]", text)) if option]
        for symbol, text in grammar.items()
    }


_EN: Grammar = {
    "sentence": """
        {clause} . | {clause} . | {clause} . | {clause} .
        {clause} , and {clause} .
        {clause} while {clause} .
        {log}
        {none} | {none}
    """,
    "clause": "{near} | {near} | {near} | {shared} | {shared} | {far}",
    "near": """
        {PER} {acted}
        {PER} was born in {LOC} {when}
        {PER} {met} {PER} in {LOC}
        {PER} works for {ORG}
        {ORG} opened a {adj} office in {LOC} {when}
        {ORG} and {ORG} hired {PER} {when}
        {PER} drove {PROD} from {LOC} to {LOC}
        {LOC} , {LOC} and {LOC} lie under snow
        the {adj} {ORG} {PROD} costs {num} pounds
        {PER} sent {PER} {PROD} {when}
        in {LOC} {PER} {met} the head of {ORG}
        shares of {ORG} fell by {num} pounds {when}
        {ORG} sold {num} units of {PROD} in {LOC}
        {PER} , {num} , of {LOC} , won the {adj} {thing}
        {ORG} beat {ORG} {num} : {num} in {LOC}
        {PROD} , built by {ORG} , won the {thing}
    """,
    "shared": """
        mr {PER=any} {acted}
        the town of {LOC=any} was {adj} {when}
        {ORG=any} hired {PER=any}
        {PER=any} visited {LOC=any} {when}
        {PER=any} repaired {PROD=any} {when}
        {PER} left {LOC=any} by train
        {PER} left {ORG=any} with a pension
        {PER} left {PER=any} in tears
        {PER} left {PROD=any} in the garage
        shares of {ORG=any} were {adj}
        {PROD=any} broke down in {LOC}
        the road to {LOC=any} was {adj}
        {PER} , a clerk at {ORG=any} , {acted}
    """,
    "far": """
        {PER=any} {aside} {acted}
        {LOC=any} {aside} lay under snow again
        {ORG=any} {aside} cut {num} jobs
        {PROD=any} {aside} needs a new engine
        the {adj} singer {aside} was {PER=any}
        the {adj} village {aside} was {LOC=any}
        the {adj} employer {aside} was {ORG=any}
        the {adj} car {aside} was {PROD=any}
    """,
    "aside": """
        , {when} as in other years ,
        , as the {adj} {thing} made plain ,
        , to the surprise of {PER} ,
        ( the {adj} {thing} was {num} days ago )
        , after {num} {adj} weeks ,
        , as {ORG} had foretold ,
    """,
    "log": "{auction} | {port}",
    "auction": """
        lot {num} : {PROD=any} {gap} opened at {num} pounds
        lot {num} : {PER=any} {gap} closed at {num} pounds
        bid {num} : {PER=any} {gap} opened at {num} pounds
        bid {num} : {PROD=any} {gap} closed at {num} pounds
    """,
    "port": """
        arrived : {LOC=any} {gap} cargo in order
        arrived : {ORG=any} {gap} papers in order
        sailed : {ORG=any} {gap} cargo in order
        sailed : {LOC=any} {gap} papers in order
    """,
    "gap": ", | , | , noted {when} ,",
    "none": """
        the {thing} was {adj} {when} . | it rained {when} . | nobody {acted} {when} .
        will the {adj} {thing} be {adj} ? | may was {adj} and {adj} . | grace is rare in a {adj} {thing} .
        a falcon circled over the delta . | the aurora over the harbour was {adj} .
        the rose in the garden was {adj} {when} . | the isle was {adj} , and the lake {adj} .
        the bank of the river was {adj} . | no group met {when} . | {num} of {num} works were {adj} .
    """,
    "acted": """
        smiled | sang {when} | told a {adj} story | won the {thing} | went home {when}
        spoke about the {thing}
    """,
    "met": "met | thanked | called | saw",
    "when": "on Monday | on Friday | in May | in June | yesterday | last week | {num} days ago",
    "adj": "quiet | new | long | bright | famous | strange | early | heavy | blue | green | calm | late",
    "thing": "race | storm | market | concert | harvest | meeting | letter | report | bridge | harbour",
    "num": "3 | 5 | 8 | 12 | 17 | 20 | 36 | 40 | 64 | 75 | 90",
    "PER": """
        {first} | {first} | {last} | {first} {last} | {first} {last} | {first} {initial} {last}
        {first} van der {last} | {first} {first} de la {last}
    """,
    "first": """
        Anna | Lars | Mira | Paul | Rosa | Tom | Ines | Karl | Lena | Hugo | Nora | Emil | Clara | Oskar
        Wanda | Felix | May | Grace | Will | Rose
    """,
    "last": "{stem}sen | {stem}sen | {stem}son | {stem}ova | {stem}wick",
    "initial": "A. | B. | J. | M. | T.",
    "LOC": """
        {place} | {place} | {place} | New {place} | Port {stem} | Lake {stem} | Isle of {place}
        {place} upon {stem}
    """,
    "place": "{stem}ville | {stem}ton | {stem}burg | {stem}stad | {stem}mouth",
    "ORG": """
        {stem}corp | {stem}corp | {last} Group | {last} & Sons | Bank of {place} | {place} United
        University of {place} | {stem} , {stem} & Partners | {place} Water Works
    """,
    "PROD": """
        {stem}ex | {stem}ex {num} | {stem}ex Mark {num} | Silver {stem}ex | {stem}phone | {stem}phone {num}
    """,
    "any": """
        Jordan | Lincoln | Florence | Austin | Victoria | Madison | Sydney | Morgan | Hudson | Aurora | Avalon
        Orion | Phoenix | Grey Heron | Saint Helen | Red Harbour | {stem}ia | {stem}o
    """,
    "stem": """
        Brel | Corv | Dalm | Elst | Fenn | Garl | Hesp | Jorl | Kest | Lorn | Nolv | Pell | Quen | Rild | Selm
        Tarv | Velt | Wend | Yarl | Zell
    """,
}
_EN_HELD_OUT: dict[str, Grammar] = {
    "dev": {
        "first": "Edda | Jonas | Petra | Viktor | Tilda | Arno",
        "stem": "Argl | Bost | Drev | Holm | Kirn | Mund | Spar | Thal",
    },
    "test": {
        "first": "Greta | Anton | Selma | Ruben | Livia | Boris",
        "stem": "Aldr | Birk | Dorn | Glim | Harv | Lund | Stav | Torv",
    },
}

_ZH: Grammar = {
    "sentence": """
        {clause}。 | {clause}。 | {clause}。 | {clause}。
        {clause}，{clause}。
        {clause}，而{clause}。
        {log}
        {none} | {none}
    """,
    "clause": "{near} | {near} | {near} | {shared} | {shared} | {far}",
    "near": """
        {PER}{acted} | {PER}{when}出生在{LOC} | {PER}在{LOC}{met}{PER} | {PER}在{ORG}上班
        {ORG}{when}在{LOC}开了新店 | {ORG}和{ORG}{when}聘请了{PER} | {PER}开着{PROD}从{LOC}到{LOC}
        {LOC}、{LOC}和{LOC}都下了雪 | {adj}的{ORG}{PROD}售价{num}元 | {PER}{when}送给{PER}{PROD}
        在{LOC}{PER}{met}{ORG}的经理 | {ORG}的股票{when}跌了{num}元 | {ORG}在{LOC}卖出{num}台{PROD}
        {LOC}{PER}获得第{num}名 | {ORG}在{LOC}以{num}比{num}胜{ORG} | {ORG}造的{PROD}很{adj}
    """,
    "shared": """
        {PER=any}先生{acted} | {LOC=any}城里{when}很{adj} | {ORG=any}聘请了{PER=any}
        {PER=any}{when}去了{LOC=any} | {PER=any}修好了{PROD=any} | {PER}坐火车离开{LOC=any}
        {PER}从{ORG=any}退休 | {PER}从{LOC=any}坐船回家 | {PER}为{PER=any}的生日唱歌
        {PER}为{PROD=any}换了电池 | {ORG=any}的股票很{adj} | {PROD=any}在{LOC}没电了
        去{LOC=any}的路很{adj} | {ORG=any}的职员{PER}{acted}
    """,
    "far": """
        {PER=any}{aside}{acted} | {LOC=any}{aside}又下了雪
        {ORG=any}{aside}裁员{num}人 | {PROD=any}{aside}要换发动机
        那位{adj}的歌手{aside}就是{PER=any} | 那个{adj}的村子{aside}就是{LOC=any}
        那家{adj}的工厂{aside}就是{ORG=any} | 那辆{adj}的汽车{aside}就是{PROD=any}
    """,
    "aside": """
        ，{when}和往年一样， | ，正如{adj}的{thing}所示， | ，让{PER}吃惊的是，
        （{num}天前有{thing}） | ，过了{num}个{adj}的星期， | ，据{ORG}说，
    """,
    "log": "{auction} | {port}",
    "auction": """
        拍品{num}：{PROD=any}{gap}开价{num}元 | 拍品{num}：{PER=any}{gap}成交{num}元
        出价{num}：{PER=any}{gap}开价{num}元 | 出价{num}：{PROD=any}{gap}成交{num}元
    """,
    "port": """
        到港：{LOC=any}{gap}货物齐全 | 到港：{ORG=any}{gap}文件齐全
        离港：{ORG=any}{gap}货物齐全 | 离港：{LOC=any}{gap}文件齐全
    """,
    "gap": "， | ， | ，{when}记录，",
    "none": """
        {when}的{thing}很{adj}。 | {adj}的{thing}会很{adj}吗？ | {when}下雨了。 | 没有人{acted}。
        一只白鹭飞过江面。 | 海棠开了，很{adj}。 | 晨光照在窗上。 | 江上的明月很{adj}。
        公司里{when}没有人。 | 这个市的大学很{adj}。 | {num}家银行里{num}家很{adj}。 | 小王子的故事很{adj}。
    """,
    "acted": "笑了 | {when}唱了歌 | 讲了一个{adj}的故事 | 赢了{thing} | {when}回家了 | 谈到了{thing}",
    "met": "见到了 | 感谢了 | 拜访了",
    "when": "昨天 | 今天早上 | 上个星期 | 星期五 | 五月 | 去年 | {num}天前",
    "adj": "安静 | 新鲜 | 漫长 | 明亮 | 有名 | 奇怪 | 热闹 | 平静 | 小巧 | 温暖",
    "thing": "比赛 | 大风 | 集市 | 音乐会 | 会议 | 来信 | 报告 | 冬天 | 新桥 | 讨论",
    "num": "三 | 五 | 八 | 十二 | 二十 | 三十六 | 四十 | 九十 | 一百",
    "PER": """
        {family}{given} | {family}{given}{given} | {family}{given}{given} | 小{family}
        {double}{given} | {double}{given}{given}
    """,
    "family": "王 | 李 | 张 | 陈 | 杨 | 赵 | 黄 | 吴 | 徐 | 孙 | 林 | 何 | 郭 | 罗",
    "double": "欧阳 | 司马 | 上官",
    "given": "小 | 亮 | 丽 | 芳 | 蕊 | 静 | 雨 | 晨 | 佳 | 欣 | 宁 | 思 | 青 | 果",
    "LOC": "{stem}市 | {stem}市 | {stem}县 | {stem}镇 | {stem}岛 | {stem}市{side}区",
    "side": "东 | 西 | 南 | 北",
    "ORG": "{stem}公司 | {stem}公司 | {stem}集团 | {stem}大学 | {stem}银行 | {stem}{trade}公司",
    "trade": "茶叶 | 航运 | 电子",
    "PROD": "{stem}号 | {stem}号 | {stem}{num}型 | {stem}手机 | {stem}牌汽车",
    "any": """
        安澜 | 晨光 | 凤凰 | 白鹭 | 江月 | 海棠 | 云帆 | 明珠 | 青松 | 远山 | 星河 | 乐安 | {stem} | {stem}
    """,
    "stem": """
        云溪 | 蓝鲸 | 柳川 | 石岩 | 月湾 | 松屏 | 梅浦 | 枫林 | 金帆 | 远星 | 宏木 | 雪原 | 飞鱼 | 银杏 | 丹霞
    """,
}
_ZH_HELD_OUT: dict[str, Grammar] = {
    "dev": {
        "family": "梁 | 宋 | 郑 | 谢",
        "given": "兰 | 航 | 悦 | 墨",
        "stem": "雁浦 | 苇塘 | 霜桥 | 棠溪 | 铜鹿 | 碧舟",
    },
    "test": {
        "family": "韩 | 唐 | 冯 | 于",
        "given": "竹 | 帆 | 琪 | 岚",
        "stem": "鹭洲 | 麦岭 | 樱川 | 榆湾 | 铁鹰 | 玄石",
    },
}

GRAMMARS = {"en": _EN, "zh": _ZH}
HELD_OUT = {"en": _EN_HELD_OUT, "zh": _ZH_HELD_OUT}
