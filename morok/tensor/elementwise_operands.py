"""Operands of elementwise functions, brought to one dtype, shape and device; and results converted to the operands' dtype."""

from __future__ import annotations

from typing import Any

from morok.caller import caller
from morok.errors import DeviceError, DTypeError
from morok.ir.dtype import DType, dtypes, promote
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.tensor import creation
from morok.tensor.base import DEFAULT_FLOAT, AnyTensor, Lazy, arithmetic
from morok.tensor.casts import cast_to, run_time_number
from morok.tensor.scalars import constant, python_number, weak_dtype
from morok.tensor.view_methods import broadcast_shapes, expanded


def broadcast(uop: UOp, shape: Shape) -> UOp:
    """`uop` broadcast to `shape`; a scalar unchanged, since elementwise ops broadcast scalars implicitly."""
    return uop if shape_of(uop) == () else expanded(uop, shape)


def operand(x: Lazy, other: Any, d: DType | None = None) -> UOp:
    """The node of the operand `other` of an operator on `x`; a Python number gets dtype `d` (by default x's) if its kind fits.
    DeviceError for a tensor of another device.
    """
    if isinstance(other, Lazy):
        if other.device != x.device:
            raise DeviceError(
                f"tensors on {x.device} and {other.device} cannot be combined",
                place=caller(),
                expected="one device",
                hint="use .to()",
            )
        return other.uop
    if isinstance(other, UOp):
        return run_time_number(other)
    number = python_number(other)
    if number is not None:
        return constant(number, weak_dtype(d or x.dtype, number), x.device)
    # beside an f64 tensor, Python's floats in lists stay f64
    floats = dtypes.f64 if x.dtype is dtypes.f64 else DEFAULT_FLOAT
    return creation.from_data(other, None, x.device, floats)


def as_operand(x: AnyTensor, value: Any) -> AnyTensor:
    """`value` as a tensor on x's device, converted as an operand of an operator."""
    return x._like(operand(x, value))


def converted(x: AnyTensor, value: Any) -> UOp:
    """The node of `value` at x's dtype: Python's numbers, also in lists, are converted directly; tensors and arrays are cast."""
    number = python_number(value)
    if number is not None:
        return constant(number, x.dtype, x.device)
    if isinstance(value, (list, tuple)):
        return creation.from_data(value, x.dtype, x.device)
    return cast_to(operand(x, value), x.dtype)


def operands(x: AnyTensor, other: Any, numbers: DType | None = None) -> tuple[UOp, UOp]:
    """The nodes of both operands, promoted to one dtype and broadcast to one shape (scalars stay scalars).

    numbers  the dtype of a Python number, by default x's
    """
    a, b = x.uop, operand(x, other, numbers or arithmetic(x.dtype))
    d = arithmetic(promote(a.dtype, b.dtype))
    shape = broadcast_shapes(shape_of(a), shape_of(b))
    return broadcast(cast_to(a, d), shape), broadcast(cast_to(b, d), shape)


def float_node(x: AnyTensor) -> UOp:
    """The node of `x` at its float dtype for arithmetic; at the default float for integers."""
    return x.uop.cast(arithmetic(x.dtype)) if x.dtype.is_float else x.uop.cast(DEFAULT_FLOAT)


def unary(x: AnyTensor, op: Op) -> AnyTensor:
    """The result of a float function `op`; integers become the default float."""
    return x._like(UOp.new(op, (float_node(x),)))


def wide_float(x: AnyTensor) -> AnyTensor:
    """`x` as floats, halves as f32 and integers as f64: for functions of several steps that round once, by rounded_to()."""
    if not x.dtype.is_float:
        return x._like(x.uop.cast(dtypes.f64))  # f32 has no differences of integers beyond 2^24
    return x._like(x.uop.cast(dtypes.f32) if x.dtype.bits <= 16 else float_node(x))


def rounded_to(x: AnyTensor, like: Lazy) -> AnyTensor:
    """`x`, computed in wide_float(like), at the dtype of a float function of `like`."""
    return x.cast(arithmetic(like.dtype) if like.dtype.is_float else DEFAULT_FLOAT)


def numeric(x: AnyTensor, op: Op) -> AnyTensor:
    """The result of `op` on numbers of any dtype; DTypeError for bools."""
    if x.dtype.is_bool:
        raise DTypeError(
            f"{op.name} does not work on bools", place=caller(), expected="numbers", hint="logical_not() or cast()"
        )
    return x._like(UOp.new(op, (x.uop.cast(arithmetic(x.dtype)),)))
