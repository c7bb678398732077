"""`ner_experiments.compare` on 1,000 generated files, against seqeval, conlleval's rules and nervaluate."""

import random
from pathlib import Path

import conlleval
import pytest
import random_tags
from nervaluate import Evaluator
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from seqeval.scheme import IOB2

import ner_experiments
from ner_experiments.analysis.looser_scores import ANY_OVERLAP, ANY_TYPE, MACRO, PARTIAL, looser_scores
from ner_experiments.comparison.comparison import Comparison
from ner_experiments.data.tags import Scheme, Span, encode, spans

FILES, SENTENCES = 45, 20
OF_NERVALUATE = {ANY_TYPE: "exact", ANY_OVERLAP: "ent_type", PARTIAL: "partial"}
LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}
Tags = list[list[str]]


def write(path: Path, words: Tags, *columns: Tags) -> Path:
    """Sentences in columns."""
    blocks = (
        "".join(map("{}\n".format, map(" ".join, zip(*it, strict=True))))
        for it in zip(words, *columns, strict=True)
    )
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


def likely(rng: random.Random, gold: list[Span], length: int) -> list[Span]:
    """The mentions of gold with errors, where none overlaps two others: those have one matching."""
    for _ in range(20):
        found = random_tags.disturbed(rng, gold, length)
        touching = [(a, b) for a in gold for b in found if a[0] < b[1] and b[0] < a[1]]
        if len({a for a, _ in touching}) == len(touching) == len({b for _, b in touching}):
            return found
    return gold


def illegal(rng: random.Random, tags: Tags, letters: str) -> Tags:
    """The tags with a fifth of them replaced by any others."""
    others = ["O", *(f"{letter}-{kind}" for letter in letters for kind in random_tags.TYPES)]
    return [[rng.choice(others) if rng.random() < 0.2 else tag for tag in it] for it in tags]


def iob2(tags: Tags) -> Tags:
    return [[*encode(spans(it), len(it), "iob2")] for it in tags]


def compared(folder: Path, seed: int, scheme: Scheme, *, legal: bool) -> tuple[Comparison, Tags, list[Tags]]:
    """Files of random predictions, each of a scheme of its own, with the tags of gold and of the files."""
    rng = random.Random(seed)
    lengths = [rng.choice([1, 2, 3, 5, 8, 13]) for _ in range(SENTENCES)]
    mentions = [random_tags.mentions(rng, it) for it in lengths]
    mentions[0] = [(0, 1, "LOC")]  # no file is without a type of gold
    words = [[f"w{rng.randrange(9)}" for _ in range(it)] for it in lengths]

    def tags(found: list[list[Span]], scheme: Scheme) -> Tags:
        every = [[*encode(it, length, scheme)] for it, length in zip(found, lengths, strict=True)]
        return every if legal else [every[0], *illegal(rng, every[1:], LETTERS[scheme])]

    gold = tags(mentions, scheme)
    others = scheme if scheme == "bioes" or legal else "iob2"
    files = [
        tags([mentions[0], *(likely(rng, *it) for it in zip(mentions[1:], lengths[1:], strict=True))], others)
        for _ in range(FILES)
    ]
    path = write(folder / "gold.conll", words, gold)
    paths = [write(folder / f"seed-{n}.conll", words, it) for n, it in enumerate(files, 1)]
    return ner_experiments.compare(path, {"a": paths}), gold, files


@pytest.mark.parametrize("legal", [True, False], ids=["legal", "illegal"])
@pytest.mark.parametrize("scheme", ["iob1", "iob2", "bioes"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_generated_files(tmp_path: Path, seed: int, scheme: Scheme, legal: bool) -> None:
    view, gold, files = compared(tmp_path, seed, scheme, legal=legal)
    runs, errors = view.compared.runs, [*view.errors.values()]
    assert len({run.score for run in runs}) > 8
    for run, tags, own in zip(runs, files, errors, strict=True):
        ours, found = run.metrics["test"], looser_scores(own)
        as_written = [gold, tags] if scheme == "bioes" or not legal else [iob2(gold), iob2(tags)]
        theirs = precision_recall_fscore_support(*as_written, average="micro", zero_division=0)[:3]
        assert [ours[name] for name in ("precision", "recall", "f1")] == pytest.approx(theirs)
        same = [iob2(gold), iob2(tags)]
        if legal:
            assert ours["f1"] == pytest.approx(f1_score(*same, mode="strict", scheme=IOB2))
        assert found[MACRO] == pytest.approx(f1_score(*as_written, average="macro", zero_division=0))
        counted = conlleval.count([*zip(*it, strict=True)] for it in zip(*same, strict=True))
        assert ours["token_accuracy"] == counted.right_tokens / counted.tokens
        if scheme != "bioes":  # whose S the original does not know
            counted = conlleval.count([*zip(*it, strict=True)] for it in zip(gold, tags, strict=True))
        expected = counted.correct.total(), counted.predicted.total(), counted.gold.total()
        assert tuple(ours[name] for name in ("correct", "predicted", "gold")) == expected
        if legal:
            by_type = Evaluator(*same, tags=[*random_tags.TYPES], loader="list").evaluate()["overall"]
            assert {it: found[it] for it in OF_NERVALUATE} == pytest.approx(
                {it: by_type[name].f1 for it, name in OF_NERVALUATE.items()}
            )
