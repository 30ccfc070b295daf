"""Execution of a kernel on this machine's processor, with given contents of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from morok.errors import CompileError
from morok.ir.dtype import PtrType
from morok.ir.number import to_bits
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import BITS, Buffer
from morok.runtime.cpu import elements
from morok.runtime.device import device


def outcome(
    ast: UOp, instructions: Sequence[UOp], name: str, given: Mapping[Any, list[Any]], variables: Mapping[str, Any]
) -> dict[Any, list[Any]] | str:
    """The contents of the kernel's buffers, by slot, after running the compiled instructions (the list after stage 22); the
    compiler's message, as text, if they cannot be compiled.
    """
    cpu = device("CPU")
    try:
        kernel = cpu.compile(instructions, name)
    except CompileError as problem:
        return f"it cannot be compiled: {problem.message}"
    memory: dict[Any, Buffer] = {}
    for n in ast.toposort():
        if n.op is Op.DefineGlobal:
            assert isinstance(n.dtype, PtrType)
            d = n.dtype.base.scalar()
            memory[n.arg] = Buffer(cpu, d, len(given[n.arg])).allocate()
            memory[n.arg].numpy()[:] = [to_bits(d, v) for v in given[n.arg]] if d in BITS else given[n.arg]
    kernel.launch([memory[slot] for slot in sorted(memory)], variables)
    return {slot: elements(b) for slot, b in memory.items()}
