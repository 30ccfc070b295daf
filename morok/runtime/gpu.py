"""NVIDIA GPUs, through CuPy, which is imported when a kernel is first loaded or memory first allocated.

CuPy installs and imports without a driver, and fails when used, in several ways: `status` handles all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morok import config
from morok.codegen.cuda import render
from morok.codegen.machines import CUDA
from morok.codegen.rendered import Rendered, symbol
from morok.errors import CompileError, DeviceError, OutOfMemoryError
from morok.ir.interpret import evaluate
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.target import Target
from morok.runtime.abstract_device import Device
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.kernel import NOTHING, Kernel, Vars, value_of

_HOST_TO_DEVICE = 1
_DEVICE_TO_HOST = 2
WIDEST = 16  # most bytes that one instruction loads


@dataclass(frozen=True, slots=True)
class Status:
    """The state of CUDA on this machine: usable or not, one line about it, and a hint for the user."""

    usable: bool
    message: str
    hint: str = ""


def _imported() -> Any:
    """CuPy; ImportError if it is not installed."""
    import cupy  # lazy: loads CUDA

    return cupy


def status() -> Status:
    """The state of CUDA, as CuPy reports it; never raises."""
    try:
        cupy = _imported()
    except ImportError as problem:
        wheels = "pip install 'morok[cuda12]' or 'morok[cuda13]', after the driver's CUDA version"
        return Status(False, f"CUDA cannot be used: CuPy is not installed ({problem})", wheels)
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
        if count == 0:
            return Status(False, "CUDA cannot be used: there is no GPU")
        properties = cupy.cuda.runtime.getDeviceProperties(0)
    except RuntimeError as problem:  # no driver, no device, a missing library: CuPy's errors are all RuntimeErrors
        return Status(
            False,
            f"CUDA cannot be used: {problem}",
            "a driver and a GPU are needed to run kernels; kernels() shows their code without",
        )
    name = properties["name"].decode()
    return Status(
        True, f"CUDA runs on {name} (compute capability {properties['major']}.{properties['minor']}, {count} GPU(s))"
    )


@functools.cache
def _cupy() -> Any:
    """CuPy, with a usable GPU; DeviceError without one."""
    found = status()
    if not found.usable:
        raise DeviceError(found.message, hint=found.hint)
    return _imported()


def dimension(end: UOp, values: Vars) -> int:
    """The number of blocks or threads along a launch dimension, `end`, for these values of variables."""
    return int(end.arg) if end.op is Op.Const else int(evaluate(end, dict(values)))


class CUDAKernel(Kernel):
    """A kernel on the GPU; a launch is queued on CuPy's current stream."""

    backend = "CUDA"

    def __init__(self, rendered: Rendered, function: Any) -> None:
        super().__init__(rendered)
        self._function = function
        self._narrow: Any = None

    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        addresses = [buffers[a.slot].address for a in self.rendered.args]
        arguments: list[Any] = [np.uint64(address) for address in addresses]
        arguments += [NUMPY[v.dtype].type(value_of(self.name, v, values)) for v in self.rendered.vars]
        grid = tuple(dimension(d, values) for d in self.rendered.grid)
        if 0 in grid:
            return  # CUDA rejects an empty grid
        function = self._function
        if self.rendered.narrow and any(address % WIDEST for address in addresses):
            if self._narrow is None:  # views may be misaligned; a wide access to them would fault
                self._narrow = compile_kernel(self.rendered.narrow, self.name)
            function = self._narrow
        function(grid, tuple(dimension(d, values) for d in self.rendered.block), tuple(arguments))


def compile_options(math: frozenset[str]) -> tuple[str, ...]:
    """NVRTC's options: fused multiply-add only where contraction is allowed."""
    return ("--std=c++17", "--fmad=true" if "contract" in math else "--fmad=false")


def compile_kernel(text: str, name: str) -> Any:
    """CuPy's kernel `name` of CUDA C `text`. CompileError with NVRTC's message; DeviceError without a GPU."""
    cupy = _cupy()
    kernel = cupy.RawKernel(text, symbol(name), options=compile_options(config.FAST_MATH.value))
    try:
        kernel.compile()
    except (RuntimeError, cupy.cuda.compiler.CompileException) as problem:
        raise CompileError(
            f"NVRTC rejects the kernel {name}: {problem}", hint="this is a mistake in Morok, not in your program"
        ) from None
    return kernel


class CUDADevice(Device):
    """The current GPU."""

    name = "CUDA"

    @property
    def measures(self) -> bool:
        return status().usable

    @property
    def identity(self) -> str:
        return status().message

    @property
    def target(self) -> Target:
        return CUDA

    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        return render(instructions, name)

    def load(self, rendered: Rendered) -> Kernel:
        return CUDAKernel(rendered, compile_kernel(rendered.text, rendered.name))

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        cupy = _cupy()
        try:
            memory = cupy.cuda.alloc(max(nbytes, 1))
        except cupy.cuda.memory.OutOfMemoryError as problem:
            raise OutOfMemoryError(
                f"{nbytes} bytes cannot be allocated on CUDA: {problem}", hint="free tensors, or compute in parts"
            ) from None
        return memory, int(memory.ptr)

    def copy_in(self, buffer: Buffer, array: Any) -> None:
        _cupy().cuda.runtime.memcpy(buffer.address, array.ctypes.data, buffer.nbytes, _HOST_TO_DEVICE)

    def copy_out(self, buffer: Buffer) -> bytes:
        out = np.empty(buffer.nbytes, np.uint8)
        _cupy().cuda.runtime.memcpy(out.ctypes.data, buffer.address, buffer.nbytes, _DEVICE_TO_HOST)
        return out.tobytes()

    def synchronize(self) -> None:
        _cupy().cuda.get_current_stream().synchronize()


def pool_statistics() -> Mapping[str, int]:
    """The bytes of CuPy's memory pool: `used`, and `held` for reuse."""
    pool = _cupy().get_default_memory_pool()
    return {"used": int(pool.used_bytes()), "held": int(pool.total_bytes() - pool.used_bytes())}
