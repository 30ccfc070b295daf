"""The transcendental functions, as constant folding computes them, and the counter-based random generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from morok.ir.dtype import DType
from morok.ir.op import Op
from morok.ir.ops import exact

UNARY: Final[dict[Op, Callable[[DType, float], float]]] = {
    Op.Exp2: exact.exp2,
    Op.Log2: exact.log2,
    Op.Sin: exact.sin,
    Op.Exp: exact.exp,
    Op.Log: exact.log,
    Op.Cos: exact.cos,
    Op.Tan: exact.tan,
    Op.Tanh: exact.tanh,
    Op.Erf: exact.erf,
    Op.Rsqrt: exact.rsqrt,
}
power: Final = exact.power

# The largest error of a value, in units in the last place, for every target and every rule `within N ulp`.
TOLERANCE: Final[dict[Op, float]] = {
    Op.Exp2: 1.0,
    Op.Log2: 1.0,
    Op.Sin: 1.5,
    Op.Exp: 1.0,
    Op.Log: 1.0,
    Op.Cos: 1.5,
    Op.Tan: 4.0,
    Op.Tanh: 2.0,
    Op.Erf: 2.0,
    Op.Pow: 1.0,
    Op.Rsqrt: 1.5,  # machines round twice: the root, and the division by it
}

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_MASK: Final = 0xFFFFFFFF


def threefry(d: DType, counter: int, key: int) -> int:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011): the two halves of `counter` are mixed with those of `key`."""
    k0, k1 = key & _MASK, key >> 32
    ks = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x0, x1 = (counter & _MASK) + ks[0] & _MASK, (counter >> 32) + ks[1] & _MASK
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = (x0 + x1) & _MASK
            x1 = ((x1 << r | x1 >> (32 - r)) & _MASK) ^ x0
        x0 = (x0 + ks[(i + 1) % 3]) & _MASK
        x1 = (x1 + ks[(i + 2) % 3] + i + 1) & _MASK
    return x1 << 32 | x0
