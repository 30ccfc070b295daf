"""Execution of a kernel with given contents of buffers: by the interpreter, and on this machine's processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from morok.errors import CompileError, UndefinedError
from morok.ir import interpret
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import elements, set_elements
from morok.runtime.device import device


def interpreted(program: UOp | Sequence[UOp], memory: dict[Any, list[Any]], variables: Mapping[str, Any]) -> str:
    """The reason for which a kernel, a graph or a list of instructions, is undefined on these buffers by slot, which the
    interpreter changes; "" if it is defined.
    """
    try:
        if isinstance(program, UOp):
            interpret.run(program, memory, variables)
        else:
            interpret.run_instructions(program, memory, variables)
    except UndefinedError as undefined:
        return f"undefined: {undefined.message}"
    return ""


def compiled(
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
            memory[n.arg] = Buffer(cpu, n.dtype.base.scalar(), len(given[n.arg]))
            set_elements(memory[n.arg], given[n.arg])
    kernel.launch([memory[slot] for slot in sorted(memory)], variables)
    return {slot: elements(b) for slot, b in memory.items()}
