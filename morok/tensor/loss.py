"""Losses: the distance of a prediction from a target, as one number, or one for each example (`reduction="none"`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from morok.arguments import choice, real
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import dtypes
from morok.ir.uop import UOp
from morok.tensor.argument_checks import MOST, known, only_tensors, whole
from morok.tensor.axis_reductions import positions_along
from morok.tensor.base import AnyTensor, show
from morok.tensor.elementwise_operands import as_operand, operands, rounded_to, wide_float

_REDUCTIONS: Final = ("mean", "sum", "none")


def _reduced(x: AnyTensor, reduction: str) -> AnyTensor:
    if choice(reduction, "reduction", _REDUCTIONS, DTypeError) == "mean":
        return x.mean()
    return x.sum() if reduction == "sum" else x


def _same_shape(x: AnyTensor, other: Any, what: str) -> AnyTensor:
    wanted = as_operand(x, other)
    if wanted.shape != x.shape:
        raise ShapeError(
            f"{what} of shapes {show(x.shape)} and {show(wanted.shape)}", place=caller(), expected="one shape"
        )
    return x._like(wanted.uop)


def _targets(x: AnyTensor, y: AnyTensor) -> AnyTensor:
    """The targets `y` as floats: integers, as 0 and 1, at x's dtype."""
    return wide_float(y) if y.dtype.is_float else y.cast(x.dtype)


def _reduced_difference(
    x: AnyTensor, target: AnyTensor, of: Callable[[AnyTensor], AnyTensor], reduction: str
) -> AnyTensor:
    """The loss `of` x - target, as a float of the dtype of both."""
    a, b = (x._like(node) for node in operands(x, target))
    return rounded_to(_reduced(of(wide_float(a) - wide_float(b)), reduction), a)


def mse_loss(self: AnyTensor, target: Any, reduction: str = "mean") -> AnyTensor:
    """The squared distances (self - target)**2 of two tensors of one shape as floats, their mean by default.

    reduction  "mean", "sum", or "none" for self's shape

    ShapeError for another shape, DTypeError for another reduction.

    >>> Tensor([1.0, 2.0]).mse_loss([0.0, 4.0]).item()
    2.5
    """
    return _reduced_difference(self, _same_shape(self, target, "mse_loss"), lambda d: d * d, reduction)


def l1_loss(self: AnyTensor, target: Any, reduction: str = "mean") -> AnyTensor:
    """The distances |self - target| of two tensors of one shape as floats, their mean by default.

    reduction  "mean", "sum", or "none" for self's shape

    ShapeError for another shape, DTypeError for another reduction.

    >>> Tensor([1.0, 2.0]).l1_loss([0.0, 4.0]).item()
    1.5
    """
    return _reduced_difference(self, _same_shape(self, target, "l1_loss"), lambda d: d.abs(), reduction)


def binary_cross_entropy(self: AnyTensor, target: Any, reduction: str = "mean") -> AnyTensor:
    """-(y log x + (1 - y) log(1 - x)) of probabilities x = self and targets y of self's shape, their mean by default.

    reduction  "mean", "sum", or "none" for self's shape

    Logarithms are clamped to -100 from below, so no loss is infinite. ShapeError for another shape, DTypeError for another
    reduction.

    >>> Tensor([0.0, 1.0]).binary_cross_entropy([0.0, 0.0]).item()
    50.0
    """
    x = wide_float(self)
    y = _targets(x, _same_shape(self, target, "binary_cross_entropy"))
    out = -(y * x.log().maximum(-100.0) + (1.0 - y) * (-x).log1p().maximum(-100.0))
    return rounded_to(_reduced(out, reduction), self)


def binary_cross_entropy_with_logits(self: AnyTensor, target: Any, reduction: str = "mean") -> AnyTensor:
    """binary_cross_entropy() of sigmoid(self) without overflow, with targets of self's shape, the mean by default.

    reduction  "mean", "sum", or "none" for self's shape

    ShapeError for another shape, DTypeError for another reduction.

    >>> Tensor([1000.0]).binary_cross_entropy_with_logits([0.0]).item()
    1000.0
    """
    x = wide_float(self)
    y = _targets(x, _same_shape(self, target, "binary_cross_entropy_with_logits"))
    out = x.maximum(0) - x * y + (-x.abs()).exp().log1p()
    return rounded_to(_reduced(out, reduction), self)


