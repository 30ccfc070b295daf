"""Elementwise arithmetic, defined for all operands: NumPy's results also where the ops of the IR are undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from morok.caller import caller
from morok.errors import DTypeError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.tensor import division
from morok.tensor.base import DEFAULT_FLOAT, DEFAULT_INT, AnyTensor, arithmetic
from morok.tensor.casts import cast_to
from morok.tensor.elementwise_operands import broadcast, numeric, operand, operands
from morok.tensor.scalars import outside
from morok.tensor.view_methods import expanded

# The ops that replace arithmetic on two bools, as in NumPy.
_ON_BOOLS: Final = {Op.Add: Op.Or, Op.Mul: Op.And, Op.Max: Op.Or, Op.Min: Op.And}
_ORDERINGS: Final = frozenset({Op.Lt, Op.Le, Op.Gt, Op.Ge})
# The comparisons that hold if the first operand is less than the second, and if it is greater.
_LESSER: Final = frozenset({Op.Lt, Op.Le, Op.Ne})
_GREATER: Final = frozenset({Op.Gt, Op.Ge, Op.Ne})
_BITWISE: Final = frozenset({Op.And, Op.Or, Op.Xor})

Result = TypeVar("Result")


def _shift_left(a: UOp, n: UOp) -> UOp:
    """`a` shifted left by `n` bits; 0 for an amount outside [0, bits)."""
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
    """(condition, safe): the condition that an amount is in [0, bits) (None: always), and the amount, with 0 for any other."""
    d = n.dtype
    if n.op is Op.Const and 0 <= n.arg < d.bits:
        return None, n
    inside = n.lt(d.bits)
    if d.is_signed:
        inside = inside & n.ge(0)
    return inside, inside.where(n, UOp.const(0, d))


def _power(a: UOp, b: UOp) -> UOp:
    """a ** b; for a negative integer exponent the power truncated to an integer: 0, or 1 or -1 for the bases 1 and -1."""
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
    # powers of 1 and -1 depend on the exponent's parity alone: its last bit, also of a negative exponent
    exponent = below.where(b & one, b)
    return (below & ~unit).where(zero, a.pow(exponent))


def _constant_power(a: UOp, e: float) -> UOp | None:
    """a ** e by cheaper operations, for the exponents that NumPy treats specially; None for others."""
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


def _binary(x: AnyTensor, op: Op, other: Any) -> AnyTensor:
    a, b = operands(x, other)
    d = a.dtype
    if d.is_bool:
        op = _ON_BOOLS.get(op, op)
        if op not in _BITWISE:
            raise DTypeError(
                f"{op.name} does not work on two bools",
                place=caller(),
                expected="numbers",
                hint="use & | ^ for bools",
            )
    elif op in _BITWISE and not d.is_int:
        raise DTypeError(
            f"{op.name} does not work on {x.dtype} and {b.dtype}", place=caller(), expected="integers or bools"
        )
    return x._like(UOp.new(op, (a, b)))


def _compared(x: AnyTensor, op: Op, other: Any) -> AnyTensor:
    if (always := _beyond(x, op, other)) is not None:
        return always
    y = x._like(operand(x, other, arithmetic(x.dtype)))
    a, b = operands(x, y)
    if a.dtype.is_bool and op in _ORDERINGS:
        a, b = a.cast(dtypes.u8), b.cast(dtypes.u8)
    holds = UOp.new(op, (a, b))
    if a.dtype is dtypes.u64:
        # u64 has no negative numbers: beside one, a signed integer that is negative is the lesser
        for side, holds_for_lesser in ((x, _LESSER), (y, _GREATER)):
            if side.dtype.is_signed:
                negative = broadcast(side.uop.lt(0), shape_of(holds))
                holds = holds | negative if op in holds_for_lesser else holds & ~negative
    return x._like(holds)


def _beyond(x: AnyTensor, op: Op, other: Any) -> AnyTensor | None:
    """The result of comparing with a Python integer outside the range of x's dtype, a constant; None for other operands."""
    side = outside(other, DEFAULT_INT if x.dtype.is_bool else x.dtype)
    if not side:
        return None
    holds = op is Op.Ne or op in ((Op.Lt, Op.Le) if side > 0 else (Op.Gt, Op.Ge))
    return x._like(expanded(UOp.const(holds, dtypes.bool), x.shape))


def _total(
    x: AnyTensor,
    other: Any,
    what: str,
    on_ints: Callable[[UOp, UOp], UOp],
    on_floats: Callable[[UOp, UOp], UOp] | None,
) -> AnyTensor:
    a, b = operands(x, other)
    if a.dtype.is_bool:
        a, b = a.cast(dtypes.i8), b.cast(dtypes.i8)
    if a.dtype.is_float:
        if on_floats is None:
            raise DTypeError(f"{what} does not work on {a.dtype}", place=caller(), expected="integers")
        return x._like(on_floats(a, b))
    return x._like(on_ints(a, b))


