"""The roles of ops that rearrange lanes (morok.dialect.OpInfo): which lanes of the operands the lanes of the result are.

A lane may be anything: a value, the reads that it came from, a node, a term. Vectors are tuples here; a proof about any number of
lanes reads the places below, which say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from morok.value_domains import N

T = TypeVar("T")


def lane(lanes: Sequence[T], k: int) -> T:
    """Lane k of an operand of an op that works lane by lane: the only lane of a scalar serves all."""
    return lanes[k] if len(lanes) > 1 else lanes[0]


def take(lanes: Sequence[T], places: Iterable[int]) -> tuple[T, ...]:
    """The lanes at these places. IndexError for one that is not there."""
    return tuple([lanes[i] for i in places])


def join(vectors: Iterable[Iterable[T]]) -> tuple[T, ...]:
    """The lanes of all vectors, behind one another."""
    return tuple([one for vector in vectors for one in vector])


def opened(lanes: Sequence[T], iteration: int, own: int) -> tuple[T, ...]:
    """The lanes of an iteration of opened axes, each of which has so many; iterations are numbered in row-major order."""
    return tuple(lanes[opened_place(iteration, own, 0) : opened_place(iteration, own, own)])


def groups(lanes: Sequence[T], count: int) -> list[tuple[T, ...]]:
    """The lanes that each of `count` lanes of a fold is folded from: neighbours."""
    each = len(lanes) // count
    return [opened(lanes, k, each) for k in range(count)]


# Places of any number of lanes. Those of "take" are its field, and those of "join" are `value_domains.behind`.


def opened_place(iteration: N, own: N, lane: N) -> N:
    """The place, among the lanes of all iterations, of a lane of one."""
    place: N = iteration * own + lane
    return place


def closed_place(lane: N, own: N, divide: Callable[[N, N], tuple[N, N]]) -> tuple[N, N]:
    """(the iteration, its lane) of a lane of closed axes: those of all iterations lie side by side, as `join` has them."""
    return divide(lane, own)
