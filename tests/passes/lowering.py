"""Kernels after single stages, and after all of them up to one."""

from __future__ import annotations

from morok.ir.dtype import DType, PtrType
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.pipeline import STAGES, Program, lower, run
from morok.passes.target import Target
from tests.passes import kernels as K


def stage(number: int, ast: UOp, target: Target = K.CPU) -> UOp:
    """`ast` after this stage alone."""
    out = run(STAGES[number - 1], ast, target)
    assert isinstance(out, UOp)
    return out


def programs(ast: UOp, target: Target = K.CPU) -> list[Program]:
    """The program after each stage."""
    found: list[Program] = []
    lower(ast, target, lambda number, name, before, program: found.append(program))
    return found


def after(number: int, ast: UOp, target: Target = K.CPU) -> UOp:
    """The kernel after the stages up to this one."""
    program = programs(ast, target)[number - 1]
    assert isinstance(program, UOp)
    return program


def nodes(program: Program) -> list[UOp]:
    return program if isinstance(program, list) else program.toposort()


def ops(program: Program) -> list[Op]:
    return [n.op for n in nodes(program)]


def memory(node: UOp) -> PtrType:
    """What a node that defines memory defines."""
    assert isinstance(node.dtype, PtrType)
    return node.dtype


def registers(program: Program) -> list[DType]:
    """What is stored to each place of each register."""
    stores = [n for n in nodes(program) if n.op is Op.Store and storage(n.src[0]).op is Op.DefineReg]
    return list({(storage(n.src[0]), *n.src[0].src[1:]): n.src[1].dtype for n in stores}.values())


def arguments(ast: UOp) -> dict[int, PtrType]:
    """The memory that a kernel is given, by slot."""
    return {n.arg: memory(n) for n in ast.toposort() if n.op is Op.DefineGlobal}