def reflected(
    operator: Callable[[AnyTensor, Any], Result], numbers: Callable[[DType], DType] = arithmetic
) -> Callable[[AnyTensor, Any], Result]:
    """The operator with its operands exchanged, for Python's reflected methods such as __radd__.

    numbers  the dtype of a Python number beside a tensor of some dtype
    """

    def exchanged(self: AnyTensor, other: Any) -> Result:
        return operator(self._like(operand(self, other, numbers(self.dtype))), self)

    return exchanged


def divide_with_remainder(self: AnyTensor, other: Any) -> tuple[AnyTensor, AnyTensor]:
    """(self // other, self % other), for divmod()."""
    return self // other, self % other


def bitwise_left_shift(self: AnyTensor, other: Any) -> AnyTensor:
    """self * 2**other in self's and other's promoted dtype: shapes broadcast, bits shifted out are lost.

    DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 3]).bitwise_left_shift(2).tolist()
    [4, 12]
    """
    return _total(self, other, "<<", _shift_left, None)


def bitwise_right_shift(self: AnyTensor, other: Any) -> AnyTensor:
    """self // 2**other in self's and other's promoted dtype: shapes broadcast, the sign bit is repeated.

    DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([12, -3]).bitwise_right_shift(1).tolist()
    [6, -2]
    """
    return _total(self, other, ">>", _shift_right, None)


def bitwise_and(self: AnyTensor, other: Any) -> AnyTensor:
    """The bitwise and of integers or bools, element by element: shapes broadcast, dtypes promote.

    DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([6, 5]).bitwise_and(3).tolist()
    [2, 1]
    """
    return _binary(self, Op.And, other)


def bitwise_or(self: AnyTensor, other: Any) -> AnyTensor:
    """The bitwise or of integers or bools, element by element: shapes broadcast, dtypes promote.

    DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([6, 5]).bitwise_or(3).tolist()
    [7, 7]
    """
    return _binary(self, Op.Or, other)


def bitwise_xor(self: AnyTensor, other: Any) -> AnyTensor:
    """The bitwise exclusive or of integers or bools, element by element: shapes broadcast, dtypes promote.

    DTypeError for floats, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([6, 5]).bitwise_xor(3).tolist()
    [5, 6]
    """
    return _binary(self, Op.Xor, other)


def positive(self: AnyTensor) -> AnyTensor:
    """The same elements, in self's shape and dtype.

    >>> Tensor([1.0, -2.0]).positive().tolist()
    [1.0, -2.0]
    """
    return self._same()


def bitwise_invert(self: AnyTensor) -> AnyTensor:
    """The complement of every bit, in self's shape and dtype; of bools the negation. DTypeError for floats.

    >>> Tensor([0, 5]).bitwise_invert().tolist()
    [-1, -6]
    """
    if self.dtype.is_float:
        raise DTypeError(f"~ does not work on {self.dtype}", place=caller(), expected="integers or bools")
    return self._like(~self.uop)


def less(self: AnyTensor, other: Any) -> AnyTensor:
    """self < other as bool, element by element: shapes broadcast, dtypes promote; False if either is NaN.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2, 3]).less(2).tolist()
    [True, False, False]
    """
    return _compared(self, Op.Lt, other)


def less_equal(self: AnyTensor, other: Any) -> AnyTensor:
    """self <= other as bool, element by element: shapes broadcast, dtypes promote; False if either is NaN.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2, 3]).less_equal(2).tolist()
    [True, True, False]
    """
    return _compared(self, Op.Le, other)


def greater(self: AnyTensor, other: Any) -> AnyTensor:
    """self > other as bool, element by element: shapes broadcast, dtypes promote; False if either is NaN.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2, 3]).greater(2).tolist()
    [False, False, True]
    """
    return _compared(self, Op.Gt, other)


def greater_equal(self: AnyTensor, other: Any) -> AnyTensor:
    """self >= other as bool, element by element: shapes broadcast, dtypes promote; False if either is NaN.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2, 3]).greater_equal(2).tolist()
    [False, True, True]
    """
    return _compared(self, Op.Ge, other)


def add(self: AnyTensor, other: Any) -> AnyTensor:
    """self + other, element by element: shapes broadcast, dtypes promote, integers wrap; of two bools, their or.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2]).add([[10], [20]]).tolist()
    [[11, 12], [21, 22]]
    """
    return _binary(self, Op.Add, other)


def sub(self: AnyTensor, other: Any) -> AnyTensor:
    """self - other, element by element: shapes broadcast, dtypes promote, integers wrap.

    DTypeError for two bools, ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([5, 7]).sub([1, 2]).tolist()
    [4, 5]
    """
    return _binary(self, Op.Sub, other)


def mul(self: AnyTensor, other: Any) -> AnyTensor:
    """self * other, element by element: shapes broadcast, dtypes promote, integers wrap; of two bools, their and.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([5, 7]).mul([1, 2]).tolist()
    [5, 14]
    """
    return _binary(self, Op.Mul, other)


