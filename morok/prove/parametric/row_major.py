"""Row-major places of index vectors by parts: shapes of which some axes are named, with any number of others around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.rule_values import Indices, Items, Vector
from morok.prove.parametric.setting import Setting
from morok.prove.smt import Expr

FARTHEST: Final = 3  # axes of the one shape between those that another shape has, too

Parts = tuple[tuple[Integer, Integer], ...]  # where each begins, and how many axes it has


def parts_of(found: Sequence[Items | Vector]) -> Parts:
    """The parts of a sequence, as they are written."""
    out: list[tuple[Integer, Integer]] = []
    start = integer(0)
    for part in found:
        length = part.length if isinstance(part, Items) else integer(1)
        if length.known is None:
            out.append((start, length))
        else:
            out += _single(start, start + length)
        start = start + length
    return tuple(out)


def several(parts: Parts) -> bool:
    """True if a sequence is written as several parts, some of any length."""
    return len(parts) > 1 and any(length.known is None for _, length in parts)


def aligned(s: Setting, rank: Integer, size: Indices, parts: Parts, other: Indices) -> Parts | None:
    """The parts of a shape that lie as those of another one do, with single axes between them; None where they do not."""
    out: list[tuple[Integer, Integer]] = []
    position = integer(0)
    for start, length in parts:
        if length.known is not None:
            continue
        begin = next(
            (b for b in (position + c for c in range(FARTHEST)) if _alike(s, length, size, b, other, start)), None
        )
        if begin is None:
            return None
        out += _single(position, begin)
        out.append((begin, length))
        position = begin + length
    left = (rank - position).known
    if left is None or not 0 <= left <= FARTHEST:
        return None
    return (*out, *_single(position, rank))


def _alike(s: Setting, length: Integer, one: Indices, begin: Integer, other: Indices, start: Integer) -> bool:
    """True if two shapes have the same sizes at so many axes."""
    with s.anywhere() as place, s.inside(place, length):
        return one(begin + place).same(other(start + place))


def _single(begin: Integer, end: Integer) -> list[tuple[Integer, Integer]]:
    return [(begin + k, integer(1)) for k in range((end - begin).known or 0)]


def part_of_shape(s: Setting, size: Indices, start: Integer, length: Integer) -> Expr:
    """Some axes of a shape, as a shape."""
    made = s.tuple_of(length, lambda k: laws.NUMBER(size(start + k).term))
    s.pieces.add(made)
    return made


Digit = tuple[Expr, Expr]  # a number of elements, and a place among them


def digits(s: Setting, size: Indices, i: Indices | None, parts: Parts) -> list[Digit]:
    """The parts of an index vector as digits of its place; single axes that lie side by side are one."""
    out: list[Digit] = []
    single: tuple[Integer, Integer] | None = None
    for start, length in (*parts, (integer(0), integer(0))):
        if length.known == 1:
            count, place = single or (integer(1), integer(0))
            single = count * size(start), place * size(start) + (integer(0) if i is None else i(start))
            continue
        if single is not None:
            out.append((single[0].term, single[1].term))
            single = None
        if length.known is None:
            shape = part_of_shape(s, size, start, length)
            out.append((laws.SIZE(shape), shape if i is None else laws.FLAT(shape, part_of_shape(s, i, start, length))))
    return out
