"""The two formats: how a traced tagger is written, and run again from its file alone."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch.export import ExportedProgram

Tagged = tuple[Tensor, Tensor]
"""Tags [batch time] and scores [batch time tags]."""
OUTPUTS = ("tags", "scores")
EXTRA = ("onnx", "onnxscript", "onnxruntime")


class Format(Protocol):
    file: str

    def require(self) -> None:
        """ValueError where something that it needs is not installed."""
        return

    def write(self, program: ExportedProgram, names: list[str], path: Path) -> None:
        """`names`: of the inputs, in their order."""
        ...

    def read(self, path: Path) -> Callable[[Mapping[str, Tensor]], Tagged]: ...


class TorchExport(Format):
    file = "model.pt2"

    def write(self, program: ExportedProgram, names: list[str], path: Path) -> None:
        with quiet():
            torch.export.save(program, path)

    def read(self, path: Path) -> Callable[[Mapping[str, Tensor]], Tagged]:
        with quiet():
            module = torch.export.load(path).module()

        def run(inputs: Mapping[str, Tensor]) -> Tagged:
            with torch.no_grad():
                found = module(dict(inputs))
            return found["tags"], found["scores"]

        return run


class Onnx(Format):
    file = "model.onnx"

    def require(self) -> None:
        if missing := [name for name in EXTRA if find_spec(name) is None]:
            raise ValueError(
                f'ONNX needs {", ".join(missing)}: pip install -e ".[export]"; --format torch needs nothing'
            )

    def write(self, program: ExportedProgram, names: list[str], path: Path) -> None:
        with quiet(), torch.no_grad():
            made = torch.onnx.export(
                program, input_names=names, output_names=[*OUTPUTS], dynamo=True, verbose=False
            )
        assert made is not None
        made.save(path)

    def read(self, path: Path) -> Callable[[Mapping[str, Tensor]], Tagged]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

        def run(inputs: Mapping[str, Tensor]) -> Tagged:
            found = session.run([*OUTPUTS], {name: x.numpy() for name, x in inputs.items()})
            tags, scores = map(torch.from_numpy, found)
            return tags, scores

        return run


FORMATS: dict[str, tuple[Format, ...]] = {"torch": (TorchExport(),), "onnx": (Onnx(),)}
FORMATS["both"] = FORMATS["torch"] + FORMATS["onnx"]

OF_THE_EXPORTER = (
    (DeprecationWarning, r"`torch\.jit\.script"),
    (FutureWarning, r"`isinstance\(treespec, LeafSpec\)` is deprecated"),
)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what the exporters have to say of themselves, and of torchvision, which nothing here needs."""
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = registration.level
    registration.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for category, message in OF_THE_EXPORTER:
                warnings.filterwarnings("ignore", message, category)
            yield
    finally:
        registration.setLevel(before)
