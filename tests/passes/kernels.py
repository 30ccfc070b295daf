"""Kernel programs, built by hand as the scheduler builds them: one flat index per Index, ranges with ids from 0."""

from __future__ import annotations

from morok.codegen.machines import TRANSCENDENTAL
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.passes.target import KernelInfo, Target

CPU = Target("LLVM", vector_bytes=64, memory_bytes=64, registers=32)
AVX2 = Target("LLVM", vector_bytes=32, memory_bytes=32, registers=16)
AVX2_WITHOUT = Target("LLVM", vector_bytes=32, memory_bytes=32, registers=16, unsupported=TRANSCENDENTAL)
GPU = Target(
    "CUDA", memory_bytes=16, registers=255, has_local=True, grid_max=(2**31 - 1, 65535, 65535), block_max=(1024, 1024, 64),
    block_threads=1024, local_bytes=48 * 1024,
)  # fmt: skip
SCALAR = Target("LLVM", vector_bytes=0, memory_bytes=8)


def buffer(slot: int, size: int, d: DType = dtypes.f32) -> UOp:
    return UOp.new(Op.DefineGlobal, (), slot, d.ptr(size))


def loop(n: UOp | int, id: int) -> UOp:
    return UOp.range(n, id, AxisType.Loop, True)


def fold(n: UOp | int, id: int) -> UOp:
    return UOp.range(n, id, AxisType.Reduce, True)


def kernel(*statements: UOp, name: str = "k") -> UOp:
    return UOp.sink(*statements, info=KernelInfo(name))


def flat(ranges: list[UOp], sizes: list[int]) -> UOp:
    out = ranges[0]
    for r, n in zip(ranges[1:], sizes[1:], strict=True):
        out = out * n + r
    return out


def elementwise(n: int, d: DType = dtypes.f32) -> UOp:
    """out[i] = max(a[i] * b[i] + c[i], 0) * 2 - a[i]"""
    r = loop(n, 0)
    a, b, c = (buffer(i, n, d).index(r) for i in (1, 2, 3))
    value = (a * b + c).max(a.like(0)) * a.like(2) - a
    return kernel(buffer(0, n, d).index(r).store(value).end(r), name="elementwise")


def total(n: int, op: Op = Op.Add, d: DType = dtypes.f32) -> UOp:
    r = fold(n, 0)
    return kernel(buffer(0, 1, d).index(0).store(buffer(1, n, d).index(r).reduce(op, r)), name="total")


def rows(m: int, n: int, op: Op = Op.Add, d: DType = dtypes.f32) -> UOp:
    i, k = loop(m, 0), fold(n, 1)
    return kernel(
        buffer(0, m, d).index(i).store(buffer(1, m * n, d).index(i * n + k).reduce(op, k)).end(i), name="rows"
    )


def columns(m: int, n: int, op: Op = Op.Add, d: DType = dtypes.f32) -> UOp:
    j, k = loop(n, 0), fold(m, 1)
    return kernel(
        buffer(0, n, d).index(j).store(buffer(1, m * n, d).index(k * n + j).reduce(op, k)).end(j), name="columns"
    )


def scaled_rows(m: int, n: int, d: DType = dtypes.f32) -> UOp:
    """The sums of rows less a number of each, times another."""
    i, k = loop(m, 0), fold(n, 1)
    value = (buffer(1, m * n, d).index(i * n + k) - buffer(2, m, d).index(i)) * buffer(3, m, d).index(i)
    return kernel(buffer(0, m, d).index(i).store(value.reduce(Op.Add, k)).end(i), name="scaled_rows")


def pooled(m: int, n: int, chain: bool, d: DType = dtypes.f32) -> UOp:
    """The sums of 2 x 2 windows of [2 m, 2 n], of their squares if there is a chain."""
    i, j, a, b = loop(m, 0), loop(n, 1), fold(2, 2), fold(2, 3)
    x = buffer(1, 4 * m * n, d).index((i * 2 + a) * (2 * n) + j * 2 + b)
    return kernel(
        buffer(0, m * n, d).index(i * n + j).store((x * x if chain else x).reduce(Op.Add, a, b)).end(i, j),
        name="pooled",
    )


def matmul(m: int, k: int, n: int, d: DType = dtypes.f32) -> UOp:
    i, j, r = loop(m, 0), loop(n, 1), fold(k, 2)
    product = buffer(1, m * k, d).index(i * k + r) * buffer(2, k * n, d).index(r * n + j)
    return kernel(buffer(0, m * n, d).index(i * n + j).store(product.reduce(Op.Add, r)).end(i, j), name="matmul")


