"""K parallel BiLSTMs over one input: ours against K stock LSTMs and against all of them in lock-step.

    python benchmarks/units.py [--threads N] [--rounds N] [--output FILE]

Batches are 32 sentences of up to 20 tokens, with 150 numbers per token. All have the same weights; outputs and the
gradient with respect to the input are first checked to be equal. `stock` is a bidirectional nn.LSTM, on padded tensors
where all sentences have the same length, and on packed ones, packed once for all K. `lock-step` takes all units and
directions through a time step in one batched product, and leaves the gradient to autograd.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import timing
import torch
from tables import LSTM_MODULES, TASKS, Result, at_least, ms, ratio, table
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ner_experiments.modules.recurrent import reverse
from ner_experiments.modules.units import BiLSTMUnits

MEASURES = (*LSTM_MODULES, "modules.units")

SHAPES = ((128, 8), (64, 16), (16, 64), (8, 128), (4, 256), (1, 1024))
BATCH, TIME, INPUT = 32, 20, 150
SLOW = 1.0
"""Seconds above which a contestant is run once."""


class Contestant(NamedTuple):
    states: Callable[[Tensor, Tensor], Tensor]
    """Input and lengths -> [batch time units out]."""
    weights: list[Tensor]


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    shapes = []
    for units, size in ((4, 8),) if arguments.tiny else SHAPES:
        for ragged in (False, True):
            times = measure_shape(units, size, ragged, arguments.rounds)
            shapes.append({"units": units, "size": size, "ragged": ragged, **times})
            for task in ("train", "forward"):
                timing.say(
                    f"{units:3} x {size:4} {'ragged' if ragged else 'even  '} {TASKS[task]}", times[task]
                )
    ratios = {
        task: {name: timing.ratios([shape[task] for shape in shapes], name) for name in names(shapes, task)}
        for task in ("train", "forward")
    }
    timing.write("units", {"rounds": arguments.rounds, "ratios": ratios, "shapes": shapes}, arguments.output)


def names(shapes: list[dict[str, Any]], task: str) -> list[str]:
    return sorted({name for shape in shapes for name in shape[task]} - {"ours"})


def measure_shape(
    units: int,
    size: int,
    ragged: bool,
    rounds: int,
    device: str = "cpu",
    more: Callable[[BiLSTMUnits], dict[str, Callable[[Tensor, Tensor], Tensor]]] = lambda ours: {},
    record: Callable[[Callable[[], Any]], Callable[[], Any]] | None = None,
) -> dict[str, Any]:
    """Times of all contestants.

    more: further ways to compute the states of ours. record: makes CUDA graphs, of which packed tensors allow none.
    """
    torch.manual_seed(0)
    with torch.device(device):
        lengths = torch.full((BATCH,), TIME)
        if ragged:
            lengths[1:] = torch.randint(1, TIME + 1, (BATCH - 1,))
        x = torch.randn(BATCH, TIME, INPUT, requires_grad=True)
        ours = BiLSTMUnits(input_size=INPUT, num_units=units, unit_size=size, dropout=0.0)
        runs = contestants(ours, lengths, ragged)
        runs |= {name: Contestant(way, list(ours.parameters())) for name, way in more(ours).items()}
        is_token = (torch.arange(TIME) < lengths[:, None])[..., None, None]
        up = torch.randn(BATCH, TIME, units, 2 * size) * is_token
    check_equal(runs, x, lengths, up, is_token)
    train = {name: derived(run, x, lengths, up) for name, run in runs.items()}
    only_forward = {name: torch.no_grad()(partial(run.states, x, lengths)) for name, run in runs.items()}
    if record:
        del runs["stock, packed"]
        train = {name: record(partial(gradients, run, x, lengths, up)) for name, run in runs.items()}
        only_forward = {name: record(only_forward[name]) for name in runs}
    return {
        "train": timing.measure(train, rounds, slow=SLOW),
        "forward": timing.measure(only_forward, rounds, slow=SLOW),
    }


def contestants(ours: BiLSTMUnits, lengths: Tensor, ragged: bool) -> dict[str, Contestant]:
    lstms = nn.ModuleList(stock(weights) for weights in unit_weights(ours))
    on_cpu = lengths.cpu()  # where packing needs them

    def padded(x: Tensor, lengths: Tensor) -> Tensor:
        return torch.stack([lstm(x)[0] for lstm in lstms], dim=2)

    def packed(x: Tensor, lengths: Tensor) -> Tensor:
        together = pack_padded_sequence(x, on_cpu, batch_first=True, enforce_sorted=False)
        states = [pad_packed_sequence(lstm(together)[0], batch_first=True)[0] for lstm in lstms]
        return torch.stack(states, dim=2)

    def in_lock_step(x: Tensor, lengths: Tensor) -> Tensor:
        return lock_step(ours, x, lengths)

    ours_weights, stock_weights = list(ours.parameters()), list(lstms.parameters())
    runs = {
        "ours": Contestant(ours, ours_weights),
        "stock, packed": Contestant(packed, stock_weights),
        "lock-step": Contestant(in_lock_step, ours_weights),
    }
    return runs if ragged else runs | {"stock, padded": Contestant(padded, stock_weights)}


def unit_weights(ours: BiLSTMUnits) -> list[list[tuple[Tensor, Tensor, Tensor]]]:
    """Input weights, recurrent weights and biases of each unit, for each direction."""
    both = zip(ours.input_weights, ours.recurrent_weights, ours.biases, strict=True)
    directions = [list(zip(*weights, strict=True)) for weights in both]
    return [list(pair) for pair in zip(*directions, strict=True)]


@torch.no_grad()
def stock(weights: list[tuple[Tensor, Tensor, Tensor]]) -> nn.LSTM:
    size = weights[0][1].shape[1]
    lstm = nn.LSTM(INPUT, size, batch_first=True, bidirectional=True)
    for suffix, (by_input, recurrent, bias) in zip(("l0", "l0_reverse"), weights, strict=True):
        getattr(lstm, f"weight_ih_{suffix}").copy_(by_input)
        getattr(lstm, f"weight_hh_{suffix}").copy_(recurrent)
        getattr(lstm, f"bias_ih_{suffix}").copy_(bias)
        getattr(lstm, f"bias_hh_{suffix}").zero_()
    return lstm


def lock_step(ours: BiLSTMUnits, x: Tensor, lengths: Tensor) -> Tensor:
    _, units, gates, _ = ours.input_weights.shape
    both = torch.stack([x, reverse(x, lengths)]).flatten(1, 2)
    read = torch.baddbmm(ours.biases.flatten(1)[:, None], both, ours.input_weights.flatten(1, 2).mT)
    read = read.view(2, *x.shape[:2], units, gates)
    weights = ours.recurrent_weights.flatten(0, 1).mT
    h = c = x.new_zeros(2 * units, len(x), gates // 4)
    states = []
    for now in read.unbind(2):
        i, f, g, o = torch.baddbmm(now.transpose(1, 2).flatten(0, 1), h, weights).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h.view(2, units, len(x), -1).transpose(1, 2))
    ahead, back = torch.stack(states, dim=2)
    return torch.cat([ahead, reverse(back.flatten(2), lengths).view_as(back)], dim=-1)


def derived(run: Contestant, x: Tensor, lengths: Tensor, up: Tensor) -> Callable[[], Tensor]:
    return timing.derived(partial(run.states, x, lengths), [x, *run.weights], up)


def gradients(run: Contestant, x: Tensor, lengths: Tensor, up: Tensor) -> tuple[Tensor, ...]:
    """As `derived`, but gradients are returned: adding them to those of leaves would use another stream."""
    return torch.autograd.grad(run.states(x, lengths), [x, *run.weights], up)


def check_equal(
    runs: dict[str, Contestant], x: Tensor, lengths: Tensor, up: Tensor, is_token: Tensor
) -> None:
    """Check that states of tokens and the gradient with respect to the input are equal within float32's rounding."""
    by_name = {
        name: (derived(run, x, lengths, up)().detach() * is_token, x.grad) for name, run in runs.items()
    }
    for name, results in by_name.items():
        for actual, expected in zip(results, by_name["lock-step"], strict=True):
            torch.testing.assert_close(
                actual, expected, rtol=1e-4, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
            )


