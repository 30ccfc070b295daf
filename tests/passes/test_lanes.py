"""LANES: vectors as long as a row that is shorter than a register."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morok import Tensor
from morok.errors import OptError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize import beam
from morok.optimize.heuristics import optimize
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import lower
from tests.passes import kernels as K
from tests.passes.test_values import check


def chosen(ast: UOp, target: K.Target = K.CPU) -> list[str]:
    return [str(o) for o in optimize(ast, target).arg.opts]


def widths(ast: UOp, op: Op) -> set[int]:
    """The lanes of the program's instructions of one kind."""
    return {u.dtype.count for u in lower(ast, K.CPU) if u.op is op}


def test_columns_fewer_than_a_register_holds_have_one_of_their_own() -> None:
    """In vectors of 16 lanes ten columns would be put together element by element, and divided they take two registers."""
    ten = ["UPCAST(1, 10)", "UPCAST(0, 8)", "LANES(10)"]
    assert chosen(K.matmul(512, 128, 10)) == ten
    assert widths(K.matmul(512, 128, 10), Op.MulAcc) == {10}
    assert chosen(K.matmul(512, 2048, 10)) == ten  # lying so close, they need no copy
    assert chosen(K.matmul(512, 128, 5)) == ["UPCAST(1, 5)", "UPCAST(0, 16)", "LANES(5)"]
    assert chosen(K.matmul(512, 128, 2)) == ["UPCAST(1, 2)", "UPCAST(0, 16)"]
    assert chosen(K.matmul(512, 128, 8)) == ["UPCAST(1, 8)", "UPCAST(0, 8)"]
    assert chosen(K.matmul(512, 128, 16)) == ["UPCAST(1, 16)", "UPCAST(0, 16)"]
    assert chosen(K.matmul(512, 128, 20)) == ["UPCAST(1, 16)", "UPCAST(1, 4)", "UPCAST(0, 16)"]  # more than one
    half = replace(K.CPU, vector_bytes=32, memory_bytes=32)
    assert chosen(K.matmul(512, 128, 10), half)[:2] == ["UPCAST(1, 8)", "UPCAST(1, 2)"]


@pytest.mark.long
def test_columns_that_remain_have_tiles_too() -> None:
    """Where the loop over rows is inside, they have one of their own: row by row, each sum would wait for itself."""
    assert chosen(K.matmul(512, 1024, 20)) == [
        "SWAP(0, 1)",
        "UPCAST(0, 16)",
        "UPCAST(1, 4)",
        "UPCAST(0, 16)",
        "UPCAST(1, 16)",
        "PACK(2, 0)",
    ]
    single = chosen(K.matmul(512, 512, 33))  # one column remains: its rows run side by side
    assert single == ["SWAP(0, 1)", "UPCAST(0, 32)", "UPCAST(0, 8)", "UPCAST(2, 16)", "PACK(2, 0)"]
    rng = np.random.default_rng(0)
    for m, k, n in ((34, 700, 20), (33, 700, 19), (40, 300, 1000), (48, 700, 33), (37, 900, 81)):
        a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        np.testing.assert_array_equal((Tensor(a) @ Tensor(b)).numpy(), a @ b)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("columns", [2, 3, 4, 7, 9, 10, 15])
@pytest.mark.parametrize("rows", [2, 5, 24])
def test_values(rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((rows, 40), (40, columns)))
    c = np.arange(columns, dtype=np.float32)
    np.testing.assert_array_equal((Tensor(a) @ Tensor(b) + Tensor(c)).relu().numpy(), np.maximum(a @ b + c, 0))
    np.testing.assert_array_equal(
        (Tensor(a).cast(dtypes.i16) @ Tensor(b).cast(dtypes.i16)).numpy(), (a @ b).astype(np.int16)
    )
    np.testing.assert_array_equal(
        (Tensor(a).cast(dtypes.f64) @ Tensor(b).cast(dtypes.f64)).numpy(), (a @ b).astype(np.float64)
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lanes", [2, 3, 7, 15])
def test_any_number_of_lanes(lanes: int) -> None:
    opts = (Opt(OptOp.UPCAST, 1, 10), Opt(OptOp.UPCAST, 0, 2), Opt(OptOp.LANES, None, lanes))
    ast = K.matmul(6, 4, 10)
    ast = UOp.new(Op.Sink, ast.src, K.KernelInfo(ast.arg.name, opts))
    check(ast, K.CPU)
    assert max(widths(ast, Op.MulAcc)) <= lanes
    ast = K.elementwise(24)
    check(UOp.new(Op.Sink, ast.src, K.KernelInfo(ast.arg.name, (Opt(OptOp.UPCAST, 0, 12), opts[-1]))), K.CPU)


def test_what_it_is_not_for() -> None:
    for lanes, target, says in (
        (1, K.CPU, "vectors of 1"),
        (16, K.CPU, "vectors of 16"),
        (4, K.GPU, "no vectors"),
        (4, K.SCALAR, "no vec"),
    ):
        with pytest.raises(OptError, match=says):
            Scheduler(K.matmul(6, 4, 8), target).apply(Opt(OptOp.LANES, None, lanes))
    twice = Scheduler(K.matmul(6, 4, 8), K.CPU)
    twice.apply(Opt(OptOp.LANES, None, 4))
    with pytest.raises(OptError, match="already"):
        twice.apply(Opt(OptOp.LANES, None, 4))


def test_beam_search_compiles_it() -> None:
    """It is no part of the graph: of the optimizations it alone goes with the kernel."""
    made = Scheduler(K.matmul(6, 4, 10), K.CPU)
    for opt in (Opt(OptOp.UPCAST, 1, 10), Opt(OptOp.LANES, None, 10)):
        made.apply(opt)
    kernel = beam._kernel(made)
    assert kernel.arg.opts == (Opt(OptOp.LANES, None, 10),)
    assert widths(kernel, Op.MulAcc) == {10}
