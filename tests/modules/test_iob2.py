"""Decoders over IOB2 tags against sums over all IOB2 sequences, and against seqeval's reading of them."""

import itertools
import math
import random
from collections.abc import Iterator

import pytest
import torch
from seqeval.scheme import IOB2 as SeqevalIOB2
from seqeval.scheme import Entities
from torch import Tensor

from ner_experiments.data.encoder import labels
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import allowed_transitions, encode, strict_spans
from ner_experiments.modules import iob2
from ner_experiments.modules.iob2 import IOB2

CORPUS = Corpus("two types", "mentions", {"train": [Sentence(("a", "b"), ("S-X", "S-Y"))]}, "")
BIOES = labels(CORPUS)
TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
LENGTHS = (4, 1, 3)
MASK = torch.arange(4) < torch.tensor(LENGTHS)[:, None]


def crf(*, constrained: bool = False) -> IOB2:
    return iob2.crf_iob2(
        num_tags=len(BIOES), allowed=allowed_transitions(BIOES), constrained=constrained
    ).double()


def is_legal(tags: tuple[str, ...]) -> bool:
    return all(
        not now.startswith("I") or before in (f"B{now[1:]}", now)
        for before, now in itertools.pairwise(("O", *tags))
    )


def probabilities(decoder: IOB2, scores: Tensor, *, constrained: bool) -> dict[tuple[str, ...], float]:
    """Probability of every IOB2 sequence of one sentence, by the definition."""
    start, pairs, end = (getattr(decoder.decoder, name).tolist() for name in ("start", "transitions", "end"))
    weights = {}
    for ids in itertools.product(range(len(TAGS)), repeat=len(scores)):
        tags = tuple(TAGS[it] for it in ids)
        total = start[ids[0]] + end[ids[-1]] + sum(pairs[a][b] for a, b in itertools.pairwise(ids))
        total += sum(token[tag] for token, tag in zip(scores.tolist(), ids, strict=True))
        if is_legal(tags) or not constrained:
            weights[tags] = math.exp(total)
    return {tags: weight / math.fsum(weights.values()) for tags, weight in weights.items()}


