"""Small kernels written as instruction lists, each for a feature of the renderers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from instruction_lists import Listing, c, i32, special
from values import edges, sample

from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

f32, bool_ = dtypes.f32, dtypes.bool


@dataclass
class Example:
    """A list, the initial contents of its buffers by slot, and values of its variables."""

    listing: Listing
    buffers: dict[int, tuple[DType, list[Any]]]
    variables: dict[str, Any] = field(default_factory=dict)


EXAMPLES: dict[str, Callable[[], Example]] = {}
GPU: dict[str, Callable[[], Example]] = {}


def example(f: Callable[[], Example]) -> Callable[[], Example]:
    EXAMPLES[f.__name__] = f
    return f


def gpu(f: Callable[[], Example]) -> Callable[[], Example]:
    GPU[f.__name__] = f
    return f


def small(n: int, seed: int = 0) -> list[float]:
    """Floats whose sums and products are exact."""
    return [float((i * 7 + seed * 13) % 17 - 8) for i in range(n)]


@example
def elementwise_with_wide_vectors() -> Example:
    b = Listing()
    out, x, y = (b.buffer(i, f32, 64) for i in range(3))
    r = b.range(8)
    v = f32.vec(8)
    b.store(out, r * 8, b.add((b.load(x, r * 8, v) * b.load(y, r * 8, v) + c(1.5, v)).max(c(0.0, v))))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 64), 1: (f32, small(64)), 2: (f32, small(64, 1))})


@example
def unaligned_vectors() -> Example:
    b = Listing()
    out, x = b.buffer(0, f32, 40), b.buffer(1, f32, 41)
    r = b.range(10)
    b.store(out, r * 4, b.load(x, r * 4 + 1, f32.vec(4)))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 40), 1: (f32, small(41))})


@example
def sum_in_a_register() -> Example:
    b = Listing()
    out, x, acc = b.buffer(0, f32, 1), b.buffer(1, f32, 50), b.reg(0, f32)
    b.store(acc, 0, c(0.0, f32))
    r = b.range(50, AxisType.Reduce)
    b.store(acc, 0, b.load(acc, 0) + b.load(x, r))
    b.end(r)
    b.store(out, 0, b.load(acc, 0))
    return Example(b, {0: (f32, [9.0]), 1: (f32, small(50))})


@example
def nested_reductions_restart() -> Example:
    """Per row the sum, and over all rows the greatest of the sums."""
    b = Listing()
    out, x = b.buffer(0, f32, 7), b.buffer(1, f32, 30)
    inner, outer = b.reg(0, f32), b.reg(1, f32)
    b.store(outer, 0, c(float("-inf"), f32))
    i = b.range(6)
    b.store(inner, 0, c(0.0, f32))
    j = b.range(5, AxisType.Reduce)
    b.store(inner, 0, b.load(inner, 0) + b.load(x, i * 5 + j))
    b.end(j)
    total = b.load(inner, 0)
    b.store(outer, 0, b.load(outer, 0).max(total))
    b.store(out, i, total)
    b.end(i)
    b.store(out, 6, b.load(outer, 0))
    return Example(b, {0: (f32, [0.0] * 7), 1: (f32, small(30))})


@example
def matmul_register_tile() -> Example:
    """8 x 8 by 8 x 8, two rows by one vector of four at a time, accumulators in one register of eight lanes."""
    b = Listing()
    out, x, y = (b.buffer(i, f32, 64) for i in range(3))
    acc = b.reg(0, f32, 8)
    v = f32.vec(4)
    i, j = b.range(4), b.range(2)
    for m in range(2):
        b.store(acc, 4 * m, c(0.0, v))
    k = b.range(8, AxisType.Reduce)
    row = b.load(y, k * 8 + j * 4, v)
    for m in range(2):
        one = b.load(x, (i * 2 + m) * 8 + k)
        b.store(acc, 4 * m, b.load(acc, 4 * m, v) + UOp.vectorize(*[one] * 4) * row)
    b.end(k)
    for m in range(2):
        b.store(out, (i * 2 + m) * 8 + j * 4, b.load(acc, 4 * m, v))
    b.end(j)
    b.end(i)
    return Example(b, {0: (f32, [0.0] * 64), 1: (f32, small(64)), 2: (f32, small(64, 3))})


@example
def register_of_vectors() -> Example:
    b = Listing()
    v = f32.vec(4)
    out, x, acc = b.buffer(0, f32, 4), b.buffer(1, f32, 32), b.reg(0, v)
    b.store(acc, 0, c(1.0, v))
    r = b.range(8, AxisType.Reduce)
    b.store(acc, 0, b.load(acc, 0, v) + b.load(x, r * 4, v))
    b.end(r)
    b.store(out, 0, b.load(acc, 0, v))
    return Example(b, {0: (f32, [0.0] * 4), 1: (f32, small(32))})


@example
def register_lanes_one_by_one_and_together() -> Example:
    b = Listing()
    out, x, acc = b.buffer(0, f32, 4), b.buffer(1, f32, 4), b.reg(0, f32, 4)
    for k in range(4):
        b.store(acc, k, b.load(x, 3 - k))
    b.store(acc, 0, b.load(acc, 0, f32.vec(2)) * c(2.0, f32.vec(2)))
    b.store(out, 0, b.load(acc, 0, f32.vec(4)))
    return Example(b, {0: (f32, [0.0] * 4), 1: (f32, small(4))})


@example
def register_at_a_computed_index() -> Example:
    b = Listing()
    out, x, acc = b.buffer(0, f32, 6), b.buffer(1, f32, 6), b.reg(0, f32, 6)
    r = b.range(6)
    b.store(acc, r, b.load(x, r) * c(3.0, f32))
    b.end(r)
    s = b.range(6)
    b.store(out, s, b.load(acc, c(5) - s))
    b.end(s)
    return Example(b, {0: (f32, [0.0] * 6), 1: (f32, small(6))})


@example
def packing_into_a_local_buffer() -> Example:
    b = Listing()
    out, x, panel = b.buffer(0, f32, 24), b.buffer(1, f32, 24), b.local(0, f32, 24)
    i = b.range(4)
    j = b.range(6)
    b.store(panel, j * 4 + i, b.load(x, i * 6 + j))
    b.end(j)
    b.end(i)
    r = b.range(6)
    b.store(out, r * 4, b.load(panel, r * 4, f32.vec(4)))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 24), 1: (f32, small(24))})


@example
def a_local_buffer_too_large_for_the_stack() -> Example:
    b = Listing()
    out, x = b.buffer(0, f32, 8), b.buffer(1, f32, 8)
    near, far = b.local(0, f32, 12000), b.local(1, f32, 12000)
    r = b.range(8)
    b.store(near, r * 1000, b.load(x, r))
    b.store(far, r * 1000 + 999, b.load(x, r) + c(1.0, f32))
    b.end(r)
    s = b.range(8)
    b.store(out, s, b.load(near, s * 1000) * b.load(far, s * 1000 + 999))
    b.end(s)
    return Example(b, {0: (f32, [0.0] * 8), 1: (f32, small(8))})


@example
def gated_loads_with_and_without_alternative() -> Example:
    b = Listing()
    out, x = b.buffer(0, f32, 24), b.buffer(1, f32, 5)
    r = b.range(8)
    inside = r < c(5)
    b.store(out, r, b.load(x, r, gate=inside))
    b.store(out, r + 8, b.load(x, r, gate=inside, alt=c(7.0, f32)))
    b.store(out, r + 16, b.load(x, r - 3, gate=r.ge(c(3)), alt=b.add(r.cast(f32))))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 24), 1: (f32, small(5))})


@example
def gated_vector_loads() -> Example:
    """A gate for all lanes, and one for each."""
    b = Listing()
    v = f32.vec(4)
    out, x = b.buffer(0, f32, 24), b.buffer(1, f32, 10)
    r = b.range(3)
    b.store(out, r * 4, b.load(x, r * 4, v, gate=r < c(2), alt=c(2.0, v)))
    lanes = b.add(UOp.vectorize(*[r * 4 + k for k in range(4)]))
    b.store(out, r * 4 + 12, b.load(x, lanes, v, gate=lanes < c(10, i32.vec(4)), alt=c(-1.0, v)))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 24), 1: (f32, small(10))})


@example
def gated_stores() -> Example:
    b = Listing()
    v = f32.vec(4)
    out = b.buffer(0, f32, 10)
    r = b.range(3)
    lanes = b.add(UOp.vectorize(*[r * 4 + k for k in range(4)]))
    b.store(out, lanes, b.add(lanes.cast(v)), gate=lanes < c(10, i32.vec(4)))
    b.store(out, r, c(50.0, f32), gate=r.eq(c(1)))
    b.end(r)
    return Example(b, {0: (f32, [-1.0] * 10)})


@example
def gather_and_scatter() -> Example:
    b = Listing()
    v = i32.vec(4)
    out, x, at = b.buffer(0, f32, 16), b.buffer(1, f32, 16), b.buffer(2, i32, 16)
    r = b.range(4)
    places = b.load(at, r * 4, v)
    some = places < c(12, v)
    got = b.load(x, places, f32.vec(4), gate=some, alt=c(99.0, f32.vec(4)))
    b.store(out, _descending(b, r), got)
    b.end(r)
    order = [(5 * i + 3) % 16 for i in range(16)]
    return Example(b, {0: (f32, [0.0] * 16), 1: (f32, small(16)), 2: (i32, order)})


def _descending(b: Listing, r: UOp) -> UOp:
    return b.add(UOp.vectorize(*[c(15) - (r * 4 + k) for k in range(4)]))


@example
def branches_change_registers() -> Example:
    """The sum of what is positive, and how many stores an IF lets through."""
    b = Listing()
    out, x, acc, count = b.buffer(0, f32, 12), b.buffer(1, f32, 10), b.reg(0, f32), b.reg(1, i32)
    b.store(acc, 0, c(0.0, f32))
    b.store(count, 0, c(0))
    r = b.range(10)
    value = b.load(x, r)
    branch = b.if_(c(0.0, f32) < value)
    b.store(acc, 0, b.load(acc, 0) + value)
    b.store(count, 0, b.load(count, 0) + 1)
    b.store(out, r + 2, value)
    b.endif(branch)
    b.end(r)
    b.store(out, 0, b.load(acc, 0))
    b.store(out, 1, b.add(b.load(count, 0).cast(f32)))
    return Example(b, {0: (f32, [-3.0] * 12), 1: (f32, small(10))})


@example
def loop_inside_a_branch() -> Example:
    b = Listing()
    out, x, acc = b.buffer(0, f32, 4), b.buffer(1, f32, 12), b.reg(0, f32)
    i = b.range(4)
    b.store(acc, 0, c(100.0, f32))
    branch = b.if_((i % 2).eq(c(0)))
    j = b.range(3)
    b.store(acc, 0, b.load(acc, 0) + b.load(x, i * 3 + j))
    b.end(j)
    b.endif(branch)
    b.store(out, i, b.load(acc, 0))
    b.end(i)
    return Example(b, {0: (f32, [0.0] * 4), 1: (f32, small(12))})


def _variable_end(n: int) -> Example:
    b = Listing()
    out, x, acc = b.buffer(0, f32, 2), b.buffer(1, f32, 9), b.reg(0, f32)
    end = b.var("n", i32, 0, 9)
    b.store(acc, 0, c(5.0, f32))
    r = b.range(end, AxisType.Reduce)
    b.store(acc, 0, b.load(acc, 0) + b.load(x, r))
    b.end(r)
    b.store(out, 0, b.load(acc, 0))
    s = b.range(end)
    b.store(out, 1, b.load(x, s))
    b.end(s)
    return Example(b, {0: (f32, [0.0, -1.0]), 1: (f32, small(9))}, {"n": n})


@example
def loop_that_runs_never() -> Example:
    return _variable_end(0)


@example
def loop_of_variable_length() -> Example:
    return _variable_end(7)


@example
def variables_of_several_types() -> Example:
    b = Listing()
    out = b.buffer(0, dtypes.i64, 3)
    p, q, s = b.var("p", dtypes.i64), b.var("q", dtypes.i32, -9, 9), b.var("s", dtypes.u8)
    for k, v in enumerate((p, q, s)):
        b.store(out, k, b.add(v.cast(dtypes.i64) + 1))
    return Example(b, {0: (dtypes.i64, [0] * 3)}, {"p": -(1 << 40), "q": -7, "s": 200})


@example
def one_condition_for_all_lanes() -> Example:
    b = Listing()
    v = f32.vec(4)
    out, x = b.buffer(0, f32, 16), b.buffer(1, f32, 16)
    r = b.range(4)
    row = b.load(x, r * 4, v)
    b.store(out, r * 4, b.add((r % 2).eq(c(0)).where(row, -row)))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 16), 1: (f32, small(16))})


@example
def lanes_shuffled() -> Example:
    b = Listing()
    v = f32.vec(4)
    out, x = b.buffer(0, f32, 28), b.buffer(1, f32, 8)
    low, high = b.load(x, 0, v), b.load(x, 4, v)
    b.store(out, 0, b.add(low.gep(3, 2, 1, 0)))
    b.store(out, 4, b.add(UOp.vectorize(*[low.gep(k) for k in (0, 2)], *[high.gep(k) for k in (1, 3)])))
    b.store(out, 8, b.add(UOp.vectorize(low.gep(1), high.gep(2), low.gep(1) + high.gep(0), c(4.0, f32))))
    b.store(out, 12, b.add(UOp.new(Op.Cat, (low, high))))
    b.store(out, 20, b.add(UOp.vectorize(*[low.gep(k) for k in range(4)])))
    b.store(out, 24, b.add(low.gep(2, 2)))
    b.store(out, 26, b.add(low.gep(0, 3) * UOp.vectorize(high.gep(0), high.gep(0))))
    return Example(b, {0: (f32, [0.0] * 28), 1: (f32, small(8))})


@example
def constants_by_lane() -> Example:
    b = Listing()
    out = b.buffer(0, f32, 8)
    b.store(out, 0, b.add(UOp.const([0.5, -0.0, float("inf"), 3.0], f32)))
    b.store(out, 4, b.add(UOp.const([1, 2, -3, 4], i32).cast(f32.vec(4))))
    return Example(b, {0: (f32, [0.0] * 8)})


@example
def bools_are_bytes() -> Example:
    b = Listing()
    v = f32.vec(4)
    out, x, kept = b.buffer(0, bool_, 16), b.buffer(1, f32, 16), b.buffer(2, bool_, 16)
    r = b.range(4)
    positive = c(0.0, v) < b.load(x, r * 4, v)
    b.store(out, r * 4, b.add(positive & b.load(kept, r * 4, bool_.vec(4))))
    b.end(r)
    return Example(b, {0: (bool_, [False] * 16), 1: (f32, small(16)), 2: (bool_, sample(bool_, 16, 3))})


@example
def bool_accumulator() -> Example:
    b = Listing()
    out, x, acc = b.buffer(0, bool_, 1), b.buffer(1, f32, 9), b.reg(0, bool_)
    b.store(acc, 0, c(False, bool_))
    r = b.range(9, AxisType.Reduce)
    b.store(acc, 0, b.load(acc, 0) | (c(7.0, f32) < b.load(x, r)))
    b.end(r)
    b.store(out, 0, b.load(acc, 0))
    return Example(b, {0: (bool_, [False]), 1: (f32, small(9))})


def _narrow_floats(d: DType) -> Example:
    b = Listing()
    v = d.vec(4)
    values = [x for x in edges(d) if x == x][:32]
    out, x = b.buffer(0, d, 32), b.buffer(1, d, 32)
    r = b.range(8)
    row = b.load(x, r * 4, v)
    b.store(out, r * 4, b.add((row * c(1.25, v) + row).max(c(0.0, v))))
    b.end(r)
    return Example(b, {0: (d, [0.0] * 32), 1: (d, values)})


@example
def half_vectors() -> Example:
    return _narrow_floats(dtypes.f16)


@example
def bfloat_vectors() -> Example:
    return _narrow_floats(dtypes.bf16)


@example
def integer_division_that_must_not_trap() -> Example:
    """Divisors of 0 and -1 under INT_MIN in branches that a Where does not choose."""
    b = Listing()
    n = 12
    out, x, y = b.buffer(0, i32, n), b.buffer(1, i32, n), b.buffer(2, i32, n)
    r = b.range(n)
    p, q = b.load(x, r), b.load(y, r)
    safe = q.ne(c(0)) & ~(p.eq(c(-(2**31))) & q.eq(c(-1)))
    b.store(out, r, b.add(safe.where(p // q, c(77))))
    b.end(r)
    left = [7, -7, 7, -7, -(2**31), -(2**31), 2**31 - 1, 0, 5, -(2**31), 9, 1]
    right = [2, 2, -2, -2, -1, 0, -1, 0, 0, 1, 4, -1]
    return Example(b, {0: (i32, [0] * n), 1: (i32, left), 2: (i32, right)})


@example
def offsets_in_64_bits() -> Example:
    b = Listing()
    i64 = dtypes.i64
    out, x = b.buffer(0, f32, 6), b.buffer(1, f32, 6)
    r = b.range(UOp.const(6, i64))
    b.store(out, c(5, i64) - r, b.load(x, r))
    b.end(r)
    return Example(b, {0: (f32, [0.0] * 6), 1: (f32, small(6))})


@gpu
def blocks_and_threads() -> Example:
    b = Listing()
    out, x = b.buffer(0, f32, 48), b.buffer(1, f32, 48)
    g, t = b.add(special("gidx0", 3)), b.add(special("lidx0", 4))
    at = (g * 4 + t) * 4
    b.store(out, at, b.load(x, at, f32.vec(4)) * c(2.0, f32.vec(4)))
    return Example(b, {0: (f32, [0.0] * 48), 1: (f32, small(48))})


@gpu
def reversal_through_shared_memory() -> Example:
    b = Listing()
    out, x, shared = b.buffer(0, f32, 32), b.buffer(1, f32, 32), b.local(0, f32, 8)
    g, t = b.add(special("gidx0", 4)), b.add(special("lidx0", 8))
    done = b.store(shared, t, b.load(x, g * 8 + t))
    barrier = b.add(UOp.new(Op.Barrier, (done,)))
    place = shared.after(barrier).index(c(7) - t)
    b.store(out, g * 8 + t, b.add(UOp.new(Op.Load, (place,))))
    return Example(b, {0: (f32, [0.0] * 32), 1: (f32, small(32))})


@gpu
def block_sum_by_a_tree() -> Example:
    b = Listing()
    out, x, shared = b.buffer(0, f32, 3), b.buffer(1, f32, 48), b.local(0, f32, 16)
    g, t = b.add(special("gidx1", 3)), b.add(special("lidx0", 16))
    last = b.store(shared, t, b.load(x, g * 16 + t))
    for step in (8, 4, 2, 1):
        barrier = b.add(UOp.new(Op.Barrier, (last,)))
        kept = shared.after(barrier)
        branch = b.if_(t < c(step))
        total = b.add(UOp.new(Op.Load, (kept.index(t),)) + UOp.new(Op.Load, (kept.index(t + step),)))
        last = b.add(kept.after(branch).index(t).store(total))
        b.endif(branch)
    final = b.if_(t.eq(c(0)))
    b.store(out, g, b.add(UOp.new(Op.Load, (shared.after(last, final).index(c(0)),))))
    b.endif(final)
    return Example(b, {0: (f32, [0.0] * 3), 1: (f32, small(48))})
