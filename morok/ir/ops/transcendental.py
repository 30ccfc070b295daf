"""The transcendental functions, as constant folding computes them, and the counter-based random generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

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
W = TypeVar("W", bound=Any)


def threefry_words(
    counter: tuple[W, W], key: tuple[W, W], number: Callable[[int], W], rotate: Callable[[W, int], W]
) -> tuple[W, W]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011): the two words of `counter`, mixed with those of `key`.

    Words are numbers modulo 2^32, the low one first; `rotate` moves the bits of a word to the left, around its end.
    """
    keys = (*key, key[0] ^ key[1] ^ number(0x1BD11BDA))
    x0, x1 = counter[0] + keys[0], counter[1] + keys[1]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = rotate(x1, r) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + keys[(i + 2) % 3] + number(i + 1)
    return x0, x1


def _rotated(x: int, r: int) -> int:
    x &= _MASK
    return (x << r | x >> (32 - r)) & _MASK


def threefry(d: DType, counter: int, key: int) -> int:
    """The words of `counter` mixed with those of `key`, as `threefry_words` mixes them."""
    x0, x1 = threefry_words((counter & _MASK, counter >> 32), (key & _MASK, key >> 32), int, _rotated)
    return (x1 & _MASK) << 32 | x0 & _MASK