def matmul_transposed(m: int, k: int, n: int, d: DType = dtypes.f32) -> UOp:
    """a[m, k] @ b[n, k].T"""
    i, j, r = loop(m, 0), loop(n, 1), fold(k, 2)
    product = buffer(1, m * k, d).index(i * k + r) * buffer(2, k * n, d).index(j * k + r)
    return kernel(buffer(0, m * n, d).index(i * n + j).store(product.reduce(Op.Add, r)).end(i, j), name="matmul_t")


def matmul_turned(m: int, k: int, n: int, d: DType = dtypes.f32) -> UOp:
    """a[k, m].T @ b[k, n]"""
    i, j, r = loop(m, 0), loop(n, 1), fold(k, 2)
    product = buffer(1, m * k, d).index(r * m + i) * buffer(2, k * n, d).index(r * n + j)
    return kernel(buffer(0, m * n, d).index(i * n + j).store(product.reduce(Op.Add, r)).end(i, j), name="matmul_turned")


def pad(n: int, left: int, right: int, d: DType = dtypes.f32) -> UOp:
    size = n + left + right
    r = loop(size, 0)
    at = r - left
    valid = at.ge(0) & at.lt(n)
    value = buffer(1, n, d).index(valid.where(at, UOp.invalid_at()))
    return kernel(buffer(0, size, d).index(r).store(value).end(r), name="pad")


def flip(n: int, d: DType = dtypes.f32) -> UOp:
    r = loop(n, 0)
    return kernel(buffer(0, n, d).index(r).store(buffer(1, n, d).index(r * -1 + (n - 1))).end(r), name="flip")


def transpose(m: int, n: int, d: DType = dtypes.f32) -> UOp:
    i, j = loop(n, 0), loop(m, 1)
    return kernel(
        buffer(0, m * n, d).index(i * m + j).store(buffer(1, m * n, d).index(j * n + i)).end(i, j), name="transpose"
    )


def scan(m: int, n: int, op: Op = Op.Add, d: DType = dtypes.f32, whole: bool = True, down: bool = False) -> UOp:
    """In each of m rows (`down`: columns) of n elements the fold of those up to each, with it if `whole`."""
    i, k, j = loop(m, 0), loop(n, 1), fold(n, 2)
    row, step = (1, m) if down else (n, 1)
    counted = j.le(k) if whole else j.lt(k)
    value = counted.where(buffer(1, m * n, d).index(i * row + j * step), UOp.const(identity(op, d), d)).reduce(op, j)
    return kernel(buffer(0, m * n, d).index(i * row + k * step).store(value).end(i, k), name="scan")


def spread(m: int, n: int, d: DType = dtypes.f32) -> UOp:
    """a[m, n] - b[m] for every column: rows minus one number each."""
    i, j = loop(m, 0), loop(n, 1)
    value = buffer(1, m * n, d).index(i * n + j) - buffer(2, m, d).index(i)
    return kernel(buffer(0, m * n, d).index(i * n + j).store(value).end(i, j), name="spread")


def normalize(m: int, n: int, d: DType = dtypes.f32) -> UOp:
    """a[i, j] - max of row i, with the maximum found in the same kernel."""
    i, j, k = loop(m, 0), loop(n, 1), fold(n, 2)
    a = buffer(1, m * n, d)
    value = a.index(i * n + j) - a.index(i * n + k).reduce(Op.Max, k)
    return kernel(buffer(0, m * n, d).index(i * n + j).store(value).end(i, j), name="normalize")


def gather(n: int, m: int, d: DType = dtypes.f32) -> UOp:
    """out[i] = a[clamp(b[i])]"""
    r = loop(n, 0)
    at = buffer(2, n, dtypes.i32).index(r).max(UOp.const(0, dtypes.i32)).min(UOp.const(m - 1, dtypes.i32))
    return kernel(buffer(0, n, d).index(r).store(buffer(1, m, d).index(at.cast(dtypes.index))).end(r), name="gather")


def positions(n: int, d: DType = dtypes.f32) -> UOp:
    """out[i] = i * 3 + 1"""
    r = loop(n, 0)
    return kernel(buffer(0, n, d).index(r).store((r * 3 + 1).cast(d)).end(r), name="positions")


def divide(n: int, d: DType = dtypes.i32) -> UOp:
    """out[i] = b[i] == 0 ? 0 : a[i] / b[i]"""
    r = loop(n, 0)
    a, b = buffer(1, n, d).index(r), buffer(2, n, d).index(r)
    bad = b.eq(0) | (b.eq(-1) & a.eq(d.min)) if d.is_signed else b.eq(0)
    return kernel(buffer(0, n, d).index(r).store(bad.where(a.like(0), a.idiv(b))).end(r), name="divide")
