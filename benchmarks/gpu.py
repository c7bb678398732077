"""GPU benchmarks: an epoch of each paper's setting, kernels, peers, concurrent runs, and determinism.

    python benchmarks/gpu.py [--device cuda|cpu] [--rounds N] [--ncrfpp CLONE] [--flair-python PYTHON] [--output FILE]

Each measurement runs in its own processes. One that fails, or for which there is no time left, is skipped and named.
Together they take at most `LIMIT` seconds; the result is saved after each.

- recurrence: large units with peepholes or recurrent dropout, by a loop in PyTorch and by kernels per time step, each
  launched one by one and as a CUDA graph. States and gradients are compared first.
- graphs: for each setting two processes train the same deterministic steps at once, one by CUDA graphs and one that
  computes each step again; all bits of their weights are compared, and replays are counted.
- epochs: each paper's setting, trained by the suite's own `fit` on generated sentences, as many as CoNLL-2003 has.
  Random word vectors, which are trained, replace the papers' files. An epoch is cut off after some 5 s.
- by a loop: the same for settings with large units, which take the loop in PyTorch that they had before the kernels.
- with graphs: as epochs; the second epoch counts, as most shapes are recorded in the first.
- packed: twelve processes at once, as `hydra.launcher.jobs_per_gpu` packs them: under NVIDIA's MPS, if it starts.
- units, units in graphs: the contestants of units.py, of which `stock` is cuDNN, and kernels per time step. cuDNN
  computes in float32 as the others do; in other parts it may use TF32, as by default.
- peers: the contestants of end_to_end.py on the GPU.
- compiled: large units by a loop that `torch.compile` unrolls.
- together: two processes on the one GPU train one model by DDP; NCCL may refuse, gloo does not.
- crf: the contestants of crf.py, and the suite's CRF in PyTorch without kernels.
- seeds: 1 and 8 processes that train a small tagger each, on the one GPU at once.
- determinism: two processes train a setting with the same seed at once, and do so again with
  `runtime.deterministic=true`; all bits of their weights are compared.

Utilization is NVML's, as nvidia-smi reads it in a process of its own, over the seconds that count.

The result holds, by part and name of a measurement, a list of what each of its processes returned.
"""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import crf
import end_to_end
import numpy as np
import timing
import torch
import units
from drivers import corpus as text
from gpu_kernels import measure_compiled, measure_crf, measure_recurrence, measure_units
from lightning.pytorch.strategies import DDPStrategy
from safetensors.torch import save
from tables import TASKS, Result, at_least, figure, ms, ratio, table
from taggers import Clocked

from ner_experiments.config.compose import compose
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.experiment_data import make_encoder
from ner_experiments.launch.packing import gpus, slot_of, start_mps
from ner_experiments.modules import recurrent
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.kernels import cuda
from ner_experiments.runs.provenance import peak_memory, reset_peak_memory
from ner_experiments.train import corpus_module, fit, seeded_tagger
from ner_experiments.training import graphs, trainer
from ner_experiments.training.preemption import Sigterm

MEASURES = (
    "training.graphs",
    *("modules.lstm", "modules.kernels.cuda", "modules.kernels.crf_triton", "modules.kernels.lstm_triton"),
)

LIMIT, LONGEST = 480, 100
"""Seconds of all measurements, and of one of them."""
SETTINGS = {
    "Huang et al. (2015), BI-LSTM-CRF": ["paper=huang2015", "direct=ner"],
    "Zukov-Gregoric et al. (2018), 16 x 64": ["paper=zukov2018", "words=random", "words.module.dim=100"],
    "Yang & Xu (2020), residual, 4 layers": ["paper=yang2020_en", "words=random", "words.module.dim=300"],
    "Li et al. (2020), Att": ["paper=li2020", "model=attention", "words=random", "words.module.dim=300"],
}
FASTER = dict(zip(SETTINGS, (10, 3, 3, 10), strict=True))
"""How many times as fast as without graphs, and by a loop if units are large, the settings are to be trained."""
LARGE = [name for name in SETTINGS if name.startswith(("Huang", "Li"))]
YANG = "Yang & Xu (2020), residual, 4 layers"
PACKED, BUSY = 15, 60
"""Tokens per second of twelve packed trainings over those of one without graphs; utilization in %."""
GOALS = 2 * len(SETTINGS) + 3
"""The goals, with a row each in `targets`: tokens per second and utilization by setting, units twice, and packing."""
GRAPHS, DETERMINISTIC = "runtime.cuda_graphs=true", "runtime.deterministic=true"
SMALL = ["model=bilstm", "model.hidden_size=100"]
CRF_PEERS = ("pytorch-crf", "torch-struct")
CRF_SHAPES = ((16, 16, 9), (16, 50, 17), (64, 50, 17), (64, 128, 73))
UNIT_SHAPES = ((128, 8), (16, 64), (4, 256), (1, 1024))
RECURRENCES = {
    "Huang et al.'s: 300 states, peepholes": (300, True),
    "Li et al.'s: 100 states, dropout": (100, False),
}
"""Size of a unit, and whether it has peepholes; if not, it has recurrent dropout."""
PROCESSES = (1, 8)
SENTENCES, FORMS = 14_041, 31_000
"""As many training sentences as CoNLL-2003, and a vocabulary from which about as many distinct words are drawn."""
COLUMNS = {"pos": 45, "chunk": 18}
"""Values of the further columns that Huang et al.'s features read."""
QUERIES, EVERY = ("utilization.gpu", "clocks.sm", "power.draw"), 0.2


