"""Breakdown of time where a target is missed: a training step, decoding, the CRF, the units.

    python benchmarks/time_breakdown.py [--threads N] [--rounds N] [--output FILE]

Each part is run by itself, on the inputs that it has within the whole, in turn with the whole: recurrent layers and
CRF forward and backward, and the optimizer with clipping. The rest is the whole less its parts. The shortest possible
time of the products of recurrent layers is their operations (see `taggers.operations`) over the rate of a product of
two large float32 matrices. Lightning's loop is the suite's own `fit`, with its callbacks. A recurrent layer by the
suite's kernels is taken apart once more.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timing
import torch
from crf import make_problem, shapes_of
from end_to_end import MODEL
from hydra.utils import instantiate
from tables import CRF_MODULES, LSTM_MODULES, TASKS, Result, figure, table
from taggers import Clocked, Trial, made_up, outermost
from torch import Tensor, nn

from ner_experiments.config.compose import compose
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Batch
from ner_experiments.experiment_data import make_encoder
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.kernels import cpu
from ner_experiments.modules.recurrent import BiRNN, weights_of
from ner_experiments.modules.units import BiLSTMUnits
from ner_experiments.train import build_for_training, fit
from ner_experiments.training.preemption import Sigterm

MEASURES = (*LSTM_MODULES, *CRF_MODULES, "train")

SHARED = [
    "chars=lstm",
    f"chars.module.dim={MODEL['char_dim']}",
    f"chars.module.hidden_size={MODEL['char_hidden']}",
    "model=bilstm",
    f"model.hidden_size={MODEL['hidden']}",
    f"model.dropout={MODEL['dropout']}",
    "batches=sentences",
    "optimizer=sgd",
]
MODELS = {
    "the model of end_to_end.py": SHARED,
    "Huang et al. (2015), BiLSTM-CRF": ["paper=huang2015"],
}
SENTENCES, LENGTHS = 320, range(2, 29)
UNITS = ((128, 8), (64, 16), (16, 64))
LAYERS = {
    "characters": (412, (2, 11), 25, 25),
    "words": (32, (12, 19), 150, 100),
    "residual": (64, (30, 60), 600, 300),
}
"""Sentences, range of lengths, inputs, and states per direction of BiLSTMs: two of end_to_end.py, one of Yang & Xu."""
SQUARE = 1024
Runs = dict[str, Callable[[], object]]


class Call(NamedTuple):
    layer: nn.Module
    inputs: tuple[Tensor, ...]
    options: dict[str, bool]


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    tiny, rounds = arguments.tiny, arguments.rounds
    matrix = torch.randn(SQUARE, SQUARE)
    product = timing.measure({"product": partial(torch.mm, matrix, matrix)}, 4 * rounds)["product"]["median"]
    result = {
        "rounds": rounds,
        "rate": 2 * SQUARE**3 / product,
        "models": {
            name: explain_model(overrides, 32 if tiny else SENTENCES, rounds)
            for name, overrides in MODELS.items()
        },
        "crf": [explain_crf(*shape, rounds) for shape in [(1, 1, 2), *shapes_of(tiny)]],
        "layers": {
            name: explain_layer(*((2, (2, 3), 2, 3) if tiny else shape), rounds)
            for name, shape in LAYERS.items()
        },
        "units": [explain_units(*shape, rounds) for shape in (((2, 3),) if tiny else UNITS)],
    }
    timing.write("time_breakdown", result, arguments.output)


def explain_model(overrides: list[str], sentences: int, rounds: int) -> dict[str, Any]:
    """Times of an epoch and of its parts. Dev is the first eight sentences of train."""
    corpus = made_up(sentences, LENGTHS)
    corpus.splits["dev"] = corpus.splits["train"][:8]
    trial = Trial(corpus, overrides)
    for group in trial.optimizer.param_groups:
        group["lr"] = 0.0  # the parts leave meaningless gradients
    batches = trial.batches()
    train, decode = parts(trial, batches)
    for run in (*train.values(), *decode.values()):
        run()
    train_seconds = timing.measure(train, rounds)
    timing.say("an epoch", train_seconds)
    fitting = [partial(fitted, overrides, corpus)] * rounds
    return {
        "batches": len(batches),
        "tokens": sum(int(batch.lengths.sum()) for batch in batches),
        "operations": sum(operations(call) for batch in batches for call in recurrent_calls(trial, batch)),
        "train": train_seconds,
        "decode": timing.measure(decode, rounds),
        "loops": {name: timing.summary(seconds) for name, seconds in loops(train["whole"], fitting).items()},
    }


def parts(trial: Trial, batches: list[Batch]) -> tuple[Runs, Runs]:
    calls = [call for batch in batches for call in recurrent_calls(trial, batch)]
    scores = [trial.tagger(batch).detach().requires_grad_() for batch in batches]

    def steps() -> None:
        for batch in batches:
            trial.step(batch)

    def decodes() -> None:
        for batch in batches:
            trial.decode(batch)

    def losses() -> None:
        for batch, given in zip(batches, scores, strict=True):
            trial.tagger.decoder.loss(given, batch.tags, batch.mask).backward()

    def decoders() -> None:
        for batch, given in zip(batches, scores, strict=True):
            trial.tagger.decoder.decode(given.detach(), batch.mask)

    def optimizer() -> None:
        for _ in batches:
            if trial.cfg.trainer.gradient_clip:
                nn.utils.clip_grad_norm_(trial.tagger.parameters(), trial.cfg.trainer.gradient_clip)
            trial.optimizer.step()

    train: Runs = {
        "whole": steps,
        "recurrent layers": partial(run_layers, calls, backward=True),
        "CRF": losses,
        "optimizer": optimizer,
    }
    return train, {
        "whole": decodes,
        "recurrent layers": partial(run_layers, calls, backward=False),
        "CRF": decoders,
    }


def run_layers(calls: list[Call], *, backward: bool) -> None:
    with torch.set_grad_enabled(backward):
        for call in calls:
            states = call.layer(*call.inputs, **call.options)
            states = states[0] if isinstance(states, tuple) else states
            if backward:
                states.backward(torch.ones_like(states))


def recurrent_calls(trial: Trial, batch: Batch) -> list[Call]:
    """Arguments of each call of a recurrent layer."""
    calls: list[Call] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], options: dict[str, bool], _: object) -> None:
        x, *others = inputs
        calls.append(Call(layer, (x.detach().requires_grad_(), *others), options))

    hooks = [
        layer.register_forward_hook(note, with_kwargs=True)
        for layer in trial.tagger.modules()
        if isinstance(layer, BiRNN)
    ]
    assert len(hooks) == len(outermost(trial.tagger)) // 2, "a recurrent layer outside of a BiRNN"
    trial.tagger(batch)
    for hook in hooks:
        hook.remove()
    return calls


def operations(call: Call) -> int:
    """Operations forward and backward, without padding. `taggers.operations` explains the six for each weight."""
    weights = sum(weight.numel() for name, weight in call.layer.named_parameters() if "weight" in name)
    return 6 * weights * int(call.inputs[1].sum())


def loops(steps: Callable[[], object], fitting: list[Callable[[], float]]) -> dict[str, list[float]]:
    """Seconds of epochs by a bare loop and by Lightning's, which take turns."""
    seconds: dict[str, list[float]] = {"bare": [], "Lightning": []}
    for fit_again in fitting:
        begun = timing.now()
        steps()
        seconds["bare"].append(timing.now() - begun)
        seconds["Lightning"].append(fit_again())
    return seconds


