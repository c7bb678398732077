"""Export formats: writing a traced tagger, and running it from its file alone."""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram

Outputs = tuple[Tensor, Tensor]
"""Tags [batch time] and scores [batch time tags]."""
OUTPUTS = ("tags", "scores")
EXTRA = ("onnx", "onnxscript", "onnxruntime")


class Format(ABC):
    """Interface of a format, which writes and reads the file `file`."""

    file: str

    def require(self) -> None:
        """Raise ValueError if a required package is not installed."""
        return

    @abstractmethod
    def write(self, program: ExportedProgram, names: list[str], path: Path) -> None:
        """Write the program. `names` are its inputs in order."""

    @abstractmethod
    def read(self, path: Path) -> Callable[[Mapping[str, Tensor]], Outputs]:
        """A function that runs the file on named tensors."""


class TorchExport(Format):
    """The format of torch.export, which PyTorch runs without this suite."""

    file = "model.pt2"

    def write(self, program: ExportedProgram, names: list[str], path: Path) -> None:
        with suppress_warnings():
            torch.export.save(program, path)

    def read(self, path: Path) -> Callable[[Mapping[str, Tensor]], Outputs]:
        with suppress_warnings():
            module = torch.export.load(path).module()

        def run(inputs: Mapping[str, Tensor]) -> Outputs:
            with torch.no_grad():
                outputs = module(dict(inputs))
            return outputs["tags"], outputs["scores"]

        return run


class Onnx(Format):
    """ONNX, which ONNX Runtime runs on a CPU without PyTorch."""

    file = "model.onnx"

    def require(self) -> None:
        if missing := [name for name in EXTRA if find_spec(name) is None]:
            raise ValueError(
                f'ONNX needs {", ".join(missing)}: pip install -e ".[export]"; --format torch needs no extra packages'
            )

    def write(self, program: ExportedProgram, names: list[str], path: Path) -> None:
        with suppress_warnings(), torch.no_grad():
            program_of_onnx = torch.onnx.export(
                program, input_names=names, output_names=[*OUTPUTS], dynamo=True, verbose=False
            )
        assert program_of_onnx is not None
        program_of_onnx.save(path)

    def read(self, path: Path) -> Callable[[Mapping[str, Tensor]], Outputs]:
        import onnxruntime  # optional

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

        def run(inputs: Mapping[str, Tensor]) -> Outputs:
            outputs = session.run([*OUTPUTS], {name: x.numpy() for name, x in inputs.items()})
            tags, scores = map(torch.from_numpy, outputs)
            return tags, scores

        return run


FORMATS: dict[str, tuple[Format, ...]] = {"torch": (TorchExport(),), "onnx": (Onnx(),)}
FORMATS["both"] = FORMATS["torch"] + FORMATS["onnx"]

EXPORTER_WARNINGS = (
    (DeprecationWarning, r"`torch\.jit\.script"),
    (FutureWarning, r"`isinstance\(treespec, LeafSpec\)` is deprecated"),
)


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress the exporters' deprecation warnings, and the one about torchvision, which is not needed."""
    registration = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = registration.level
    registration.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for category, message in EXPORTER_WARNINGS:
                warnings.filterwarnings("ignore", message, category)
            yield
    finally:
        registration.setLevel(before)
