"""What the verifier lets through after each stage, and what it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok.errors import VerifyError
from morok.ir.definedness import defined
from morok.ir.divisors import excludes_overflow, excludes_zero
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.expression_parser import parse
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp, intern
from morok.ir.verify import verify

f32, i32, index = dtypes.f32, dtypes.i32, dtypes.index


def param(slot: int, size: int, dtype=f32) -> UOp:
    return UOp.new(Op.DefineGlobal, (), slot, dtype.ptr(size))


def kernel(value: UOp, *ranges: UOp, size: int = 8) -> UOp:
    place = param(0, size).index(ranges[0] if ranges else 0)
    return UOp.sink(UOp.new(Op.End, (place.store(value), *ranges)) if ranges else place.store(value))


def test_a_plain_kernel_passes_every_stage_it_may() -> None:
    i = UOp.range(8, 0)
    root = kernel(param(1, 8).index(i) + 1.0, i)
    for stage in range(1, 13):
        verify(root, stage)
    with pytest.raises(VerifyError, match="after stage 13: operand Index is read without a Load"):
        verify(root, 13)
    loads = kernel(param(1, 8).index(i).load() + 1.0, i)
    verify(loads, 14)
    with pytest.raises(VerifyError, match="index is gone after stage 15"):
        verify(loads, 15)
    j = UOp.range(UOp.const(8, i32), 0)
    verify(kernel(param(1, 8).index(j).load() + 1.0, j), 20)


def reduce_kernel() -> UOp:
    i, r = UOp.range(8, 0), UOp.range(4, 1, AxisType.Reduce)
    return kernel(param(1, 32).index(i * 4 + r).reduce(Op.Add, r), i)


def lane() -> UOp:
    return UOp.new(Op.Unroll, (UOp.const((0, 1, 2, 3), index),), ((1, 4),))


def unrolled() -> UOp:
    i = UOp.range(2, 0)
    store = param(0, 8).index(i * 4 + lane()).store(UOp.const(1.0))
    return UOp.sink(UOp.new(Op.Contract, (store,), ((1, 4),)).end(i))


def views() -> UOp:
    i = UOp.range(8, 0)
    turned = UOp.new(Op.Flip, (param(1, 8),), (True,))
    return kernel(turned.index(i), i)


def bufferized() -> UOp:
    i, k = UOp.range(8, 0), UOp.range(8, 1)
    held = UOp.new(Op.Bufferize, (param(1, 8).index(k), k), (None, AddrSpace.LOCAL))
    return kernel(held.index(i), i)


def upcast() -> UOp:
    i = UOp.range(8, 0, AxisType.Upcast)
    return kernel(UOp.const(1.0), i)


@pytest.mark.parametrize(
    ("root", "last", "why"),
    [
        (reduce_kernel(), 10, "Reduce is gone after stage 11"),
        (unrolled(), 8, "Unroll is gone after stage 9"),
        (views(), 0, "Flip is gone after stage 1"),
        (bufferized(), 9, "Bufferize is gone after stage 10"),
        (upcast(), 8, "Upcast loops are gone after stage 9"),
    ],
)
def test_each_stage_takes_its_ops_away(root: UOp, last: int, why: str) -> None:
    if last:
        verify(root, last)
    with pytest.raises(VerifyError, match=f"after stage {last + 1}: {why}"):
        verify(root, last + 1)


def test_open_and_twice_named_loops() -> None:
    i = UOp.range(8, 0)
    with pytest.raises(VerifyError, match="never closed"):
        verify(UOp.sink(param(0, 8).index(i).store(UOp.const(1.0))), 2)
    j = UOp.range(4, 0)
    with pytest.raises(VerifyError, match="same id"):
        verify(UOp.sink(param(0, 32).index(i * 4 + j).store(UOp.const(1.0)).end(i, j)), 2)


def test_places_are_inside_or_gated() -> None:
    i = UOp.range(10, 0)
    outside = param(1, 8).index(i)
    with pytest.raises(VerifyError, match=r"element 8 of 8 where Range\(10, 0, Loop\) = 8"):
        verify(kernel(outside, i, size=10), 8)
    verify(kernel(outside, i, size=10), 7)
    verify(kernel(param(1, 8).index(i, gate=i < 8), i, size=10), 8)
    verify(kernel(param(1, 8).index((i < 8).where(i, UOp.invalid_at())), i, size=10), 8)
    # bounds alone are too wide here; no iteration reaches outside
    verify(kernel(param(1, 10).index(i // 4 * 4 + i % 4), i, size=10), 8)
    from_memory = param(1, 8).index(param(2, 10, i32).index(i).cast(index))
    with pytest.raises(VerifyError, match="from memory"):
        verify(kernel(from_memory, i, size=10), 8)


def test_a_loop_ends_where_its_variable_says() -> None:
    """The last element first, of as many as there are at run time."""
    n = UOp.var("n", index, 1, 8)
    i = UOp.range(n, 0)
    verify(kernel(param(1, 8).index(n - 1 - i), i), 8)
    with pytest.raises(VerifyError, match="element -1 of 8"):
        verify(kernel(param(1, 8).index(n - 2 - i), i), 8)


def test_places_of_many_loops_are_sampled() -> None:
    loops = [UOp.range(20, k) for k in range(5)]
    at = loops[0]
    for r in loops[1:]:
        at = at * 20 + r
    # bounds do not see that x // 4 * 4 + x % 4 is x
    same = at // 4 * 4 + at % 4
    store = param(0, 20**5).index(same).store(UOp.const(1.0))
    verify(UOp.sink(UOp.new(Op.End, (store, *loops))), 8)
    store = param(0, 20**5 - 1).index(same).store(UOp.const(1.0))
    with pytest.raises(VerifyError, match="element 3199999 of 3199999"):
        verify(UOp.sink(UOp.new(Op.End, (store, *loops))), 8)


def test_wide_accesses_stay_inside() -> None:
    i = UOp.range(2, 0)
    verify(kernel(param(1, 8).index(i * 4).load(f32.vec(4)).gep(0), i), 13)
    with pytest.raises(VerifyError, match=r"elements 4\.\.8 of 7"):
        verify(kernel(param(1, 7).index(i * 4).load(f32.vec(4)).gep(0), i), 13)


def test_divisors() -> None:
    x, y = UOp.var("x", i32), UOp.var("y", i32)
    asked = y.ne(0).where(y, y.like(1))
    assert excludes_zero(asked)
    assert excludes_zero(y.eq(0).where(y.like(1), y))
    assert excludes_zero((~y.eq(0)).where(y, y.like(1)))
    assert excludes_zero((y.ne(0) & x.gt(3)).where(y, y.like(1)))
    assert not excludes_zero((y.ne(0) | x.gt(3)).where(y, y.like(1)))
    assert not excludes_zero(x.ne(0).where(y, y.like(1)))
    assert excludes_zero(UOp.const((1, 2), i32))
    place = param(0, 1, i32).index(UOp.const(0, i32))
    verify(UOp.sink(place.store(UOp.var("a", i32, -9, 9) // asked)), 19)
    least = (y.ne(0) & (x.ne(i32.min) | y.ne(-1))).where(y, y.like(1))
    verify(UOp.sink(place.store(x // least)), 19)
    with pytest.raises(VerifyError, match="divided by -1"):
        verify(UOp.sink(place.store(x // asked)), 19)
    verify(UOp.sink(place.store(x // 7)), 19)
    with pytest.raises(VerifyError, match="may be 0"):
        verify(UOp.sink(place.store(x // y)), 19)
    with pytest.raises(VerifyError, match="divided by -1"):
        verify(UOp.sink(place.store(x // UOp.var("z", i32, -2, -1))), 19)


def test_divisors_whose_lanes_are_moved() -> None:
    """What stands beside a lane of a divisor before its lanes are moved says nothing of where it is then; scalars do."""
    two = i32.vec(2)
    x, s = UOp.var("x", two), UOp.var("s", i32)
    asked = x.ne(i32.min).where(UOp.const(-1, two), UOp.const(2, two))
    assert excludes_overflow(x, asked)
    moved = UOp.new(Op.Gep, (asked,), (1, 0))
    assert not excludes_overflow(x, moved)
    assert not defined(x // moved)
    by_scalar = s.ne(i32.min).where(UOp.const(-1, two), UOp.const(2, two))
    assert excludes_overflow(s, UOp.new(Op.Gep, (by_scalar,), (1,)))
    y = UOp.var("y", two)
    assert excludes_zero(UOp.new(Op.Gep, (y.ne(0).where(y, y.like(1)),), (1, 0)))


def test_the_target_has_no_such_op() -> None:
    i = UOp.range(UOp.const(8, i32), 0)
    root = kernel(UOp.new(Op.Exp2, (param(1, 8).index(i).load(),)), i)
    verify(root, 18)
    with pytest.raises(VerifyError, match="no Exp2"):
        verify(root, 18, unsupported={Op.Exp2})


@pytest.mark.parametrize("wrong", [[[1], [2]], ["Add"], {Op.Add: 1}, 3, "Add", None, np.ones((2, 0, 3))])
def test_what_a_target_cannot_run_is_said_in_ops(wrong: Any) -> None:
    with pytest.raises(VerifyError, match="what the target cannot run"):
        verify(UOp.sink(), 18, wrong)


def test_mistyped_nodes() -> None:
    wrong = intern(Op.Index, i32, (param(1, 8), UOp.const(0)), False)
    with pytest.raises(VerifyError, match="has dtype i32, its operands give f32"):
        verify(UOp.sink(wrong), 1)
    bad = intern(Op.Gep, f32, (UOp.const(1.0, f32.vec(2)),), (5,))
    with pytest.raises(VerifyError, match="mistyped"):
        verify(UOp.sink(bad), 1)


def listing() -> list[UOp]:
    out = param(0, 8)
    i = UOp.range(UOp.const(8, i32), 0)
    place = out.index(i)
    store = place.store(UOp.const(1.0))
    return [out, i, place, store, store.end(i)]


def test_instruction_lists() -> None:
    program = listing()
    verify(program, 21)
    verify(program, 22)
    with pytest.raises(VerifyError, match="comes after its use"):
        verify([program[i] for i in (1, 2, 0, 3, 4)], 22)
    with pytest.raises(VerifyError, match="never closed"):
        verify(program[:-1], 22)
    with pytest.raises(VerifyError, match="Sink is gone"):
        verify([*program, UOp.sink(program[-1])], 22)
    with pytest.raises(VerifyError, match="stands twice"):
        verify([program[0], *program], 22)
    with pytest.raises(VerifyError, match="a list of instructions"):
        verify(UOp.sink(program[-1]), 22)
    with pytest.raises(VerifyError, match="expected: a Sink"):
        verify(program, 20)


def test_branches_guard_places_after_the_last_stage() -> None:
    out = param(0, 4, i32)
    i = UOp.range(UOp.const(8, i32), 0)
    inside = i < 4
    place = out.index(i)
    store = place.store(i)
    block = UOp.new(Op.If, (inside, store))
    program = [out, i, inside, place, block, store, UOp.new(Op.EndIf, (block,)), store.end(i)]
    with pytest.raises(VerifyError):
        verify([out, i, place, store, store.end(i)], 22)
    verify(load_order(program), 22)
    with pytest.raises(VerifyError, match="If comes with stage 22"):
        verify(load_order(program), 21)


def test_loops_wait_from_stage_20_on() -> None:
    first = param(1, 4, i32).index(UOp.const(0, i32)).store(UOp.const(1, i32))
    j = UOp.range(UOp.const(4, i32), 1, deps=(first,))
    program = UOp.sink(first, param(0, 4, i32).index(j).store(j).end(j))
    verify(program, 20)
    with pytest.raises(VerifyError, match="what a loop waits for comes with stage 20"):
        verify(program, 19)


def load_order(program: list[UOp]) -> list[UOp]:
    """An If names the stores that it guards, so that it is built after and stands before them."""
    block = next(u for u in program if u.op is Op.If)
    bare = UOp.new(Op.If, block.src[:1])
    return [bare if u is block else UOp.new(Op.EndIf, (bare,)) if u.op is Op.EndIf else u for u in program]


def test_errors_name_the_line_that_made_the_node() -> None:
    i = UOp.range(10, 0)
    with pytest.raises(VerifyError) as caught:
        verify(kernel(param(1, 8).index(i), i, size=10), 8)
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


@pytest.mark.long
def test_a_deep_chain() -> None:
    u = UOp.const(1.0)
    for n in range(100_000):
        u = u + float(n % 7)
    verify(UOp.sink(param(0, 1).index(0).store(u)), 8)


def test_text_of_a_verified_kernel_round_trips() -> None:
    root = reduce_kernel()
    assert parse(root.text()) is root
