"""A loop whose length no vector divides is cut in two: what does not depend on it is computed once, for both."""

from __future__ import annotations

from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import lower
from tests.passes import kernels as K
from tests.passes.test_packing import packed
from tests.passes.test_values import check

CUT = Opt(OptOp.UPCAST, 1, 16)


def folds(ast: UOp, *opts: Opt) -> int:
    s = Scheduler(ast, K.CPU)
    for opt in opts:
        s.apply(opt)
    return sum(n.op is Op.Reduce for n in s.ast.toposort())


def test_a_fold_around_the_cut_loop_is_there_once() -> None:
    """The maximum of a row, which all of the row is compared with."""
    assert folds(K.normalize(3, 37), CUT) == 1
    check(packed(K.normalize(3, 37), CUT), K.CPU)
    check(packed(K.normalize(3, 37), CUT, Opt(OptOp.UNROLL, 0, 4)), K.CPU)
    program = lower(packed(K.normalize(3, 37), CUT), K.CPU)
    assert sum(u.op is Op.Max for u in program) == 1


def test_a_fold_inside_the_cut_loop_is_there_for_each_part() -> None:
    assert folds(K.columns(5, 37), Opt(OptOp.UPCAST, 0, 16)) == 2
    check(packed(K.columns(5, 37), Opt(OptOp.UPCAST, 0, 16)), K.CPU)


def test_loops_inside_the_cut_loop_are_there_for_each_part() -> None:
    """An outer loop is cut: the inner loop, and the fold of each row, are closed in each of its parts."""
    assert folds(K.normalize(5, 6), Opt(OptOp.UPCAST, 0, 2)) == 2
    check(packed(K.normalize(5, 6), Opt(OptOp.UPCAST, 0, 2)), K.CPU)
