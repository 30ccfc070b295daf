"""Columns of a tile in registers: how one lane of many vectors becomes a vector, in steps that the columns share.

A transposing kernel holds a tile as one vector a row, and stores one a column. Lane by lane that takes a move for every element;
joined in pairs, then pairs of pairs .., each step a shuffle of two registers, the columns of an n x n tile take n log2(n)
shuffles together. Lanes go together within the 128-bit parts of registers first, then the parts, as shuffle instructions like it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

_VECTORIZE: Final = Op.Vectorize
_GEP: Final = Op.Gep
PART_BYTES: Final = 16  # of a register: shuffles within such parts are the quickest
FEWEST: Final = 4  # rows from which steps are fewer than moves

Shuffle = Callable[[str, str, list[int]], str]  # the lanes of two vectors, one behind the other, that are numbered


def column(u: UOp) -> tuple[list[UOp], int] | None:
    """The rows and the lane, if the Vectorize `u` is one lane of a power of two of different vectors, no shorter than it is."""
    first = u.src[0]
    rows = [s.src[0] for s in u.src if s.op is _GEP and s.arg == first.arg]
    n, lanes = len(u.src), first.src[0].dtype.count if first.op is _GEP else 1
    tile = FEWEST <= n <= lanes and not n & (n - 1) and not lanes & (lanes - 1) and not u.dtype.is_bool
    if not tile or len(set(rows)) < n or any(r.dtype is not rows[0].dtype for r in rows):
        return None
    return rows, int(first.arg[0])


def columns(instructions: Sequence[UOp]) -> dict[UOp, tuple[list[UOp], int]]:
    """The columns among `instructions`, with their rows and lanes."""
    return {u: found for u in instructions if u.op is _VECTORIZE and (found := column(u)) is not None}


def join(rows: Sequence[str], lane: int, lanes: int, itemsize: int, shuffle: Shuffle) -> tuple[str, list[int]]:
    """A vector that holds lane `lane` of all rows (a power of two of vectors of `lanes` lanes), and its lanes in which it does.

    A lane's number is bits: at first those of its column, the lowest first. A step joins the vectors of two rows that differ in
    one bit of the row's number, which takes the place of a bit of the column's: of the two halves only one has what is wanted.
    """
    bits = [(False, k) for k in range(lanes.bit_length() - 1)]
    part = min(len(bits), (PART_BYTES // itemsize).bit_length() - 1)
    vectors, step = list(rows), 0
    while len(vectors) > 1:
        drop, put = (part - 1, step) if step < part else (part, len(bits) - 1)
        wanted = lane >> bits.pop(drop)[1] & 1
        bits.insert(put, (True, step))
        mask = []
        for i in range(lanes):
            kept = i & (1 << put) - 1 | i >> put + 1 << put
            source = kept & (1 << drop) - 1 | wanted << drop | kept >> drop << drop + 1
            mask.append(source + lanes * (i >> put & 1))
        vectors = [shuffle(a, b, mask) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        step += 1
    places = [sum(((row if of_row else lane) >> k & 1) << at for at, (of_row, k) in enumerate(bits)) for row in range(len(rows))]
    return vectors[0], places
