"""The CPU: kernels through LLVM, memory through NumPy."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from morok import config
from morok.codegen.llvm import render
from morok.codegen.machines import host, host_machine
from morok.codegen.rendered import WHOLE, Rendered
from morok.ir.number import from_bits, to_bits
from morok.ir.uop import UOp
from morok.passes.target import Target
from morok.remembered import NODE
from morok.runtime.abstract_device import Device
from morok.runtime.buffer import BITS, Block, Buffer
from morok.runtime.cache import disk_cache
from morok.runtime.jit import Code, begin_text, compile_text, llvm_version
from morok.runtime.kernel import NOTHING, Kernel, Vars, pack

FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@functools.lru_cache(maxsize=8)
def _adjusted(threads: int, first: int, second: int) -> Target:
    """The host's target with `threads` threads, and L1 and L2 caches of `first` and `second` bytes unless these are 0."""
    target = host()
    return replace(target, threads=threads, caches=(first or target.caches[0], second or target.caches[1]))


class CPUKernel(Kernel):
    """A kernel as machine code in this process."""

    backend = "LLVM"

    def __init__(self, rendered: Rendered, code: Code) -> None:
        super().__init__(rendered)
        self.loaded = code
        self.address = code.address
        self._call = FUNCTION(code.address)

    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        rendered = self.rendered
        words = [b.address for b in buffers[: rendered.slots]]
        scratch = Block(rendered.scratch) if rendered.scratch else None
        if scratch is not None:
            words.append(scratch.address)
        if rendered.parts:
            words.append(WHOLE)
        args = (ctypes.c_void_p * (len(words) + 1))(*words)
        self._call(args, pack(self.name, rendered.vars, values))


class InterpretedKernel(Kernel):
    """A kernel that the interpreter runs, instruction by instruction: UndefinedError for an undefined operation."""

    backend = "interpreter"

    def __init__(self, rendered: Rendered, instructions: Sequence[UOp]) -> None:
        super().__init__(rendered)
        self.instructions = list(instructions)

    @property
    def nbytes(self) -> int:
        return super().nbytes + NODE * len(self.instructions)

    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        from morok.ir.interpret import run_instructions  # lazy: few programs use the interpreter

        memory = {a.slot: elements(buffers[a.slot]) for a in self.rendered.args}
        run_instructions(self.instructions, memory, values)
        for a in self.rendered.args:
            if a.written:
                set_elements(buffers[a.slot], memory[a.slot])


def elements(b: Buffer) -> list[Any]:
    """The elements as Python numbers, for the interpreter."""
    found: list[Any] = b.numpy().tolist()
    return [from_bits(b.dtype, v) for v in found] if b.dtype in BITS else found


def set_elements(b: Buffer, values: Sequence[Any]) -> None:
    """Replace the elements by these Python numbers."""
    b.numpy()[:] = [to_bits(b.dtype, v) for v in values] if b.dtype in BITS else values


class NullKernel(Kernel):
    """A compiled kernel whose launch does nothing."""

    backend = "NULL"

    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        """Nothing runs."""


class CPUDevice(Device):
    """This machine's processor."""

    name = "CPU"
    shares_host_memory = True

    @property
    def measures(self) -> bool:
        return True

    @property
    def identity(self) -> str:
        machine = host_machine()
        return f"{machine.triple} {machine.cpu} {machine.features} {llvm_version()}"

    @property
    def target(self) -> Target:
        return _adjusted(config.THREADS.value, config.L1_BYTES.value, config.L2_BYTES.value)

    def render(self, instructions: Sequence[UOp], name: str) -> Rendered:
        return render(instructions, name, host(), config.FAST_MATH.value)

    def begin(
        self, instructions: Sequence[UOp], name: str, between: Callable[[], None] = lambda: None, aside: bool = True
    ) -> Callable[[], Kernel]:
        if config.CPU_BACKEND.value == "interpreter":
            interpreted = InterpretedKernel(self.render(instructions, name), instructions)
            between()
            return lambda: interpreted
        return super().begin(instructions, name, between, aside)

    def load(self, rendered: Rendered) -> Kernel:
        return CPUKernel(rendered, compile_text(rendered.text, rendered.symbol, rendered.effort, disk_cache()))

    def start(self, rendered: Rendered) -> Callable[[], Kernel]:
        code = begin_text(rendered.text, rendered.symbol, rendered.effort, disk_cache())
        return lambda: CPUKernel(rendered, code())

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        block = Block(nbytes)
        return block, block.address

    def copy_in(self, buffer: Buffer, array: Any) -> None:
        buffer.numpy()[:] = array

    def copy_out(self, buffer: Buffer) -> bytes:
        return buffer.numpy().tobytes()

    def synchronize(self) -> None:
        """Do nothing: a launch returns when the kernel is done."""
