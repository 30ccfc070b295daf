"""CUDA kernels on the CPU: their text compiled by g++ under a header that gives each thread a fiber.

Threads of a block meet at __syncthreads; a barrier that only some of them reach is an error. Shared memory holds poison when a
block begins. The header has no warps, shuffles, atomics or matrix instructions.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from morok import Tensor
from morok.codegen.cuda import render
from morok.codegen.cuda.type_names import REGISTER, memory
from morok.codegen.machines import CUDA
from morok.codegen.rendered import Rendered
from morok.passes.pipeline import lower
from morok.runtime.buffer import NUMPY
from morok.tensor import schedule, stored

HEADERS = Path(__file__).parent / "cuda_on_cpu"


def build(kernels: Sequence[Rendered], folder: Path, optimize: str = "-O1", extra: Sequence[str] = ()) -> ctypes.CDLL:
    """One library with a function `run_<name>` for each kernel; each kernel in a namespace of its own."""
    parts = ['#include "cuda_on_cpu.h"\n']
    for k in kernels:
        text = re.sub(r'extern "C" __global__ void (__launch_bounds__\(\d+\) )?', "static void ", k.text)
        parts.append(f"namespace space_{k.name} {{\n{text}}}")
        arguments = [f"({memory(a.dtype.scalar())}*)args[{i}]" for i, a in enumerate(k.args)]
        arguments += [f"*({REGISTER[v.dtype]}*)vars[{i}]" for i, v in enumerate(k.vars)]
        parts.append(
            f'extern "C" int run_{k.name}(void** args, void** vars, const unsigned int* d, int backwards) {{\n'
            f"  return run_grid({{d[0], d[1], d[2]}}, {{d[3], d[4], d[5]}}, backwards, [=] {{\n"
            f"    space_{k.name}::{k.symbol}({', '.join(arguments)});\n  }});\n}}\n"
        )
    source = folder / f"{kernels[0].name}.cpp"
    source.write_text("\n".join(parts))
    library = folder / f"{kernels[0].name}.so"
    command = [
        "g++",
        "-std=c++17",
        optimize,
        "-ffp-contract=off",
        "-fno-strict-aliasing",
        "-shared",
        "-fPIC",
        "-w",
        *extra,
    ]
    done = subprocess.run([*command, f"-I{HEADERS}", str(source), "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(library))


def launch(
    library: ctypes.CDLL,
    k: Rendered,
    arrays: Sequence[np.ndarray],
    values: Mapping[str, int] | None = None,
    backwards: bool = False,
) -> None:
    """Run kernel `k` on `arrays` by slot; AssertionError if its threads disagree about a barrier."""
    from morok.runtime.gpu import dimension

    values = dict(values or {})
    args = (ctypes.c_void_p * max(len(k.args), 1))(*[arrays[a.slot].ctypes.data for a in k.args])
    slots: list[Any] = [ctypes.create_string_buffer(struct.pack("<q", values[v.name])) for v in k.vars]
    variables = (ctypes.c_void_p * max(len(slots), 1))(*[ctypes.addressof(s) for s in slots])
    dims = [dimension(d, values) for d in (*k.grid, *k.block)]
    code = getattr(library, f"run_{k.name}")(args, variables, (ctypes.c_uint * 6)(*dims), int(backwards))
    assert code == 0, f"{k.name}: a barrier that only some threads reach"


@dataclass
class Program:
    """Tensors as a GPU gets them: scheduled and lowered for CUDA, over this machine's memory.

    texts   its kernels, in an order in which they may run
    inputs  the buffers that it reads
    """

    schedule: schedule.Schedule
    values: Mapping[str, int]
    texts: list[Rendered]
    inputs: list[np.ndarray]

    @classmethod
    def of(cls, name: str, *tensors: Tensor) -> Program:
        """The program of tensors that are still to be computed; its kernels are called `name_0`, `name_1`, .."""
        normal = schedule.normalised(stored.wanted(tensors), "CUDA")
        found = schedule.scheduled(normal, "CUDA")
        memory = [stored.memory_of(node, "CPU") for node in normal.buffers]
        texts = [render(lower(step.ast, CUDA), f"{name}_{i}") for i, step in enumerate(found.steps)]
        return cls(found, normal.values, texts, [m.numpy() for m in memory if m is not None])

    def run(self, library: ctypes.CDLL, backwards: bool = False) -> list[np.ndarray]:
        """The elements of each tensor, in one axis, from kernels that `library` was built of."""
        arrays = [a.copy() for a in self.inputs] + [np.zeros(n, NUMPY[d]) for d, n in self.schedule.made]
        for text, step in zip(self.texts, self.schedule.steps, strict=True):
            launch(library, text, [arrays[n] for n in step.buffers], self.values, backwards)
        return [arrays[n] for n in self.schedule.outputs]
