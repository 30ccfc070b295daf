"""Accumulators: which values loops carry, and that what follows a loop finds what it should."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing, c

from morok.codegen.llvm import render
from morok.codegen.register_memory import analyze
from morok.codegen.survey import survey
from morok.ir.dtype import dtypes
from morok.ir.op import AxisType
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

f32 = dtypes.f32
ROWS = 6
LONG = 5


def sums(axis: AxisType, ends: UOp | int, after: bool) -> list[UOp]:
    """out[i] = the sum of x[i], whose rows have LONG elements; `after`: out[0] once more, behind the loops."""
    b = Listing()
    out, x, total = b.buffer(0, f32, ROWS), b.buffer(1, f32, ROWS * LONG), b.reg(0, f32)
    if after:
        b.store(total, 0, c(7.0, f32))
    i = b.range(ends if isinstance(ends, int) else b.add(ends), axis)
    b.store(total, 0, c(0.0, f32))
    k = b.range(LONG)
    b.store(total, 0, b.add(b.load(total, 0) + b.load(x, b.add(i * LONG + k))))
    b.end(k)
    b.store(out, i, b.load(total, 0))
    b.end(i)
    if after:
        b.store(out, 0, b.load(total, 0))
    return b.list


def run(program: list[UOp], n: int = ROWS) -> np.ndarray:
    cpu = device("CPU")
    x, out = np.arange(ROWS * LONG, dtype=np.float32), np.zeros(ROWS, np.float32)
    cpu.compile(program, "sums").launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)], {"n": n})
    return out


N = UOp.var("n", dtypes.i32, 0, ROWS)
WANTED = np.arange(ROWS * LONG).reshape(ROWS, LONG).sum(1)


@pytest.mark.parametrize(("axis", "ends"), [(AxisType.Loop, ROWS), (AxisType.Loop, N), (AxisType.Thread, ROWS)])
def test_an_accumulator_set_anew_is_carried_by_the_inner_loop_alone(axis: AxisType, ends: UOp | int) -> None:
    program = sums(axis, ends, after=False)
    merged = analyze(program, survey(program)).merged
    assert [len(slots) for slots in merged.values()] == [1, 0]  # of the inner loop, of the outer one
    assert render(program, "k").text.count("phi float") == 1
    np.testing.assert_array_equal(run(program), WANTED)


def test_what_is_read_behind_a_loop_that_may_not_run_is_carried() -> None:
    program = sums(AxisType.Loop, N, after=True)
    merged = analyze(program, survey(program)).merged
    assert [len(slots) for slots in merged.values()] == [1, 1]
    np.testing.assert_array_equal(run(program)[1:], WANTED[1:])
    assert run(program)[0] == WANTED[-1]
    assert run(program, 0)[0] == 7.0  # no iteration: what was there before


def test_what_a_branch_sets_for_itself_ends_with_it() -> None:
    """out[i] = 2 * x[i] where i < 3, by an accumulator that nothing else reads."""
    b = Listing()
    out, x, kept = b.buffer(0, f32, ROWS), b.buffer(1, f32, ROWS * LONG), b.reg(0, f32)
    i = b.range(ROWS)
    branch = b.if_(b.add(i < 3))
    b.store(kept, 0, b.load(x, i))
    b.store(kept, 0, b.add(b.load(kept, 0) + b.load(kept, 0)))
    b.store(out, i, b.load(kept, 0))
    b.endif(branch)
    b.end(i)
    assert "phi float" not in render(b.list, "k").text
    np.testing.assert_array_equal(run(b.list), [0, 2, 4, 0, 0, 0])


def test_a_branch_may_add_to_what_it_found() -> None:
    """out[i] = the sum of x[j] over j <= i that are less than 3."""
    b = Listing()
    out, x, total = b.buffer(0, f32, ROWS), b.buffer(1, f32, ROWS * LONG), b.reg(0, f32)
    b.store(total, 0, c(0.0, f32))
    i = b.range(ROWS)
    branch = b.if_(b.add(i < 3))
    b.store(total, 0, b.add(b.load(total, 0) + b.load(x, i)))
    b.store(out, i, b.load(total, 0))
    b.endif(branch)
    b.end(i)
    np.testing.assert_array_equal(run(b.list), [0, 1, 3, 0, 0, 0])
