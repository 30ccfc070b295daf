"""Accesses outside of buffers, found by the solver before a kernel runs; what is inside passes, what is undecided is said."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from morok import Tensor, Variable, config
from morok.errors import CheckWarning, OutOfBoundsError
from morok.ir.dtype import dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.pipeline import lower
from morok.prove.bounds_check import check
from morok.tensor import schedule
from tests.passes import kernels as K

f32, index = dtypes.f32, dtypes.index


def copy(n: int, size: int, at: Any, gate: UOp | None = None) -> UOp:
    """out[i] = a[at(i)] for i in 0..n, where `a` has `size` elements"""
    r = K.loop(n, 0)
    read = K.buffer(1, size).index(at(r), gate=gate)
    return K.kernel(K.buffer(0, n).index(r).store(read).end(r), name="copy")


def test_one_past_the_end_is_refused_with_its_iteration() -> None:
    with pytest.raises(OutOfBoundsError) as refused:
        check(copy(16, 16, lambda r: r + 1), "copy")
    said = refused.value.message
    assert "kernel copy: element 16 of buffer 1" in said
    assert "which has 16" in said
    assert "where Range(16, 0, Loop, renumbered=true) = 15" in said
    assert refused.value.expected == "an index in 0..=15"


@pytest.mark.parametrize(
    "at",
    [
        lambda r: r - 1,
        lambda r: r * 2,
        lambda r: (r // 4) * 5 + r % 4,
        lambda r: r.max(UOp.const(16, index)),
        lambda r: (r < 3).where(r, r + 13),
    ],
)
def test_other_ways_out_are_refused(at: Any) -> None:
    with pytest.raises(OutOfBoundsError):
        check(copy(16, 16, at), "k")


@pytest.mark.parametrize(
    "at",
    [
        lambda r: r,
        lambda r: 15 - r,
        lambda r: (r % 4) * 4 + r // 4,
        lambda r: (r + 5) % 16,
        lambda r: (r < 15).where(r + 1, UOp.invalid_at()),
        lambda r: ((r < 8) & (r % 2).eq(0)).where(r * 2, UOp.invalid_at()),
        lambda r: (r < 15).where(r + 1, UOp.const(0, index)),
    ],
)
def test_what_is_inside_passes(at: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(copy(16, 16, at), "k")


def test_a_gate_is_a_premise_and_may_be_too_weak() -> None:
    r = K.loop(16, 0)
    check(copy(16, 16, lambda r: r + 1, r < 15), "k")
    with pytest.raises(OutOfBoundsError, match="= 15"):
        check(copy(16, 16, lambda r: r + 1, r < 16), "k")


def test_variables_are_all_of_their_values() -> None:
    n = UOp.var("n", index, 1, 8)
    r = UOp.range(n, 0, AxisType.Loop, True)
    row = K.buffer(1, 32).index(r * 4 + 3)
    check(K.kernel(K.buffer(0, 8).index(r).store(row).end(r)), "k")
    outside = K.buffer(1, 32).index(n * 4)
    with pytest.raises(OutOfBoundsError, match=r"n: index\[1\.\.=8\] = 8"):
        check(K.kernel(K.buffer(0, 8).index(r).store(outside).end(r)), "k")


def test_a_store_is_checked_too_and_the_pipeline_asks_under_check_only() -> None:
    r = K.loop(16, 0)
    ast = K.kernel(K.buffer(0, 15).index(r).store(K.buffer(1, 16).index(r)).end(r), name="wrong")
    lower(ast, K.CPU)
    with config.settings(check=True), pytest.raises(OutOfBoundsError, match="kernel wrong: element 15 of buffer 0"):
        lower(ast, K.CPU)


def test_instructions_are_checked_by_what_they_reach_and_by_their_branch() -> None:
    memory, four = K.buffer(0, 18), f32.vec(4)
    r = UOp.range(UOp.const(5, dtypes.i32), 0, AxisType.Loop, True)
    place = memory.index(r * 4)
    load = UOp.new(Op.Load, (place,), None, four)
    with pytest.raises(OutOfBoundsError, match=r"elements 16\.\.19"):
        check([memory, r, place, load, UOp.new(Op.End, (load, r))], "k")
    store = memory.index(r * 4).store(UOp.const(0.0, four))
    branch = UOp.new(Op.If, (r < 4, store))
    check([memory, r, branch, store, UOp.new(Op.EndIf, (branch,)), UOp.new(Op.End, (store, r))], "k")


def test_integers_of_a_width_wrap() -> None:
    """250 + r in eight bits is 0 from r = 6 on: inside; as i32 it is not."""
    r = UOp.range(UOp.const(10, dtypes.u8), 0, AxisType.Loop, True)
    memory = K.buffer(0, 256)
    wrapped = memory.index((r + 250).cast(index))
    check([memory, r, UOp.new(Op.Load, (wrapped,), None, f32)], "k")
    wide = memory.index(r.cast(dtypes.i32) + 250)
    with pytest.raises(OutOfBoundsError):
        check([memory, r, UOp.new(Op.Load, (wide,), None, f32)], "k")


def test_what_the_solver_cannot_tell_is_said() -> None:
    n, m = UOp.var("n", index, 2, 10**9), UOp.var("m", index, 2, 10**9)
    hard = K.buffer(1, 97).index((n * n * n + m * m * m) * (n - m) // (n * m + 1) % 97)
    ast = K.kernel(K.buffer(0, 1).index(0).store(hard), name="hard")
    with pytest.warns(CheckWarning, match="kernel hard: undecided.* gave up within 10 resource units"):
        check(ast, "hard", budget=10)


def test_an_index_from_memory_is_any_number_unless_it_is_held_inside() -> None:
    found = K.buffer(1, 16, dtypes.i32).index(0).cast(index)

    def gather(at: UOp) -> UOp:
        return K.kernel(K.buffer(0, 1).index(0).store(K.buffer(2, 16).index(at)), name="gather")

    with pytest.raises(OutOfBoundsError, match=r"buffer 2 .* = -?[0-9]+"):
        check(gather(found), "gather")
    check(gather(found.max(UOp.const(0, index)).min(UOp.const(15, index))), "gather")
    check(gather(((found < 16) & (found > -1)).where(found, UOp.invalid_at())), "gather")
    with pytest.raises(OutOfBoundsError, match=r"element 16 of buffer 2 .* = 16"):
        check(gather(((found < 17) & (found > -1)).where(found, UOp.invalid_at())), "gather")


@pytest.mark.long
def test_programs_that_pad_shrink_and_stride_pass() -> None:
    x = Tensor(np.arange(60, dtype=np.float32).reshape(5, 12))
    n = Variable("n", 1, 5)
    programs = [
        x.pad(((1, 2), (3, 1))) + 1,
        x.pad(((0, 0), (2, 2))).shrink(((1, 4), (1, 13))).sum(0),
        x[1:, ::3] * 2,
        x.flip(1).permute(1, 0).reshape(6, 10) + 1,
        x.reshape(1, 1, 5, 12).conv2d(Tensor(np.ones((1, 1, 3, 3), np.float32)), padding=1),
        x.shrink(((0, n.bind(3)), (0, 12))).sum(1),
        x.cumsum(1),
        x @ x.permute(1, 0),
        x[Tensor([4, -1, 0])],
    ]
    with warnings.catch_warnings(), config.settings(check=True):
        warnings.simplefilter("error", CheckWarning)
        got = [p.numpy() for p in programs]
    a = x.numpy()
    np.testing.assert_array_equal(got[0], np.pad(a, ((1, 2), (3, 1))) + 1)
    np.testing.assert_array_equal(got[1], np.pad(a, ((0, 0), (2, 2)))[1:4, 1:13].sum(0))
    np.testing.assert_array_equal(got[2], a[1:, ::3] * 2)
    np.testing.assert_array_equal(got[5], a[:3].sum(1))
    np.testing.assert_array_equal(got[8], a[[4, 4, 0]])


@pytest.mark.long
def test_a_kernel_compiled_unchecked_is_checked_when_that_is_asked_for() -> None:
    def run() -> int:
        before = schedule.COUNTERS.kernels_lowered
        (Tensor(np.ones((3, 23), np.float32)).flip(1) - 0.75).realize()
        return schedule.COUNTERS.kernels_lowered - before

    assert run() == 1
    with config.settings(check=True):
        assert [run(), run()] == [1, 0]
    assert run() == 0


@pytest.mark.long
def test_the_solver_is_loaded_under_check_only() -> None:
    program = (
        "import sys\nfrom morok import Tensor\n(Tensor([1.0, 2.0]).flip(0) + 1).tolist()\n"
        "print('morok.prove.solve' in sys.modules)"
    )
    for check_on, loaded in (("0", "False"), ("1", "True")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "MOROK_CHECK": check_on},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [loaded]
