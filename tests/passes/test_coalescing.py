"""The order of a block's threads: of all orders that in which warps touch the fewest sectors of global memory."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.codegen.machines import CUDA
from morok.ir import interpret
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.interpret.storage import Memory
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.passes import coalescing
from morok.passes.gpudims import Launch
from morok.passes.target import KernelInfo
from morok.tensor import schedule, stored
from tests.passes import kernels as K
from tests.passes.sectors import Array, Traffic, bank_conflicts, elements, instructions, thread_indices, traffic


def f(*shape: int, dtype: str = "f32") -> Tensor:
    return Tensor(np.zeros(shape, np.float32)).cast(dtype).realize()


def indices(n: int, below: int) -> Tensor:
    return Tensor((np.arange(n) * 7 % below).astype(np.int32))


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "softmax of rows": lambda: f(8, 40).softmax(),
    "softmax of columns": lambda: f(64, 48).softmax(0),
    "softmax of long rows": lambda: f(3, 500).softmax(),
    "sum of columns": lambda: f(64, 96).sum(0),
    "sum of ragged columns": lambda: f(33, 46).sum(0),
    "sum of rows": lambda: f(64, 96).sum(1),
    "sum of ragged rows": lambda: f(46, 35).sum(1),
    "sum of a middle axis": lambda: f(8, 24, 16).sum(1),
    "sum of the first axes": lambda: f(24, 8, 16).sum((0, 1)),
    "greatest of columns of f64": lambda: f(40, 24, dtype="f64").max(0),
    "A @ B": lambda: f(64, 16) @ f(16, 64),
    "A @ B.T": lambda: f(64, 16) @ f(64, 16).T,
    "A.T @ B": lambda: f(16, 64).T @ f(16, 64),
    "A.T @ B.T": lambda: f(16, 64).T @ f(64, 16).T,
    "A @ B of f16": lambda: f(64, 16, dtype="f16") @ f(16, 64, dtype="f16"),
    "A @ B, ragged": lambda: f(36, 10) @ f(10, 52),
    "A @ B.T, ragged": lambda: f(36, 10) @ f(52, 10).T,
    "A.T @ B, ragged": lambda: f(10, 36).T @ f(10, 44),
    "A @ B, wide": lambda: f(8, 16) @ f(16, 256),
    "a layer": lambda: (f(64, 16) @ f(16, 64) + f(64)).relu(),
    "products of a batch": lambda: f(3, 16, 10) @ f(3, 10, 32),
    "a matrix and a vector": lambda: f(64, 128) @ f(128),
    "a vector and a matrix": lambda: f(128) @ f(128, 64),
    "transpose": lambda: f(64, 48).T.contiguous(),
    "transpose and add": lambda: f(48, 64).T + f(64, 48),
    "ragged transpose": lambda: f(36, 54).T.contiguous(),
    "permute": lambda: f(6, 20, 10).permute(2, 0, 1).contiguous(),
    "convolution": lambda: f(1, 3, 12, 12).conv2d(f(8, 3, 3, 3)),
    "padded convolution": lambda: f(1, 4, 9, 11).conv2d(f(8, 4, 3, 3), padding=1),
    "convolution by steps": lambda: f(1, 3, 13, 13).conv2d(f(4, 3, 3, 3), stride=2),
    "convolution of points": lambda: f(1, 16, 8, 8).conv2d(f(8, 16, 1, 1)),
    "convolution of channels": lambda: f(1, 8, 10, 10).conv2d(f(8, 1, 3, 3), groups=8),
    "greatest of windows": lambda: f(2, 4, 12, 12).max_pool2d(2),
    "add of a row": lambda: f(48, 56) + f(56),
    "pad": lambda: f(30, 31).pad([(1, 2), (3, 1)]).contiguous(),
    "flip": lambda: f(30, 32).flip(1) * 2,
    "one of two, by columns": lambda: Tensor.stack([f(5, 100), f(5, 100)], 1) + 1,
    "one of three, by columns": lambda: Tensor.stack([f(33, 40), f(33, 40), f(33, 40)], 1) * 2,
    "two beside each other": lambda: Tensor.concat([f(40, 3), f(40, 2)], 1) + 1,
    "a triangle": lambda: f(24, 40).tril() + 1,
    "two above each other, one turned": lambda: Tensor.concat([f(50, 37, dtype="u8"), f(37, 7, dtype="u8").T], 0) + 1,
    "a triangle of columns, and rows": lambda: f(67, 9, dtype="u8").T.tril(-4) + f(9, 67, dtype="u8"),
    "a triangle of columns of halves": lambda: f(35, 26, dtype="f16").T.tril(-13) + f(26, 35, dtype="f16"),
    "more rows, and more columns": lambda: (
        f(7, 54, dtype="u8").pad([(18, 17), (0, 0)]) + f(54, 7, dtype="u8").T.pad([(18, 17), (0, 0)])
    ),
    "columns in a margin": lambda: f(13, 29).pad([(13, 15), (27, 10)]).T.pad([(3, 1), (0, 5)]).contiguous(),
    "margins on different sides": lambda: f(5, 31).pad([(10, 15), (9, 13)]) + f(31, 5).T.pad([(15, 10), (13, 9)]),
    "product of a matrix in a margin": lambda: f(31, 3).pad([(6, 13), (4, 4)]) @ f(11, 39),
    "rows by number": lambda: f(50, 32)[indices(20, 50)] + 1,
}


def steps(make: Callable[[], Tensor]) -> Iterator[tuple[UOp, dict[int, Array]]]:
    """The kernels of a program, as a GPU gets them, and what is in those of their buffers that are known."""
    normal = schedule.normalised(stored.wanted([make()]), "CUDA")
    memory = [stored.memory_of(node, "CPU") for node in normal.buffers]
    for step in schedule.scheduled(normal, "CUDA").steps:
        known = {slot: memory[n] for slot, n in enumerate(step.buffers) if n < len(memory)}
        yield step.ast, {slot: m.numpy() for slot, m in known.items() if m is not None}


def by_order(program: Sequence[UOp], contents: dict[int, Array]) -> dict[tuple[UOp, ...], Traffic]:
    """What is touched, for every order of the threads; the first is that which the program has."""
    return {order: traffic(program, order, contents) for order in itertools.permutations(thread_indices(program))}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", PROGRAMS)
def test_warps_touch_the_fewest_sectors(name: str) -> None:
    for ast, contents in steps(PROGRAMS[name]):
        found = list(by_order(instructions(ast), contents).values())
        assert found[0].sectors == min(t.sectors for t in found), ast.arg.name


@pytest.mark.parametrize("m", [64, 128])
def test_tiles_are_read_and_written_along_memory(m: int) -> None:
    """Along columns a warp touches 4 sectors at most in a request; along rows it would touch 13."""
    ((ast, contents),) = steps(lambda: f(m, 16) @ f(16, 64))
    chosen, other = by_order(instructions(ast), contents).values()
    assert chosen.sectors / chosen.requests < 4
    assert other.sectors / other.requests > 12


OPTS: dict[str, tuple[UOp, tuple[Opt, ...]]] = {
    "three axes": (K.matmul(24, 8, 32), (Opt(OptOp.LOCAL, 1, 8), Opt(OptOp.LOCAL, 0, 3), Opt(OptOp.LOCAL, 0, 4))),
    "a shared fold": (
        K.matmul_transposed(24, 16, 32),
        (Opt(OptOp.LOCAL, 1, 4), Opt(OptOp.LOCAL, 0, 2), Opt(OptOp.GROUPTOP, 0, 8)),
    ),
    "lanes of rows": (
        K.matmul_turned(32, 8, 24),
        (Opt(OptOp.UPCAST, 1, 4), Opt(OptOp.LOCAL, 1, 2), Opt(OptOp.LOCAL, 0, 16)),
    ),
    "lanes and a transpose": (
        K.transpose(24, 32),
        (Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.LOCAL, 0, 4), Opt(OptOp.LOCAL, 1, 24)),
    ),
    "bytes": (K.transpose(32, 64, dtypes.u8), (Opt(OptOp.LOCAL, 0, 16), Opt(OptOp.LOCAL, 1, 8))),
    "halves": (
        K.matmul(16, 4, 64, dtypes.f16),
        (Opt(OptOp.UPCAST, 1, 2), Opt(OptOp.LOCAL, 1, 8), Opt(OptOp.LOCAL, 0, 8)),
    ),
    "a maximum in the row": (K.normalize(16, 20), (Opt(OptOp.LOCAL, 0, 8), Opt(OptOp.LOCAL, 1, 5))),
    "one number a row": (K.spread(16, 20), (Opt(OptOp.LOCAL, 1, 2), Opt(OptOp.LOCAL, 0, 16))),
}


@pytest.mark.parametrize("name", OPTS)
def test_whatever_the_axes(name: str) -> None:
    ast, opts = OPTS[name]
    program = instructions(UOp.new(Op.Sink, ast.src, KernelInfo("k", opts)))
    found = list(by_order(program, {}).values())
    assert len(found) > 1
    assert found[0].sectors == min(t.sectors for t in found)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "name", ["A @ B", "padded convolution", "sum of ragged columns", "rows by number", "transpose"]
)
def test_the_count_is_of_what_is_interpreted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The elements that this oracle counts are those that the interpreter loads and stores, as often."""
    small: dict[str, Callable[[], Tensor]] = {
        "A @ B": lambda: f(16, 3) @ f(3, 64),
        "transpose": lambda: f(16, 12).T.contiguous(),
        "padded convolution": lambda: f(1, 2, 4, 6).conv2d(f(3, 2, 3, 3), padding=1),
    }
    for ast, contents in steps(small.get(name, PROGRAMS[name])):
        program = instructions(ast)
        wanted = elements(program, contents)
        seen = Counter[tuple[int, int]]()

        def recorded(method: Callable[..., Any], seen: Counter[tuple[int, int]] = seen) -> Callable[..., Any]:
            def run(self: Memory, at: Any, *rest: Any) -> Any:
                if at is not interpret.INVALID and at.storage.space is AddrSpace.GLOBAL:
                    seen[at.storage.node.arg, at.offset] += 1
                return method(self, at, *rest)

            return run

        sizes = {n.arg: n.dtype.size for n in program if n.op is Op.DefineGlobal}
        buffers = {slot: contents[slot].tolist() if slot in contents else [0.0] * n for slot, n in sizes.items()}
        with monkeypatch.context() as m:
            m.setattr(Memory, "load", recorded(Memory.load))
            m.setattr(Memory, "store", recorded(Memory.store))
            interpret.run_instructions(program, buffers)
        assert seen == wanted


