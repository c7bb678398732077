"""The suite's LSTM kernels against oneDNN's, by size of the layer and padding of the batch.

    python benchmarks/onednn.py [--threads N] [--rounds N] [--clock processor] [--output FILE]

One direction over 32 sentences of up to 20 tokens, with as many inputs as states. `padding_is_cheap` and
`onednn_is_faster` in `modules/lstm.py` choose between the two by what this measures: oneDNN computes padding too.
"""

from functools import partial
from typing import Any

import timing
import torch
from tables import LSTM_MODULES, TASKS, Result, ms, ratio, table
from torch import Tensor

from ner_experiments.modules import lstm

MEASURES = LSTM_MODULES

SIZES = (25, 50, 100, 200, 300, 512, 1024)
TOKENS = (1.0, 0.9, 0.8)
"""Share of tokens in the padded batch."""
BATCH, TIME = 32, 20


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    cases = []
    for size in SIZES[:1] if arguments.tiny else SIZES:
        for share in TOKENS:
            times = measure(size, share, arguments.rounds)
            cases.append({"size": size, "tokens": share, **times})
            for task in times:
                timing.say(f"{size:4} states, {share:.0%} tokens, {task}", times[task])
    capability = torch.backends.cpu.get_cpu_capability()
    timing.write(
        "onednn", {"rounds": arguments.rounds, "capability": capability, "cases": cases}, arguments.output
    )


def measure(size: int, share: float, rounds: int) -> dict[str, dict[str, timing.Times]]:
    torch.manual_seed(0)
    weights = lstm.Weights(
        *((torch.randn(1, 1, 4 * size, size) * size**-0.5).requires_grad_() for _ in range(2)),
        torch.zeros(1, 1, 4 * size, requires_grad=True),
    )
    x = torch.randn(1, BATCH, TIME, size, requires_grad=True)
    lengths = (torch.linspace(2 * share - 1, 1, BATCH) * TIME).round().long()
    real = torch.arange(TIME) < lengths[:, None]
    leaves = [x, *weights[:3]]

    def states(kind: str) -> Tensor:
        if kind == "onednn":
            return lstm.stock_states(x, lengths, weights, (False,))
        return lstm.numba_states(x, lengths, weights, (False,), None)

    def decode(kind: str) -> Tensor:
        with torch.inference_mode():
            return states(kind)

    up = torch.randn(1, BATCH, TIME, 1, size) * real[..., None, None]
    tasks: dict[str, dict[str, Any]] = {
        "train": {kind: timing.derived(partial(states, kind), leaves, up) for kind in ("kernels", "onednn")},
        "decode": {kind: partial(decode, kind) for kind in ("kernels", "onednn")},
    }
    ours, theirs = (run()[0][real] for run in tasks["decode"].values())
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    gradients = []
    for run in tasks["train"].values():
        run()
        gradients.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)
    return {task: timing.measure(runs, rounds) for task, runs in tasks.items()}


def tables(result: Result) -> list[str]:
    rows = [
        [
            str(case["size"]),
            f"{case['tokens']:.0%}",
            *(
                cell
                for task in ("train", "decode")
                for cell in (
                    ms(case[task]["kernels"]),
                    ms(case[task]["onednn"]),
                    ratio(case[task]["onednn"], case[task]["kernels"]),
                )
            ),
        ]
        for case in result["cases"]
    ]
    kinds = ("kernels, ms", "oneDNN, ms", "times ours")
    head = ("states", "tokens", *(f"{TASKS[task]}: {kind}" for task in ("train", "decode") for kind in kinds))
    return [f"Vector instructions: {result['capability']}.", table(*head, rows=rows)]


if __name__ == "__main__":
    main()
