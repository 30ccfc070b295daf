"""Kernels for the runtime's tests; `tag` makes a program that no other test has compiled."""

from __future__ import annotations

from instruction_lists import Listing, c, i32

from morok.ir.dtype import dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

f32 = dtypes.f32


def affine(scale: float, offset: float, n: int = 16) -> list[UOp]:
    """out[i] = x[i] * scale + offset"""
    b = Listing()
    out, x = b.buffer(0, f32, n), b.buffer(1, f32, n)
    r = b.range(n // 4)
    v = f32.vec(4)
    b.store(out, r * 4, b.add(b.load(x, r * 4, v) * c(scale, v) + c(offset, v)))
    b.end(r)
    return b.list


def total(n: int = 16) -> list[UOp]:
    """out[0] = the sum of x and y"""
    b = Listing()
    out, x, y = (b.buffer(i, f32, n) for i in range(3))
    acc = b.reg(0, f32)
    b.store(acc, 0, c(0.0, f32))
    r = b.range(n, AxisType.Reduce)
    b.store(acc, 0, b.load(acc, 0) + (b.load(x, r) + b.load(y, r)))
    b.end(r)
    b.store(out, 0, b.load(acc, 0))
    return b.list


def filled(tag: float, n: int = 16) -> list[UOp]:
    """out[0..n] = value * tag, for the variable `value`; i32"""
    b = Listing()
    out, value = b.buffer(0, i32, n), b.var("value", i32, -1000, 1000)
    r = b.range(n)
    b.store(out, r, b.add(value * int(tag)))
    b.end(r)
    return b.list


def busy(n: int, tag: int) -> list[UOp]:
    """out[0] = a number that takes about n nanoseconds to compute"""
    b = Listing()
    out, seed, acc = b.buffer(0, dtypes.u32, 1), b.buffer(1, dtypes.u32, 1), b.reg(0, dtypes.u32)
    b.store(acc, 0, b.load(seed, 0))
    r = b.range(n, AxisType.Reduce)
    b.store(acc, 0, b.load(acc, 0) * c(1664525 + 2 * tag, dtypes.u32) + c(1013904223, dtypes.u32))
    b.end(r)
    b.store(out, 0, b.load(acc, 0))
    return b.list


def with_scratch(n: int = 40000) -> list[UOp]:
    """out[i] = x[i] + 1, by way of a local buffer that no stack holds"""
    b = Listing()
    out, x, local = b.buffer(0, f32, 8), b.buffer(1, f32, 8), b.local(0, f32, n)
    r = b.range(8)
    b.store(local, r * (n // 8), b.load(x, r))
    b.end(r)
    s = b.range(8)
    b.store(out, s, b.load(local, s * (n // 8)) + c(1.0, f32))
    b.end(s)
    return b.list


def unknown_op() -> list[UOp]:
    b = Listing()
    return [*b.list, UOp.new(Op.Unique, (), 1)]
