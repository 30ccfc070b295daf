"""Rows of the stages that are about one node or one kernel: what goes in, what comes out."""

from __future__ import annotations

import pytest

from morok.ir.dtype import dtypes
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp, Scheduler
from morok.passes.pipeline import STAGES, Program, lower, run
from tests.passes import kernels as K

index, f32 = dtypes.index, dtypes.f32
KERNELS = {
    "elementwise": K.elementwise(100),
    "matmul": K.matmul(12, 5, 32),
    "rows": K.rows(6, 24),
    "pad": K.pad(37, 2, 3),
    "normalize": K.normalize(8, 40),
}


def stage(number: int, ast: UOp) -> UOp:
    """`ast` after this stage alone."""
    out = run(STAGES[number - 1], ast, K.CPU)
    assert isinstance(out, UOp)
    return out


def programs(ast: UOp, target: K.Target) -> list[Program]:
    """The program after each stage."""
    found: list[Program] = []
    lower(ast, target, lambda number, name, before, program: found.append(program))
    return found


def tensor(*shape: int) -> UOp:
    unique = UOp.new(Op.Unique, (), 1)
    size = 1
    for n in shape:
        size *= n
    base = UOp.new(Op.Buffer, (unique, UOp.new(Op.Device, (), "CPU")), size, f32)
    return UOp.new(Op.Reshape, (base, *map(UOp.const, shape)))


def test_movement_is_arithmetic_after_stage_1() -> None:
    i, j = UOp.var("i", index, 0, 7), UOp.var("j", index, 0, 3)
    p = K.buffer(1, 32)
    nested = UOp.new(Op.Index, (UOp.new(Op.Index, (p, i), False), j), False)
    assert stage(1, nested) is UOp.new(Op.Index, (p, i, j), False)
    turned = UOp.new(Op.Flip, (tensor(8),), (True,))
    read = stage(1, UOp.new(Op.Index, (turned, i), False))
    assert read.src[0].op is not Op.Flip
    assert stage(4, read.src[1]) is stage(4, UOp.const(7) - i)


def test_quotient_and_remainder_meet_in_stage_4() -> None:
    x = UOp.var("x", index, -100, 100)
    assert stage(4, x.idiv(7) * 7 + x % 7) is x


def test_a_condition_moves_into_the_index_in_stage_8() -> None:
    """A padded operand of a sum: nothing is chosen around the read, the read itself is gated."""
    r = K.loop(20, 0)
    at = r - 3
    valid = at.ge(0) & at.lt(10)
    padded = valid.where(K.buffer(1, 10).index(at), UOp.const(0.0))
    ast = K.kernel(K.buffer(0, 20).index(r).store(padded + K.buffer(2, 20).index(r)).end(r))
    out = stage(8, stage(4, ast))
    chosen = [n for n in out.toposort() if n.op is Op.Where]
    assert [n.src[2].op for n in chosen] == [Op.Invalid]
    gates = [n.arg for n in stage(15, stage(13, out)).toposort() if n.op is Op.Index]
    assert sorted(gates) == [False, False, True]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", [K.CPU, K.GPU], ids=["cpu", "gpu"])
def test_what_is_computed_with_has_been_read_after_stage_13(name: str, target: K.Target) -> None:
    program = programs(KERNELS[name], target)[12]
    assert isinstance(program, UOp)
    for n in program.toposort():
        if TABLE.entries[n.op].pointwise:
            assert all(s.op is not Op.Index for s in n.src)


@pytest.mark.parametrize("name", KERNELS)
def test_stage_16_has_nothing_left_to_do(name: str) -> None:
    program = programs(KERNELS[name], K.CPU)[15]
    assert isinstance(program, UOp)
    assert stage(16, program) is program
    assert not any(n.dtype.is_index for n in program.toposort())


@pytest.mark.parametrize("name", KERNELS)
def test_lanes_are_resolved_after_their_stages(name: str) -> None:
    found = programs(KERNELS[name], K.CPU)
    for number, gone in ((9, {Op.Unroll, Op.Contract}), (11, {Op.Reduce}), (19, {Op.Cat, Op.PtrCat})):
        program = found[number - 1]
        assert isinstance(program, UOp)
        assert not gone & {n.op for n in program.toposort()}


def test_a_grouped_reduction_has_one_buffer_in_shared_memory() -> None:
    scheduler = Scheduler(K.total(64), K.GPU)
    scheduler.apply(Opt(OptOp.GROUP, 0, 8))
    assert AxisType.GroupReduce in [r.arg[1] for r in scheduler.ranges]
    ast = UOp.new(Op.Sink, K.total(64).src, K.KernelInfo("total", tuple(scheduler.applied)))
    program = programs(ast, K.GPU)[9]
    assert isinstance(program, UOp)
    assert [n.op for n in program.toposort()].count(Op.DefineLocal) == 1
