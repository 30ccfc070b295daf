"""Random numbers: the counter-based generator of Salmon et al. 2011 (threefry2x32, 20 rounds), as a program like any other.

`manual_seed` and the number of calls since then determine every number, on every device, in every process. Each call has a key
of its own, the generator's word for (seed, call); element i is the generator's word for (key, i). The key is an input
of the compiled program, so that the next call of the same shape compiles nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Final, Self

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
from morok.tensor.arguments import new_shape, whole
from morok.tensor.base import DEFAULT_FLOAT, DEFAULT_INT, as_dtype, dim_node, element_count
from morok.tensor.describing import current
from morok.tensor.movement import expanded, reshaped
from morok.tensor.writing import Writing


class _Generator:
    """The seed, and how many keys it has given."""

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
        """The next key. Without a seed the operating system gives one."""
        with NUMBERS:
            if self._seed is None:
                self._seed = int.from_bytes(os.urandom(8), "little")
            self._calls += 1
            return threefry(dtypes.u64, self._calls, self._seed)

    def replay(self, events: Sequence[int | None]) -> list[int]:
        """The keys that the calls of a described function get: a seed sets it, None draws."""
        with NUMBERS:
            keys = []
            for event in events:
                if event is None:
                    keys.append(self.key())
                else:
                    self.seed(event)
            return keys


GENERATOR: Final = _Generator()


class Random(Writing):
    """Tensors of random numbers. A plan of prepare() that is executed again repeats its numbers: they were drawn when it was
    described. A function under `morok.jit` draws new ones in each call."""

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int) -> None:
        """A new beginning of the random numbers: the same calls after the same seed give the same numbers; returns None.

        ShapeError for a seed that is no whole number.

        >>> Tensor.manual_seed(1); a = Tensor.rand(3).tolist()
        >>> Tensor.manual_seed(1); a == Tensor.rand(3).tolist()
        True
        """
        GENERATOR.seed(whole(seed, "the seed", -(1 << 63), None))

    @classmethod
    def _bits(cls, shape: Shape, device: str) -> Self:
        """64 random bits an element, as u64."""
        import numpy as np

        size = element_count(shape)
        if size == 0:
            return cls._make(expanded(UOp.const(0, dtypes.u64), shape), device)
        description = current()
        if description is None:
            key = creation.from_array(np.array([GENERATOR.key()], np.uint64), None, device)
        else:
            key = description.key(device)
        counters = UOp.new(Op.Iota, (dim_node(size),)).cast(dtypes.u64)
        words = UOp.new(Op.Threefry, (counters, expanded(key, (size,))))
        return cls._make(reshaped(words, shape), device)

    def _fraction(self, digits: int, d: DType) -> Self:
        """The first `digits` of these bits as a multiple of 2^-digits below 1, exactly."""
        first = self >> (self.dtype.bits - digits)
        # the signed conversion is an instruction, and a short one where the number is short
        return first.cast(dtypes.i32 if digits < 32 else dtypes.i64).cast(d) * 2.0**-digits

    @classmethod
    def rand(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with floats evenly in [0, 1), every multiple of 2**-p for a dtype of p bits; by default f32.

        ShapeError for a negative size, DTypeError for an integer dtype.

        >>> x = Tensor.rand(2, 3)
        >>> x.shape, ((x >= 0) & (x < 1)).all().item()
        ((2, 3), True)
        """
        d = _float_dtype(dtype, "rand")
        digits = FLOAT_FORMAT[d][0]
        return cls._bits(new_shape(shape), creation.default_device(device))._fraction(digits, d).contiguous()

    @classmethod
    def uniform(cls, *shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with floats evenly between `low` and `high`, which rounding may reach; by default f32.

        ShapeError for low > high or an infinite bound, DTypeError for an integer dtype.

        >>> x = Tensor.uniform(2, 3, low=-1.0, high=1.0)
        >>> x.shape, (x.abs() <= 1).all().item()
        ((2, 3), True)
        """
        low, high = finite(low, "low", ShapeError), finite(high, "high", ShapeError)
        if low > high:
            raise ShapeError(f"uniform from {low} to {high}", place=caller(), expected="finite low <= high")
        d = _float_dtype(dtype, "uniform")
        digits = FLOAT_FORMAT[d][0]
        fraction = cls._bits(new_shape(shape), creation.default_device(device))._fraction(digits, d)
        return (fraction * (high - low) + low).contiguous()

    @classmethod
    def randint(cls, *shape: Any, low: int = 0, high: int = 10, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with integers in low..high, `high` left out; by default i64.

        Each is as likely as the others up to (high - low) / 2**64. ShapeError unless low < high fit the dtype, DTypeError for
        a float dtype.

        >>> x = Tensor.randint(2, 3, low=5, high=7)
        >>> x.shape, ((x == 5) | (x == 6)).all().item()
        ((2, 3), True)
        """
        d = DEFAULT_INT if dtype is None else as_dtype(dtype)
        if not d.is_int:
            raise DTypeError(f"randint of {d}", place=caller(), expected="an integer dtype")
        low, high = whole(low, "low", int(d.min), None), whole(high, "high", int(d.min), None)
        if not low < high <= d.max + 1:
            raise ShapeError(f"randint from {low} to {high} of {d}", place=caller(), expected=f"low < high <= {d.max + 1}")
        bits = cls._bits(new_shape(shape), creation.default_device(device))
        span = high - low
        if span < 1 << 64:
            bits = cls._make(UOp.new(Op.Mod, (bits.uop, UOp.const(span, dtypes.u64))), bits.device)
        return (bits + low % (1 << 64)).cast(d).contiguous()

    @classmethod
    def randn(cls, *shape: Any, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with floats of the normal distribution of mean 0 and variance 1; by default f32.

        ShapeError for a negative size, DTypeError for an integer dtype.

        >>> Tensor.randn(2, 3).shape
        (2, 3)
        """
        return cls.normal(*shape, dtype=dtype, device=device)

    @classmethod
    def normal(cls, *shape: Any, mean: float = 0.0, std: float = 1.0, dtype: Any = None, device: str | None = None) -> Self:
        """A tensor of `shape` with floats of a normal distribution (Box and Muller 1958); by default f32.

        ShapeError for a negative `std`, DTypeError for an integer dtype.

        >>> Tensor.normal(2, 3, mean=5.0, std=0.0).tolist()
        [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
        """
        d = _float_dtype(dtype, "normal")
        mean, std = real(mean, "the mean", error=ShapeError), real(std, "the standard deviation", 0.0, error=ShapeError)
        sizes, name = new_shape(shape), creation.default_device(device)
        bits = cls._bits(sizes, name)
        if d is dtypes.f64:
            first, second = bits._fraction(53, d), cls._bits(sizes, name)._fraction(53, d)
        else:
            # both numbers from one word
            first, second = bits._fraction(31, dtypes.f32), (bits << 32)._fraction(24, dtypes.f32)
        # of the first the logarithm is taken, so it lies in (0, 1]
        least = 2.0 ** (-53 if d is dtypes.f64 else -31)
        radius = ((first + least).log() * -2.0).sqrt()
        return (radius * (second * math.tau).cos() * std + mean).cast(d).contiguous()

    @classmethod
    def randperm(cls, n: int, device: str | None = None) -> Self:
        """The integers 0..n in random order, as i64 in one axis. ShapeError for a negative `n`.

        >>> sorted(Tensor.randperm(4).tolist())
        [0, 1, 2, 3]
        """
        return cls._bits((whole(n, "n", 0),), creation.default_device(device)).argsort().contiguous()

    def dropout(self, p: float = 0.5, training: bool = True) -> Self:
        """Each element 0 with probability `p`, else divided by 1 - p, as a float in self's shape; unchanged without `training`.

        ShapeError unless 0 <= p <= 1.

        >>> Tensor([1.0, 2.0]).dropout(0.5, training=False).tolist()
        [1.0, 2.0]
        """
        p, training = real(p, "the probability of dropout", 0.0, 1.0, ShapeError), flag(training, "training")
        x = self._like(self._float())
        if not training or p == 0:
            return x
        if p == 1:
            return x.zeros_like()
        kept = self._bits(self.shape, self.device)._fraction(24, dtypes.f32) >= p
        return kept.where(x * (1.0 / (1.0 - p)), 0.0)


def _float_dtype(dtype: Any, what: str) -> DType:
    d = DEFAULT_FLOAT if dtype is None else as_dtype(dtype)
    if not d.is_float:
        raise DTypeError(f"{what} of {d}", place=caller(), expected="a float dtype", hint="randint makes integers")
    return d