def quotient_dtype(d: DType) -> DType:
    """The dtype of quotients of tensors of dtype `d`."""
    return arithmetic(d) if d.is_float else DEFAULT_FLOAT


def div(self: AnyTensor, other: Any) -> AnyTensor:
    """self / other, element by element, as floats: shapes broadcast, dtypes promote, two integers give f32.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, -6]).div([4, 3]).tolist()
    [0.25, -2.0]
    """
    a, b = operands(self, other, quotient_dtype(self.dtype))
    if not a.dtype.is_float:
        a, b = cast_to(a, DEFAULT_FLOAT), cast_to(b, DEFAULT_FLOAT)
    return self._like(a / b)


def floor_divide(self: AnyTensor, other: Any) -> AnyTensor:
    """self / other rounded down, element by element: shapes broadcast, dtypes promote.

    An integer divisor 0 gives 0. ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([7, -7]).floor_divide(2).tolist()
    [3, -4]
    """
    return _total(self, other, "//", division.floor_divide, division.float_floor_divide)


def mod(self: AnyTensor, other: Any) -> AnyTensor:
    """The remainder of `self // other`, element by element, with the sign of `other`: shapes broadcast, dtypes promote.

    An integer divisor 0 gives 0. ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([7, -7]).mod(3).tolist()
    [1, 2]
    """
    return _total(self, other, "%", division.floor_modulo, division.float_floor_modulo)


def pow(self: AnyTensor, other: Any) -> AnyTensor:
    """self ** other, element by element: shapes broadcast, dtypes promote, integers wrap.

    A negative integer exponent gives 0, or a power of 1 or -1. ShapeError unless the shapes broadcast, DeviceError for a
    tensor of another device.

    >>> Tensor([2, 3]).pow(2).tolist()
    [4, 9]
    """
    return _total(self, other, "**", _power, _power)


def neg(self: AnyTensor) -> AnyTensor:
    """-self, element by element, in self's shape and dtype; unsigned integers wrap. DTypeError for bools.

    >>> Tensor([1, -2]).neg().tolist()
    [-1, 2]
    """
    return numeric(self, Op.Neg)


def abs(self: AnyTensor) -> AnyTensor:
    """The magnitude of each element, in self's shape and dtype; the least integer wraps to itself.

    >>> Tensor([1.5, -2.0]).abs().tolist()
    [1.5, 2.0]
    """
    return self._same() if self.dtype.is_bool or self.dtype.is_unsigned else numeric(self, Op.Abs)


def eq(self: AnyTensor, other: Any) -> AnyTensor:
    """self == other as bool, element by element: shapes broadcast, dtypes promote; False if either is NaN.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2, 3]).eq(2).tolist()
    [False, True, False]
    """
    return _compared(self, Op.Eq, other)


def ne(self: AnyTensor, other: Any) -> AnyTensor:
    """self != other as bool, element by element: shapes broadcast, dtypes promote; True if either is NaN.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 2, 3]).ne(2).tolist()
    [True, False, True]
    """
    return _compared(self, Op.Ne, other)


def maximum(self: AnyTensor, other: Any) -> AnyTensor:
    """The greater of self and other, element by element: shapes broadcast, dtypes promote; NaN if either is.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 5]).maximum(3).tolist()
    [3, 5]
    """
    return _binary(self, Op.Max, other)


def minimum(self: AnyTensor, other: Any) -> AnyTensor:
    """The lesser of self and other, element by element: shapes broadcast, dtypes promote; NaN if either is.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([1, 5]).minimum(3).tolist()
    [1, 3]
    """
    return _binary(self, Op.Min, other)


def logical_not(self: AnyTensor) -> AnyTensor:
    """True where an element is 0 (NaN is not), as bool in self's shape.

    >>> Tensor([0.0, 2.0]).logical_not().tolist()
    [True, False]
    """
    return self._like(~cast_to(self.uop, dtypes.bool))


def logical_and(self: AnyTensor, other: Any) -> AnyTensor:
    """True where neither element is 0, as bool: shapes broadcast.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([0, 1, 2]).logical_and([1, 0, 3]).tolist()
    [False, False, True]
    """
    return self.bool() & self._make(operand(self, other), self.device).bool()


def logical_or(self: AnyTensor, other: Any) -> AnyTensor:
    """True where at least one element is not 0, as bool: shapes broadcast.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([0, 1, 0]).logical_or([1, 0, 0]).tolist()
    [True, True, False]
    """
    return self.bool() | self._make(operand(self, other), self.device).bool()


def logical_xor(self: AnyTensor, other: Any) -> AnyTensor:
    """True where exactly one of two elements is 0, as bool: shapes broadcast.

    ShapeError unless the shapes broadcast, DeviceError for a tensor of another device.

    >>> Tensor([0, 1, 2]).logical_xor([1, 0, 3]).tolist()
    [True, True, False]
    """
    return self.bool() ^ self._make(operand(self, other), self.device).bool()
