"""Compiles a Triton kernel for a GPU (compute capability 9.0) on a machine that has none.

    python tests/helpers/gpu_compile.py MODULE KERNEL SIZE TYPES OPTIONS

prints the resources that it needs as JSON. Runs in its own process, since tests run Triton's interpreter.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple


class Resources(NamedTuple):
    spilled: int
    """Bytes that did not fit in the registers."""
    shared: int
    """Bytes of shared memory."""


def compile_for_gpu(
    module: str, kernel: str, size: int, types: dict[str, str], options: dict[str, int], *, cache: Path
) -> Resources:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    arguments = [module, kernel, str(size), json.dumps(types), json.dumps(options)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, *arguments],
        capture_output=True,
        text=True,
        env=environment | {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    return Resources(**json.loads(done.stdout))


def main(module: str, name: str, size: int, types: dict[str, str], options: dict[str, int]) -> None:
    """Compile the kernel and print its resources. Arguments that are not in `types` are pointers to float32."""
    from importlib import import_module

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(import_module(f"ner_experiments.modules.kernels.{module}"), name)
    constants = {"size": size, "width": max(16, triton.next_power_of_2(size)), "rescaled": 8}
    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    kinds = {arg: "constexpr" if arg in constants else types.get(arg, "*fp32") for arg in kernel.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, arg in enumerate(kinds) if kinds[arg][0] == "*"}
    source = ASTSource(kernel, kinds, constants, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    assert compiled.asm["cubin"]
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(compiled.asm["ptx"])
        file.flush()
        ptxas = [triton.knobs.nvidia.ptxas.path, "-v", "--gpu-name=sm_90a", "-o", "/dev/null", file.name]
        report = subprocess.run(ptxas, capture_output=True, text=True, check=True).stderr
    spills = re.search(r"(\d+) bytes spill stores", report)
    assert spills is not None
    print(json.dumps({"spilled": int(spills[1]), "shared": compiled.metadata.shared}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]), json.loads(sys.argv[5]))