def fitted(overrides: list[str], corpus: Any) -> float:
    """Seconds of the steps of a second epoch by Lightning."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        further = ["trainer.max_epochs=2", "runtime.progress=false", "runtime.accelerator=cpu"]
        cfg = compose([*overrides, *further, f"output_dir='{folder}'"])
        encoder = make_encoder(cfg)
        encoder.fit(corpus)
        data = CorpusModule(corpus, encoder, instantiate(cfg.batches), seed=cfg.seed)
        epochs = Clocked(folder)
        fit(cfg, folder, build_for_training(cfg, encoder), data, [epochs], Sigterm(), None)
        return epochs.spent


def explain_crf(batch: int, length: int, tags: int, rounds: int) -> dict[str, Any]:
    """Times of a call on a shape. On the smallest shape there is hardly any work, so this is the fixed cost."""
    crf, problem = CRF(num_tags=tags), make_problem(batch, length, tags)
    runs: Runs = {
        "loss": timing.derived(partial(crf.loss, *problem), [problem.scores, *crf.parameters()]),
        "decode": torch.no_grad()(partial(crf.decode, problem.scores, problem.mask)),
    }
    for run in runs.values():
        run()
    return {"shape": [batch, length, tags], "seconds": timing.measure(runs, 10 * rounds)}


def explain_layer(
    sentences: int, lengths: tuple[int, int], inputs: int, size: int, rounds: int
) -> dict[str, Any]:
    """Times of a BiLSTM by the suite's kernels, forward and backward, and of its parts, with their operations."""
    numbers = torch.randint(*lengths, (sentences,))
    time = int(numbers.max())
    layer = BiRNN(input_size=inputs, hidden_size=size)
    cells = (layer.left_to_right.cell, layer.right_to_left.cell)
    weights = [next(weights_of(cell)) for cell in cells]
    matrices, recurrent, biases = (
        torch.cat(parts).detach()[:, 0] for parts in list(zip(*weights, strict=True))[:3]
    )
    x = torch.randn(sentences, time, inputs, requires_grad=True)
    tokens = cpu.Tokens(numbers, time, (False, True))
    packed = tokens.pack(x.detach()[None])
    gates, states = cpu.project(packed, matrices, biases), torch.randn(*packed.shape[:2], size)

    def by_input() -> None:
        cpu.project(packed, matrices, biases)
        cpu.project_backward(gates, packed, matrices, input_gradient=True)

    runs: Runs = {
        "whole": timing.derived(
            partial(layer, x, numbers), [x, *layer.parameters()], torch.randn(sentences, time, 2 * size)
        ),
        "products with the input": by_input,
        "recurrence": recurrence(gates, recurrent[:, None], tokens),
        "gradient of W": partial(torch.bmm, gates.mT, states),
    }
    for run in runs.values():
        run()
    count = packed.shape[1]
    return {
        "tokens": count,
        "sentences": sentences,
        "size": size,
        "operations": {
            "products with the input": 3 * 2 * 2 * count * 4 * size * inputs,
            "recurrence": 2 * 2 * 2 * count * 4 * size * size,
            "gradient of W": 2 * 2 * count * 4 * size * size,
        },
        "seconds": timing.measure(runs, rounds),
    }


