"""The transcendental functions, as constant folding computes them, and the counter-based random generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from morok.ir.dtype import DType
from morok.ir.number import NAN, round_float
from morok.ir.op import Op


def _total(f: Callable[[float], float]) -> Callable[[DType, float], float]:
    """`f` with IEEE results where Python raises: NaN outside its domain, infinity on overflow."""

    def evaluate(d: DType, a: float) -> float:
        if a != a:
            return NAN
        try:
            v = f(a)
        except ValueError:
            return NAN
        except OverflowError:
            return math.inf
        return round_float(d, v)

    return evaluate


def _log(f: Callable[[float], float]) -> Callable[[DType, float], float]:
    total = _total(f)
    return lambda d, a: -math.inf if a == 0 else total(d, a)


def _rsqrt(a: float) -> float:
    return math.inf if a == 0 else 1.0 / math.sqrt(a)


UNARY: Final[dict[Op, Callable[[DType, float], float]]] = {
    Op.Exp2: _total(math.exp2),
    Op.Log2: _log(math.log2),
    Op.Sin: _total(math.sin),
    Op.Exp: _total(math.exp),
    Op.Log: _log(math.log),
    Op.Cos: _total(math.cos),
    Op.Tan: _total(math.tan),
    Op.Tanh: _total(math.tanh),
    Op.Erf: _total(math.erf),
    Op.Rsqrt: _total(_rsqrt),
}


def power(d: DType, a: float, b: float) -> float:
    try:
        return round_float(d, math.pow(a, b))
    except ValueError:  # a negative base with a fractional exponent, or 0 to a negative one
        if a == 0:
            odd = float(b).is_integer() and int(b) % 2 == 1
            return math.copysign(math.inf, a) if odd else math.inf
        return NAN
    except OverflowError:
        odd = float(b).is_integer() and int(b) % 2 == 1
        return -math.inf if a < 0 and odd else math.inf


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
