"""The LSTM with peepholes against the stock LSTM, which has none, and against a plain loop over time steps.

    python benchmarks/peephole.py [--threads N] [--rounds N] [--output FILE]

One direction over 32 sentences of 20 tokens, with 150 numbers per token. The loop has the same weights as ours, and its
states and gradients are first checked to be equal. The stock LSTM, which computes something else, shows what the
peepholes cost.
"""

from functools import partial

import timing
import torch
from tables import LSTM_MODULES, TASKS, Result, ms, table
from torch import Tensor, nn

from ner_experiments.modules.peephole import PeepholeLayer

MEASURES = (*LSTM_MODULES, "modules.peephole")

SIZES = (50, 100, 300)
BATCH, TIME, INPUT = 32, 20, 150


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=15))
    sizes = []
    for size in SIZES[: 1 if arguments.tiny else None]:
        sizes.append({"size": size, **measure_size(size, arguments.rounds)})
        for task in ("train", "forward"):
            timing.say(f"{size:4} {task}", sizes[-1][task])
    ratios = {
        task: {name: timing.ratios([found[task] for found in sizes], name) for name in ("loop", "stock")}
        for task in ("train", "forward")
    }
    timing.write("peephole", {"rounds": arguments.rounds, "ratios": ratios, "sizes": sizes}, arguments.output)


def measure_size(size: int, rounds: int) -> dict[str, dict[str, timing.Times]]:
    torch.manual_seed(0)
    x, up = torch.randn(BATCH, TIME, INPUT, requires_grad=True), torch.randn(BATCH, TIME, size)
    layer = PeepholeLayer(input_size=INPUT, hidden_size=size)
    stock = nn.LSTM(INPUT, size, batch_first=True)
    weights = {"ours": [*layer.parameters()], "loop": [*layer.parameters()], "stock": [*stock.parameters()]}
    lengths = torch.full((BATCH,), TIME)
    states = {
        "ours": lambda x: layer(x, lengths),
        "loop": partial(loop, layer),
        "stock": lambda x: stock(x)[0],
    }
    train = {name: timing.derived(partial(run, x), [x, *weights[name]], up) for name, run in states.items()}
    gradients = {
        name: [run().detach(), *(tensor.grad for tensor in (x, *weights[name]))]
        for name, run in train.items()
    }
    torch.testing.assert_close(gradients["ours"], gradients["loop"], rtol=1e-4, atol=1e-4)
    forward = {name: torch.no_grad()(partial(run, x)) for name, run in states.items()}
    return {"train": timing.measure(train, rounds), "forward": timing.measure(forward, rounds)}


def loop(layer: PeepholeLayer, x: Tensor) -> Tensor:
    by_i, by_f, by_o = layer.peepholes
    h = c = x.new_zeros(len(x), layer.state_weight.shape[1])
    states = []
    for now in nn.functional.linear(x, layer.input_weight, layer.bias).unbind(1):
        i, f, g, o = (now + h @ layer.state_weight.t()).chunk(4, dim=1)
        i, f = (i + by_i * c).sigmoid(), (f + by_f * c).sigmoid()
        c = f * c + i * g.tanh()
        h = (o + by_o * c).sigmoid() * c.tanh()
        states.append(h)
    return torch.stack(states, dim=1)


def tables(result: Result) -> list[str]:
    rows = [
        [f"{case['size']}, {TASKS[task]}", *(ms(case[task][name]) for name in ("ours", "loop", "stock"))]
        for case in result["sizes"]
        for task in ("train", "forward")
    ]
    return [table("units", "ours, ms", "plain loop, ms", "stock LSTM without peepholes, ms", rows=rows)]


if __name__ == "__main__":
    main()
