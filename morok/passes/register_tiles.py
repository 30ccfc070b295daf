"""The register tile of a matrix product on a CPU: how many of its rows and columns are computed together.

The optimizer makes these tiles, and the cost model counts by them how often a factor's elements are read, or computed.
"""

from __future__ import annotations

from typing import Final

from morok.passes.target import Target

MAX_LANES: Final = 256  # most lanes of a kernel: the product over its vectorized axes
PACK_ROWS: Final = 32  # fewest rows that must use a copy for it to pay
TILE: Final = 16  # vectors of a tile
SUM_VECTORS: Final = 4  # vector accumulators of a reduction to a scalar


def widest(length: int, lanes: int, vectors: int) -> int:
    """The lanes for a loop of this length: the most vectors that divide it, up to `vectors`; else, with a remainder, one vector
    (`vectors` for a long loop); else, below two vectors, the whole loop.
    """
    for v in (vectors, *[1 << k for k in reversed(range(vectors.bit_length()))]):
        if v <= vectors and length % (lanes * v) == 0:
            return lanes * v
    if length >= 2 * lanes:
        return lanes * (vectors if length >= 8 * lanes * vectors else 1)
    return length


def summed_singly(length: int, itemsize: int, target: Target) -> int:
    """The elements of a row that a reduction along it takes one at a time, behind its whole vectors."""
    lanes = max(1, target.vector_bytes // max(4, itemsize))
    return length % widest(length, lanes, SUM_VECTORS) if length >= 2 * lanes else 0


def most_vectors(registers: int) -> int:
    """The most vectors in a row of a tile, on a machine with so many registers."""
    return 4 if registers >= 32 else 2 if registers >= 16 else 1


def is_narrow(columns: int, lanes: int, target: Target) -> bool:
    """True if a row of columns has fewer lanes than a register of 32-bit lanes, and is no power of two long: it gets vectors of
    its own width, since in wider vectors the lanes would be assembled one by one.
    """
    return columns < lanes and columns & (columns - 1) > 0 and 4 * lanes == target.vector_bytes


def whole_lanes(wide: int) -> int:
    """The greatest power of two that is at most `wide`."""
    return 1 << (wide.bit_length() - 1)


def divided(rows: int, most: int) -> int:
    """The rows of a tile, at most `most`: a divisor of `rows` above 3, else as many as possible."""
    best = next((m for m in range(most, 3, -1) if rows % m == 0), 0)
    return best or min(rows, most)


def height(rows: int, wide: int, lanes: int, target: Target, others: int = 1) -> int:
    """The rows of a tile whose rows are `wide` elements, in vectors of `lanes`.

    others  the lanes that other vectorized axes take of MAX_LANES
    """
    used = -(-wide // lanes)
    tile = TILE // 2 if wide < lanes <= 2 * wide else TILE // used  # eight rows suffice for partial vectors
    return divided(rows, min(max(1, MAX_LANES // (wide * others)), max(2, (target.registers - 4) // used), tile))


def tiles(rows: int, columns: int, itemsize: int, target: Target) -> tuple[int, int]:
    """(tiles above one another, tiles side by side) of a product that reads both factors where they are, whose widest elements
    have so many bytes.
    """
    lanes = max(1, target.vector_bytes // max(4, itemsize))
    wide = widest(columns, lanes, most_vectors(target.registers))
    if wide % lanes and not is_narrow(columns, lanes, target):
        wide = whole_lanes(wide)
    return -(-rows // height(rows, wide, lanes, target)), -(-columns // wide)


def in_dots(rows: int, columns: int, summed: int, itemsize: int, target: Target) -> bool:
    """True if each result of a product whose factors are both contiguous along the sum is summed in a vector of its own, not in
    tiles of a copy of the factor with columns.
    """
    lanes = max(1, target.vector_bytes // max(4, itemsize))
    copied = columns >= 2 * lanes and rows >= PACK_ROWS and columns * summed * itemsize > target.l1_bytes
    return summed >= 2 * lanes and not copied


def shared_by(length: int) -> int:
    """The results along a loop of this length that share what they read of a factor `in_dots`."""
    return next((n for n in (4, 2) if length % n == 0), 1)
