"""Losses: the distance of a prediction from a target, as one number, or one an example (`reduction="none"`)."""

from __future__ import annotations

from typing import Any, Final, Self

from morok.arguments import choice, real
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import dtypes
from morok.ir.uop import UOp
from morok.tensor.arguments import MOST, known, only_tensors, whole
from morok.tensor.base import show
from morok.tensor.norm import Norm

_REDUCTIONS: Final = ("mean", "sum", "none")


class Loss(Norm):
    """The `reduction` is "mean", "sum" or "none"."""

    __slots__ = ()

    def _reduced(self, reduction: str) -> Self:
        if choice(reduction, "reduction", _REDUCTIONS, DTypeError) == "mean":
            return self.mean()
        return self.sum() if reduction == "sum" else self

    def _same_shape(self, other: Any, what: str) -> Self:
        wanted = self._other(other)
        if wanted.shape != self.shape:
            raise ShapeError(
                f"{what} of shapes {show(self.shape)} and {show(wanted.shape)}", place=caller(), expected="one shape"
            )
        return self._like(wanted.uop)

    def mse_loss(self, target: Any, reduction: str = "mean") -> Self:
        """The squared distances (self - target)**2 of two tensors of one shape, their mean by default.

        reduction  "mean", "sum", or "none" for self's shape

        ShapeError for another shape, DTypeError for another reduction.

        >>> Tensor([1.0, 2.0]).mse_loss([0.0, 4.0]).item()
        2.5
        """
        difference = self - self._same_shape(target, "mse_loss")
        return (difference * difference)._reduced(reduction)

    def l1_loss(self, target: Any, reduction: str = "mean") -> Self:
        """The distances |self - target| of two tensors of one shape, their mean by default.

        reduction  "mean", "sum", or "none" for self's shape

        ShapeError for another shape, DTypeError for another reduction.

        >>> Tensor([1.0, 2.0]).l1_loss([0.0, 4.0]).item()
        1.5
        """
        return (self - self._same_shape(target, "l1_loss")).abs()._reduced(reduction)

    def binary_cross_entropy(self, target: Any, reduction: str = "mean") -> Self:
        """-(y log x + (1 - y) log(1 - x)) of probabilities x = self and targets y of self's shape, their mean by default.

        reduction  "mean", "sum", or "none" for self's shape

        The logarithms are kept above -100, so no loss is infinite. ShapeError for another shape, DTypeError for another
        reduction.

        >>> Tensor([0.0, 1.0]).binary_cross_entropy([0.0, 0.0]).item()
        50.0
        """
        y, x = self._same_shape(target, "binary_cross_entropy")._wide(), self._wide()
        out = -(y * x.log().maximum(-100.0) + (1.0 - y) * (-x).log1p().maximum(-100.0))
        return out._reduced(reduction)._rounded_to(self)

    def binary_cross_entropy_with_logits(self, target: Any, reduction: str = "mean") -> Self:
        """binary_cross_entropy() of sigmoid(self) without overflow, with targets of self's shape, the mean by default.

        reduction  "mean", "sum", or "none" for self's shape

        ShapeError for another shape, DTypeError for another reduction.

        >>> Tensor([1000.0]).binary_cross_entropy_with_logits([0.0]).item()
        1000.0
        """
        y, x = self._same_shape(target, "binary_cross_entropy_with_logits")._wide(), self._wide()
        out = x.maximum(0) - x * y + (-x.abs()).exp().log1p()
        return out._reduced(reduction)._rounded_to(self)

    def nll_loss(self, target: Any, weight: Self | None = None, ignore_index: int | None = None, reduction: str = "mean") -> Self:
        """-x[n, target[n, ..], ..] of log probabilities x = self [N, C, ..] and classes [N, ..] (or [C] and ()), their mean.

        weight        [C]: a factor for each class; the mean is the weighted one
        ignore_index  a class without loss
        reduction     "mean", "sum", or "none" for the shape of the target

        A target outside 0..C has no loss. ShapeError where the shapes do not fit, DTypeError for classes that are not
        integers and for another reduction.

        >>> Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss([0, 1]).item()
        2.5
        """
        losses, counts = self._wide()._class_losses(self._classes(target, "nll_loss"), weight, ignore_index, 0.0)
        return losses._averaged(counts, reduction)._rounded_to(self)

    def cross_entropy(
        self,
        target: Any,
        weight: Self | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Self:
        """nll_loss() of the log_softmax() of logits self [N, C, ..] (or [C]); a target of self's shape is probabilities.

        weight           [C]: a factor for each class; the mean is the weighted one
        ignore_index     a class without loss
        reduction        "mean", "sum", or "none" for the shape of the classes
        label_smoothing  the part of each target that is spread over all classes, in 0..=1

        ShapeError where the shapes do not fit and for another smoothing, DTypeError for another reduction.

        >>> Tensor([[0.0, -1000.0]]).cross_entropy([0]).item()
        0.0
        """
        wanted = self._other(target)
        label_smoothing = real(label_smoothing, "label_smoothing", 0.0, 1.0, ShapeError)
        logs = self._wide().log_softmax(min(1, self.ndim - 1))
        if wanted.dtype.is_float:
            y = self._same_shape(wanted, "cross_entropy")._wide() * (1.0 - label_smoothing)
            y = y + label_smoothing / known(self, min(1, self.ndim - 1), "cross_entropy")
            losses = -(logs * y * logs._of_classes(weight)).sum(min(1, self.ndim - 1))
            return self._like(losses._reduced(reduction)._rounded_to(self).uop)
        losses, counts = logs._class_losses(self._classes(wanted, "cross_entropy"), weight, ignore_index, label_smoothing)
        return losses._averaged(counts, reduction)._rounded_to(self)

    def _classes(self, target: Any, what: str) -> Self:
        """Integer classes for [N, C, ..], checked."""
        classes = self._other(target)
        if not classes.dtype.is_int:
            raise DTypeError(f"{what} of classes of {classes.dtype}", place=caller(), expected="integers")
        if self.ndim == 0 or classes.shape != (self.shape[:1] + self.shape[2:] if self.ndim > 1 else ()):
            raise ShapeError(
                f"{what} of shapes {show(self.shape)} and {show(classes.shape)}",
                place=caller(),
                expected="[N, C, ..] and [N, ..]",
            )
        return self._like(classes.uop.cast(dtypes.i64))

    def _of_classes(self, weight: Self | None) -> Self:
        """The weight of each class, in a shape that broadcasts with [N, C, ..]."""
        a = min(1, self.ndim - 1)
        if weight is None:
            return self._like(UOp.const(1.0, self.dtype))
        only_tensors([weight], "a weight of classes")
        if weight.shape != (self.shape[a],):
            raise ShapeError(f"a weight of shape {show(weight.shape)}", place=caller(), expected=f"({self.shape[a]},)")
        return weight.cast(self.dtype).reshape((-1, *(1,) * (self.ndim - 1 - a)))

    def _class_losses(
        self, classes: Self, weight: Self | None, ignored: int | None, smoothing: float
    ) -> tuple[Self, Self | None]:
        """The loss of each example, from logarithms of probabilities; and its weight (None: 1 for all)."""
        a = min(1, self.ndim - 1)
        counts = self._of_classes(weight)
        hit = self._positions(a, dtypes.i64) == classes.unsqueeze(a)
        if ignored is not None:
            ignored = whole(ignored, "ignore_index", -MOST)
            hit = hit & classes.ne(ignored).unsqueeze(a)
        losses = hit.where(-self * counts, 0.0).sum(a)
        if smoothing:
            everywhere = -(self * counts).mean(a)
            if ignored is not None:
                everywhere = classes.ne(ignored).where(everywhere, 0.0)
            losses = losses * (1.0 - smoothing) + everywhere * smoothing
        return losses, None if weight is None and ignored is None else hit.where(counts, 0.0).sum(a)

    def _averaged(self, counts: Self | None, reduction: str) -> Self:
        if counts is None or choice(reduction, "reduction", _REDUCTIONS, DTypeError) != "mean":
            return self._reduced(reduction)
        return self.sum() / counts.sum()
