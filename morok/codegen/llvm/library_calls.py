"""Ops without an LLVM instruction: transcendentals as calls of the C library, integer powers, the random number generator.

The pipeline decomposes transcendentals into arithmetic before code generation. The calls here compute lane by lane, in double,
and are the reference for the accuracy of that arithmetic.
"""

from __future__ import annotations

from typing import Final

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.op_instructions import emits, in_double
from morok.codegen.llvm.types import type_of, vector
from morok.ir.uop import UOp

LIBRARY: Final = {
    "exp2": "exp2", "log2": "log2", "sin": "sin", "exp": "exp", "log": "log", "cos": "cos", "tan": "tan", "tanh": "tanh",
    "erf": "erf",
}  # fmt: skip


def _each_lane(b: Builder, function: str, n: int, *operands: str) -> str:
    lanes = [[("double", b.extract("double", n, x, i)) for x in operands] for i in range(n)]
    return b.pack("double", [b.call(f"@{function}", "double", arguments) for arguments in lanes])


def _library(name: str, function: str) -> None:
    @emits(name)
    def emit(b: Builder, u: UOp, x: str) -> str:
        return in_double(b, u.dtype, (x,), lambda b, n, x: _each_lane(b, function, n, x))


for _name, _function in LIBRARY.items():
    _library(_name, _function)


@emits("rsqrt")
def rsqrt(b: Builder, u: UOp, x: str) -> str:
    def compute(b: Builder, n: int, x: str) -> str:
        return b.binary("fdiv", "double", n, b.const("double", n, "1.0"), b.intrinsic("sqrt", "double", n, x))

    return in_double(b, u.dtype, (x,), compute)


@emits("pow")
def power(b: Builder, u: UOp, x: str, y: str) -> str:
    d = u.dtype
    if d.is_float:
        return in_double(b, d, (x, y), lambda b, n, x, y: _each_lane(b, "pow", n, x, y))
    base, n = type_of(d.scalar()), d.count
    one = b.const(base, n, 1)
    result = one
    for i in range(d.bits - (1 if d.is_signed else 0)):  # square and multiply, modulo 2^bits
        bit = b.binary("and", base, n, y, b.const(base, n, 1 << i))
        factor = b.select(b.compare("ne", base, n, bit, b.const(base, n, 0)), base, n, x, one)
        result = b.binary("mul", base, n, result, factor)
        x = b.binary("mul", base, n, x, x)
    return result


_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA


@emits("threefry")
def threefry(b: Builder, u: UOp, counter: str, key: str) -> str:
    """The result of Threefry-2x32 with 20 rounds (Salmon et al. 2011), on the halves of 64-bit words."""
    n = u.dtype.count

    def halves(x: str) -> tuple[str, str]:
        high = b.binary("lshr", "i64", n, x, b.const("i64", n, 32))
        return b.convert("trunc", "i64", "i32", n, x), b.convert("trunc", "i64", "i32", n, high)

    def add(x: str, y: str | int) -> str:
        return b.binary("add", "i32", n, x, b.const("i32", n, y) if isinstance(y, int) else y)

    def xor(x: str, y: str) -> str:
        return b.binary("xor", "i32", n, x, y)

    t = vector("i32", n)
    k0, k1 = halves(key)
    keys = (k0, k1, xor(xor(k0, k1), b.const("i32", n, _PARITY)))
    x0, x1 = halves(counter)
    x0, x1 = add(x0, k0), add(x1, k1)
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = add(x0, x1)
            amount = b.const("i32", n, r)
            rotated = b.intrinsic("fshl", "i32", n, x1, x1, amount)
            x1 = xor(rotated, x0)
        x0 = add(x0, keys[(i + 1) % 3])
        x1 = add(add(x1, keys[(i + 2) % 3]), i + 1)
    low = b.emit(f"zext {t} {x0} to {vector('i64', n)}")
    high = b.binary("shl", "i64", n, b.emit(f"zext {t} {x1} to {vector('i64', n)}"), b.const("i64", n, 32))
    return b.binary("or", "i64", n, high, low)
