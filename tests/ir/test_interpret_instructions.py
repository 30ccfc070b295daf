"""The interpreter on instruction lists."""

from __future__ import annotations

import pytest

from morok.errors import IRError, UndefinedError
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.interpret import run_instructions
from morok.ir.op import Op
from morok.ir.uop import UOp

f32, i32 = dtypes.f32, dtypes.i32


def test_a_sum_with_an_accumulator() -> None:
    out, data = UOp.new(Op.DefineGlobal, (), 0, f32.ptr(2)), UOp.new(Op.DefineGlobal, (), 1, f32.ptr(6))
    acc = UOp.new(Op.DefineReg, (), 0, f32.ptr(1, AddrSpace.REG))
    zero = UOp.const(0, i32)
    i = UOp.range(UOp.const(2, i32), 0)
    r = UOp.range(UOp.const(3, i32), 1)
    start = acc.after(i).index(zero)
    init = start.store(UOp.const(0.0))
    offset = i * 3 + r
    item = data.index(offset)
    got = item.load()
    slot = acc.after(init, r).index(zero)
    old = slot.load()
    new = old + got
    step = acc.index(zero).store(new)
    close = step.end(r)
    final = acc.after(close).index(zero)
    result = final.load()
    place = out.index(i)
    store = place.store(result)
    close_i = store.end(i)
    program = [
        out, data, acc, zero, i, start, init, r, i * 3, offset, item, got, slot, old, new, acc.index(zero), step, close,
        final, result, place, store, close_i,
    ]  # fmt: skip
    buffers = {0: [None] * 2, 1: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    run_instructions(program, buffers)
    assert buffers[0] == [6.0, 15.0]
    run_instructions([*program, UOp.sink(close_i)], buffers)


def test_if_and_gates() -> None:
    out = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(4))
    i = UOp.range(UOp.const(4, i32), 0)
    even = (i % 2).eq(0)
    place = out.index(i)
    store = place.store(i)
    block = UOp.new(Op.If, (even, store))
    program = [out, i, i % 2, even, block, place, store, UOp.new(Op.EndIf, (block,)), UOp.new(Op.End, (store, i))]
    buffers = {0: [-1] * 4}
    run_instructions(program, buffers)
    assert buffers[0] == [0, -1, 2, -1]
    gated = out.index(i, gate=even)
    program = [out, i, i % 2, even, gated, gated.store(i), UOp.new(Op.End, (gated.store(i), i))]
    buffers = {0: [-1] * 4}
    run_instructions(program, buffers)
    assert buffers[0] == [0, -1, 2, -1]


def shared(barrier: bool) -> list[UOp]:
    out = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(8))
    tile = UOp.new(Op.DefineLocal, (), 0, i32.ptr(4, AddrSpace.LOCAL))
    g = UOp.new(Op.Special, (UOp.const(2, i32),), "gidx0")
    t = UOp.new(Op.Special, (UOp.const(4, i32),), "lidx0")
    four = g * 4
    at = four + t
    put = tile.index(t).store(at)
    wait = UOp.new(Op.Barrier, (put,))
    near = t.like(3) - t
    slot = tile.after(wait).index(near)
    got = slot.load()
    place = out.index(at)
    program = [out, tile, g, t, four, at, tile.index(t), put, wait, near, slot, got, place, place.store(got)]
    return program if barrier else [u for u in program if u is not wait]


def test_threads_meet_at_barriers() -> None:
    buffers = {0: [None] * 8}
    run_instructions(shared(True), buffers)
    assert buffers[0] == [3, 2, 1, 0, 7, 6, 5, 4]
    with pytest.raises(UndefinedError):
        run_instructions(shared(False), {0: [None] * 8})


def test_lists_that_are_no_programs() -> None:
    i = UOp.range(UOp.const(4, i32), 0)
    j = UOp.range(UOp.const(4, i32), 1)
    with pytest.raises(IRError, match="never closed"):
        run_instructions([i], {})
    with pytest.raises(IRError, match="opened last"):
        run_instructions([i, j, UOp.new(Op.End, (i, i))], {})
    with pytest.raises(IRError, match="before its instruction"):
        run_instructions([i + j + 1], {})
