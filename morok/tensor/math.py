"""Elementwise arithmetic, total: NumPy's results also where the ops of the IR are undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

from morok.caller import caller
from morok.errors import DeviceError, DTypeError, ShapeError
from morok.ir.dtype import DType, dtypes, promote
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.tensor import creation, division
from morok.tensor.base import DEFAULT_FLOAT, DEFAULT_INT, Lazy, arithmetic, as_dtype, show
from morok.tensor.casts import cast_to
from morok.tensor.movement import Movement, broadcast_shapes, expanded
from morok.tensor.scalars import Number, constant, natural_dtype, outside, python_number, weak_dtype

# What an operator of two bools means, where NumPy gives it a meaning.
_ON_BOOLS: Final = {Op.Add: Op.Or, Op.Mul: Op.And, Op.Max: Op.Or, Op.Min: Op.And}
_ORDERINGS: Final = frozenset({Op.Lt, Op.Le, Op.Gt, Op.Ge})
_COMPARISONS: Final = _ORDERINGS | {Op.Eq, Op.Ne}
_BITWISE: Final = frozenset({Op.And, Op.Or, Op.Xor})


def broadcast(uop: UOp, shape: Shape) -> UOp:
    """`uop` at `shape`; scalars stay as they are, every elementwise op repeats them."""
    return uop if shape_of(uop) == () else expanded(uop, shape)


def _shift_left(a: UOp, n: UOp) -> UOp:
    """Bits shifted out are lost, all of them if there are too many."""
    inside, safe = _safe_shift(n)
    shifted = a << safe
    return shifted if inside is None else inside.where(shifted, UOp.const(0, a.dtype))


def _shift_right(a: UOp, n: UOp) -> UOp:
    inside, safe = _safe_shift(n)
    shifted = a >> safe
    if inside is None:
        return shifted
    d = a.dtype
    return inside.where(shifted, a >> UOp.const(d.bits - 1, d) if d.is_signed else UOp.const(0, d))


def _safe_shift(n: UOp) -> tuple[UOp | None, UOp]:
    """The condition that an amount lies in [0, bits) (None: always), and an amount that does."""
    d = n.dtype
    if n.op is Op.Const and 0 <= n.arg < d.bits:
        return None, n
    inside = n.lt(d.bits)
    if d.is_signed:
        inside = inside & n.ge(0)
    return inside, inside.where(n, UOp.const(0, d))


def _power(a: UOp, b: UOp) -> UOp:
    """Powers; a negative integer exponent gives the truncated reciprocal power: 0, or a power of 1 or -1."""
    d = a.dtype
    if b.op is Op.Const and (simple := _constant_power(a, b.arg)) is not None:
        return simple
    if d.is_float:
        return a.pow(b)
    if d.is_unsigned:
        return a.pow(b)
    zero, one = UOp.const(0, d), UOp.const(1, d)
    below = b.lt(zero)
    unit = a.eq(one) | a.eq(UOp.const(-1, d))
    # of 1 and -1 a power depends on the exponent's parity alone, which its last bit has also when it is negative
    exponent = below.where(b & one, b)
    return (below & ~unit).where(zero, a.pow(exponent))


def _constant_power(a: UOp, e: float) -> UOp | None:
    """The exponents that have an operation of their own, as in NumPy."""
    d = a.dtype
    if e == 0:
        return (a * UOp.const(0, d) + UOp.const(1, d)) if d.is_int else None
    if e == 1:
        return a
    if e == 2:
        return a * a
    if e == 3 and d.is_int:
        return a * a * a
    if d.is_float and e == 0.5:
        return a.sqrt()
    if d.is_float and e == -1:
        return a.reciprocal()
    return None


class Math(Movement):
    """Operators and functions of one element each."""

    __slots__ = ()

    # Operands.

    def _operand(self, other: Any, d: DType | None = None) -> UOp:
        """The operand on the other side of an operator; a Python number takes `d` (by default this dtype) where it can."""
        if isinstance(other, Lazy):
            if other.device != self.device:
                raise DeviceError(
                    f"tensors on {self.device} and {other.device}", place=caller(), expected="one device", hint="use .to()"
                )
            return other.uop
        if isinstance(other, UOp):
            return cast_to(other, DEFAULT_INT)
        number = python_number(other)
        if number is not None:
            return constant(number, weak_dtype(d or self.dtype, number), self.device)
        # lists of Python's floats lose nothing beside f64
        floats = dtypes.f64 if self.dtype is dtypes.f64 else DEFAULT_FLOAT
        return creation.from_data(other, None, self.device, floats)

    def _other(self, value: Any) -> Self:
        """The other operand of a function: a tensor of this device, or one made of `value` as for an operator."""
        return self._like(self._operand(value))

    def _converted(self, value: Any) -> UOp:
        """`value` at this tensor's dtype: Python's numbers straight, also those in lists; tensors and arrays cast."""
        number = python_number(value)
        if number is not None:
            return constant(number, self.dtype, self.device)
        if isinstance(value, (list, tuple)):
            return creation.from_data(value, self.dtype, self.device)
        return cast_to(self._operand(value), self.dtype)

    def _pair(self, other: Any, reverse: bool, what: str) -> tuple[UOp, UOp]:
        """Both operands at one dtype and one shape."""
        theirs = self._operand(other, arithmetic(self.dtype))
        return self._aligned((theirs, self.uop) if reverse else (self.uop, theirs), what)

    def _aligned(self, pair: tuple[UOp, UOp], what: str) -> tuple[UOp, UOp]:
        a, b = pair
        d = arithmetic(promote(a.dtype, b.dtype))
        shape = broadcast_shapes(shape_of(a), shape_of(b))
        return broadcast(cast_to(a, d), shape), broadcast(cast_to(b, d), shape)

    def _binary(self, op: Op, other: Any, reverse: bool = False) -> Self:
        if op in _COMPARISONS and (always := self._beyond(op, other)) is not None:
            return always
        a, b = self._pair(other, reverse, op.name)
        d = a.dtype
        if d.is_bool:
            if op in _ORDERINGS:
                a, b = a.cast(dtypes.u8), b.cast(dtypes.u8)
            else:
                op = _ON_BOOLS.get(op, op)
                if op not in _BITWISE and op not in _COMPARISONS:
                    raise DTypeError(
                        f"{op.name} of bool and bool", place=caller(), expected="numbers", hint="& | ^ work on bools"
                    )
        elif op in _BITWISE and not d.is_int:
            raise DTypeError(f"{op.name} of {self.dtype} and {b.dtype}", place=caller(), expected="integers or bools")
        return self._like(UOp.new(op, (a, b)))

    def _beyond(self, op: Op, other: Any) -> Self | None:
        """The comparison with a Python integer that this dtype does not hold, the same for every element; None for others."""
        side = outside(other, DEFAULT_INT if self.dtype.is_bool else self.dtype)
        if not side:
            return None
        holds = op is Op.Ne or op in ((Op.Lt, Op.Le) if side > 0 else (Op.Gt, Op.Ge))
        return self._like(expanded(UOp.const(holds, dtypes.bool), self.shape))

    def _total(
        self,
        other: Any,
        reverse: bool,
        what: str,
        on_ints: Callable[[UOp, UOp], UOp],
        on_floats: Callable[[UOp, UOp], UOp] | None,
    ) -> Self:
        a, b = self._pair(other, reverse, what)
        if a.dtype.is_bool:
            a, b = a.cast(dtypes.i8), b.cast(dtypes.i8)
        if a.dtype.is_float:
            if on_floats is None:
                raise DTypeError(f"{what} of {a.dtype}", place=caller(), expected="integers")
            return self._like(on_floats(a, b))
        return self._like(on_ints(a, b))

    def _float(self) -> UOp:
        return self.uop.cast(arithmetic(self.dtype)) if self.dtype.is_float else self.uop.cast(DEFAULT_FLOAT)

    def _unary(self, op: Op) -> Self:
        """A function of reals; integers become the default float."""
        return self._like(UOp.new(op, (self._float(),)))

    def _wide(self) -> Self:
        """As floats, halves as f32: for functions of several steps, rounded once at their end."""
        return self._like(self.uop.cast(dtypes.f32) if self.dtype.bits <= 16 and self.dtype.is_float else self._float())

    def _rounded_to(self, like: Lazy) -> Self:
        """A wide result at the dtype that a function of `like` has."""
        return self.cast(arithmetic(like.dtype)) if like.dtype.is_float else self

    def _numeric(self, op: Op) -> Self:
        if self.dtype.is_bool:
            raise DTypeError(f"{op.name} of bool", place=caller(), expected="numbers", hint="logical_not() or cast()")
        return self._like(UOp.new(op, (self.uop.cast(arithmetic(self.dtype)),)))

    # Operators.

    def __radd__(self, other: Any) -> Self:
        return self._binary(Op.Add, other, reverse=True)

    def __rsub__(self, other: Any) -> Self:
        return self._binary(Op.Sub, other, reverse=True)

    def __rmul__(self, other: Any) -> Self:
        return self._binary(Op.Mul, other, reverse=True)

    def _divide(self, other: Any, reverse: bool) -> Self:
        a, b = self._pair(other, reverse, "/")
        if not a.dtype.is_float:
            a, b = cast_to(a, DEFAULT_FLOAT), cast_to(b, DEFAULT_FLOAT)
        return self._like(a / b)

    def __rtruediv__(self, other: Any) -> Self:
        return self._divide(other, reverse=True)

    def __rfloordiv__(self, other: Any) -> Self:
        return self._total(other, True, "//", division.floor_divide, division.float_floor_divide)

    def __rmod__(self, other: Any) -> Self:
        return self._total(other, True, "%", division.floor_modulo, division.float_floor_modulo)

    def __divmod__(self, other: Any) -> tuple[Self, Self]:
        """The quotient rounded down and the remainder, as `//` and `%` have them."""
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Self, Self]:
        return self.__rfloordiv__(other), self.__rmod__(other)

    def __rpow__(self, other: Any) -> Self:
        return self._total(other, True, "**", _power, _power)

    def bitwise_left_shift(self, other: Any) -> Self:
        """self * 2**other in self's and other's promoted dtype: shapes broadcast, bits shifted out are lost.

        DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 3]).bitwise_left_shift(2).tolist()
        [4, 12]
        """
        return self._total(other, False, "<<", _shift_left, None)

    def __rlshift__(self, other: Any) -> Self:
        return self._total(other, True, "<<", _shift_left, None)

    def bitwise_right_shift(self, other: Any) -> Self:
        """self // 2**other in self's and other's promoted dtype: shapes broadcast, the sign bit is repeated.

        DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([12, -3]).bitwise_right_shift(1).tolist()
        [6, -2]
        """
        return self._total(other, False, ">>", _shift_right, None)

    def __rrshift__(self, other: Any) -> Self:
        return self._total(other, True, ">>", _shift_right, None)

    def bitwise_and(self, other: Any) -> Self:
        """The bitwise and of integers or bools, element by element: shapes broadcast, dtypes promote.

        DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([6, 5]).bitwise_and(3).tolist()
        [2, 1]
        """
        return self._binary(Op.And, other)

    def __rand__(self, other: Any) -> Self:
        return self._binary(Op.And, other, reverse=True)

    def bitwise_or(self, other: Any) -> Self:
        """The bitwise or of integers or bools, element by element: shapes broadcast, dtypes promote.

        DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([6, 5]).bitwise_or(3).tolist()
        [7, 7]
        """
        return self._binary(Op.Or, other)

    def __ror__(self, other: Any) -> Self:
        return self._binary(Op.Or, other, reverse=True)

    def bitwise_xor(self, other: Any) -> Self:
        """The bitwise exclusive or of integers or bools, element by element: shapes broadcast, dtypes promote.

        DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([6, 5]).bitwise_xor(3).tolist()
        [5, 6]
        """
        return self._binary(Op.Xor, other)

    def __rxor__(self, other: Any) -> Self:
        return self._binary(Op.Xor, other, reverse=True)

    def positive(self) -> Self:
        """The same elements, in self's shape and dtype.

        >>> Tensor([1.0, -2.0]).positive().tolist()
        [1.0, -2.0]
        """
        return self._same()

    def bitwise_invert(self) -> Self:
        """The complement of every bit, in self's shape and dtype; of bools the negation. DTypeError for floats.

        >>> Tensor([0, 5]).bitwise_invert().tolist()
        [-1, -6]
        """
        if self.dtype.is_float:
            raise DTypeError(f"~ of {self.dtype}", place=caller(), expected="integers or bools")
        return self._like(~self.uop)

    def less(self, other: Any) -> Self:
        """self < other as bool, element by element: shapes broadcast, dtypes promote; False beside NaN.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2, 3]).less(2).tolist()
        [True, False, False]
        """
        return self._binary(Op.Lt, other)

    def less_equal(self, other: Any) -> Self:
        """self <= other as bool, element by element: shapes broadcast, dtypes promote; False beside NaN.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2, 3]).less_equal(2).tolist()
        [True, True, False]
        """
        return self._binary(Op.Le, other)

    def greater(self, other: Any) -> Self:
        """self > other as bool, element by element: shapes broadcast, dtypes promote; False beside NaN.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2, 3]).greater(2).tolist()
        [False, False, True]
        """
        return self._binary(Op.Gt, other)

    def greater_equal(self, other: Any) -> Self:
        """self >= other as bool, element by element: shapes broadcast, dtypes promote; False beside NaN.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2, 3]).greater_equal(2).tolist()
        [False, True, True]
        """
        return self._binary(Op.Ge, other)

    __hash__ = object.__hash__

    # The same by name.

    def add(self, other: Any) -> Self:
        """self + other, element by element: shapes broadcast, dtypes promote, integers wrap; of two bools, their or.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2]).add([[10], [20]]).tolist()
        [[11, 12], [21, 22]]
        """
        return self._binary(Op.Add, other)

    def sub(self, other: Any) -> Self:
        """self - other, element by element: shapes broadcast, dtypes promote, integers wrap.

        DTypeError for two bools, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([5, 7]).sub([1, 2]).tolist()
        [4, 5]
        """
        return self._binary(Op.Sub, other)

    def mul(self, other: Any) -> Self:
        """self * other, element by element: shapes broadcast, dtypes promote, integers wrap; of two bools, their and.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([5, 7]).mul([1, 2]).tolist()
        [5, 14]
        """
        return self._binary(Op.Mul, other)

    def div(self, other: Any) -> Self:
        """self / other, element by element, as floats: shapes broadcast, dtypes promote, two integers give f32.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, -6]).div([4, 3]).tolist()
        [0.25, -2.0]
        """
        return self._divide(other, reverse=False)

    def floor_divide(self, other: Any) -> Self:
        """self / other rounded down, element by element: shapes broadcast, dtypes promote.

        An integer divisor 0 gives 0. ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([7, -7]).floor_divide(2).tolist()
        [3, -4]
        """
        return self._total(other, False, "//", division.floor_divide, division.float_floor_divide)

    def mod(self, other: Any) -> Self:
        """The remainder of `self // other`, element by element, with the sign of `other`: shapes broadcast, dtypes promote.

        An integer divisor 0 gives 0. ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        return self._total(other, False, "%", division.floor_modulo, division.float_floor_modulo)

    def pow(self, other: Any) -> Self:
        """self ** other, element by element: shapes broadcast, dtypes promote, integers wrap.

        A negative integer exponent gives 0, or a power of 1 or -1. ShapeError unless the shapes broadcast, DeviceError for a
        tensor of another device.

        >>> Tensor([2, 3]).pow(2).tolist()
        [4, 9]
        """
        return self._total(other, False, "**", _power, _power)

    def neg(self) -> Self:
        """-self, element by element, in self's shape and dtype; unsigned integers wrap. DTypeError for bools.

        >>> Tensor([1, -2]).neg().tolist()
        [-1, 2]
        """
        return self._numeric(Op.Neg)

    def abs(self) -> Self:
        """The magnitude of each element, in self's shape and dtype; the least integer stays as it is.

        >>> Tensor([1.5, -2.0]).abs().tolist()
        [1.5, 2.0]
        """
        return self._same() if self.dtype.is_bool or self.dtype.is_unsigned else self._like(self.uop.abs())

    def eq(self, other: Any) -> Self:
        """self == other as bool, element by element: shapes broadcast, dtypes promote; False beside NaN.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2, 3]).eq(2).tolist()
        [False, True, False]
        """
        return self._binary(Op.Eq, other)

    def ne(self, other: Any) -> Self:
        """self != other as bool, element by element: shapes broadcast, dtypes promote; True beside NaN.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 2, 3]).ne(2).tolist()
        [True, False, True]
        """
        return self._binary(Op.Ne, other)

    def maximum(self, other: Any) -> Self:
        """The greater of self and other, element by element: shapes broadcast, dtypes promote; NaN if either is.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 5]).maximum(3).tolist()
        [3, 5]
        """
        return self._binary(Op.Max, other)

    def minimum(self, other: Any) -> Self:
        """The lesser of self and other, element by element: shapes broadcast, dtypes promote; NaN if either is.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([1, 5]).minimum(3).tolist()
        [1, 3]
        """
        return self._binary(Op.Min, other)

    def logical_not(self) -> Self:
        """True where an element is 0 (NaN is not), as bool in self's shape.

        >>> Tensor([0.0, 2.0]).logical_not().tolist()
        [True, False]
        """
        return self._like(~cast_to(self.uop, dtypes.bool))

    def logical_and(self, other: Any) -> Self:
        """True where neither element is 0, as bool: shapes broadcast.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([0, 1, 2]).logical_and([1, 0, 3]).tolist()
        [False, False, True]
        """
        return self.bool() & self._make(self._operand(other), self.device).bool()

    def logical_or(self, other: Any) -> Self:
        """True where one element at least is not 0, as bool: shapes broadcast.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([0, 1, 0]).logical_or([1, 0, 0]).tolist()
        [True, True, False]
        """
        return self.bool() | self._make(self._operand(other), self.device).bool()

    def logical_xor(self, other: Any) -> Self:
        """True where exactly one of two elements is 0, as bool: shapes broadcast.

        ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

        >>> Tensor([0, 1, 2]).logical_xor([1, 0, 3]).tolist()
        [True, True, False]
        """
        return self.bool() ^ self._make(self._operand(other), self.device).bool()

    # The operators, and the array API standard's names of them.

    __add__, __sub__, __mul__, __truediv__ = add, sub, mul, div
    __floordiv__, __mod__, __pow__ = floor_divide, mod, pow
    __neg__, __pos__, __abs__, __invert__ = neg, positive, abs, bitwise_invert
    __and__, __or__, __xor__ = bitwise_and, bitwise_or, bitwise_xor
    __lshift__, __rshift__ = bitwise_left_shift, bitwise_right_shift
    __lt__, __le__, __gt__, __ge__ = less, less_equal, greater, greater_equal
    __eq__ = eq  # type: ignore[assignment]
    __ne__ = ne  # type: ignore[assignment]
    subtract, multiply, divide, remainder = sub, mul, div, mod
    negative, equal, not_equal = neg, eq, ne

    # Dtypes.

    def cast(self, dtype: Any) -> Self:
        """The elements at another dtype, in self's shape, as NumPy's astype converts them.

        Integers wrap, floats truncate, everything but 0 is True. A float that does not fit becomes the low bits of the least
        i32 (of the least i64 for i64, u32 and u64), as on x86. DTypeError for a dtype that tensors do not have.

        >>> Tensor([1.9, -1.9, 300.0]).cast("i8").tolist()
        [1, -1, 44]
        """
        d = as_dtype(dtype)
        return self._same() if d is self.dtype else self._like(cast_to(self.uop, d))

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """The elements at another dtype, in self's shape: cast() by NumPy's name; `copy` has no effect.

        DTypeError for a dtype that tensors do not have.

        >>> Tensor([1.9, -1.9]).astype("int32").tolist()
        [1, -1]
        """
        return self.cast(dtype)

    def bitcast(self, dtype: Any) -> Self:
        """The same bits at another dtype of the same width, in self's shape. DTypeError for another width.

        >>> Tensor([1.0]).bitcast(dtypes.i32).tolist()
        [1065353216]
        """
        d = as_dtype(dtype)
        if d.itemsize != self.dtype.itemsize:
            raise DTypeError(f"{self.dtype} and {d} differ in width", place=caller(), expected=f"{self.dtype.bits} bits")
        return self._like(self.uop.bitcast(d))

    def float(self) -> Self:
        """The elements as f32, in self's shape, as cast() converts them.

        >>> Tensor([1, 2]).float().dtype
        f32
        """
        return self.cast(dtypes.f32)

    def int(self) -> Self:
        """The elements as i32, in self's shape, as cast() converts them.

        >>> Tensor([1.9, -1.9]).int().tolist()
        [1, -1]
        """
        return self.cast(dtypes.i32)

    def bool(self) -> Self:
        """True where an element is not 0 (NaN included), in self's shape.

        >>> Tensor([0.0, 0.5]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool)

    # Choosing.

    def clip(self, min: Any = None, max: Any = None) -> Self:
        """The elements brought between `min` and `max` (None: no bound), shapes broadcast, dtypes promote.

        A Python integer below (above) every number of the dtype is no bound. ShapeError unless the shapes broadcast.

        >>> Tensor([-5, 0, 5]).clip(-1, 2).tolist()
        [-1, 0, 2]
        """
        x = self._same() if min is None or outside(min, self.dtype) < 0 else self.maximum(min)
        return x if max is None or outside(max, self.dtype) > 0 else x.minimum(max)

    def clamp(self, min: Any = None, max: Any = None) -> Self:
        """The elements brought between `min` and `max`: clip() by torch's name. ShapeError unless the shapes broadcast.

        >>> Tensor([-5, 0, 5]).clamp(-1, 2).tolist()
        [-1, 0, 2]
        """
        return self.clip(min, max)

    def where(self, x: Any, y: Any) -> Self:
        """`x` where this condition is true, else `y`: shapes broadcast, the dtypes of `x` and `y` promote.

        DTypeError unless self is bool, ShapeError unless the shapes broadcast.

        >>> (Tensor([1, 2, 3]) > 1).where(10, [4, 5, 6]).tolist()
        [4, 10, 10]
        """
        if not self.dtype.is_bool:
            raise DTypeError(
                f"where() on {self.dtype}", place=caller(), expected="a bool condition", hint="compare first: (t > 0).where(..)"
            )
        first = x if isinstance(x, Lazy) else y if isinstance(y, Lazy) else None
        if isinstance(first, Math):
            self._operand(first)  # on this device
            xs, ys = first._operand(x), first._operand(y)
        else:
            xs, ys = self._number(x), self._number(y)
        d = promote(xs.dtype, ys.dtype)
        shape = broadcast_shapes(self.shape, shape_of(xs), shape_of(ys))
        parts = [broadcast(u, shape) for u in (self.uop, cast_to(xs, d), cast_to(ys, d))]
        if shape != () and all(shape_of(p) == () for p in parts):
            raise ShapeError(f"where() of shapes {show(self.shape)}", place=caller())
        return self._like(parts[0].where(parts[1], parts[2]))

    def _number(self, value: Any) -> UOp:
        number = python_number(value)
        return self._operand(value) if number is None else constant(number, natural_dtype(number), self.device)

    def masked_fill(self, mask: Any, value: Any) -> Self:
        """`value` where the bools of `mask` are true, self's elements elsewhere: shapes broadcast, dtypes promote.

        DTypeError unless `mask` is bool, ShapeError unless the shapes broadcast.

        >>> Tensor([1, 2, 3]).masked_fill([True, False, True], 0).tolist()
        [0, 2, 0]
        """
        return self._other(mask).where(value, self)

    def pad(self, padding: Any, value: Number = 0) -> Self:
        """The elements with `value` put before and after each axis, in self's dtype: one pair of counts an axis, None for none.

        ShapeError for another number of pairs and for negative counts, ArgumentTypeError for anything but a list of pairs.

        >>> Tensor([1, 2]).pad([(1, 2)], 9).tolist()
        [9, 1, 2, 9, 9]
        """
        padded, filling = self._pad_zero(padding), self._converted(value)
        if filling is UOp.const(0, self.dtype) or padded.shape == self.shape:
            return padded
        inside = self._like(expanded(UOp.const(True, dtypes.bool), self.shape))._pad_zero(padding)
        return inside.where(padded, self._like(filling))
