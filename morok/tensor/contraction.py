"""Einstein summation, and functions built on it.

Integers are multiplied and added in their own dtype, halves as f32 and rounded once.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, Unpack

from morok import arguments
from morok.arguments import real, refused
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.op import Op
from morok.tensor.argument_checks import MOST, known, matrices, only_tensors, whole
from morok.tensor.axis_reductions import HALVES, reduce_axes
from morok.tensor.base import AnyTensor, arithmetic, show
from morok.tensor.elementwise_operands import as_operand, rounded_to, wide_float
from morok.tensor.keywords import Along, Axis, Reducing, other_names
from morok.tensor.view_methods import Dim, axes_of, axis_of, pad_zero

Label = str | int  # an axis of a term: its letter; for the axes of `...` a negative number, -1 for the last


def einsum(kind: type[AnyTensor], formula: str, operands: Sequence[Any]) -> AnyTensor:
    """The sum of products in a formula, contracted from left to right, two operands at a time."""
    only_tensors(operands, "einsum")
    terms, result = _parsed(formula, [t.shape for t in operands])
    sizes = _sizes(formula, terms, [t.shape for t in operands])
    d = arithmetic(promote(*[t.dtype for t in operands]))
    work = dtypes.f32 if d in HALVES else d
    out, labels = _diagonals(operands[0].cast(work), terms[0])
    for k, (other, term) in enumerate(zip(operands[1:], terms[1:], strict=True), 2):
        later = {*result, *[x for t in terms[k:] for x in t]}
        theirs, axes = _diagonals(other.cast(work), term)
        out, labels = _contracted(out, labels, theirs, axes, later, sizes)
    out, labels = _summed(out, labels, set(result), sizes)
    out = out.permute(*[labels.index(x) for x in result])
    return kind._make(out.cast(d).uop, out.device)


def _diagonals(t: AnyTensor, term: Sequence[Label]) -> tuple[AnyTensor, list[Label]]:
    """The tensor with each letter once, and the letters of its axes: axes with the same letter are replaced by their diagonal."""
    x, labels = t, list(term)
    for label in dict.fromkeys(term):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = x.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return x, labels


def _contracted(
    t: AnyTensor, mine: list[Label], other: AnyTensor, theirs: list[Label], later: set[Label], sizes: dict[Label, Dim]
) -> tuple[AnyTensor, list[Label]]:
    labels = [*mine, *[x for x in theirs if x not in mine]]
    product = _over_labels(t, mine, labels) * _over_labels(other, theirs, labels)
    return _summed(product, labels, later, sizes)


def _over_labels(t: AnyTensor, mine: list[Label], labels: list[Label]) -> AnyTensor:
    """The tensor with one axis for each of `labels`, in their order; of size 1 for a label that it lacks."""
    ordered = t.permute(*[mine.index(x) for x in labels if x in mine])
    sizes = iter(ordered.shape)
    return ordered.reshape(tuple(next(sizes) if x in mine else 1 for x in labels))


def _summed(
    t: AnyTensor, labels: list[Label], kept: set[Label], sizes: dict[Label, Dim]
) -> tuple[AnyTensor, list[Label]]:
    """The sum over all labels but those in `kept`, and the labels of its axes; axes of size 1 are first broadcast to `sizes`."""
    over = [k for k, x in enumerate(labels) if x not in kept]
    x = t.expand(tuple(sizes[label] for label in labels))
    if over:
        x = x.any(tuple(over)) if x.dtype.is_bool else reduce_axes(x, Op.Add, tuple(over), keepdim=False)
    return x, [label for label in labels if label in kept]


def diagonal(self: AnyTensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> AnyTensor:
    """The elements at (i, i + offset) of two axes, as the new last axis. ShapeError for one axis twice.

    >>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()
    [1, 4]
    """
    a, b, offset = axis_of(self, axis1), axis_of(self, axis2), whole(offset, "offset", -MOST)
    if a == b:
        raise ShapeError(f"diagonal() was given axis {axis1} twice", place=caller(), expected="two different axes")
    x = self.permute(*[k for k in range(self.ndim) if k not in (a, b)], a, b)
    rows, columns = known(x, -2, "a diagonal"), known(x, -1, "a diagonal")
    top, left = max(-offset, 0), max(offset, 0)
    n = max(min(rows - top, columns - left), 0)
    lead = x.shape[:-2]
    none = [None] * len(lead)
    x = x.shrink([*none, (min(top, rows), min(top, rows) + n), (min(left, columns), min(left, columns) + n)])
    if n == 0:
        return x.reshape((*lead, 0))
    # in rows of n + 1 elements the diagonal is the first column
    flat = pad_zero(x.reshape((*lead, n * n)), [*none, (0, n)])
    return flat.reshape((*lead, n, n + 1)).shrink([*none, None, (0, 1)]).reshape((*lead, n))


def trace(self: AnyTensor, offset: int = 0, dtype: Any = None) -> AnyTensor:
    """The sum of the diagonal of the last two axes; dtypes as for sum(). AxisError for fewer than two axes.

    >>> Tensor([[1, 2], [3, 4]]).trace().item()
    5
    """
    matrices(self, "trace()")
    return self.diagonal(offset, -2, -1).sum(-1, dtype=dtype)


@other_names
def vecdot(self: AnyTensor, other: Any, axis: int = -1, **also: Unpack[Along]) -> AnyTensor:
    """The sum of products along `axis`, without that axis; the other axes broadcast, dtypes promote.

    ShapeError unless the axis has one size in both.

    >>> Tensor([1, 2, 3]).vecdot([4, 5, 6]).item()
    32
    """
    y = as_operand(self, other)
    a, b = self.moveaxis(axis, -1), y.moveaxis(axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"vecdot of shapes {show(self.shape)} and {show(y.shape)}",
            place=caller(),
            expected=f"the same size of axis {axis}",
        )
    return self._like(self.einsum("...i,...i->...", a, b).uop)


def tensordot(self: AnyTensor, other: Any, axes: int | Sequence[Sequence[int]] = 2) -> AnyTensor:
    """The sum of products over the last `axes` axes of self and the first of other; or over two lists of axes.

    ShapeError unless these axes have one size in both.

    >>> Tensor([[1, 2]]).tensordot(Tensor([[3], [4]]), 1).tolist()
    [[11]]
    """
    y = as_operand(self, other)
    if isinstance(axes, (tuple, list)):
        pair = [a if isinstance(a, (tuple, list)) else [a] for a in axes]
        if len(pair) != 2:
            raise refused(axes, "axes", "a number, or two lists of axes", ShapeError)
        mine, theirs = [axis_of(self, a) for a in pair[0]], [axis_of(y, a) for a in pair[1]]
    else:
        n = whole(axes, "axes", 0)
        if n > min(self.ndim, y.ndim):
            raise ShapeError(f"tensordot over {n} axes", place=caller(), expected=f"at most {min(self.ndim, y.ndim)}")
        mine, theirs = list(range(self.ndim - n, self.ndim)), list(range(n))
    if len(mine) != len(theirs) or any(self.shape[a] != y.shape[b] for a, b in zip(mine, theirs, strict=False)):
        raise ShapeError(
            f"tensordot of shapes {show(self.shape)} and {show(y.shape)} over {mine} and {theirs}",
            place=caller(),
            expected="axes of equal sizes",
        )
    letters = string.ascii_letters
    if self.ndim + y.ndim > len(letters):
        raise ShapeError(
            f"tensordot of {self.ndim} and {y.ndim} axes", place=caller(), expected=f"at most {len(letters)} together"
        )
    left = list(letters[: self.ndim])
    right = list(letters[self.ndim : self.ndim + y.ndim])
    for a, b in zip(mine, theirs, strict=True):
        right[b] = left[a]
    out = [x for k, x in enumerate(left) if k not in mine] + [x for k, x in enumerate(right) if k not in theirs]
    return self._like(self.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", self, y).uop)


@other_names
def vector_norm(
    self: AnyTensor, axis: Axis = None, keepdim: bool = False, ord: float = 2, **also: Unpack[Reducing]
) -> AnyTensor:
    """(sum |x|**ord)**(1/ord) over `axis` (None: all axes), as a float: Euclidean by default.

    For ord=inf the greatest |x|, for -inf the least, for 0 the number of nonzero elements. ShapeError for the least of no
    elements, AxisError for an axis outside the shape.

    >>> Tensor([3.0, 4.0]).vector_norm().item()
    5.0
    """
    x, ord = wide_float(self).abs(), real(ord, "ord")
    if ord == float("inf") and any(x.shape[a] == 0 for a in axes_of(x, axis)):
        out = x.sum(axis, keepdim)  # the norm of no elements is 0
    elif ord in (float("inf"), float("-inf")):
        out = x.max(axis, keepdim) if ord > 0 else x.min(axis, keepdim)
    elif ord == 0:
        out = x.ne(0).cast(x.dtype).sum(axis, keepdim)
    elif ord == 1:
        out = x.sum(axis, keepdim)
    elif ord == 2:
        out = (x * x).sum(axis, keepdim).sqrt()
    else:
        out = (x**ord).sum(axis, keepdim) ** (1.0 / ord)
    return rounded_to(out, self)


def _parsed(formula: str, shapes: Sequence[tuple[Dim, ...]]) -> tuple[list[list[Label]], list[Label]]:
    """(labels of each operand's axes, labels of the result's axes); ShapeError if the formula is malformed or does not fit."""
    text = arguments.text(formula, "the formula of einsum", ShapeError).replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")

    def wrong(expected: str) -> ShapeError:
        return ShapeError(f"einsum({formula!r}) of {len(shapes)} operands", place=caller(), expected=expected)

    if len(terms) != len(shapes) or not shapes:
        raise wrong(f"{len(terms)} operands, one a term")
    for term in [*terms, right]:
        plain = term.replace("...", "", 1)
        if not plain.isascii() or not (plain.isalpha() or not plain):
            raise wrong("letters, `...` once a term, commas between terms and `->` before the result")
    out: list[list[Label]] = []
    for term, shape in zip(terms, shapes, strict=True):
        named = len(term.replace("...", ""))
        more = len(shape) - named
        if more < 0 or (more and "..." not in term):
            raise wrong(f"a term of {len(shape)} axes for shape {show(shape)}, not {term!r}")
        out.append(_labels(term, more))
    widest = max((-min([0, *[x for x in t if isinstance(x, int)]]) for t in out), default=0)
    flat = [x for t in out for x in t]
    if arrow:
        result = _labels(right, widest)
    else:
        result = [*range(-widest, 0), *sorted(x for x in flat if isinstance(x, str) and flat.count(x) == 1)]
    if len(set(result)) != len(result) or not set(result) <= set(flat):
        raise wrong("a result of letters that operands have, each once")
    return out, result


def _labels(term: str, more: int) -> list[Label]:
    before, dots, after = term.partition("...")
    return [*before, *(range(-more, 0) if dots else ()), *after]


def _sizes(formula: str, terms: list[list[Label]], shapes: Sequence[tuple[Dim, ...]]) -> dict[Label, Dim]:
    sizes: dict[Label, Dim] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            before = sizes.setdefault(label, size)
            if isinstance(before, int) and before == 1:
                sizes[label] = size
            elif before is not size and before != size and not (isinstance(size, int) and size == 1):
                named = f"{label!r}" if isinstance(label, str) else "`...`"
                raise ShapeError(
                    f"einsum({formula!r}) of shapes {' and '.join(map(show, shapes))}",
                    place=caller(),
                    expected=f"one size for {named}, which is {before} and {size}",
                )
    return sizes