def recurrence(gates: Tensor, recurrent: Tensor, tokens: cpu.Tokens) -> Callable[[], None]:
    """The kernels of the forward and of the backward pass, with the packing of W for each."""
    directions, count, width = gates.shape
    size, kernels = width // 4, cpu.kernels().lstm
    states, cells, inputs = (np.zeros((directions, count, size), np.float32) for _ in range(3))
    grad_states = torch.randn(directions, count, size).numpy()
    trace = kernels.Trace(gates.view(directions, count, 4, size).numpy().copy(), cells, inputs)
    no_peepholes, no_weights = (
        np.empty((0, directions, 3, size), np.float32),
        np.empty((0, width, size), np.float32),
    )
    gradient = kernels.Gradient(np.empty_like(trace.gates), no_peepholes, no_weights)

    def run() -> None:
        for kernel, backward in ((kernels.forward, False), (kernels.backward, True)):
            layer = cpu.make_layer(recurrent, directions, None, None, tokens.batch, backward=backward)
            jobs = directions * layer.parts
            rest = (trace, grad_states, size, gradient) if backward else (size, states, trace)
            cpu.run_chunks(kernel, jobs, tokens.batch, layer, *rest)

    return run


def explain_units(units: int, size: int, rounds: int) -> dict[str, Any]:
    """Times of K units on 32 x 20 tokens of 150 numbers, forward and backward, and of their products with the input."""
    x, lengths = torch.randn(32, 20, 150, requires_grad=True), torch.full((32,), 20)
    layer = BiLSTMUnits(input_size=150, num_units=units, unit_size=size, dropout=0.0)
    weights = layer.input_weights
    matrix = weights.detach().flatten(0, 2).requires_grad_()
    up, by_gates = torch.randn(32, 20, units, 2 * size), torch.randn(640, len(matrix))
    runs = {
        "whole": timing.derived(partial(layer, x, lengths), [x, *layer.parameters()], up),
        "input's products": timing.derived(lambda: x.flatten(0, 1) @ matrix.T, [x, matrix], by_gates),
    }
    for run in runs.values():
        run()
    numbers = weights.numel() + layer.recurrent_weights.numel()
    return {
        "units": units,
        "size": size,
        "operations": 6 * numbers * 640,
        "seconds": timing.measure(runs, rounds),
    }


