"""Other libraries' CRFs behind one interface, with the same weights: loss and gradient, and decoding.

Each runs its own code, unpatched. Those that cannot be imported are left out; NCRF++ is no package: put its
folder on PYTHONPATH.
"""

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ner_experiments.modules.crf import CRF

FORBIDDEN = -1e4


class Problem(NamedTuple):
    scores: Tensor
    tags: Tensor
    mask: Tensor


class Contestant(NamedTuple):
    name: str
    weights: list[Tensor]
    loss: Callable[[Problem], Tensor]
    """The mean over the sentences; its gradient is taken by the scores and by `weights`."""
    decode: Callable[[Problem], list[list[int]] | Tensor] | None


def ours(crf: CRF) -> Contestant:
    return Contestant(
        "ours",
        list(crf.parameters()),
        lambda problem: crf.loss(*problem),
        lambda problem: crf.decode(problem.scores, problem.mask),
    )


def pytorch_crf(crf: CRF) -> Contestant:
    from torchcrf import CRF as Other

    other = Other(crf.num_tags, batch_first=True)
    for theirs, weight in (
        (other.start_transitions, crf.start),
        (other.transitions, crf.transitions),
        (other.end_transitions, crf.end),
    ):
        theirs.data.copy_(weight)
    return Contestant(
        "pytorch-crf",
        list(other.parameters()),
        lambda problem: -other(*problem, reduction="mean"),
        lambda problem: other.decode(problem.scores, problem.mask),
    )


def torch_struct(crf: CRF) -> Contestant:
    from torch_struct import LinearChainCRF

    start, pairs, end = (nn.Parameter(x.detach().clone()) for x in (crf.start, crf.transitions, crf.end))

    def chain(scores: Tensor, mask: Tensor) -> LinearChainCRF:
        lengths = mask.sum(1)
        sentences = torch.arange(len(lengths))
        closed = scores.index_put((sentences, lengths - 1), end.expand(len(lengths), -1), accumulate=True)
        edges = closed[:, 1:, :, None] + pairs.t()
        opened = edges[:, :1] + (start + closed[:, 0])[:, None, None, :]
        return LinearChainCRF(torch.cat([opened, edges[:, 1:]], dim=1), lengths=lengths)

    def loss(problem: Problem) -> Tensor:
        found = chain(problem.scores, problem.mask)
        edges = found.struct.to_parts(problem.tags, crf.num_tags, lengths=problem.mask.sum(1))
        return -found.log_prob(edges.type_as(problem.scores)).mean()

    return Contestant("torch-struct", [start, pairs, end], loss, None)


def ncrfpp(crf: CRF) -> Contestant:
    from model.crf import CRF as Other

    with contextlib.redirect_stdout(io.StringIO()):
        other = Other(crf.num_tags, gpu=False)
    other.transitions.data.copy_(with_ends(crf))

    def loss(problem: Problem) -> Tensor:
        scores = nn.functional.pad(problem.scores, (0, 2))
        return other.neg_log_likelihood_loss(scores, problem.mask, problem.tags) / len(scores)

    def decode(problem: Problem) -> Tensor:
        return other._viterbi_decode(nn.functional.pad(problem.scores, (0, 2)), problem.mask)[1]

    return Contestant("NCRF++", [other.transitions], loss, decode)


def flair(crf: CRF) -> Contestant:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from flair.data import Dictionary
        from flair.models.sequence_tagger_utils.crf import CRF as Other
        from flair.models.sequence_tagger_utils.viterbi import ViterbiDecoder, ViterbiLoss

    names = Dictionary(add_unk=False)
    for name in [*map(str, range(crf.num_tags)), "<START>", "<STOP>"]:
        names.add_item(name)
    other = Other(names, len(names), init_from_state_dict=False)
    other.transitions.data.copy_(with_ends(crf).t())
    loss_of, decoder = ViterbiLoss(names), ViterbiDecoder(names)

    def features(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return other(nn.functional.pad(scores, (0, 2))), lengths, other.transitions

    def loss(problem: Problem) -> Tensor:
        lengths, order = problem.mask.sum(1).sort(descending=True)
        tags = torch.cat([problem.tags[b, :n] for b, n in zip(order, lengths, strict=True)])
        return loss_of(features(problem.scores[order], lengths), tags) / len(lengths)

    def decode(problem: Problem) -> list[list[int]]:
        lengths, order = problem.mask.sum(1).sort(descending=True)
        found, _ = decoder.decode(features(problem.scores[order], lengths), False, [])
        return [[int(tag) for tag, _ in found[place]] for place in order.argsort().tolist()]

    return Contestant("flair", [other.transitions], loss, decode)


def with_ends(crf: CRF) -> Tensor:
    """Transitions from row to column, with a start and a stop tag as the last two."""
    size = crf.num_tags
    transitions = torch.full((size + 2, size + 2), FORBIDDEN)
    transitions[:size, :size] = crf.transitions.detach()
    transitions[size, :size] = crf.start.detach()
    transitions[:size, size + 1] = crf.end.detach()
    return transitions


PEERS = {
    "pytorch-crf": pytorch_crf,
    "torch-struct": torch_struct,
    "flair": flair,
    "NCRF++": ncrfpp,
}