def nll_loss(
    self: AnyTensor,
    target: Any,
    weight: AnyTensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> AnyTensor:
    """-x[n, target[n, ..], ..] of log probabilities x = self [N, C, ..] and classes [N, ..] (or [C] and ()), their mean.

    weight        [C]: a factor for each class; the mean is the weighted one
    ignore_index  a class without loss
    reduction     "mean", "sum", or "none" for the shape of the target

    A target outside 0..C has loss 0. ShapeError if the shapes do not fit, DTypeError for classes that are not integers and
    for another reduction.

    >>> Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss([0, 1]).item()
    2.5
    """
    losses, counts = _class_losses(wide_float(self), _classes(self, target, "nll_loss"), weight, ignore_index, 0.0)
    return rounded_to(_averaged(losses, counts, reduction), self)


def cross_entropy(
    self: AnyTensor,
    target: Any,
    weight: AnyTensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> AnyTensor:
    """nll_loss() of log_softmax() of logits self [N, C, ..] (or [C]). A float target of self's shape is probabilities.

    weight           [C]: a factor for each class; the mean is the weighted one
    ignore_index     a class without loss
    reduction        "mean", "sum", or "none" for the shape of the classes
    label_smoothing  the part of each target that is spread over all classes, in 0..=1

    ShapeError if the shapes do not fit and for another smoothing, DTypeError for another reduction.

    >>> Tensor([[0.0, -1000.0]]).cross_entropy([0]).item()
    0.0
    """
    wanted = as_operand(self, target)
    label_smoothing = real(label_smoothing, "label_smoothing", 0.0, 1.0, ShapeError)
    logs = wide_float(self).log_softmax(min(1, self.ndim - 1))
    if wanted.dtype.is_float:
        y = wide_float(_same_shape(self, wanted, "cross_entropy")) * (1.0 - label_smoothing)
        y = y + label_smoothing / known(self, min(1, self.ndim - 1), "cross_entropy")
        losses = -(logs * y * _of_classes(logs, weight)).sum(min(1, self.ndim - 1))
        return self._like(rounded_to(_reduced(losses, reduction), self).uop)
    losses, counts = _class_losses(logs, _classes(self, wanted, "cross_entropy"), weight, ignore_index, label_smoothing)
    return rounded_to(_averaged(losses, counts, reduction), self)


def _classes(x: AnyTensor, target: Any, what: str) -> AnyTensor:
    """The target classes of `x` [N, C, ..] as i64 [N, ..]; DTypeError unless they are integers, ShapeError for other shapes."""
    classes = as_operand(x, target)
    if not classes.dtype.is_int:
        raise DTypeError(f"{what} of classes of {classes.dtype}", place=caller(), expected="integers")
    if x.ndim == 0 or classes.shape != (x.shape[:1] + x.shape[2:] if x.ndim > 1 else ()):
        raise ShapeError(
            f"{what} of shapes {show(x.shape)} and {show(classes.shape)}",
            place=caller(),
            expected="[N, C, ..] and [N, ..]",
        )
    return x._like(classes.uop.cast(dtypes.i64))


def _of_classes(x: AnyTensor, weight: AnyTensor | None) -> AnyTensor:
    """The weight of each class, in a shape that broadcasts with [N, C, ..]."""
    a = min(1, x.ndim - 1)
    if weight is None:
        return x._like(UOp.const(1.0, x.dtype))
    only_tensors([weight], "a weight of classes")
    if weight.shape != (x.shape[a],):
        raise ShapeError(f"a weight of shape {show(weight.shape)}", place=caller(), expected=f"({x.shape[a]},)")
    return weight.cast(x.dtype).reshape((-1, *(1,) * (x.ndim - 1 - a)))


def _class_losses(
    x: AnyTensor, classes: AnyTensor, weight: AnyTensor | None, ignored: int | None, smoothing: float
) -> tuple[AnyTensor, AnyTensor | None]:
    """(losses, weights) of the examples, from log probabilities `x`; the weights are None if all are 1."""
    a = min(1, x.ndim - 1)
    counts = _of_classes(x, weight)
    hit = positions_along(x, a, dtypes.i64) == classes.unsqueeze(a)
    if ignored is not None:
        ignored = whole(ignored, "ignore_index", -MOST)
        hit = hit & classes.ne(ignored).unsqueeze(a)
    losses = hit.where(-x * counts, 0.0).sum(a)
    if smoothing:
        everywhere = -(x * counts).mean(a)
        if ignored is not None:
            everywhere = classes.ne(ignored).where(everywhere, 0.0)
        losses = losses * (1.0 - smoothing) + everywhere * smoothing
    return losses, None if weight is None and ignored is None else hit.where(counts, 0.0).sum(a)


def _averaged(x: AnyTensor, counts: AnyTensor | None, reduction: str) -> AnyTensor:
    if counts is None or choice(reduction, "reduction", _REDUCTIONS, DTypeError) != "mean":
        return _reduced(x, reduction)
    return x.sum() / counts.sum()