SHARED = {
    "sum of columns": lambda: f(64, 96).sum(0),
    "sum of rows": lambda: f(64, 96).sum(1),
    "a vector and a matrix": lambda: f(128) @ f(128, 64),
    "A @ B.T": lambda: f(64, 16) @ f(64, 16).T,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SHARED)
def test_neighbours_lie_side_by_side_in_shared_memory(name: str) -> None:
    """What the threads of a warp store of a reduction, and read of its parts, lies in one bank for two of them at most."""
    ((ast, _),) = steps(SHARED[name])
    program = instructions(ast)
    assert any(n.op is Op.DefineLocal for n in program)
    assert bank_conflicts(program) <= 2


@pytest.mark.long
def test_many_axes_are_ordered_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven axes have 5040 orders. Few of them are tried, and the first axes are those along memory."""
    strides = [16, 1, 1024, 4, 64, 256, 8]
    threads = [UOp.range(2, k, AxisType.Local, True) for k in range(7)]
    other = [UOp.range(2, 10 + k, AxisType.Global, True) for k in range(4)]
    at = UOp.const(0)
    for r, step in zip([*threads, *other], [*strides, 2, 32, 128, 512], strict=True):
        at = at + r * step
    ast = K.kernel(K.buffer(0, 2048).index(at).store(K.buffer(1, 2048).index(at)).end(*threads, *other))
    tried = 0
    cost = coalescing.cost

    def counted(*given: Any) -> int:
        nonlocal tried
        tried += 1
        return cost(*given)

    monkeypatch.setattr(coalescing, "cost", counted)
    chosen = [strides[threads.index(r)] for r in Launch.of(ast, CUDA).threads]
    assert tried < 50
    assert set(chosen[:2]) == {1, 4}
    block = coalescing._Block(threads, ast.toposort(), CUDA)
    assert cost([strides.index(s) for s in chosen], block.sizes, block.found) == min(
        cost(order, block.sizes, block.found) for order in itertools.permutations(range(7))
    )


def test_rows_that_memory_names_behind_a_gate() -> None:
    """Which row is read is not known where the gate of the row is."""
    gathered = f(50, 8, 16)[indices(37, 50) % 7 + 1].pad([(3, 1), (0, 0), (0, 0)])
    (kernel,) = gathered.permute(0, 2, 1).kernels(device="CUDA")
    assert "__global__" in kernel.code


def test_lengths_without_a_bound() -> None:
    n = UOp.var("n", dtypes.index)
    g, a, b = (
        UOp.range(n, 0, AxisType.Global, True),
        UOp.range(8, 1, AxisType.Local, True),
        UOp.range(4, 2, AxisType.Local, True),
    )
    at = (g * 4 + b) * 8 + a
    odd = (a * 5 + b).idiv(3) + g * 8
    ast = K.kernel(
        K.buffer(0, 99).index(at).store(K.buffer(1, 99).index(odd) + K.buffer(2, 99).index(n + b * 8 + a)).end(g, a, b)
    )
    assert Launch.of(ast, CUDA).threads == [a, b]


def test_equal_orders_keep_the_first() -> None:
    """Every process makes the same choice: of two orders that touch as much, the one along what is stored."""
    a, b = UOp.range(8, 0, AxisType.Local, True), UOp.range(8, 1, AxisType.Local, True)
    for first, second in ((a, b), (b, a)):
        at = first * 8 + second
        ast = K.kernel(K.buffer(0, 64).index(at).store(K.buffer(1, 64).index(at)).end(a, b))
        assert Launch.of(ast, CUDA).threads == [second, first]
