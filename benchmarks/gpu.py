"""GPU benchmarks: an epoch of each paper's setting, kernels, concurrent seeds, and determinism.

    python benchmarks/gpu.py [--device cuda|cpu] [--rounds N] [--output FILE]

Each measurement runs in its own processes. One that fails, or for which there is no time left, is skipped and named.
Together they take at most `LIMIT` seconds; the result is saved after each.

- graphs: two processes train the same deterministic steps at once, one by CUDA graphs and one that computes each step
  again; all bits of their weights are compared, and replays are counted.
- epochs: each paper's setting, trained by the suite's own `fit` on generated sentences, as many as CoNLL-2003 has.
  Random word vectors, which are trained, replace the papers' files. An epoch is cut off after some 8 s.
- with graphs: the same; the second epoch counts, as most shapes are recorded in the first.
- packed: twelve processes at once, as `hydra.launcher.jobs_per_gpu` packs them: under NVIDIA's MPS, if it starts.
- crf, units: the contestants of crf.py and units.py, and the suite's CRF in PyTorch without kernels. cuDNN computes
  in float32 as the others do; in the other parts it may use TF32, as by default.
- seeds: 1 and 8 processes that train a small tagger each, on the one GPU at once.
- determinism: two processes train a setting with the same seed at once, and do so again with
  `runtime.deterministic=true`; all bits of their weights are compared.

The result holds, by part and name of a measurement, a list of what each of its processes returned.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import crf
import numpy as np
import timing
import torch
import units
from drivers import corpus as text
from safetensors.torch import save
from tables import TASKS, Result, at_least, figure, ms, ratio, table
from taggers import Clocked

from ner_experiments.config.compose import compose
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.experiment_data import make_encoder
from ner_experiments.launch.packing import gpus, slot_of, start_mps
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Transitions, plain_viterbi
from ner_experiments.modules.forward_backward import plain_likelihood
from ner_experiments.runs.provenance import peak_memory, reset_peak_memory
from ner_experiments.train import corpus_module, fit, seeded_tagger
from ner_experiments.training import graphs
from ner_experiments.training.preemption import Sigterm

MEASURES = (
    "training.graphs",
    *("modules.kernels.cuda", "modules.kernels.crf_triton", "modules.kernels.lstm_triton"),
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
"""How many times as fast as without graphs the settings are to be trained."""
YANG = "Yang & Xu (2020), residual, 4 layers"
PACKED, BUSY = 15, 60
"""Tokens per second of twelve packed trainings over those of one without graphs; utilization in %."""
GRAPHS, DETERMINISTIC = "runtime.cuda_graphs=true", "runtime.deterministic=true"
SMALL = ["model=bilstm", "model.hidden_size=100"]
CRF_PEERS = ("pytorch-crf", "torch-struct")
CRF_SHAPES = ((16, 16, 9), (16, 50, 17), (64, 50, 17), (64, 128, 73))
UNIT_SHAPES = ((128, 8), (16, 64), (4, 256), (1, 1024))
PROCESSES = (1, 8)
SENTENCES, FORMS = 14_041, 31_000
"""As many training sentences as CoNLL-2003, and a vocabulary from which about as many distinct words are drawn."""
COLUMNS = {"pos": 45, "chunk": 18}
"""Values of the further columns that Huang et al.'s features read."""
QUERIES = ("utilization.gpu", "clocks.sm", "power.draw")


class Sizes(NamedTuple):
    seconds: float
    """Duration after which an epoch is cut off."""
    warm_up: int
    """Batches before an epoch that is measured."""
    steps: int
    """Training steps after which weights are compared."""


