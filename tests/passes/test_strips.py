"""STRIP: the results of a fold in a local buffer, row by row, and when the heuristics ask for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morok import Tensor, config
from morok.errors import OptError
from morok.ir.dtype import dtypes
from morok.ir.op import AxisType, Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import lower
from tests.passes import kernels as K
from tests.passes.test_packing import opts_of, packed
from tests.passes.test_values import check

STRIP, UPCAST = OptOp.STRIP, OptOp.UPCAST


@pytest.mark.sampled(12)
@pytest.mark.parametrize("target", [K.CPU, K.AVX2, K.SCALAR], ids=["avx512", "avx2", "scalar"])
@pytest.mark.parametrize(
    ("m", "n", "opts"),
    [
        (5, 7, (Opt(STRIP, 0),)),
        (6, 75, (Opt(STRIP, 0),)),  # a step, and what is left of a row
        (8, 64, (Opt(STRIP, 0, 32),)),  # two strips
        (4, 75, (Opt(STRIP, 0), Opt(UPCAST, 0, 32), Opt(UPCAST, 2, 11))),  # what is left is used apart
    ],
)
def test_results_side_by_side(m: int, n: int, opts: tuple[Opt, ...], target: K.Target) -> None:
    for op in (Op.Add, Op.Max):
        check(packed(K.columns(m, n, op), *opts), target)


def test_the_row_is_the_inner_loop() -> None:
    """Memory is read in order: the fastest loop around the loads of the matrix runs along its rows."""
    program = lower(packed(K.columns(12, 256), Opt(STRIP, 0), Opt(UPCAST, 0, 32)), K.CPU)
    (strip,) = [u for u in program if u.op is Op.DefineLocal]
    assert strip.dtype.size == 256  # type: ignore[attr-defined]
    loops: list[int] = []
    depth: list[UOp] = []
    for u in program:
        if u.op is Op.Range:
            depth.append(u)
        elif u.op is Op.End:
            depth.pop()
        elif u.op is Op.Load and storage(u.src[0]).op is Op.DefineGlobal:
            loops = [int(r.src[0].arg) for r in depth]
    assert loops == [3, 8]  # four rows at a time, two vectors of each


def test_what_has_no_strip_is_refused() -> None:
    j, i = K.loop(8, 0), K.fold(8, 1)
    place = K.buffer(0, 64).index(j)
    copy = K.kernel(place.store(K.buffer(1, 8).index(j)).end(j))
    in_place = K.kernel(place.store(K.buffer(0, 64).index(i * 8 + j).reduce(Op.Add, i)).end(j))
    for ast, opts, says in (
        (K.columns(4, 8), (Opt(STRIP, 1),), "output axis"),
        (K.columns(4, 8), (Opt(STRIP, 0, 3),), "divide"),
        (K.columns(4, 1 << 16), (Opt(STRIP, 0),), "bytes"),
        (K.columns(4, 8), (Opt(UPCAST, 0, 4), Opt(STRIP, 0)), "sequential loops"),
        (K.columns(4, 8), (Opt(STRIP, 0), Opt(STRIP, 0)), "0 reductions"),
        (K.columns(4, 8, d=dtypes.bool), (Opt(STRIP, 0),), "bools"),
        (K.matmul(6, 4, 8), (Opt(STRIP, 0),), "SWAP"),
        (K.matmul(6, 4, 8), (Opt(OptOp.PACK, 2, 0), Opt(STRIP, 1)), "local buffer"),
        (copy, (Opt(STRIP, 0),), "0 reductions"),
        (in_place, (Opt(STRIP, 0),), "writes"),
    ):
        s = Scheduler(ast, K.CPU)
        for opt in opts[:-1]:
            s.apply(opt)
        before = s.ast
        with pytest.raises(OptError, match=says):
            s.apply(opts[-1])
        assert s.ast is before
    with pytest.raises(OptError, match="CPU"):
        Scheduler(K.columns(4, 8), K.GPU).apply(Opt(STRIP, 0))


def test_loops_inside_the_strip_run_in_order() -> None:
    """Nothing may vectorize the loops of the fold: each iteration adds to what the one before left."""
    s = Scheduler(K.columns(64, 64), K.CPU)
    s.apply(Opt(STRIP, 0))
    for axis, r in enumerate(s.ranges):
        if r.arg[1] is AxisType.Reduce:
            with pytest.raises(OptError):
                s.apply(Opt(UPCAST, axis, 2))
    for axis in range(len(s.reduced_ranges)):
        with pytest.raises(OptError):
            s.apply(Opt(OptOp.UNROLL, axis, 2))


def test_when_the_heuristics_keep_a_strip() -> None:
    """Where memory is waited for, and a row is more than registers hold: all of a row, or a part for each thread."""
    assert opts_of(K.columns(1024, 2048)) == ["STRIP(0, 2048)", "UPCAST(0, 32)"]
    assert opts_of(K.columns(64, 2048)) == ["UPCAST(0, 256)"]  # a nearer cache has it
    assert opts_of(K.columns(16, 1 << 14)) == ["UPCAST(0, 256)"]  # a strip itself is read and written as well
    assert opts_of(K.columns(1 << 14, 256)) == ["UPCAST(0, 256)"]  # registers hold a row
    assert opts_of(K.columns(64, 1 << 16)) == ["UPCAST(0, 256)"]  # no nearer cache has a row of results
    threads = replace(K.CPU, threads=2)
    s = Scheduler(K.columns(1024, 2048), threads)
    s.apply(Opt(STRIP, 0, 1024))
    s.apply(Opt(OptOp.THREAD, 0, 0))
    check(packed(K.columns(8, 64), Opt(STRIP, 0, 32), Opt(OptOp.THREAD, 0, 0)), threads)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(300, 2048), (601, 1021), (3, 300, 2048)])
def test_machine_code(shape: tuple[int, ...], threads: int) -> None:
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    with config.settings(threads=threads):
        summed = Tensor(x).sum(-2)
        assert any("STRIP" in str(o) for o in summed.kernels()[0].opts) or (threads, shape[-1]) == (2, 1021)
        np.testing.assert_array_equal(summed.numpy(), x.sum(-2))
        np.testing.assert_array_equal((Tensor(x) * 2).max(-2).numpy(), (x * 2).max(-2))
