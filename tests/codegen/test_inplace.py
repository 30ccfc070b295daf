"""Inputs in whose memory a kernel's result may lie: which are found, and that nothing changes where it lies there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from instruction_lists import Listing

from morok import Tensor
from morok.codegen.inplace import overwritable
from morok.codegen.survey import survey
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device
from morok.runtime.memory import in_place
from morok.tensor import plans

f32 = dtypes.f32
ROW = 64
ROWS = 8


def turned(
    read: int = ROW, written: int = ROW, early: bool = False, axis: AxisType = AxisType.Loop, result: DType = f32
) -> list[UOp]:
    """Rows of a matrix with their vectors in the opposite order, a row kept in a local buffer meanwhile; row k is read from
    element `read` * k on and written from element `written` * k on. `early`: its vectors are also written while they are read."""
    b = Listing()
    out, x = b.buffer(0, result, ROWS * ROW), b.buffer(1, f32, ROWS * ROW)
    kept = b.local(0, f32, ROW)
    row = b.range(ROWS)
    k = b.range(ROW // 16)
    v = b.load(x, b.add(row * read + k * 16), f32.vec(16))
    b.store(kept, b.add(k * 16), v)
    if early:
        b.store(out, b.add(row * written + k * 16), b.add(v + v))
    b.end(k)
    j = b.range(ROW // 16, axis)
    w = b.load(kept, b.add(48 - j * 16), f32.vec(16))
    b.store(out, b.add(row * written + j * 16), w if result is f32 else b.add(w.cast(result.vec(16))))
    b.end(j)
    b.end(row)
    return b.list


def gated() -> list[UOp]:
    b = Listing()
    out, x = b.buffer(0, f32, ROWS), b.buffer(1, f32, ROWS)
    r = b.range(ROWS)
    b.store(out, r, b.load(x, r, f32, gate=b.add(r < 4)))
    b.end(r)
    return b.list


def total() -> list[UOp]:
    """Every element becomes the sum of the first and itself: the first is read after it was overwritten."""
    b = Listing()
    out, x = b.buffer(0, f32, ROWS), b.buffer(1, f32, ROWS)
    r = b.range(ROWS)
    b.store(out, r, b.add(b.load(x, 0, f32) + b.load(x, r, f32)))
    b.end(r)
    return b.list


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (turned(), {1}),
        (turned(axis=AxisType.Thread), set()),  # a thread would overwrite what another still reads
        (turned(early=True), set()),
        (turned(read=ROW - 16, written=ROW - 16), set()),  # rows overlap
        (turned(read=ROW - 16), set()),
        (turned(read=0, written=ROW), set()),
        (turned(result=dtypes.f64), set()),
        (gated(), set()),
        (total(), set()),
    ],
)
def test_inputs_that_are_read_before_they_are_overwritten(program: list[UOp], found: set[int]) -> None:
    assert overwritable(survey(program).accesses) == found


def test_a_result_in_the_memory_of_its_input() -> None:
    cpu = device("CPU")
    kernel = cpu.compile(turned(), "turned")
    x = np.arange(ROWS * ROW, dtype=np.float32)
    memory = Buffer(cpu, f32, x.size)
    memory.numpy()[:] = x
    kernel.launch([memory, memory])
    np.testing.assert_array_equal(memory.numpy(), x.reshape(ROWS, ROW // 16, 16)[:, ::-1].ravel())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.softmax(-1),
        lambda x: x.softmax(0),
        lambda x: x.layernorm(),
        lambda x: x / x.sum(-1, keepdim=True),
        lambda x: (x - x.mean()).relu(),
        lambda x: x.flip(0) + x,
        lambda x: x.cumsum(1),
        lambda x: x.T.contiguous(),
        lambda x: x + x.T,
    ],
)
@pytest.mark.parametrize("size", [48, 50])
def test_whatever_may_be_overwritten_gives_the_same(make: Callable[[Tensor], Tensor], size: int) -> None:
    x = np.random.default_rng(size).standard_normal((size, size), dtype=np.float32)
    for item in make(Tensor(x)).schedule():
        (kernel,) = plans.compiled([item.ast], item.buffers[0].device)
        before = [b.numpy().copy() for b in item.buffers]
        kernel.launch(item.buffers, item.fixedvars)
        expected = item.buffers[0].numpy().copy()
        for slot in kernel.rendered.overwritable:
            if item.buffers[slot].nbytes == item.buffers[0].nbytes:
                for b, old in zip(item.buffers[1:], before[1:], strict=True):
                    b.numpy()[:] = old
                kernel.launch([item.buffers[slot], *item.buffers[1:]], item.fixedvars)
                np.testing.assert_array_equal(item.buffers[slot].numpy(), expected)
        for b, old in zip(item.buffers[1:], before[1:], strict=True):
            b.numpy()[:] = old
        item.buffers[0].numpy()[:] = expected


def test_only_memory_that_nothing_needs_any_more_is_taken() -> None:
    sizes = {1: 64, 2: 64, 3: 64, 4: 32}
    chain = [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    all_of_them = [{1}] * 5
    assert in_place([[0], [1], [2], [3], [4]], chain, all_of_them, sizes) == {2: 1, 3: 1}
    assert in_place([[0], [1], [2], [3], [4]], chain, [{1}, {1}, set(), {1}, {1}], sizes) == {2: 1}
    # 1 is read again later, or at the same time
    assert in_place([[0], [1], [2]], [(1, 0), (2, 1), (3, 1)], [{1}] * 3, sizes) == {3: 1}
    assert in_place([[0], [1, 2]], [(1, 0), (2, 1), (3, 1)], [{1}] * 3, sizes) == {}
