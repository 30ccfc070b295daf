"""Ops without an LLVM instruction: transcendentals as calls of the C library, integer powers, the random number generator.

The pipeline decomposes transcendentals into arithmetic before code generation. The calls here compute lane by lane, in double,
and are the reference for the accuracy of that arithmetic.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.lane_arithmetic import Lanes
from morok.codegen.llvm.op_instructions import OPS, emits, in_double, lanes_of
from morok.ir.uop import UOp

# functions of C under the ops' names
LIBRARY: Final = ("exp2", "log2", "sin", "exp", "log", "cos", "tan", "tanh", "erf")


def _each_lane(function: str, first: Lanes, *others: Lanes) -> Lanes:
    """The results of a function of the C library for each lane."""
    b, operands = first.b, (first, *others)
    lanes = [[("double", b.extract("double", x.lanes, x.name, i)) for x in operands] for i in range(first.lanes)]
    return first.made(b.pack("double", [b.call(f"@{function}", "double", arguments) for arguments in lanes]))


def _library(function: str, b: Builder, u: UOp, x: str) -> str:
    return in_double(b, u.dtype, (x,), lambda x: _each_lane(function, x))


OPS.update({name: partial(_library, name) for name in LIBRARY})


@emits("rsqrt")
def rsqrt(b: Builder, u: UOp, x: str) -> str:
    return in_double(b, u.dtype, (x,), lambda x: x.constant("1.0") / x.intrinsic("sqrt"))


@emits("pow")
def power(b: Builder, u: UOp, x: str, y: str) -> str:
    d = u.dtype
    if d.is_float:
        return in_double(b, d, (x, y), lambda x, y: _each_lane("pow", x, y))
    square, exponent = lanes_of(b, d, x), lanes_of(b, d, y)
    result = square.constant(1)
    for i in range(d.bits - (1 if d.is_signed else 0)):  # square and multiply, modulo 2^bits
        result = result * (exponent & 1 << i).compare("ne", 0).select(square, 1)
        square = square * square
    return result.name


_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA


@emits("threefry")
def threefry(b: Builder, u: UOp, counter: str, key: str) -> str:
    """The result of Threefry-2x32 with 20 rounds (Salmon et al. 2011), on the halves of 64-bit words."""
    k0, k1 = _halves(lanes_of(b, u.dtype, key))
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = _halves(lanes_of(b, u.dtype, counter))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = x1.intrinsic("fshl", x1, r) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + keys[(i + 2) % 3] + (i + 1)
    low = x0.convert("zext", "i64")
    return (x1.convert("zext", "i64") << 32 | low).name


def _halves(x: Lanes) -> tuple[Lanes, Lanes]:
    """The lower and the upper 32 bits of 64-bit words."""
    high = x >> 32
    return x.convert("trunc", "i32"), high.convert("trunc", "i32")
