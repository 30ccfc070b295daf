"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.argument_checks import MOST, matrices, only_tensors, whole
from morok.tensor.axis_reductions import HALVES, positions_along, reduce_axes
from morok.tensor.base import AnyTensor, arithmetic, namesakes, show
from morok.tensor.elementwise_operands import as_operand
from morok.tensor.view_methods import axis_of, broadcast_shapes


def matmul(self: AnyTensor, other: Any) -> AnyTensor:
    """The matrix product [.., M, K] @ [.., K, N] -> [.., M, N]; a vector on either side loses its axis, batches broadcast.

    Integers are multiplied and added in their own dtype, halves as f32 and rounded once. ShapeError, with both shapes,
    unless the inner sizes are equal and the batches broadcast; DeviceError for a tensor of another device.

    >>> Tensor([[1, 2], [3, 4]]).matmul([[1], [10]]).tolist()
    [[21], [43]]
    """
    y = as_operand(self, other)
    if self.ndim == 0 or y.ndim == 0:
        raise _unfit(self, y, "at least one axis on both sides")
    inner = y.shape[max(y.ndim - 2, 0)]
    if self.shape[-1] != inner:
        raise _unfit(self, y, f"the inner dimensions {self.shape[-1]} and {inner} to be equal")
    a = self if self.ndim > 1 else self.unsqueeze(0)
    b = y if y.ndim > 1 else y.unsqueeze(1)
    try:
        broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ShapeError:
        raise _unfit(self, y, "batch dimensions that broadcast") from None
    d = arithmetic(promote(a.dtype, b.dtype))
    wide = dtypes.f32 if d in HALVES else d
    # [.., M, 1, K] * [.., 1, N, K], summed over K
    product = a.unsqueeze(-2).cast(wide) * b.transpose(-1, -2).unsqueeze(-3).cast(wide)
    out = product.any(-1) if d.is_bool else reduce_axes(product, Op.Add, -1, keepdim=False).cast(d)
    if self.ndim == 1:
        out = out.squeeze(-2)
    return out.squeeze(-1) if y.ndim == 1 else out


def _unfit(x: AnyTensor, other: AnyTensor, expected: str) -> ShapeError:
    return ShapeError(
        f"shapes {show(x.shape)} and {show(other.shape)} cannot be multiplied as matrices",
        place=caller(),
        expected=expected,
        hint=namesakes((*x.shape, *other.shape)) or "transpose one side?",
    )


def dot(self: AnyTensor, other: Any) -> AnyTensor:
    """The matrix product [.., M, K] @ [.., K, N] -> [.., M, N]: matmul() by NumPy's name. ShapeError as for matmul().

    >>> Tensor([1, 2, 3]).dot([4, 5, 6]).item()
    32
    """
    return self.matmul(other)


def linear(self: AnyTensor, weight: AnyTensor, bias: AnyTensor | None = None) -> AnyTensor:
    """self @ weight.T + bias, [.., out], of self [.., in] with a weight [out, in] and a bias [out].

    ShapeError unless the weight is a matrix with self's last size, DTypeError for anything but tensors.

    >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0, 1.0], [0.0, 2.0]]), Tensor([0.0, 1.0])).tolist()
    [[3.0, 5.0]]
    """
    only_tensors([weight] if bias is None else [weight, bias], "linear")
    if weight.ndim != 2:
        raise ShapeError(f"linear with a weight of shape {show(weight.shape)}", place=caller(), expected="[out, in]")
    out = self @ weight.transpose(0, 1)
    return out if bias is None else out + bias


def outer(self: AnyTensor, other: AnyTensor) -> AnyTensor:
    """The products of all pairs from two vectors [M] and [N], as [M, N]; other shapes are flattened.

    DeviceError for a tensor of another device.

    >>> Tensor([1, 2]).outer([3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    y = as_operand(self, other)
    return self.reshape(-1, 1) * y.reshape(1, -1)


def tril(self: AnyTensor, diagonal: int = 0) -> AnyTensor:
    """The elements on and below a diagonal of the last two axes, 0 above, in self's shape and dtype.

    AxisError for fewer than two axes.

    >>> Tensor([[1, 2], [3, 4]]).tril().tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle(self, diagonal, lower=True)


def triu(self: AnyTensor, diagonal: int = 0) -> AnyTensor:
    """The elements on and above a diagonal of the last two axes, 0 below, in self's shape and dtype.

    AxisError for fewer than two axes.

    >>> Tensor([[1, 2], [3, 4]]).triu(1).tolist()
    [[0, 2], [0, 0]]
    """
    return _triangle(self, diagonal, lower=False)


def _triangle(x: AnyTensor, diagonal: int, lower: bool) -> AnyTensor:
    matrices(x, "tril()" if lower else "triu()")
    most = max(int(n.vmax) if isinstance(n, UOp) else n for n in (x.shape[axis_of(x, -2)], x.shape[-1]))
    d = dtypes.i32 if most < 1 << 30 else dtypes.i64
    # a diagonal outside the matrix is clamped to its corner
    row = positions_along(x, axis_of(x, -2), d) + max(-most, min(whole(diagonal, "diagonal", -MOST), most))
    column = positions_along(x, axis_of(x, -1), d)
    inside = column <= row if lower else column >= row
    return x._like(inside.where(x, False if x.dtype.is_bool else 0).uop)