def strict(tags: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """Mentions that seqeval reads from IOB2 tags in its strict mode."""
    (found,) = Entities([[*tags]], SeqevalIOB2).entities
    return [(it.start, it.end, it.tag) for it in found]


def cases(constrained: bool) -> Iterator[tuple[IOB2, Tensor, list[dict[tuple[str, ...], float]]]]:
    for seed in range(3):
        torch.manual_seed(seed)
        decoder = crf(constrained=constrained)
        scores = 2 * torch.randn(len(LENGTHS), 4, len(TAGS), dtype=torch.float64)
        yield (
            decoder,
            scores,
            [
                probabilities(decoder, own[:length], constrained=constrained)
                for own, length in zip(scores, LENGTHS, strict=True)
            ],
        )


@pytest.mark.parametrize("constrained", [False, True])
def test_the_loss_of_every_mention_is_that_of_its_iob2_tags(constrained: bool) -> None:
    mentions = [[(0, 2, "X"), (2, 3, "Y"), (3, 4, "Y")], [(0, 1, "Y")], [(0, 3, "Y")]]
    pairs = list(zip(mentions, LENGTHS, strict=True))
    gold = [[BIOES.index(tag) for tag in encode(*pair, "bioes")] for pair in pairs]
    tags = torch.tensor([row + [-100] * (4 - len(row)) for row in gold])
    for decoder, scores, by_sentence in cases(constrained):
        expected = -sum(
            math.log(of_tags[encode(*pair, "iob2")]) for of_tags, pair in zip(by_sentence, pairs, strict=True)
        )
        assert decoder.loss(scores, tags, MASK).item() == pytest.approx(expected / 3, abs=1e-9)


@pytest.mark.parametrize("constrained", [False, True])
def test_decoding_returns_the_mentions_that_seqeval_reads_from_the_best_iob2_tags(constrained: bool) -> None:
    for decoder, scores, by_sentence in cases(constrained):
        found = decoder.decode(scores, MASK)
        assert not found[~MASK].any()
        for row, length, of_tags in zip(found.tolist(), LENGTHS, by_sentence, strict=True):
            best = max(of_tags, key=lambda tags: of_tags[tags])
            assert strict_spans([BIOES[tag] for tag in row[:length]]) == strict(best)


def test_all_iob2_tags_keep_their_mentions_and_their_o_tags() -> None:
    for ids in itertools.product(range(len(TAGS)), repeat=5):
        tags = tuple(TAGS[it] for it in ids)
        found = [BIOES[it] for it in iob2.to_bioes(torch.tensor([ids]))[0].tolist()]
        assert strict_spans(found) == strict(tags)
        assert [it == "O" for it in found] == [it == "O" for it in tags]
        if is_legal(tags):
            assert iob2.to_iob2(torch.tensor([[BIOES.index(it) for it in found]]))[0].tolist() == [*ids]


@pytest.mark.parametrize("constrained", [False, True])
def test_the_probability_of_a_mention_sums_over_all_sequences_that_have_it(constrained: bool) -> None:
    for decoder, scores, by_sentence in cases(constrained):
        for sentence, length in enumerate(LENGTHS):
            for start, end in itertools.combinations(range(length + 1), 2):
                for kind in "XY":
                    mention = (start, end, kind)
                    tags = torch.zeros(3, 4, dtype=torch.long)
                    own = [BIOES.index(tag) for tag in encode([mention], 4, "bioes")]
                    tags[sentence] = torch.tensor(own)
                    span = torch.tensor([[sentence, start, end]])
                    expected = math.fsum(
                        p for it, p in by_sentence[sentence].items() if mention in strict(it)
                    )
                    found = decoder.span_probabilities(scores, tags, MASK, span)
                    assert found.item() == pytest.approx(expected, abs=1e-9)


def test_spans_of_any_bioes_tags_sum_over_the_sequences_that_read_so() -> None:
    decoder, scores, by_sentence = next(cases(constrained=False))
    as_bioes = {
        tags: iob2.to_bioes(torch.tensor([[TAGS.index(it) for it in tags]]))[0].tolist()
        for tags in by_sentence[0]
    }
    for ids in random.Random(0).sample([*itertools.product(range(len(BIOES)), repeat=3)], 150):
        tags = torch.zeros(3, 4, dtype=torch.long)
        tags[0, 1:] = torch.tensor(ids)
        for end in (3, 4):
            found = decoder.span_probabilities(scores, tags, MASK, torch.tensor([[0, 1, end]]))
            expected = math.fsum(
                p for it, p in by_sentence[0].items() if as_bioes[it][1:end] == [*ids][: end - 1]
            )
            assert found.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("constrained", [False, True])
def test_probabilities_of_spans_are_the_same_in_one_call_as_in_one_call_each(constrained: bool) -> None:
    spans = [
        [sentence, start, end]
        for sentence, length in enumerate(LENGTHS)
        for start, end in itertools.combinations(range(length + 1), 2)
    ]
    for seed, (decoder, scores, _) in enumerate(cases(constrained)):
        generator = torch.Generator().manual_seed(seed)
        for tags in (decoder.decode(scores, MASK), torch.randint(9, (3, 4), generator=generator)):
            together = decoder.span_probabilities(scores, tags, MASK, torch.tensor(spans))
            alone = [decoder.span_probabilities(scores, tags, MASK, torch.tensor([it])) for it in spans]
            torch.testing.assert_close(together, torch.cat(alone))


def test_a_negative_tag_is_refused() -> None:
    with pytest.raises(ValueError, match="tags must be at least 0"):
        crf().loss(
            torch.zeros(1, 2, 5, dtype=torch.float64), torch.tensor([[0, -100]]), torch.tensor([[True, True]])
        )


def test_a_softmax_decodes_each_token_by_itself() -> None:
    decoder = iob2.softmax_iob2(num_tags=9, allowed=allowed_transitions(BIOES))
    scores = torch.eye(5)[torch.tensor([[TAGS.index(tag) for tag in ("B-X", "I-X", "I-Y", "B-Y")]])]
    found = decoder.decode(scores, torch.ones(1, 4, dtype=torch.bool))[0].tolist()
    assert [BIOES[it] for it in found] == ["B-X", "E-X", "E-Y", "S-Y"]


def test_a_softmax_scores_one_tag_at_a_time() -> None:
    torch.manual_seed(0)
    decoder = iob2.softmax_iob2(num_tags=9, allowed=allowed_transitions(BIOES), reduction="sum").double()
    scores = torch.randn(1, 2, 5, dtype=torch.float64)
    mask = torch.ones(1, 2, dtype=torch.bool)
    tags = torch.tensor([[BIOES.index("B-Y"), BIOES.index("E-Y")]])
    of_tokens = scores[0].log_softmax(1)
    expected = of_tokens[0, TAGS.index("B-Y")] + of_tokens[1, TAGS.index("I-Y")]
    assert decoder.loss(scores, tags, mask).item() == pytest.approx(-expected.item())
    assert decoder.span_probabilities(scores, tags, mask, torch.tensor([[0, 0, 2]])).item() == pytest.approx(
        expected.exp().item()
    )


def test_a_corpus_that_is_scored_tag_by_tag_has_no_mentions() -> None:
    with pytest.raises(ValueError, match="IOB2 decoders need a corpus of mentions"):
        iob2.crf_iob2(num_tags=5)
