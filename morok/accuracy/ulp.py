"""Errors of computed values in units in the last place (ulp): operands to measure, exact values, errors.

An ulp of a value is the spacing of floats in its binade: 2^(e - p + 1) for 2^e <= |value| < 2^(e+1) at a precision of p bits, and
at least the least subnormal float. If the exact value rounds to an infinity or NaN, or is a zero, the computed value must equal
it, with the sign of a zero; otherwise the error is infinite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from morok.ir.dtype import DType, dtypes
from morok.ir.op import TABLE, Op
from morok.ir.ops import exact

Array = np.ndarray[Any, Any]

CHUNK: Final = 1 << 16  # operands for each launch of a kernel
STRIDE: Final = 4093  # prime, so that the low bits of the sampled f32 operands vary
CENTRAL: Final = 401  # stride for |x| in [2^-6, 2^9), the operands of most programs
DOUBLES: Final = 2048  # sampled operands of f64, whose exact values are computed in Python
MORE_DOUBLES: Final = 1 << 16  # further operands of f64 with --all
PAIRS: Final = 1 << 20  # sampled pairs of operands
FAR: Final = 1 << 20  # ulp: above it the distance from the rounded exact value is precise enough
_SEED: Final = 20240229

BITS: Final = {dtypes.f16: np.uint16, dtypes.bf16: np.uint16, dtypes.f32: np.uint32, dtypes.f64: np.uint64}
KINDS: Final = {dtypes.f16: np.float16, dtypes.f32: np.float32, dtypes.f64: np.float64}
FRACTION: Final = {dtypes.f16: 10, dtypes.bf16: 7, dtypes.f32: 23, dtypes.f64: 52}
BIAS: Final = {dtypes.f16: 15, dtypes.bf16: 127, dtypes.f32: 127, dtypes.f64: 1023}


def widened(d: DType, bits: Array) -> Array:
    """The floats of these bit patterns, exactly, as doubles; every NaN as one quiet NaN, since a signalling one would trap."""
    with np.errstate(invalid="ignore"):
        narrow = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32) if d is dtypes.bf16 else stored(d, bits)
        wide = narrow.astype(np.float64)
    return np.where(np.isnan(wide), np.nan, wide)


def stored(d: DType, bits: Array) -> Array:
    """These bit patterns as an array of NumPy's dtype for `d`; bf16 as its bits."""
    return bits if d is dtypes.bf16 else bits.view(KINDS[d])


def keys(d: DType, bits: Array) -> Array:
    """These bit patterns as numbers that ascend with their floats; NaN stands outside the infinities."""
    sign = BITS[d](1 << (d.bits - 1))
    return np.where(bits & sign, ~bits, bits | sign)


def of_keys(d: DType, numbers: Array) -> Array:
    """The bit patterns whose keys() these are."""
    sign = BITS[d](1 << (d.bits - 1))
    return np.where(numbers & sign, numbers ^ sign, ~numbers)


