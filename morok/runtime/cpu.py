"""The CPU: kernels through LLVM, memory through NumPy."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, Final

from morok import config
from morok.codegen.rendered import Rendered
from morok.codegen.targets import host, host_machine
from morok.ir.uop import UOp
from morok.passes.target import Target
from morok.runtime.buffer import Block, Buffer
from morok.runtime.cache import DiskCache
from morok.runtime.device import Device
from morok.runtime.jit import Code, compile_text
from morok.runtime.kernel import NOTHING, Kernel, Vars, pack

# CFUNCTYPE releases the interpreter's lock for the call; PYFUNCTYPE would keep it.
FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_WALK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

# Runs `n` kernels in one call: a record is the kernel's address and its two arguments.
_TRAMPOLINE: Final = """\
define void @walk(ptr %records, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %record = getelementptr [3 x ptr], ptr %records, i64 %i
  %kernel = load ptr, ptr %record, align 8
  %args.at = getelementptr ptr, ptr %record, i64 1
  %args = load ptr, ptr %args.at, align 8
  %vars.at = getelementptr ptr, ptr %record, i64 2
  %vars = load ptr, ptr %vars.at, align 8
  call void %kernel(ptr %args, ptr %vars)
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@functools.cache
def _trampoline() -> tuple[Any, Code]:
    code = compile_text(_TRAMPOLINE, "walk", False, disk_cache())
    return _WALK(code.address), code


def walk(records: int, n: int) -> None:
    """Run the `n` records at address `records`: {kernel, args, vars}, 24 bytes each."""
    _trampoline()[0](records, n)


def disk_cache() -> DiskCache:
    return _cache_at(str(config.cache_dir()))


@functools.lru_cache(maxsize=8)
def _cache_at(folder: str) -> DiskCache:
    from pathlib import Path

    return DiskCache(Path(folder) / "kernels")


class CPUKernel(Kernel):
    """A kernel as machine code in this process."""

    backend = "LLVM"

    def __init__(self, rendered: Rendered, code: Code) -> None:
        super().__init__(rendered)
        self.loaded = code
        self.address = code.address
        self._call = FUNCTION(code.address)

    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        slots = self.rendered.slots
        scratch = Block(self.rendered.scratch) if self.rendered.scratch else None
        addresses = [b.address for b in buffers[:slots]]
        args = (ctypes.c_void_p * (slots + 1))(*addresses)
        if scratch is not None:
            args[slots] = scratch.address
        self._call(args, pack(self.name, self.rendered.vars, values))


class NullKernel(Kernel):
    """A kernel that does nothing."""

    backend = "NULL"

    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        """Nothing runs."""


class CPUDevice(Device):
    """This machine's processor."""

    name = "CPU"
    shares_host_memory = True

    @property
    def target(self) -> Target:
        return host()

    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        from morok.codegen.llvm import render

        return render(instructions, name, config.FAST_MATH.value, host().fma, host_machine().has("avx512fp16"))

    def load(self, rendered: Rendered) -> Kernel:
        return CPUKernel(rendered, compile_text(rendered.text, rendered.symbol, rendered.scalar_loops, disk_cache()))

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        block = Block(nbytes)
        return block, block.address

    def copy_in(self, buffer: Buffer, array: Any) -> None:
        buffer.numpy()[:] = array

    def copy_out(self, buffer: Buffer) -> bytes:
        return buffer.numpy().tobytes()

    def synchronize(self) -> None:
        """A launch returns when the kernel is done."""
