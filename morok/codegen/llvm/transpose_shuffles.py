"""Transposes of a tile in registers: vectors of one lane of many vectors, by shuffles that the columns share.

A transposing kernel loads a tile as one vector for each row, and stores one for each column. Lane by lane that takes a move for
every element. By shuffles of pairs of registers, then pairs of pairs .., the columns of an n x n tile take n log2(n) shuffles in
total. Lanes are first joined within the 128-bit parts of registers, then the parts, which suits the shuffle instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

PART_BYTES: Final = 16  # bytes of a part of a register; shuffles within parts are the fastest
FEWEST: Final = 4  # fewest rows for which shuffles are fewer than moves

Shuffle = Callable[[str, str, list[int]], str]  # (a, b, mask) -> lanes `mask` of the concatenation of a and b


def column(u: UOp) -> tuple[list[UOp], int] | None:
    """(rows, lane) if `u` is a Vectorize of one lane of n different vectors of at least n lanes, n a power of two; else None."""
    first = u.src[0]
    rows = [s.src[0] for s in u.src if s.op is Op.Gep and s.arg == first.arg]
    n, lanes = len(u.src), first.src[0].dtype.count if first.op is Op.Gep else 1
    tile = FEWEST <= n <= lanes and not n & (n - 1) and not lanes & (lanes - 1) and not u.dtype.is_bool
    if not tile or len(set(rows)) < n or any(r.dtype is not rows[0].dtype for r in rows):
        return None
    return rows, int(first.arg[0])


def columns(instructions: Sequence[UOp]) -> dict[UOp, tuple[list[UOp], int]]:
    """The columns among `instructions`: Vectorize -> (rows, lane)."""
    return {u: found for u in instructions if u.op is Op.Vectorize and (found := column(u)) is not None}


def join(rows: Sequence[str], lane: int, lanes: int, itemsize: int, shuffle: Shuffle) -> tuple[str, list[int]]:
    """(vector that contains lane `lane` of all rows, the number of its lane for each row); the rows are a power of two of vectors
    of `lanes` lanes.

    The bits of a lane's number are at first the bits of its column, the lowest first. A step joins the vectors of two rows whose
    numbers differ in one bit. That bit replaces a bit of the column, of whose two values only the one in `lane` is kept.
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
    places = [
        sum(((row if of_row else lane) >> k & 1) << at for at, (of_row, k) in enumerate(bits))
        for row in range(len(rows))
    ]
    return vectors[0], places