class Sizes(NamedTuple):
    seconds: float
    """Duration after which an epoch is cut off."""
    warm_up: int
    """Batches before an epoch that is measured."""
    steps: int
    """Training steps after which weights are compared."""


FULL, TINY = Sizes(5, 10, 50), Sizes(0.1, 1, 4)


class Measurement(NamedTuple):
    part: str
    name: str
    function: Callable[..., Any]
    calls: list[tuple[Any, ...]]
    """Arguments of the function in each of the processes, which start at once."""


def main() -> None:
    parser = timing.options(__doc__, rounds=5)
    parser.set_defaults(threads=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    end_to_end.add_peers(parser)
    arguments = timing.begin(parser)
    if arguments.clock == "processor":
        parser.error("gpu.py requires --clock wall")
    end = timing.now() + LIMIT
    device = "cpu" if arguments.tiny else arguments.device
    peers = timing.present({name: partial(crf.PEERS[name], CRF(num_tags=2)) for name in CRF_PEERS})
    left_out = sorted({*CRF_PEERS} - {*peers})
    result: dict[str, Any] = {"rounds": arguments.rounds, "gpu": gpu(device), "left_out": left_out}
    with ExitStack() as context:
        clients, said = ({}, "no MPS") if device == "cpu" else start_mps([slot_of("0", gpus())], context)
        print(said, flush=True)
        run = measurements(device, arguments, peers, clients)
        measure(run, result, end, arguments.output)
    timing.write("gpu", result, arguments.output)
    goals = [[*row[:3], row[4]] for row in targets({"gpu": result})]
    print(table(f"{len(goals)} of {GOALS} goals measured", "goal", "measured", "met", rows=goals))
    print(f"graphs are right and faster in every setting: {graphs_are_right(result)}")
    if device == "cpu":
        print("Without a GPU, this only shows that the script runs: the figures mean nothing.")


def measure(run: Iterator["Measurement"], result: dict[str, Any], end: float, output: Path | None) -> None:
    """Add each measurement to the result, and save it, until the end."""
    left_out = result["left_out"]
    for part, name, function, calls in run:
        try:
            outcomes = timing.in_processes(function, calls, min(LONGEST, end - timing.now()))
            result.setdefault(part, {})[name] = outcomes
            wrong = outcomes[0]["wrong"] if part == "crf" else []
            left_out += [f"{part}: {name}: {peer}, whose results differ" for peer in wrong]
            print(f"{part}: {name}: measured; {end - timing.now():.0f} s are left", flush=True)
        except (RuntimeError, TimeoutError) as error:
            left_out.append(f"{part}: {name}")
            print(f"{part}: {name} is left out: {error}", flush=True)
        timing.save("gpu", result, output)


def gpu(device: str) -> str:
    """Name of the GPU, and the versions that its speed depends on. SystemExit if PyTorch cannot use it."""
    if device == "cpu":
        return "no GPU"
    try:
        return timing.in_processes(describe_gpu, [()], LONGEST)[0]
    except (RuntimeError, TimeoutError) as error:
        raise SystemExit(f"benchmarks/gpu.py needs a GPU that PyTorch can use: {error}") from None


def describe_gpu() -> str:
    cudnn = torch.backends.cudnn.version()
    return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, cuDNN {cudnn}"


def measurements(
    device: str, arguments: Namespace, peers: list[str], clients: dict[str, str]
) -> Iterator[Measurement]:
    """The most important ones first. clients: the environment of MPS's clients."""
    tiny, rounds = arguments.tiny, arguments.rounds
    sizes = TINY if tiny else FULL
    corpus = generated(40 if tiny else SENTENCES)
    first = slice(1 if tiny else None)
    settings = [*SETTINGS.items()][first]
    for name, shape in [*RECURRENCES.items()][first]:
        yield Measurement("recurrence", name, measure_recurrence, [(*shape, rounds, device)])
    for name, setting in settings:
        calls = [([*setting, GRAPHS, DETERMINISTIC], corpus, device, sizes, again) for again in (False, True)]
        yield Measurement("graphs", name, train_steps, calls)
    for name, setting in SETTINGS.items():
        yield Measurement("epochs", name, measure_epoch, [(setting, corpus, device, sizes)])
    for name in LARGE[first]:
        yield Measurement("by a loop", name, measure_loop, [(SETTINGS[name], corpus, device, sizes)])
    longer, twice = sizes._replace(seconds=4 * sizes.seconds), (GRAPHS, "trainer.max_epochs=2")
    for name, setting in settings:
        yield Measurement("with graphs", name, measure_epoch, [([*setting, *twice], corpus, device, longer)])
    number = 2 if tiny else 12
    barrier = timing.forkserver().Barrier(number)
    packed = [[*(SMALL if tiny else SETTINGS[YANG]), *twice, f"seed={seed}"] for seed in range(1, number + 1)]
    calls = [(each, corpus, device, sizes, barrier, clients) for each in packed]
    yield Measurement("packed", YANG, measure_epoch, calls)
    for part, in_graphs in (("units", False), ("units in graphs", True)):
        for shape in ((4, 8),) if tiny else UNIT_SHAPES:
            name = "{} x {}".format(*shape)
            yield Measurement(part, name, measure_units, [(*shape, in_graphs, rounds, device)])
    for contestant in end_to_end.contestants(arguments, on_gpu=True):
        yield Measurement("peers", contestant.name, measure_peer, [(contestant, device, tiny)])
    for backend in ("gloo",) if device == "cpu" else ("nccl", "gloo"):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        calls = [([*SETTINGS[YANG]], corpus, device, sizes, backend, port, rank) for rank in (0, 1)]
        yield Measurement("together", backend, train_together, calls)
    for shape in ((4, 8),) if tiny else UNIT_SHAPES[2:]:
        yield Measurement("compiled", "{} x {}".format(*shape), measure_compiled, [(*shape, rounds, device)])
    for shape in CRF_SHAPES[first]:
        name = "{} x {} tokens, {} tags".format(*shape)
        yield Measurement("crf", name, measure_crf, [(*shape, peers, rounds, device)])
    for number in (1, 2) if tiny else PROCESSES:
        barrier = timing.forkserver().Barrier(number)
        calls = [([*SMALL, f"seed={seed}"], corpus, device, sizes, barrier) for seed in range(1, number + 1)]
        yield Measurement("seeds", str(number), measure_epoch, calls)
    for name, setting in settings:
        for part, more in (("as trained", ()), ("deterministic", (DETERMINISTIC,))):
            yield Measurement(part, name, train_steps, 2 * [([*setting, *more], corpus, device, sizes)])


class Training:
    """A setting, to be trained by the suite's own `fit` for a part of an epoch."""

    def __init__(self, setting: Sequence[str], corpus: Corpus, device: str) -> None:
        fixed = ("data=conll2003", f"runtime.accelerator={device}")
        self.cfg = compose(["trainer.max_epochs=1", *setting, *fixed])
        self.encoder = make_encoder(self.cfg)
        self.encoder.fit(corpus)
        self.data = corpus_module(self.cfg, corpus, self.encoder)

    def train(self, batches: int) -> Clocked:
        """Train a new tagger, `self.tagger`, on the first batches of an epoch."""
        self.data.train_batches = batches
        self.tagger = seeded_tagger(self.cfg, self.encoder)
        with tempfile.TemporaryDirectory() as folder:
            clock = Clocked(Path(folder))
            fit(self.cfg, Path(folder), self.tagger, self.data, [clock], Sigterm(), None)
        return clock


def measure_epoch(
    setting: Sequence[str],
    corpus: Corpus,
    device: str,
    sizes: Sizes,
    barrier: Barrier | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Seconds and tokens of the last epoch, or of its first `sizes.seconds`, and memory and load of the GPU."""
    os.environ.update(environment or {})
    training = Training(setting, corpus, device)
    training.train(sizes.warm_up)  # also compiles the kernels
    a_batch = training.train(sizes.warm_up).spent / sizes.warm_up
    if barrier:
        barrier.wait()
    reset_peak_memory()
    with sampled(device) as samples:
        clock = training.train(max(sizes.warm_up, int(sizes.seconds / a_batch)))
    tokens, memory = clock.rows[-1]["tokens"], peak_memory(torch.device(device)).get("device")
    of = sum(map(len, corpus.splits["train"]))
    load = medians(samples[-max(1, round(clock.spent / EVERY)) :])
    return {"tokens": tokens, "of": of, "seconds": clock.spent, "bytes": memory, "load": load}


def measure_loop(*arguments: Any) -> dict[str, Any]:
    """`measure_epoch` with large units computed by the loop in PyTorch, a direction at a time."""
    recurrent.run_together = lambda *_: None
    by_kernels = cuda.supports_lstm
    cuda.supports_lstm = lambda weights, by_step: not by_step and by_kernels(weights, False)
    return measure_epoch(*arguments)


def train_together(
    setting: Sequence[str], corpus: Corpus, device: str, sizes: Sizes, backend: str, port: int, rank: int
) -> dict[str, Any]:
    """`train_steps` by this process, as torchrun would start it on the second of two machines, and another one."""
    places = {"RANK": rank, "GROUP_RANK": rank, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "WORLD_SIZE": 2}
    places |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "together"}
    os.environ.update({name: str(value) for name, value in places.items()})
    trainer.DDPStrategy = partial(DDPStrategy, process_group_backend=backend)
    together = ("trainer=ddp", "trainer.devices=1", "trainer.num_nodes=2", "runtime.ddp_seconds=30")
    return train_steps([*setting, *together], corpus, device, sizes)


def generated(sentences: int) -> Corpus:
    """Sentences with the words and lengths of end_to_end.py, and random tags and `COLUMNS`. Dev: the first eight."""
    rng = np.random.default_rng(0)
    lengths = text.lengths(rng, sentences)
    tags = ["O", *(f"{prefix}-{kind}" for kind in text.TYPES for prefix in "BIES")]

    def draw(values: Sequence[object], p: np.ndarray | None = None) -> list[tuple[str, ...]]:
        drawn = rng.choice(np.array(values, dtype=str), lengths.sum(), p=p)
        return [tuple(part.tolist()) for part in np.split(drawn, lengths.cumsum()[:-1])]

    words = draw(text.vocabulary(rng, FORMS), text.shares(np.arange(FORMS)))
    columns = [draw(range(size)) for size in COLUMNS.values()]
    train = [
        Sentence(own, its_tags, dict(zip(COLUMNS, others, strict=True)))
        for own, its_tags, *others in zip(words, draw(tags), *columns, strict=True)
    ]
    return Corpus("generated", "mentions", {"train": train, "dev": train[:8]}, "")


@contextmanager
def sampled(device: str) -> Iterator[list[str]]:
    """Values of `QUERIES` every `EVERY` seconds of the block, a line each, in the list that is yielded at its start.

    Empty without nvidia-smi.
    """
    samples: list[str] = []
    if device == "cpu" or not shutil.which("nvidia-smi"):
        yield samples
        return
    own = f"--id=GPU-{torch.cuda.get_device_properties(0).uuid}"
    what = (
        f"--query-gpu={','.join(QUERIES)}",
        "--format=csv,noheader,nounits",
        f"--loop-ms={EVERY * 1000:.0f}",
    )
    process = subprocess.Popen(["nvidia-smi", own, *what], stdout=subprocess.PIPE, text=True)
    try:
        yield samples
    finally:
        process.terminate()
        samples += process.communicate()[0].split("\n")[:-1]  # what follows the last newline may be cut off


def medians(samples: list[str]) -> dict[str, float]:
    found = {}
    for number, query in enumerate(QUERIES):
        with suppress(ValueError, IndexError):  # no sample, [N/A], or a message instead of the figures
            found[query] = median(float(line.split(",")[number]) for line in samples)
    return found


def measure_peer(contestant: end_to_end.Contestant, device: str, tiny: bool) -> dict[str, Any]:
    """Tokens per second of a contestant of end_to_end.py, in its second epoch and its second decoding pass."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        settings = {**end_to_end.MODEL, "threads": 1, "epochs": 2, "device": device}
        data = end_to_end.TINY["data"] if tiny else end_to_end.DATA
        tokens = text.write(place, **data, dim=settings["word_dim"])
        (place / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        outcome = end_to_end.run(contestant, place, 1, LONGEST - 5)
    rates = {task: tokens / end_to_end.steady(outcome[f"{task}_seconds"]) for task in ("train", "decode")}
    return {**rates, "version": outcome["version"]}


def train_steps(
    setting: Sequence[str], corpus: Corpus, device: str, sizes: Sizes, again: bool = False
) -> dict[str, Any]:
    """Checksum of the weights after `sizes.steps` steps, the seconds of these, and the number of replays.

    again: compute each step again in place of its graph.
    """
    if again:
        graphs.recorder = lambda device: graphs.repeated
    training = Training(setting, corpus, device)
    training.train(sizes.warm_up)  # also compiles the kernels
    clock = training.train(sizes.steps)
    weights = hashlib.sha256(save(training.tagger.state_dict())).hexdigest()
    replays = training.tagger.graphs.replays if training.tagger.graphs else 0
    return {"weights": weights, "seconds": clock.spent, "replays": replays}


GPU_LOAD = {"utilization.gpu": "utilization, %", "clocks.sm": "clock, MHz", "power.draw": "power, W"}


def tables(result: Result) -> list[str]:
    """Tables of the parts that were measured. Each part maps a measurement's name to the results of its processes."""
    makers = (gpu_epochs, gpu_graphs, gpu_recurrence, gpu_units, gpu_units_in_graphs, gpu_peers)
    makers += (gpu_compiled, gpu_together, gpu_crf, gpu_seeds, gpu_determinism)
    return [text for make in makers if (text := make(result))]


def gpu_epochs(result: Result) -> str:
    rows = []
    for name, (one,) in result.get("epochs", {}).items():
        whole = figure(one["seconds"] * one["of"] / one["tokens"])
        cut_off = (
            "" if one["tokens"] == one["of"] else f" (from {one['tokens'] / one['of']:.0%} of its tokens)"
        )
        memory = figure(one["bytes"] / 1e6) if one["bytes"] else ""
        rows.append([name, whole + cut_off, figure(one["tokens"] / one["seconds"]), memory, *gpu_load([one])])
    head = ("an epoch", "seconds", "tokens/s", "GPU memory, MB", *GPU_LOAD.values())
    return table(*head, rows=rows) if rows else ""


def gpu_graphs(result: Result) -> str:
    rows = []
    for name, processes in result.get("graphs", {}).items():
        same = "equal" if is_equal(processes) else "**differ**"
        parts = ("by a loop", "epochs", "with graphs")
        speeds = [speed(result.get(part, {}).get(name, [])) for part in parts]
        shown = [figure(each) if each else "" for each in speeds]
        times = f"{speeds[2] / (speeds[0] or speeds[1]):.2f}" if speeds[1] and speeds[2] else ""
        load = gpu_load(result.get("with graphs", {}).get(name, []))
        rows.append([name, f"{processes[0]['replays']}", same, *shown, times, *load])
    head = (
        "CUDA graphs",
        "replays",
        "weights of both",
        "tokens/s by a loop",
        "without graphs",
        "with",
        "times",
    )
    return table(*head, *GPU_LOAD.values(), rows=rows) if rows else ""


def speed(processes: list[Result]) -> float:
    """Tokens per second of the processes together; 0 without any."""
    return sum(one["tokens"] / one["seconds"] for one in processes)


def graphs_are_right(result: Result) -> bool:
    """Whether graphs have been replayed, and gave the weights of eager steps in less time, in every setting."""
    return all(
        is_equal(result.get("graphs", {}).get(name, []))
        and result["graphs"][name][0]["replays"] > 0
        and speed(result.get("with graphs", {}).get(name, [])) > speed(result["epochs"][name])
        for name in SETTINGS
    )


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    result = results["gpu"]
    eager, faster = result.get("epochs", {}) | result.get("by a loop", {}), result.get("with graphs", {})
    for name, processes in faster.items():
        if name in eager:
            yield at_least(f"GPU: {name}, training", FASTER[name], speed(processes) / speed(eager[name]))
        if load := processes[0]["load"].get("utilization.gpu"):
            yield at_least(f"GPU: {name}, utilization", BUSY, load, unit=" %")
    for part in ("units", "units in graphs"):
        gains = [
            shape[task][cudnn]["median"] / shape[task]["ours"]["median"]
            for (both,) in result.get(part, {}).values()
            for shape in both
            for task in ("train", "forward")
            for cudnn in ("stock, padded", "stock, packed")
            if cudnn in shape[task]
        ]
        if gains:
            in_graphs = part.removeprefix("units")
            yield at_least(f"GPU: parallel units against cuDNN{in_graphs}, the slowest", 1, min(gains))
    if YANG in eager and (packed := result.get("packed")):
        yield at_least(f"GPU: {YANG}, twelve runs packed", PACKED, speed(packed[YANG]) / speed(eager[YANG]))


def gpu_load(processes: list[Result]) -> list[str]:
    """Cells of the GPU's utilization, clock and power: means over the concurrent processes."""
    means = [[one["load"][query] for one in processes if query in one["load"]] for query in GPU_LOAD]
    return [figure(mean(values)) if values else "" for values in means]


def gpu_crf(result: Result) -> str:
    shapes = {name: shape for name, (shape,) in result.get("crf", {}).items()}
    others = ("PyTorch", "pytorch-crf", "torch-struct")
    rows = []
    for name, shape in shapes.items():
        for task in ("loss", "decode"):
            times = shape[task]
            gains = [ratio(times[other], times["ours"]) if other in times else "" for other in others]
            rows.append([f"{name}, {TASKS[task]}", ms(times["ours"]), *gains])
    return table("CRF", "ours, ms", *(f"{other}, times ours" for other in others), rows=rows) if rows else ""


def gpu_units(result: Result, part: str = "units") -> str:
    shapes = [shape for (both,) in result.get(part, {}).values() for shape in both]
    return units.tables({"shapes": shapes})[0] if shapes else ""


def gpu_units_in_graphs(result: Result) -> str:
    return gpu_units(result, "units in graphs").replace("| units |", "| units in graphs |", 1)


def gpu_recurrence(result: Result) -> str:
    ways = ("loop", "by step", "loop, graph", "by step, graph")
    rows = [
        [name, *(ms(times[way]) for way in ways)] for name, (times,) in result.get("recurrence", {}).items()
    ]
    return table("recurrence, ms", *ways, rows=rows) if rows else ""


def gpu_peers(result: Result) -> str:
    rows = [
        [name, figure(one["train"]), figure(one["decode"]), one["version"]]
        for name, (one,) in result.get("peers", {}).items()
    ]
    return (
        table("the model of end_to_end.py", "training, tokens/s", "decoding, tokens/s", "", rows=rows)
        if rows
        else ""
    )


def gpu_compiled(result: Result) -> str:
    rows = [
        [name, figure(one["seconds"]), ms(one["torch.compile"]), ms(one["ours"])]
        for name, (one,) in result.get("compiled", {}).items()
    ]
    head = ("`torch.compile`, forward and backward", "seconds to compile", "ms", "ours, ms")
    return table(*head, rows=rows) if rows else ""


def gpu_together(result: Result) -> str:
    rows = [
        [backend, "equal" if is_equal(both) else "**differ**", figure(both[0]["seconds"])]
        for backend, both in result.get("together", {}).items()
    ]
    return table("two processes, one model", "weights of both", "seconds", rows=rows) if rows else ""


def gpu_seeds(result: Result) -> str:
    rates = {
        name: sum(one["tokens"] / one["seconds"] for one in processes)
        for name, processes in result.get("seeds", {}).items()
    }
    rows = [
        [
            name,
            figure(rate),
            f"{rate / rates['1']:.2f}" if "1" in rates else "",
            *gpu_load(result["seeds"][name]),
        ]
        for name, rate in rates.items()
    ]
    head = ("processes at once", "tokens/s, in all", "times one process", *GPU_LOAD.values())
    return table(*head, rows=rows) if rows else ""


def gpu_determinism(result: Result) -> str:
    ways = ("as trained", "deterministic")
    rows = []
    for name in {name: None for way in ways for name in result.get(way, {})}:
        found = [result.get(way, {}).get(name) for way in ways]
        same = ["" if each is None else "equal" if is_equal(each) else "**differ**" for each in found]
        cost = ""
        if None not in found:
            seconds = [mean(one["seconds"] for one in each) for each in found]
            cost = f"{seconds[1] / seconds[0] - 1:+.0%}"
        rows.append([name, *same, cost])
    head = ("weights of two processes", "by default", "`runtime.deterministic=true`", "its cost in time")
    return table(*head, rows=rows) if rows else ""


def is_equal(processes: list[Result]) -> bool:
    return len({one["weights"] for one in processes}) == 1


if __name__ == "__main__":
    main()
