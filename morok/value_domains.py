"""Domains: the numbers and conditions over which the meaning of an op is read.

A meaning is written once, as a function of a domain and of values of it. The interpreter hands in integers, the prover integers
of which it knows what a rule says; what they have in common is here, with the places of things in order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar


class Number(Protocol):
    """A number of a domain."""

    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...


N = TypeVar("N", bound=Number)
C = TypeVar("C")


class Domain(NamedTuple, Generic[N, C]):
    """Numbers, which add, subtract and multiply by Python's operators, and conditions on them.

    number   an integer as a number
    equal    a == b
    below    a < b
    at_most  a <= b
    inside   0 <= i < n
    both     the conjunction of two conditions
    either   the disjunction of two conditions
    choose   the first of two numbers where a condition holds, else the second
    first    the reading of the first of n things, by their numbers, of which a condition holds; of the last where of none
    """

    number: Callable[[int], N]
    equal: Callable[[N, N], C]
    below: Callable[[N, N], C]
    at_most: Callable[[N, N], C]
    inside: Callable[[N, N], C]
    both: Callable[[C, C], C]
    either: Callable[[C, C], C]
    choose: Callable[[C, N, N], N]
    first: Callable[[int, Callable[[int], C], Callable[[int], Any]], Any]


def _first(n: int, condition: Callable[[int], bool], read: Callable[[int], Any]) -> Any:
    return read(next((k for k in range(n - 1) if condition(k)), n - 1))


INTEGERS: Final[Domain[int, bool]] = Domain(
    number=int,
    equal=operator.eq,
    below=operator.lt,
    at_most=operator.le,
    inside=lambda i, n: 0 <= i < n,
    both=operator.and_,
    either=operator.or_,
    choose=lambda condition, yes, no: yes if condition else no,
    first=_first,
)


def row_major(zero: N, index: Iterable[N], sizes: Iterable[N]) -> N:
    """The place of an index vector in row-major order, in which the last axis runs fastest."""
    place = zero
    for i, n in zip(index, sizes, strict=True):
        place = place * n + i
    return place


def index_at(place: N, sizes: Sequence[N], divide: Callable[[N, N], tuple[N, N]]) -> list[N]:
    """The index vector of a place in row-major order, which is one of so many; `divide` gives quotient and remainder."""
    index: list[N] = []
    for n in reversed(sizes[1:]):
        place, digit = divide(place, n)
        index.append(digit)
    return [place, *reversed(index)] if sizes else []


def starts(zero: N, lengths: Iterable[N]) -> tuple[list[N], N]:
    """The places at which things of these lengths begin that lie behind one another, and the place where they end."""
    found, place = [], zero
    for n in lengths:
        found.append(place)
        place = place + n
    return found, place


def behind(on: Domain[N, Any], i: N, lengths: Sequence[N], read: Callable[[int, N], Any]) -> Any:
    """The reading of place i of things behind one another: of the first one that ends beyond it, by its number and the place
    within it.
    """
    begins, _ = starts(on.number(0), lengths)
    return on.first(len(lengths), lambda k: on.below(i, begins[k] + lengths[k]), lambda k: read(k, i - begins[k]))