FULL, TINY = Sizes(8, 10, 50), Sizes(0.1, 1, 4)


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
        run = measurements(device, arguments.tiny, arguments.rounds, peers, clients)
        measure(run, result, end, arguments.output)
    timing.write("gpu", result, arguments.output)


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
    device: str, tiny: bool, rounds: int, peers: list[str], clients: dict[str, str]
) -> Iterator[Measurement]:
    """clients: the environment of MPS's clients."""
    sizes = TINY if tiny else FULL
    corpus = generated(40 if tiny else SENTENCES)
    first = slice(1 if tiny else None)
    settings = [*SETTINGS.items()][first]
    for name, setting in settings:
        calls = [([*setting, GRAPHS, DETERMINISTIC], corpus, device, sizes, again) for again in (False, True)]
        yield Measurement("graphs", name, train_steps, calls)
    for name, setting in SETTINGS.items():
        yield Measurement("epochs", name, measure_epoch, [(setting, corpus, device, sizes)])
    longer, twice = sizes._replace(seconds=4 * sizes.seconds), (GRAPHS, "trainer.max_epochs=2")
    for name, setting in settings:
        yield Measurement("with graphs", name, measure_epoch, [([*setting, *twice], corpus, device, longer)])
    number = 2 if tiny else 12
    barrier = timing.forkserver().Barrier(number)
    packed = [[*(SMALL if tiny else SETTINGS[YANG]), *twice, f"seed={seed}"] for seed in range(1, number + 1)]
    calls = [(each, corpus, device, sizes, barrier, clients) for each in packed]
    yield Measurement("packed", YANG, measure_epoch, calls)
    for shape in CRF_SHAPES[first]:
        name = "{} x {} tokens, {} tags".format(*shape)
        yield Measurement("crf", name, measure_crf, [(*shape, peers, rounds, device)])
    for shape in ((4, 8),) if tiny else UNIT_SHAPES:
        yield Measurement("units", "{} x {}".format(*shape), measure_units, [(*shape, rounds, device)])
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
    with sampled(device) as load:
        clock = training.train(max(sizes.warm_up, int(sizes.seconds / a_batch)))
    tokens, memory = clock.rows[-1]["tokens"], peak_memory(torch.device(device)).get("device")
    of = sum(map(len, corpus.splits["train"]))
    return {"tokens": tokens, "of": of, "seconds": clock.spent, "bytes": memory, "load": load}


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
def sampled(device: str) -> Iterator[dict[str, float]]:
    """Medians of `QUERIES` during the block, in the dict that is yielded at its start. Empty without nvidia-smi."""
    medians: dict[str, float] = {}
    if device == "cpu" or not shutil.which("nvidia-smi"):
        yield medians
        return
    own = f"--id=GPU-{torch.cuda.get_device_properties(0).uuid}"
    what = (f"--query-gpu={','.join(QUERIES)}", "--format=csv,noheader,nounits", "--loop-ms=500")
    process = subprocess.Popen(["nvidia-smi", own, *what], stdout=subprocess.PIPE, text=True)
    try:
        yield medians
    finally:
        process.terminate()
        lines = process.communicate()[0].split("\n")[:-1]  # what follows the last newline may be cut off
        for number, query in enumerate(QUERIES):
            with suppress(ValueError, IndexError):  # [N/A], or a message instead of the figures
                medians[query] = median(float(line.split(",")[number]) for line in lines)


def measure_crf(
    batch: int, length: int, tags: int, peers: list[str], rounds: int, device: str
) -> dict[str, Any]:
    makers = {"PyTorch": without_kernels, **{name: crf.PEERS[name] for name in peers}}
    return crf.measure_shape(batch, length, tags, makers, rounds, device)


def without_kernels(ours: CRF) -> crf.Contestant:
    """The suite's CRF in PyTorch."""
    transitions = Transitions(ours.start, ours.transitions, ours.end)
    return crf.Contestant(
        "PyTorch",
        list(ours.parameters()),
        lambda problem: plain_likelihood(*problem, transitions),
        lambda problem: plain_viterbi(problem.scores, problem.mask, transitions),
    )


def measure_units(number: int, size: int, rounds: int, device: str) -> list[dict[str, Any]]:
    torch.backends.cudnn.allow_tf32 = False
    about = {"units": number, "size": size}
    return [
        {**about, "ragged": ragged, **units.measure_shape(number, size, ragged, rounds, device)}
        for ragged in (False, True)
    ]


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
    makers = (gpu_epochs, gpu_graphs, gpu_crf, gpu_units, gpu_seeds, gpu_determinism)
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
        speeds = [speed(result.get(part, {}).get(name, [])) for part in ("epochs", "with graphs")]
        times = f"{speeds[1] / speeds[0]:.2f}" if all(speeds) else ""
        load = gpu_load(result.get("with graphs", {}).get(name, []))
        rows.append([name, f"{processes[0]['replays']}", same, *map(figure, speeds), times, *load])
    head = ("CUDA graphs", "replays", "weights of both", "tokens/s without", "tokens/s with", "times")
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
    eager, faster = result.get("epochs", {}), result.get("with graphs", {})
    for name, processes in faster.items():
        if name in eager:
            yield at_least(
                f"GPU: {name}, with CUDA graphs", FASTER[name], speed(processes) / speed(eager[name])
            )
        if load := processes[0]["load"].get("utilization.gpu"):
            yield at_least(f"GPU: {name}, utilization", BUSY, load, unit=" %")
    gains = [
        shape[task][cudnn]["median"] / shape[task]["ours"]["median"]
        for (both,) in result.get("units", {}).values()
        for shape in both
        for task in ("train", "forward")
        for cudnn in ("stock, padded", "stock, packed")
        if cudnn in shape[task]
    ]
    if gains:
        yield at_least("GPU: parallel units against cuDNN, the slowest", 1, min(gains))
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


def gpu_units(result: Result) -> str:
    shapes = [shape for (both,) in result.get("units", {}).values() for shape in both]
    return units.tables({"shapes": shapes})[0] if shapes else ""


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
