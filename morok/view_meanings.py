"""Views, and ops that make tensors, over any domain: which element of an operand an element of the result is.

A shape and an index vector are functions of the axis. A view changes them axis by axis: each axis of its operand follows one axis
of the result. Reshape alone does not: it keeps the row-major place (morok.value_domains.row_major).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

from morok.value_domains import C, Domain, N, behind


class View(NamedTuple, Generic[N, C]):
    """A view of a tensor.

    size    the size of the result along an axis
    place   the index along an axis of the operand, at an index along the axis of the result that it follows
    fits    the condition, for every axis, under which there is such a view; no size and no number of elements is negative
    follows the axis of the result that an axis of the operand follows
    inside  the condition, for every axis, that the operand has an element there; where it has none, the element is 0
    """

    size: Callable[[N], N]
    place: Callable[[N, N], N]
    fits: Callable[[N], C] | None = None
    follows: Callable[[N], N] = lambda axis: axis
    inside: Callable[[N, N], C] | None = None


def padded_size(size: Any, begin: Any, end: Any, add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """The size of an axis with so many elements in front of it and behind it."""
    return add(add(size, begin), end)


def shrunk_size(begin: Any, end: Any, subtract: Callable[[Any, Any], Any] = operator.sub) -> Any:
    """The number of elements from `begin` on that are before `end`."""
    return subtract(end, begin)


def expand(on: Domain[N, C], size: Callable[[N], N], wanted: Callable[[N], N]) -> View[N, C]:
    """An axis of one element is repeated; any other is as it was."""
    one = on.number(1)
    return View(
        wanted,
        lambda k, i: on.choose(on.equal(size(k), one), on.number(0), i),
        lambda k: on.either(on.equal(size(k), one), on.equal(size(k), wanted(k))),
    )


def shrink(on: Domain[N, C], size: Callable[[N], N], begin: Callable[[N], N], end: Callable[[N], N]) -> View[N, C]:
    """The elements from `begin` on that are before `end`."""
    return View(
        lambda k: shrunk_size(begin(k), end(k)),
        lambda k, i: i + begin(k),
        lambda k: on.both(on.at_most(begin(k), end(k)), on.at_most(end(k), size(k))),
    )


def pad(on: Domain[N, C], size: Callable[[N], N], begin: Callable[[N], N], end: Callable[[N], N]) -> View[N, C]:
    """Zeros around the elements: `begin` of them in front, `end` behind."""
    return View(
        lambda k: padded_size(size(k), begin(k), end(k)),
        lambda k, i: i - begin(k),
        inside=lambda k, i: on.inside(i - begin(k), size(k)),
    )


def flip(on: Domain[N, C], size: Callable[[N], N], flipped: Callable[[N], C]) -> View[N, C]:
    """The elements in reverse along the axes that are flipped."""
    return View(size, lambda k, i: on.choose(flipped(k), size(k) - 1 - i, i))


def permute(size: Callable[[N], N], axes: Callable[[N], N], inverse: Callable[[N], N]) -> View[N, Any]:
    """Axis k of the result is axis `axes(k)` of the operand; `inverse` is that permutation's inverse."""
    return View(lambda k: size(axes(k)), lambda k, i: i, follows=inverse)


def concat(
    on: Domain[N, C], axis: N, lengths: Sequence[N], i: Callable[[N], N], read: Callable[[int, Callable[[N], N]], Any]
) -> Any:
    """The reading of an element of tensors behind one another along an axis: of which tensor it is, and its index there.

    lengths   their sizes along the axis
    """
    return behind(
        on,
        i(axis),
        lengths,
        lambda part, place: read(part, lambda k: on.choose(on.equal(k, axis), place, i(k))),
    )
