"""As much of CuPy as Morok uses, over this machine's memory: a kernel is compiled by g++ and run with a fiber a thread."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

_LAUNCHING = threading.Lock()  # the fibers of all kernels share their state
HEADERS = Path(__file__).parent.parent / "codegen" / "cuda_on_cpu"


class Refused(RuntimeError):
    """What CuPy raises when a call fails."""


class CompileException(Exception):
    pass


class Memory:
    def __init__(self, nbytes: int) -> None:
        self.array = np.zeros(nbytes + 256, np.uint8)
        self.ptr = -(-self.array.ctypes.data // 256) * 256


def alloc(nbytes: int) -> Memory:
    if nbytes > 1 << 33:
        raise Exhausted(f"out of memory allocating {nbytes} bytes")
    return Memory(nbytes)


class Exhausted(MemoryError):
    pass


class RawKernel:
    """Compiled when asked to, launched with (grid, block, arguments)."""

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        self.code, self.name, self.options = code, name, options
        self.run: Any = None

    def compile(self) -> None:
        found = re.search(rf"void (?:__launch_bounds__\(\d+\) )?{self.name}\((.*?)\) {{", self.code)
        if found is None:
            raise CompileException(f"no kernel {self.name}")
        types = [p.rpartition(" ")[0] for p in found.group(1).split(", ")]
        text = re.sub(r'extern "C" __global__ void (__launch_bounds__\(\d+\) )?', "static void ", self.code)
        given = ", ".join(f"*({t}*)args[{i}]" for i, t in enumerate(types))
        wrapper = (
            'extern "C" int run(void** args, const unsigned int* d) {\n'
            f"  return run_grid({{d[0], d[1], d[2]}}, {{d[3], d[4], d[5]}}, false, [=] {{ {self.name}({given}); }});\n}}\n"
        )
        folder = Path(tempfile.mkdtemp())
        (folder / "kernel.cpp").write_text(f'#include "cuda_on_cpu.h"\n{text}\n{wrapper}')
        command = ["g++", "-std=c++17", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-w", f"-I{HEADERS}"]
        command += ["-fsanitize=alignment", "-fno-sanitize-recover=alignment", "kernel.cpp", "-o", "kernel.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise CompileException(done.stderr)
        self.run = ctypes.CDLL(str(folder / "kernel.so")).run

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        assert len(grid) == len(block) == 3
        assert all(isinstance(a, np.generic) for a in arguments)  # CuPy passes their bytes on
        kept = [np.array(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(kept))(*[k.ctypes.data for k in kept])
        with _LAUNCHING:
            assert self.run(pointers, (ctypes.c_uint * 6)(*grid, *block)) == 0


def module(gpus: int = 1, broken: str = "") -> ModuleType:
    """The package `cupy`; `broken`: what its run-time says to every question."""

    def count() -> int:
        if broken:
            raise Refused(broken)
        return gpus

    def memcpy(to: int, source: int, nbytes: int, kind: int) -> None:
        assert kind in (1, 2)
        ctypes.memmove(to, source, nbytes)

    made = ModuleType("cupy")
    properties = {"name": b"a processor", "major": 8, "minor": 0}
    runtime = SimpleNamespace(getDeviceCount=count, getDeviceProperties=lambda d: properties, memcpy=memcpy)
    stream = SimpleNamespace(synchronize=lambda: None)
    vars(made).update(
        RawKernel=RawKernel,
        cuda=SimpleNamespace(
            runtime=runtime,
            alloc=alloc,
            memory=SimpleNamespace(OutOfMemoryError=Exhausted),
            compiler=SimpleNamespace(CompileException=CompileException),
            get_current_stream=lambda: stream,
        ),
        get_default_memory_pool=lambda: SimpleNamespace(used_bytes=lambda: 512, total_bytes=lambda: 2048),
    )
    return made