def tables(result: Result) -> list[str]:
    others = ("stock, padded", "stock, packed", "lock-step", "by step")
    others = tuple(name for name in others if any(name in shape["train"] for shape in result["shapes"]))
    rows = []
    for shape in result["shapes"]:
        case = f"{shape['units']} x {shape['size']}, {'ragged' if shape['ragged'] else 'even'}"
        for task in ("train", "forward"):
            times = shape[task]
            gains = [ratio(times[other], times["ours"]) if other in times else "" for other in others]
            rows.append([f"{case}, {TASKS[task]}", ms(times["ours"]), *gains])
    return [table("units", "ours, ms", *others, rows=rows)]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    """Limit: as in those of end_to_end.py."""
    units, parts = results["units"], results["time_breakdown"]
    limits = {
        (case["units"], case["size"]): case["seconds"]["whole"]["median"] * parts["rate"] / case["operations"]
        for case in parts["units"]
    }
    for number, size, least in ((128, 8, 4), (64, 16, 2.5), (16, 64, 1.3)):
        shapes = [
            shape["train"] for shape in units["shapes"] if (shape["units"], shape["size"]) == (number, size)
        ]
        gain = min(fastest_stock(times)["median"] / times["ours"]["median"] for times in shapes)
        limit = gain * limits[number, size]
        yield at_least(f"{number} x {size} units against stock LSTMs, {TASKS['train']}", least, gain, limit)
    cases = [shape[task] for shape in units["shapes"] for task in ("train", "forward")]
    slower = sum(
        case["ours"]["quartiles"][0] > min(t["quartiles"][1] for t in case.values()) for case in cases
    )
    what = "units slower than stock LSTMs or than lock-step by so much that the quartiles do not overlap"
    yield [what, "in no case", f"in {slower} of {len(cases)} cases", "", "**no**" if slower else "yes"]


def fastest_stock(times: Result) -> Result:
    return min(
        (found for name, found in times.items() if name.startswith("stock")),
        key=lambda found: found["median"],
    )


if __name__ == "__main__":
    main()