def patterns(d: DType, values: Any) -> Array:
    """The bit patterns of these doubles, rounded to `d` (towards zero for bf16)."""
    with np.errstate(over="ignore", invalid="ignore"):
        if d is dtypes.bf16:
            return (np.asarray(values, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return np.asarray(values, np.float64).astype(KINDS[d]).view(BITS[d])


def special(d: DType) -> Array:
    """The bit patterns of edge cases: zeros, infinities, NaN, the ends of subnormal and normal numbers, small integers and
    halves, the logarithms of the largest and the least results, multiples of pi / 2; with adjacent floats and negatives.
    """
    f, b = FRACTION[d], BIAS[d]
    ends = [
        0,
        1,
        (1 << f) - 1,
        1 << f,
        ((2 * b) << f) | ((1 << f) - 1),
        (2 * b + 1) << f,
        (2 * b + 1) << f | 1 << (f - 1),
    ]
    values = [k / 2 for k in range(1, 33)] + [k * math.pi / 2 for k in range(1, 33)]
    for e in (b, b + 1, 1 - b, 1 - b - f, -b - f, -b - f - 1):
        values += [abs(e), abs(e) * math.log(2)]
    ends += patterns(d, values).tolist()
    return _around(d, ends, 1)


def _around(d: DType, ends: Iterable[int], steps: int) -> Array:
    """The bit patterns of these floats that have no sign, of those up to so many floats away, and of their negatives."""
    sign = 1 << (d.bits - 1)
    near = {e + i for e in ends for i in range(-steps, steps + 1) if 0 <= e + i < sign}
    return np.array(sorted(near | {e | sign for e in near}), BITS[d])


def of_numbers(d: DType, numbers: Iterable[int | float], steps: int) -> Array:
    """The bit patterns of numbers, of their negatives and of the floats beside them; an integer may be bits, too."""
    ends: set[int] = set()
    for n in numbers:
        if isinstance(n, int):
            ends.add(n % (1 << (d.bits - 1)))
        if not isinstance(n, int) or n.bit_length() < BIAS[dtypes.f64]:
            ends.add(int(patterns(d, abs(float(n)))))
    return _around(d, ends, steps)


def sample(d: DType) -> Iterator[Array]:
    """The fixed sample of bit patterns of `d`, in chunks: all of them for 16 bits; for f32 every STRIDE-th, and every CENTRAL-th
    in the middle of the range; for f64 a seeded draw; for both the special ones too.
    """
    parts: list[Array]
    if d.bits == 16:
        parts = [np.arange(1 << 16, dtype=np.uint16)]
    elif d is dtypes.f32:
        middle = np.arange((127 - 6) << 23, (127 + 9) << 23, CENTRAL, dtype=np.uint32)
        parts = [
            special(d),
            np.arange(0, 1 << 32, STRIDE, dtype=np.uint64).astype(np.uint32),
            middle,
            middle | np.uint32(1 << 31),
        ]
    else:
        parts = [special(d), *_drawn(np.random.default_rng(_SEED), DOUBLES)]
    whole = np.concatenate(parts)
    for at in range(0, len(whole), CHUNK):
        yield whole[at : at + CHUNK]


def _drawn(draw: np.random.Generator, n: int) -> Iterator[Array]:
    """`n` random bit patterns of f64: a quarter of them over all floats, a quarter in each of three ranges."""
    yield draw.integers(0, 1 << 64, n // 4, dtype=np.uint64)
    for bound in (1.0, 40.0, 1100.0):
        yield draw.uniform(-bound, bound, n // 4).view(np.uint64)


def everything(d: DType) -> Iterator[Array]:
    """Every bit pattern of `d`, in chunks; for f64 the sample and MORE_DOUBLES others."""
    if d.bits == 64:
        yield from sample(d)
        yield from _drawn(np.random.default_rng(_SEED + 1), MORE_DOUBLES)
        return
    for at in range(0, 1 << d.bits, CHUNK):
        yield np.arange(at, at + CHUNK, dtype=np.uint64).astype(BITS[d])


def _pairs(d: DType) -> Iterator[tuple[Array, Array]]:
    """The fixed sample of pairs, for pow: bases over all positive floats and near 1, exponents that keep most results in range;
    and all pairs of some special operands.
    """
    few = special(d)[:: len(special(d)) // 200]
    first, second = np.meshgrid(few, few)
    yield first.ravel(), second.ravel()
    draw = np.random.default_rng(_SEED)
    left = DOUBLES if d is dtypes.f64 else PAIRS if d is dtypes.f32 else PAIRS // 4
    one, infinity = (int(patterns(d, v)) for v in (1.0, math.inf))
    while left > 0:
        n = min(left, CHUNK)
        left -= n
        spread = draw.integers(0, infinity, n, dtype=np.uint64)
        close = (one + draw.integers(-(1 << FRACTION[d]), 1 << FRACTION[d], n)).astype(np.uint64)
        base = np.where(draw.random(n) < 0.5, spread, close).astype(BITS[d])
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.abs(np.log2(widened(d, base))) + 1e-9
        yield base, patterns(d, draw.uniform(-1.1, 1.1, n) * BIAS[d] / size)


def pairs(d: DType) -> Iterator[tuple[Array, Array]]:
    """The fixed sample of pairs of bit patterns, in chunks: see _pairs()."""
    for first, second in _pairs(d):
        for at in range(0, len(first), CHUNK):
            yield first[at : at + CHUNK], second[at : at + CHUNK]


def pairs_of_numbers(d: DType, numbers: Iterable[int | float]) -> tuple[Array, Array]:
    """Pairs of bit patterns with one of numbers in each, with one another and with special operands: a seeded draw of them."""
    own, others = of_numbers(d, numbers, 0), special(d)
    both = np.concatenate([own, others[:: max(1, len(others) // 40)]])
    first, second = np.repeat(own, len(both)), np.tile(both, len(own))
    chosen = np.random.default_rng(_SEED).permutation(2 * len(first))[:DOUBLES]
    return np.concatenate([first, second])[chosen], np.concatenate([second, first])[chosen]


def errors(d: DType, got: Array, wanted: Array) -> Array:
    """The error of each computed value `got` in ulp of `d`; `wanted` are the exact values, and both are doubles."""
    f, least = FRACTION[d], 2.0 ** (1 - BIAS[d] - FRACTION[d])
    with np.errstate(all="ignore"):
        if d is dtypes.f32:
            finite = np.isfinite(wanted.astype(np.float32))
        else:
            finite = np.abs(wanted) < (2.0 - 2.0 ** (-f - 1)) * 2.0 ** BIAS[d]
        binade = (wanted.view(np.uint64) & np.uint64(0x7FF << 52)).view(np.float64)
        ulp = np.maximum(binade * 2.0**-f, least)
        off = np.abs(got - wanted) / ulp
        rounded = np.where(np.isnan(wanted), np.nan, np.copysign(np.inf, wanted))
        right = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        off = np.where(finite, off, np.where(right, 0.0, np.inf))
        wrong_zero = (got == 0) & finite & (np.signbit(got) != np.signbit(wanted))
        missed_zero = (wanted == 0) & (got != 0)
        off[wrong_zero | missed_zero | np.isnan(off)] = np.inf
    return off


def errors_of_doubles(op: Op, operands: Sequence[Array], got: Array) -> Array:
    """The error of each f64 value of `op`, in ulp, against decimal arithmetic with more digits; 0.5 for the nearest float."""
    rows = zip(got.tolist(), *(x.tolist() for x in operands), strict=True)
    return np.array([_error_of_double(op, y, tuple(xs)) for y, *xs in rows])


@functools.lru_cache(maxsize=CHUNK)  # each build needs the same exact values of a chunk
def _nearest(op: Op, operands: tuple[float, ...], _signs: tuple[float, ...]) -> float:
    """The exact value, rounded. `_signs` makes the cache distinguish zeros of different sign, which compare equal."""
    evaluate = TABLE.entries[op].evaluate
    assert evaluate is not None
    return float(evaluate(dtypes.f64, *operands))


@functools.lru_cache(maxsize=1 << 14)
def _value(op: Op, operands: tuple[float, ...]) -> Fraction:
    return exact.value(op.name, operands)


def _error_of_double(op: Op, y: float, operands: tuple[float, ...]) -> float:
    nearest = _nearest(op, operands, tuple(math.copysign(1.0, x) for x in operands))
    same_sign = math.copysign(1.0, y) == math.copysign(1.0, nearest)
    if y != y or not math.isfinite(nearest):
        return 0.0 if (y == nearest and same_sign) or (y != y and nearest != nearest) else math.inf
    if math.isinf(y) or not same_sign:
        return math.inf
    if y == nearest or y == 0 or nearest == 0:
        return 0.5 if y == nearest else abs(y - nearest) / math.ulp(0.0)
    if abs(y - nearest) / math.ulp(nearest) > FAR:
        return abs(y - nearest) / math.ulp(nearest)
    value = _value(op, operands)
    ulp = Fraction(math.ulp(nearest))
    if abs(value) < abs(nearest) and math.frexp(nearest)[0] in (0.5, -0.5):  # the exact value is in the binade below
        ulp = max(ulp / 2, Fraction(math.ulp(0.0)))
    return float(abs(Fraction(y) - value) / ulp)
