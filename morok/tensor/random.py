"""Random numbers: the counter-based generator of Salmon et al. 2011 (threefry2x32, 20 rounds), computed by ordinary kernels.

The seed and the number of calls since `manual_seed` determine every number, on every device, in every process. Each call has a
key of its own, threefry(seed, call); element i is threefry(key, i). The key is an input of the compiled program, so the next
call with the same shape compiles nothing.

A plan of prepare() repeats its numbers in each execution: their key was drawn when prepare() was called. A function under
`morok.jit` draws new keys in each call.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from morok.arguments import finite, flag, real
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import FLOAT_FORMAT, DType, dtypes
from morok.ir.op import Op
from morok.ir.ops.transcendental import threefry
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.locks import NUMBERS
from morok.tensor import creation
from morok.tensor.argument_checks import new_shape, whole
from morok.tensor.base import DEFAULT_INT, AnyTensor, as_dtype, element_count, iota
from morok.tensor.describing import current
from morok.tensor.elementwise_operands import float_node
from morok.tensor.view_methods import expanded, reshaped


class _Generator:
    """The seed, and the number of keys drawn since it was set."""

    def __init__(self) -> None:
        self._seed: int | None = None
        self._calls = 0

    def seed(self, value: int) -> None:
        description = current()
        if description is not None:
            description.events.append(value)
            return
        with NUMBERS:
            self._seed, self._calls = value % (1 << 64), 0

    def key(self) -> int:
        """The next key. If no seed was set, it is drawn from the operating system."""
        with NUMBERS:
            seed = self._chosen()
            self._calls += 1
            return threefry(dtypes.u64, self._calls, seed)

    def _chosen(self) -> int:
        """The seed, drawn now if there is none."""
        if self._seed is None:
            self._seed = int.from_bytes(os.urandom(8), "little")
        return self._seed

    def replay(self, events: Sequence[int | None]) -> list[int]:
        """The keys for one call of a described function: each event sets the seed, or (None) draws a key."""
        with NUMBERS:
            keys = []
            for event in events:
                if event is None:
                    keys.append(self.key())
                else:
                    self.seed(event)
            return keys

    def foreseen(self, events: Sequence[int | None]) -> list[int]:
        """The keys that replay() would give, without drawing them."""
        with NUMBERS:
            before = self._chosen(), self._calls
            keys = self.replay(events)
            self._seed, self._calls = before
            return keys


GENERATOR: Final = _Generator()


def rand(kind: type[AnyTensor], shape: tuple[Any, ...], dtype: Any, device: str | None) -> AnyTensor:
    """Uniform floats in [0, 1): multiples of 2**-p, with p the precision of the dtype in bits."""
    d = _float_dtype(dtype, "rand")
    digits = FLOAT_FORMAT[d][0]
    return _fraction(_bits(kind, new_shape(shape), creation.default_device(device)), digits, d).contiguous()


def uniform(
    kind: type[AnyTensor], shape: tuple[Any, ...], low: float, high: float, dtype: Any, device: str | None
) -> AnyTensor:
    """Uniform floats between `low` and `high`; ShapeError for low > high or an infinite bound, DTypeError for integer dtypes."""
    low, high = finite(low, "low", ShapeError), finite(high, "high", ShapeError)
    if low > high:
        raise ShapeError(f"uniform from {low} to {high}", place=caller(), expected="finite low <= high")
    d = _float_dtype(dtype, "uniform")
    digits = FLOAT_FORMAT[d][0]
    fraction = _fraction(_bits(kind, new_shape(shape), creation.default_device(device)), digits, d)
    return (fraction * (high - low) + low).contiguous()


def randint(
    kind: type[AnyTensor], shape: tuple[Any, ...], low: int, high: int, dtype: Any, device: str | None
) -> AnyTensor:
    """Uniform integers in low..high, with a relative bias of at most (high - low) / 2**64."""
    d = DEFAULT_INT if dtype is None else as_dtype(dtype)
    if not d.is_int:
        raise DTypeError(f"randint() of dtype {d}", place=caller(), expected="an integer dtype")
    low, high = whole(low, "low", int(d.min), None), whole(high, "high", int(d.min), None)
    if not low < high <= d.max + 1:
        raise ShapeError(f"randint from {low} to {high} of {d}", place=caller(), expected=f"low < high <= {d.max + 1}")
    bits = _bits(kind, new_shape(shape), creation.default_device(device))
    span = high - low
    if span < 1 << 64:
        bits = kind._make(UOp.new(Op.Mod, (bits.uop, UOp.const(span, dtypes.u64))), bits.device)
    return (bits + low % (1 << 64)).cast(d).contiguous()


def normal(
    kind: type[AnyTensor], shape: tuple[Any, ...], mean: float, std: float, dtype: Any, device: str | None
) -> AnyTensor:
    """Normally distributed floats (Box and Muller 1958)."""
    d = _float_dtype(dtype, "normal")
    mean, std = real(mean, "the mean", error=ShapeError), real(std, "the standard deviation", 0.0, error=ShapeError)
    sizes, name = new_shape(shape), creation.default_device(device)
    bits = _bits(kind, sizes, name)
    if d is dtypes.f64:
        first, second = _fraction(bits, 53, d), _fraction(_bits(kind, sizes, name), 53, d)
    else:
        # both uniform numbers from one word of 64 bits
        first, second = _fraction(bits, 31, dtypes.f32), _fraction(bits << 32, 24, dtypes.f32)
    # move `first` to (0, 1], for its logarithm
    least = 2.0 ** (-53 if d is dtypes.f64 else -31)
    radius = ((first + least).log() * -2.0).sqrt()
    return (radius * (second * math.tau).cos() * std + mean).cast(d).contiguous()


def randperm(kind: type[AnyTensor], n: int, device: str | None) -> AnyTensor:
    """The integers 0..n in random order."""
    return _bits(kind, (whole(n, "n", 0),), creation.default_device(device)).argsort().contiguous()


def _bits(kind: type[AnyTensor], shape: Shape, device: str) -> AnyTensor:
    """A tensor of u64 with 64 random bits in each element."""
    size = element_count(shape)
    if size == 0:
        return kind._make(expanded(UOp.const(0, dtypes.u64), shape), device)
    description = current()
    if description is None:
        key = creation.from_array(np.array([GENERATOR.key()], np.uint64), None, device)
    else:
        key = description.key(device)
    counters = iota(size, dtypes.u64)
    words = UOp.new(Op.Threefry, (counters, expanded(key, (size,))))
    return kind._make(reshaped(words, shape), device)


def manual_seed(seed: int) -> None:
    """Set the seed of all random numbers: the same calls after the same seed give the same numbers.

    ShapeError for a seed that is no whole number.

    >>> Tensor.manual_seed(1); a = Tensor.rand(3).tolist()
    >>> Tensor.manual_seed(1); a == Tensor.rand(3).tolist()
    True
    """
    GENERATOR.seed(whole(seed, "the seed", -(1 << 63), None))


def _fraction(x: AnyTensor, digits: int, d: DType) -> AnyTensor:
    """The top `digits` bits of each element as a float below 1: an exact multiple of 2^-digits."""
    first = x >> (x.dtype.bits - digits)
    # signed conversion is one instruction, and i32 is faster than i64
    return first.cast(dtypes.i32 if digits < 32 else dtypes.i64).cast(d) * 2.0**-digits


def dropout(self: AnyTensor, p: float = 0.5, training: bool = True) -> AnyTensor:
    """Each element 0 with probability `p`, else divided by 1 - p, as a float in self's shape; unchanged without `training`.

    ShapeError unless 0 <= p <= 1.

    >>> Tensor([1.0, 2.0]).dropout(0.5, training=False).tolist()
    [1.0, 2.0]
    """
    p, training = real(p, "the probability of dropout", 0.0, 1.0, ShapeError), flag(training, "training")
    x = self._like(float_node(self))
    if not training or p == 0:
        return x
    if p == 1:
        return x.zeros_like()
    kept = _fraction(_bits(type(self), self.shape, self.device), 24, dtypes.f32) >= p
    return kept.where(x * (1.0 / (1.0 - p)), 0.0)


def _float_dtype(dtype: Any, what: str) -> DType:
    d = creation.float_or(dtype)
    if not d.is_float:
        raise DTypeError(
            f"{what} of dtype {d}", place=caller(), expected="a float dtype", hint="use randint() for integers"
        )
    return d
