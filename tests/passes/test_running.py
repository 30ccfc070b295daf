"""Running folds: which loops continue a fold, what optimizations of such loops keep, and the code that comes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from morok.codegen.llvm import render
from morok.errors import OptError
from morok.ir import interpret
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize import prefix_scan, thread_loops
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import STAGES, lower, run
from tests.passes import kernels as K
from tests.passes.lowering import after
from tests.passes.test_values import check, scheduler_kernel

THREADS = replace(K.AVX2, threads=2)


def loops_of(ast: UOp) -> list[int]:
    return [int(u.src[0].vmax) for u in lower(ast, K.CPU) if u.op is Op.Range]


@pytest.mark.long
@pytest.mark.parametrize(
    ("d", "op", "whole"),
    [
        (dtypes.f32, Op.Add, True),
        (dtypes.f32, Op.Max, False),
        (dtypes.f64, Op.Mul, False),
        (dtypes.i64, Op.Mul, True),
        (dtypes.i32, Op.Min, False),
    ],
)
def test_one_step_an_element(d: DType, op: Op, whole: bool) -> None:
    """Blocks of vectors along memory, one by one where no blocks fill the axis, vectors side by side across memory."""
    lanes = 64 // d.itemsize
    assert loops_of(K.scan(3, 48, op, d, whole)) == [3, 48 // lanes]
    assert loops_of(K.scan(3, 37, op, d, whole)) == [3, 37]
    assert loops_of(K.scan(lanes, 20, op, d, whole, down=True)) == [20]
    for ast in (K.scan(2, 24, op, d, whole), K.scan(1, 19, op, d, whole), K.scan(9, 18, op, d, whole, down=True)):
        check(ast, K.AVX2)


OPTS = [
    [Opt(OptOp.UNROLL, 0, 4)],
    [Opt(OptOp.UNROLL, 0, 3)],
    [Opt(OptOp.UNROLL, 0, 0)],
    [Opt(OptOp.UPCAST, 0, 2)],
    [Opt(OptOp.UPCAST, 0, 4)],
    [Opt(OptOp.UPCAST, 0, 2), Opt(OptOp.UNROLL, 0, 8)],
    [Opt(OptOp.UNROLL, 0, 8), Opt(OptOp.UPCAST, 0, 2)],
    [Opt(OptOp.THREAD, 0, 0), Opt(OptOp.UNROLL, 0, 4)],
    [Opt(OptOp.THREAD, 0, 2)],
    [Opt(OptOp.UNROLL, 0, 8), Opt(OptOp.UPCAST, 0, 3)],  # of 4 rows, 3 beside each other and one left
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("down", "whole"), [(True, True), (False, False)])
@pytest.mark.parametrize("opts", OPTS, ids=lambda opts: " ".join(map(str, opts)))
def test_optimized_otherwise(opts: list[Opt], down: bool, whole: bool) -> None:
    ast = K.scan(4, 24, Op.Add, dtypes.f32, whole, down)
    s = Scheduler(after(6, ast, THREADS), THREADS)
    for opt in opts:
        s.apply(opt)
    check(scheduler_kernel(ast, s), THREADS)


def test_what_would_break_the_order_is_refused() -> None:
    ast = after(6, K.scan(6, 24), THREADS)
    for opt, message in (
        (Opt(OptOp.UPCAST, 1, 4), "REDUCE|Reduce"),
        (Opt(OptOp.THREAD, 1, 2), "Reduce"),
        (Opt(OptOp.SWAP, 0, 1), "Reduce"),
        (Opt(OptOp.PADTO, 1, 32), "carries a prefix scan"),
        (Opt(OptOp.UNROLL, 1, 4), "not constant"),
        (Opt(OptOp.UNROLL, 0, 7), "does not divide"),
        (Opt(OptOp.PACK, 1, 0), "unknown"),
    ):
        s = Scheduler(ast, THREADS)
        before = s.ast
        with pytest.raises(OptError, match=message):
            s.apply(opt)
        assert s.ast is before
    s = Scheduler(ast, THREADS)
    s.apply(Opt(OptOp.UNROLL, 0, 4))
    with pytest.raises(OptError, match="in blocks already"):
        s.apply(Opt(OptOp.UNROLL, 0, 2))


def test_blocks_are_no_ranges_to_copy_or_keep_over() -> None:
    """Where a loop is in blocks of lanes, neither a copy of what it reads nor a strip of sums over its lanes would hold all."""
    packed = Scheduler(after(6, K.scan(1, 8), THREADS), THREADS)
    packed.apply(Opt(OptOp.UNROLL, 0, 8))
    i, k, j, c = K.loop(3, 0), K.loop(8, 1), K.fold(8, 2), K.fold(5, 3)
    a, b = K.buffer(1, 24), K.buffer(2, 3 * 5 * 8)
    scanned = j.le(k).where(a.index(i * 8 + j), UOp.const(-0.0, dtypes.f32)).reduce(Op.Add, j)
    summed = b.index((i * 5 + c) * 8 + k).reduce(Op.Add, c)
    kept = Scheduler(
        after(6, K.kernel(K.buffer(0, 24).index(i * 8 + k).store(scanned * summed).end(i, k)), THREADS), THREADS
    )
    kept.apply(Opt(OptOp.UNROLL, kept.reduced_ranges.index(kept.ordered_ranges[0]), 8))
    for s, opts in ((packed, [Opt(OptOp.PACK, 1, 0)]), (kept, [Opt(OptOp.STRIP, 0, 0), Opt(OptOp.PACK, 2, 0)])):
        for opt in opts:
            before = s.ast
            with pytest.raises(OptError, match=r"in blocks|bools"):
                s.apply(opt)
            assert s.ast is before


def masked(condition: UOp, value: UOp, j: UOp, k: UOp, n: int, other: float = -0.0) -> UOp:
    fold = condition.where(value, UOp.const(other, dtypes.f32)).reduce(Op.Add, j)
    return K.kernel(K.buffer(0, n).index(k).store(fold).end(k), name="masked")


@pytest.mark.long
def test_which_loops_continue_a_fold() -> None:
    n = 18
    k, j, x = K.loop(n, 0), K.fold(n, 1), K.buffer(1, n + 1)
    assert prefix_scan.ordered_loops(prefix_scan.with_prefix_scans(masked(j.le(k), x.index(j), j, k, n)))
    assert prefix_scan.ordered_loops(prefix_scan.with_prefix_scans(masked(k.ge(j), x.index(j), j, k, n)))
    assert prefix_scan.ordered_loops(prefix_scan.with_prefix_scans(masked((j - 1).lt(k), x.index(j), j, k, n)))
    short = masked(K.fold(3, 1).le(K.loop(3, 0)), x.index(K.fold(3, 1)), K.fold(3, 1), K.loop(3, 0), 3)
    assert prefix_scan.ordered_loops(prefix_scan.with_prefix_scans(short))
    check(short, K.AVX2)
    one = masked(K.fold(1, 1).le(K.loop(1, 0)), x.index(K.fold(1, 1)), K.fold(1, 1), K.loop(1, 0), 1)
    longer = K.loop(n + 2, 0)
    i = K.loop(4, 2)
    beside = j.le(k).where(x.index(j), UOp.const(-0.0, dtypes.f32)).reduce(Op.Add, j)
    for ast in (
        one,
        masked(j.lt(k + 2), x.index(j), j, k, n),  # one more than the loop has come to
        masked(j.lt(k - 1), x.index(j), j, k, n),
        masked(k.le(j), x.index(j), j, k, n),  # from the end
        masked((j * 2).le(k), x.index(j), j, k, n),
        masked(j.le(k), x.index(j) * x.index(k), j, k, n),  # another value in each iteration
        masked(j.le(k), x.index(j), j, k, n, 0.0),  # -0.0 is what changes no sum
        masked(j.le(longer), x.index(j), j, longer, n + 2),  # beyond what is there
        K.kernel(K.buffer(0, 4 * n).index(i * n + k).store(beside).end(i, k)),  # again for every i
    ):
        assert prefix_scan.with_prefix_scans(ast) is ast
        check(ast, K.AVX2)


def test_lanes_are_shifted_whole() -> None:
    """No lane is taken out of a vector but the total of a block."""
    text = render(lower(K.scan(4, 64), K.CPU), "scan").text
    assert text.count("fadd") == 4 + 2
    assert text.count("shufflevector") == 4 + 1
    used = [
        line
        for line in text.splitlines()
        if "extractelement" in line and text.count(line.split()[0] + ",") + text.count(line.split()[0] + "\n") > 1
    ]
    assert len(used) <= 1


def test_a_thread_takes_rows_and_no_part_of_one() -> None:
    ast = after(6, K.scan(8, 64), THREADS)
    s = Scheduler(ast, THREADS)
    (rows,) = thread_loops.loops(s.ast, 2)
    assert rows.arg[1] is AxisType.Loop
    assert thread_loops.loops(Scheduler(after(6, K.scan(1, 64), THREADS), THREADS).ast, 2) == []
    assert thread_loops.cost_ns(s.ast) < 2 * thread_loops.cost_ns(after(6, K.rows(8, 64), THREADS))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("order", ["ik", "ki"])
def test_each_row_starts_anew_whatever_its_values_depend_on(order: str, whole: bool) -> None:
    """The folded values may be the same in all rows: a piece of an axis may have one value only."""
    i, k = (UOp.range(n, id, kind, True) for n, id, kind in ((3, 0, AxisType.Loop), (4, 1, AxisType.Reduce)))
    j = UOp.new(Op.Range, (k + UOp.const(int(whole)),), (2, AxisType.Reduce, True))
    out = K.buffer(0, 12, dtypes.i32).index(i * 4 + k)
    store = out.store(K.buffer(1, 1, dtypes.i32).index(UOp.const(0)).reduce(Op.Add, j))
    for ended in (store.end(i, k) if order == "ik" else store.end(k, i), UOp.new(Op.Group, (store.end(k),)).end(i)):
        buffers: dict[int, list[int]] = {0: [0] * 12, 1: [5]}
        lowered = run(STAGES[10], K.kernel(ended), K.CPU)
        assert isinstance(lowered, UOp)
        interpret.run(lowered, buffers)
        assert buffers[0] == [5 * (n + whole) for n in range(4)] * 3
