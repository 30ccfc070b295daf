"""What every iteration of a sum multiplies by: once behind the loop, where it surely has a value and rounding permits it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from morok import Tensor, settings
from morok.ir import interpret
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.realize import kernels
from tests.passes import kernels as K
from tests.passes.lowering import after

i32, f32 = dtypes.i32, dtypes.f32
M, N = 3, 4


def row_sums(body: UOp, i: UOp, *loops: UOp) -> UOp:
    d = body.dtype
    return K.kernel(K.buffer(0, M, d).index(i).store(body.reduce(Op.Add, *loops)).end(i))


def folded(program: UOp) -> list[UOp]:
    """What the sums of a kernel fold."""
    return [n.src[0] for n in program.toposort() if n.op is Op.Reduce]


def run(program: UOp, n: int, rng: random.Random, d: DType) -> list[int]:
    sizes = {0: M, 1: M * N, 2: M, 3: N, 4: 1}
    held = {slot: [rng.randint(int(d.min), int(d.max)) for _ in range(size)] for slot, size in sizes.items()}
    interpret.run(program, held, {"n": n})
    return held[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("d", [i32, dtypes.i8, dtypes.u64], ids=str)
def test_an_invariant_factor_of_integers(d: DType) -> None:
    """Wrapping, at every number of iterations, none of them too."""
    n = UOp.var("n", dtypes.index, 0, N)
    i, k = K.loop(M, 0), K.fold(n, 1)
    x, of_row, of_column, one = (
        K.buffer(slot, size, d).index(at) for slot, size, at in ((1, M * N, i * N + k), (2, M, i), (3, N, k), (4, 1, 0))
    )
    beyond, quotient = K.buffer(2, M, d).index(i + 1), of_row // one  # of these nothing shows that they have a value
    for body, inner in (
        (x * of_row, x),
        (of_row * x, x),
        (x * 3 * of_row, x),
        (x * (of_row + one), x),
        (x * of_row * of_column, x * of_column),
        (of_column * (x * of_row), x * of_column),
        (x * (of_row // 3), x),
        (x * (of_row + of_column), None),
        (x * of_row + one, None),
        (x * beyond, None),
        (x * quotient, None),
    ):
        program = row_sums(body, i, k)
        out = after(2, program)
        (fold,) = folded(out)
        assert fold is (body if inner is None else inner)
        for count in range(1 if {beyond, quotient} & set(body.src) else N + 1):
            assert run(out, count, random.Random(count), d) == run(program, count, random.Random(count), d)


def test_of_two_loops_and_of_indices() -> None:
    i, j, k = K.loop(M, 0), K.fold(2, 1), K.fold(2, 2)
    x, of_row, of_column = (
        K.buffer(1, M * N, i32).index(i * 4 + j * 2 + k),
        K.buffer(2, M, i32).index(i),
        K.buffer(3, N, i32).index(j),
    )
    (fold,) = folded(after(2, row_sums(x * of_row, i, j, k)))
    assert fold is x
    (fold,) = folded(after(2, row_sums(x * of_column, i, j, k)))
    assert fold is x * of_column  # it is of one of the loops
    product = (k * k * i).cast(i32)
    assert folded(after(2, row_sums(product, i, k))) == [product]  # the index need not fit an i32 as its factors do


@pytest.mark.long
def test_floats_round_unless_sums_may_be_regrouped() -> None:
    i, k = K.loop(M, 0), K.fold(N, 1)
    x, of_row = K.buffer(1, M * N).index(i * N + k), K.buffer(2, M).index(i)
    beyond = K.buffer(2, M).index(i + 1)
    for body, inner in (
        (x * of_row, x),
        (x * (of_row * x), x * x),
        (of_row.sqrt() * x * 0.5, x),
        (x * beyond, x * beyond),
    ):
        assert folded(after(2, row_sums(body, i, k))) == [body]
        with settings(fast_math={"reassoc"}):
            (fold,) = folded(after(2, row_sums(body, i, k)))
        assert set(fold.toposort()) == set(inner.toposort())


@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.long), 5, 64])
def test_the_code_multiplies_behind_the_loop(n: int) -> None:
    rng = np.random.default_rng(n)
    a, s = rng.integers(-(2**31), 2**31, (M, n), np.int32), rng.integers(-(2**31), 2**31, M, np.int32)
    rows = (Tensor(a) * Tensor(s)[:, None]).sum(1, dtype="i32")
    if n == 64:
        (kernel,) = kernels(rows)
        loop, _, behind = kernel.code.partition("store i32")[0].rpartition(":\n")
        assert " mul i32" in behind
        assert " mul " not in loop
    assert (rows.numpy() == (a * s[:, None]).sum(1, dtype=np.int32)).all()


@pytest.mark.long  # all rules are compiled for that setting
@pytest.mark.parametrize("n", [0, 1, 5, 64])
def test_the_code_multiplies_floats_behind_the_loop_where_sums_may_be_regrouped(n: int) -> None:
    rng = np.random.default_rng(n)
    x, g = rng.normal(size=(M, n)).astype(np.float32), rng.normal(size=M).astype(np.float32)
    with settings(fast_math={"reassoc"}):
        sums = (Tensor(x) * Tensor(g)[:, None]).sum(1)
        if n == 64:
            (kernel,) = kernels(sums)
            assert kernel.code.count("fmul") == 1
        np.testing.assert_allclose(sums.numpy(), (x.astype(np.float64) * g[:, None]).sum(1), rtol=1e-5, atol=1e-5)
