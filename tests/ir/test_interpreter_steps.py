"""Runs of the interpreter that are given a number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from morok import UOp, dtypes
from morok.errors import IRError, StepLimitError
from morok.ir.interpret import evaluate, run, tensor
from morok.ir.op import AxisType, Op

HUGE = 1 << 40


def loop(end: int, axis: int = 0) -> UOp:
    return UOp.range(UOp.const(end, dtypes.index), axis, AxisType.Reduce)


def folded(end: int) -> UOp:
    return UOp.var("x", dtypes.i32).reduce(Op.Add, loop(end))


def stored(end: int) -> UOp:
    out = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(4))
    at = UOp.range(UOp.const(end, dtypes.index), 0, AxisType.Loop)
    return out.index(at % 4).store(UOp.const(7, dtypes.i32)).end(at)


def iota(end: int) -> UOp:
    return UOp.new(Op.Iota, (UOp.const(end, dtypes.index),))


RUNS: dict[str, tuple[Callable[[int], UOp], Callable[[UOp, int | None], Any]]] = {
    "value": (folded, lambda node, steps: evaluate(node, {"x": 3}, None, steps)),
    "statement": (stored, lambda node, steps: run(UOp.sink(node), {0: [0] * 4}, None, steps)),
    "tensor": (iota, lambda node, steps: tensor(node, {}, None, steps)),
}


@pytest.mark.parametrize("kind", RUNS)
def test_what_takes_more_steps_ends_soon(kind: str) -> None:
    made, ran = RUNS[kind]
    with pytest.raises(StepLimitError, match="more than 10,000 steps"):
        ran(made(HUGE if kind != "tensor" else 1 << 26), 10_000)


@pytest.mark.parametrize("kind", RUNS)
def test_what_takes_no_more_is_the_same(kind: str) -> None:
    made, ran = RUNS[kind]
    assert ran(made(5), 10_000) == ran(made(5), None)


def test_lanes_are_counted() -> None:
    x = UOp.var("x", dtypes.i32.vec(16))
    assert evaluate(x + x, {"x": 1}, None, 64) == (2,) * 16
    with pytest.raises(StepLimitError):
        evaluate(x + x, {"x": 1}, None, 31)


def test_threads_are_counted() -> None:
    out = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(4))
    thread = UOp.new(Op.Special, (UOp.const(HUGE, dtypes.index),), "lidx0")
    with pytest.raises(StepLimitError):
        run(UOp.sink(out.index(thread % 4).store(UOp.const(7, dtypes.i32))), {0: [0] * 4}, None, 10_000)


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("wrong", ["1000", [1], 1.5, True, object()], ids=lambda w: type(w).__name__)
def test_a_limit_that_is_no_whole_number_is_refused(kind: str, wrong: Any) -> None:
    graph, compute = RUNS[kind]
    with pytest.raises(IRError, match=r"the limit of steps is .*\n.*expected: a whole number, or None"):
        compute(graph(4), wrong)
