"""Shared memory in stage 12: a launch computes what the loops did, in any order of blocks and threads, or is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from morok import Tensor, config
from morok.codegen.machines import CUDA
from morok.errors import LoweringError, MorokError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.pipeline import STAGES, lower, run
from tests.passes import kernels as K

G, L, S = AxisType.Global, AxisType.Local, AxisType.Loop  # blocks, threads, and loops that each thread runs
M, N = 3, 6


def data(*shape: int) -> Tensor:
    return Tensor(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape))


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "softmax of 5 x 37": lambda: data(5, 37).softmax(),
    "softmax of 4 x 512": lambda: data(4, 512).softmax(),
    "a padded convolution": lambda: data(1, 3, 8, 8).conv2d(data(4, 3, 3, 3), padding=1),
}


@pytest.mark.parametrize("noopt", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_of_a_cpu_are_no_shared_memory(name: str, noopt: bool) -> None:
    """What fills a CPU kernel's own buffer in loops would fill a part of it in each block."""
    (item,) = PROGRAMS[name]().schedule()
    with config.settings(noopt=noopt), pytest.raises(LoweringError, match="run in different blocks"):
        lower(item.ast, CUDA)
    assert PROGRAMS[name]().kernels(device="CUDA")


def axis(n: int, id: int, kind: AxisType) -> UOp:
    return UOp.range(n, id, kind, True)


def shared(size: int) -> UOp:
    return UOp.new(Op.DefineLocal, (), 0, dtypes.f32.ptr(size, AddrSpace.LOCAL))


def rows(outer: AxisType, fill: tuple[AxisType, AxisType], inner: AxisType, own: bool) -> UOp:
    """out[i, j] = row[j] + row[N - 1 - j], where row[k] = in[i, k] + 1 is filled in two loops; `own`: each i has its own row."""
    i, a, b, j = axis(M, 0, outer), axis(2, 1, fill[0]), axis(N // 2, 2, fill[1]), axis(N, 3, inner)
    k = a * (N // 2) + b
    buffer, base = shared(M * N if own else N), i * N if own else UOp.const(0)
    stored = buffer.index(base + k).store(K.buffer(1, M * N).index(i * N + k) + UOp.const(1.0)).end(a, b)
    row = buffer.after(UOp.new(Op.Barrier, (stored,)))
    value = row.index(base + j) + row.index(base + (j * -1 + (N - 1)))
    return K.kernel(K.buffer(0, M * N).index(i * N + j).store(value).end(i, j))


def launched(ast: UOp) -> UOp:
    out = run(STAGES[11], ast, K.GPU)
    assert isinstance(out, UOp)
    return out


def values(program: UOp) -> list[float]:
    buffers: dict[int, list[float]] = {0: [0.0] * (M * N), 1: [float(i * i % 23) for i in range(M * N)]}
    interpret.run(program, buffers)
    return buffers[0]


def test_every_way_to_launch_is_right_or_refused() -> None:
    wanted = values(rows(S, (S, S), S, False))
    accepted: set[tuple[AxisType, tuple[AxisType, AxisType], AxisType, bool]] = set()
    for outer, first, second, inner, own in itertools.product(
        (G, L, S), (G, L, S), (G, L, S), (G, L, S), (False, True)
    ):
        how = (outer, (first, second), inner, own)
        try:
            program = launched(rows(*how))
        except LoweringError:
            continue
        assert values(program) == wanted, how
        accepted.add(how)
    # a block fills its row alone, by all of its threads or by each of them; rows of several threads lie side by side
    assert {(G, (L, L), L, False), (G, (S, L), G, False), (G, (S, S), L, False), (L, (L, S), L, True)} <= accepted
    # no block waits for another, a row of all threads holds one thread's, and a loop fills again what others may still read
    assert not {(G, (G, S), L, False), (G, (S, G), L, True), (L, (L, L), L, False), (S, (L, S), L, False)} & accepted


def test_what_is_refused_goes_wrong() -> None:
    """Without the check, the interpreter computes something else or finds that threads race, in each kernel of these."""
    wanted = values(rows(S, (S, S), S, False))
    for how in ((G, (G, S), L, False), (L, (L, L), L, False), (S, (L, S), L, False)):
        with pytest.MonkeyPatch.context() as m:
            m.setattr("morok.passes.gpudims.check_barriers", lambda nodes: None)
            try:
                assert values(launched(rows(*how))) != wanted, how
            except MorokError:
                continue


def test_reads_are_behind_barriers() -> None:
    g, t = axis(2, 0, G), axis(4, 1, L)
    buffer = shared(4)
    stored = buffer.index(t).store(K.buffer(1, 8).index(g * 4 + t)).end(t)
    other = axis(4, 2, L)

    def kernel(row: UOp) -> UOp:
        return K.kernel(K.buffer(0, 8).index(g * 4 + other).store(row.index(other * -1 + 3)).end(g, other))

    assert launched(kernel(buffer.after(UOp.new(Op.Barrier, (stored,))))).op is Op.Sink
    with pytest.raises(LoweringError, match="other threads"):
        launched(kernel(buffer.after(stored)))
    more = buffer.index(t).store(UOp.const(1.0)).end(t)
    with pytest.raises(LoweringError, match="other threads"):
        launched(kernel(buffer.after(UOp.new(Op.Barrier, (stored,)), more)))
    # of two fills one has no barrier before the read
    last = (
        K.buffer(2, 8).index(g * 4 + other).store(buffer.after(UOp.new(Op.Barrier, (more,))).index(other)).end(g, other)
    )
    first = kernel(buffer.after(UOp.new(Op.Barrier, (stored,))))
    with pytest.raises(LoweringError, match="without a barrier after all stores"):
        launched(K.kernel(*first.src, last))


def test_lanes_have_places_of_their_own() -> None:
    """A vector of four lanes a thread: side by side, and one over the other."""
    for step, refused in ((4, False), (3, True)):
        g, t, other = axis(2, 0, G), axis(4, 1, L), axis(16, 2, L)
        buffer = shared(16)
        lanes = UOp.vectorize(*[t * step + k for k in range(4)])
        value = UOp.vectorize(*[K.buffer(1, 32).index(g * 16 + t * 4 + k) for k in range(4)])
        barrier = UOp.new(Op.Barrier, (buffer.index(lanes).store(value).end(t),))
        ast = K.kernel(K.buffer(0, 32).index(g * 16 + other).store(buffer.after(barrier).index(other)).end(g, other))
        if refused:
            with pytest.raises(LoweringError, match="different values to one element"):
                launched(ast)
        else:
            assert launched(ast).op is Op.Sink
