"""The CRF against other libraries': loss with gradient, and decoding, on 24 shapes of ragged batches.

    python benchmarks/crf.py [--threads N] [--rounds N] [--peers NAME ...] [--output FILE]

All run in turn, round after round, in one process with the same number of threads. Their results are compared
first: a peer whose results differ is left out of the shape, and named. A ratio is the median of a peer's times
over that of ours.
"""

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import timing
import torch
from tables import CRF_MODULES, TASKS, Result, at_least, figure, table
from torch import Tensor, nn

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Transitions
from ner_experiments.modules.forward_backward import sequence_score

MEASURES = CRF_MODULES

BATCHES, TIMES, TAGS = (16, 64), (16, 50, 128), (9, 17, 37, 73)
LARGEST = 5e6
"""Largest number of tag pairs in a batch for torch-struct, which stores several arrays of this size."""
SLOW = 1.0
"""Seconds above which a peer is run once."""
FORBIDDEN = -1e4


class Problem(NamedTuple):
    scores: Tensor
    tags: Tensor
    mask: Tensor


class Contestant(NamedTuple):
    name: str
    weights: list[Tensor]
    loss: Callable[[Problem], Tensor]
    """The mean over the sentences, to be differentiated with respect to the scores and `weights`."""
    decode: Callable[[Problem], list[list[int]] | Tensor] | None


Maker = Callable[[CRF], Contestant]


def main() -> None:
    parser = timing.options(__doc__, rounds=15)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    arguments = timing.begin(parser)

    names = timing.present({name: partial(PEERS[name], CRF(num_tags=2)) for name in arguments.peers})
    shapes = []
    for batch, length, tags in shapes_of(arguments.tiny):
        times = measure_shape(batch, length, tags, {name: PEERS[name] for name in names}, arguments.rounds)
        shapes.append({"batch": batch, "time": length, "tags": tags, **times})
        for task in ("loss", "decode"):
            timing.say(f"{batch:3} x {length:3} x {tags:2} {TASKS[task]}", times[task])
    ratios = {
        task: {name: timing.ratios([shape[task] for shape in shapes], name) for name in names}
        for task in ("loss", "decode")
    }
    left_out = sorted(PEERS.keys() - set(names))
    result = {"rounds": arguments.rounds, "ratios": ratios, "shapes": shapes, "left_out": left_out}
    timing.write("crf", result, arguments.output)


def shapes_of(tiny: bool) -> list[tuple[int, int, int]]:
    shapes = list(itertools.product(BATCHES, TIMES, TAGS))
    return shapes[:1] if tiny else shapes


def measure_shape(
    batch: int, length: int, tags: int, peers: Mapping[str, Maker], rounds: int, device: str = "cpu"
) -> dict[str, Any]:
    """Seconds of each contestant: {"loss": {name: {"median": ..., "quartiles": [...]}}, "decode": ...}."""
    torch.manual_seed(0)
    if batch * length * tags**2 > LARGEST:
        peers = {name: make for name, make in peers.items() if name != "torch-struct"}
    with torch.device(device):
        crf = CRF(num_tags=tags)
        problem = make_problem(batch, length, tags)
        contestants = [ours(crf), *(make(crf) for make in peers.values())]
        wrong = different(crf, problem, contestants)
    contestants = [contestant for contestant in contestants if contestant.name not in wrong]
    losses = {c.name: derived(c, problem) for c in contestants}
    decoders = {c.name: decoded(c, problem) for c in contestants if c.decode}
    return {
        "wrong": wrong,
        "loss": timing.measure(losses, rounds, slow=SLOW),
        "decode": timing.measure(decoders, rounds, slow=SLOW),
    }


def make_problem(batch: int, length: int, tags: int) -> Problem:
    """A random batch. Its lengths are uniform from 1 to `length`; the first is `length`."""
    lengths = torch.randint(1, length + 1, (batch, 1))
    lengths[0] = length
    scores = torch.randn(batch, length, tags, requires_grad=True)
    return Problem(scores, torch.randint(tags, (batch, length)), torch.arange(length) < lengths)


def derived(contestant: Contestant, problem: Problem) -> Callable[[], Tensor]:
    return timing.derived(partial(contestant.loss, problem), [problem.scores, *contestant.weights])


def decoded(contestant: Contestant, problem: Problem) -> Callable[[], object]:
    @torch.no_grad()
    def run() -> object:
        return contestant.decode(problem)

    return run


def different(crf: CRF, problem: Problem, contestants: list[Contestant]) -> list[str]:
    """Contestants whose loss, gradient of the scores, or score of the decoded tags differs beyond rounding."""
    results, wrong = [], []
    for contestant in contestants:
        loss = derived(contestant, problem)()
        results.append([loss.detach(), problem.scores.grad])
        if contestant.decode:
            tags = as_tensor(decoded(contestant, problem)(), problem.mask)
            transitions = Transitions(crf.start, crf.transitions, crf.end)
            results[-1].append(sequence_score(problem.scores, tags, problem.mask, transitions).detach())
        pairs = zip(results[-1], results[0], strict=False)
        if not all(torch.allclose(actual, expected, rtol=1e-4, atol=1e-4) for actual, expected in pairs):
            wrong.append(contestant.name)
            print(f"{contestant.name} computes different results, and is left out")
    return wrong


def as_tensor(tags: Any, mask: Tensor) -> Tensor:
    if not isinstance(tags, Tensor):
        tags = torch.tensor([[*sentence, *[0] * (mask.shape[1] - len(sentence))] for sentence in tags])
    return tags.masked_fill(~mask, 0)


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
    for parameter, weight in (
        (other.start_transitions, crf.start),
        (other.transitions, crf.transitions),
        (other.end_transitions, crf.end),
    ):
        parameter.data.copy_(weight)
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
        sentences = torch.arange(len(lengths), device=lengths.device)
        closed = scores.index_put((sentences, lengths - 1), end.expand(len(lengths), -1), accumulate=True)
        edges = closed[:, 1:, :, None] + pairs.t()
        opened = edges[:, :1] + (start + closed[:, 0])[:, None, None, :]
        return LinearChainCRF(torch.cat([opened, edges[:, 1:]], dim=1), lengths=lengths)

    def loss(problem: Problem) -> Tensor:
        found = chain(problem.scores, problem.mask)
        tags, lengths = problem.tags.cpu(), problem.mask.sum(1).cpu()  # `to_parts` works on a CPU
        edges = found.struct.to_parts(tags, crf.num_tags, lengths=lengths)
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


def tables(result: Result) -> list[str]:
    head = ("worst", "first quartile", "median", "third quartile", "best")
    texts = []
    for task, ratios in result["ratios"].items():
        rows = [
            [
                name,
                *map(
                    figure,
                    (each["worst"], each["quartiles"][0], each["median"], each["quartiles"][1], each["best"]),
                ),
            ]
            for name, each in ratios.items()
            if each
        ]
        texts.append(table(f"{TASKS[task]}: times ours", *head, rows=rows))
    return texts


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    for task, kind, least in (
        ("loss", "worst", 12),
        ("loss", "median", 25),
        ("decode", "worst", 16),
        ("decode", "median", 37),
    ):
        if against := results["crf"]["ratios"][task].get("pytorch-crf"):
            yield at_least(f"CRF against pytorch-crf, {TASKS[task]}, {kind}", least, against[kind])


if __name__ == "__main__":
    main()