def tables(result: Result) -> list[str]:
    texts = []
    for name, model in result["models"].items():
        rows = []
        for task, title in (("train", "training"), ("decode", "decoding")):
            seconds = {part: times["median"] for part, times in model[task].items()}
            whole = seconds["whole"]
            seconds["the rest"] = 2 * whole - sum(seconds.values())
            for part, time in seconds.items():
                rows.append(
                    [f"{title}: {part}", figure(1e3 * time / model["batches"]), f"{time / whole:.0%}"]
                )
        least, (bare, lightning) = model["operations"] / result["rate"], model["loops"].values()
        layers = model["train"]["recurrent layers"]["median"]
        at_best = figure(1e3 * least / model["batches"])
        rows.append(
            [
                "training: products of the recurrent layers, at best",
                at_best,
                f"{least / layers:.0%} of the layers",
            ]
        )
        over = lightning["median"] / bare["median"] - 1
        rows.append(
            ["training: Lightning's loop with the suite's callbacks, over a bare one", "", f"{over:+.0%}"]
        )
        tokens = model["tokens"] / model["batches"]
        texts.append(table(f"{name}: {tokens:.0f} tokens a batch", "ms a batch", "share", rows=rows))
    texts += [layer_breakdown(name, layer, result["rate"]) for name, layer in result["layers"].items()]
    fixed, *shapes = result["crf"]
    calls = []
    for task in ("loss", "decode"):
        ranked = sorted(shapes, key=lambda shape: shape["seconds"][task]["median"])
        for shape in (fixed, ranked[0], ranked[len(ranked) // 2], ranked[-1]):
            sentences, length, tags = shape["shape"]
            time = shape["seconds"][task]["median"]
            share = fixed["seconds"][task]["median"] / time
            case = f"{TASKS[task]}, {sentences} x {length} tokens, {tags} tags"
            calls.append([case, figure(1e6 * time), f"{share:.0%}"])
    texts.append(table("a call of the CRF", "microseconds", "fixed", rows=calls))
    rows = []
    for case in result["units"]:
        whole, products = (case["seconds"][part]["median"] for part in ("whole", "input's products"))
        least = case["operations"] / result["rate"]
        times = [figure(1e3 * time) for time in (whole, products, least)]
        rows.append([f"{case['units']} x {case['size']}", *times, f"{least / whole:.0%}"])
    head = (
        "units, even, forward and backward",
        "ms",
        "products with the input",
        "all products at best",
        "share",
    )
    return [*texts, table(*head, rows=rows)]


def layer_breakdown(name: str, layer: Result, rate: float) -> str:
    """The parts of a recurrent layer, and what their products would take at the rate of a large one."""
    seconds = {part: times["median"] for part, times in layer["seconds"].items()}
    whole = seconds.pop("whole")
    at_best = {part: operations / rate for part, operations in layer["operations"].items()}
    at_best["whole"] = sum(at_best.values())
    rows = []
    for part, time in {**seconds, "the rest": whole - sum(seconds.values()), "whole": whole}.items():
        best = at_best.get(part)
        shares = ("", "") if best is None else (figure(1e3 * best), f"{best / time:.0%}")
        rows.append([part, figure(1e3 * time), f"{time / whole:.0%}", *shares])
    what = f"BiLSTM of {name}: {layer['tokens']:,} tokens in {layer['sentences']} sentences, {layer['size']} states"
    return table(what, "ms", "share", "products at best, ms", "of the time", rows=rows)


if __name__ == "__main__":
    main()
