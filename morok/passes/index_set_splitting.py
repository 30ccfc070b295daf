"""Stage 6: the loops that rules/loops/cut.rules cuts, the cut points, and separate ranges for the pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.ir.graph import flattened, substitute
from morok.ir.independence import independent
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.affine import linear
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end, with_id
from morok.passes.rebuilding import next_range_id, rebuild

MAX_PIECES: Final = 4  # most pieces of a loop nest with cuts in several loops
# most pieces of a nest with cuts in one loop: MOST_PARTS of rangeify, the tensors that one kernel joins
MAX_PARTS: Final = 16
_AROUND: Final = frozenset({Op.Sink, Op.Barrier})  # the users of loops that are cut
_LOOPS: Final = frozenset({Op.Reduce, Op.End})


def stored_to(statement: UOp) -> UOp | None:
    """The storage that a store writes; None for any other statement."""
    return storage(statement.src[0]) if statement.op is Op.Store else None


def cut_points(store: UOp, r: UOp) -> list[int]:
    """The iterations of `r` but 0, ascending, at which a comparison of `r` plus a constant with a constant changes its result."""
    end = const_end(r)
    if end is None:
        return []
    found: set[int] = set()
    for n in store.toposort():
        if n.op not in (Op.Lt, Op.Ge) or not n.src[0].dtype.is_index:
            continue
        # x < c changes at c, and c < x at c + 1
        for x, c, beyond in ((n.src[0], n.src[1], 0), (n.src[1], n.src[0], 1)):
            if c.op is Op.Const and list((total := linear(x)).terms.items()) == [(r, 1)]:
                at = int(c.arg) + beyond - total.constant
                if 0 < at < end:
                    found.add(at)
    return sorted(found)


@dataclass(slots=True)
class CutStores:
    """The loops to cut, and the stores in them.

    next    the least unused range id
    chosen  (storage, range id) of loops to cut, and of their pieces
    """

    next: int
    chosen: set[tuple[UOp, int]] = field(default_factory=set)

    @classmethod
    def of(cls, root: UOp) -> CutStores:
        """The loops to cut around the statements of a graph, and around those that barriers wait for."""
        found = cls(next_range_id(root))
        nodes = nodes_of(root)
        for statement in (root, *(s for n in nodes if n.op in (Op.Sink, Op.Barrier) for s in n.src)):
            if statement.op is Op.End:
                found.choose_loops(statement)
        return found

    def choose_loops(self, end: UOp) -> None:
        """Add the loops to cut of a nest around a store, as long as there are not too many pieces.

        Three kinds of loops are left whole. Loops around reductions: a copy would double the time to compile them. Loops that
        fill buffers inside the kernel: their pieces would share the buffers and the loops that fill them. Loops with dependent
        iterations: pieces have no order.
        """
        storage = stored_to(end.src[0])
        if storage is None or any(n.op in _LOOPS for n in end.src[0].toposort()):
            return
        pieces = 1
        for r in reversed(end.src[1:]):
            points = cut_points(end.src[0], r) if independent(end.src[0], r) else []
            if points and (len(points) + 1) * pieces <= (MAX_PARTS if pieces == 1 else MAX_PIECES):
                pieces *= len(points) + 1
                self.chosen.add((storage, r.arg[0]))


@helper
def cut_point(body: UOp, r: UOp, found: CutStores) -> int | None:
    """An iteration of `r` at which a condition in the store `body` changes its result, as many of these before as after it: both
    pieces are then cut with half of the conditions each. None if `r` is left whole.
    """
    storage = stored_to(body)
    points = cut_points(body, r) if storage is not None and (storage, r.arg[0]) in found.chosen else []
    return points[len(points) // 2] if points else None


@helper
def piece_ids(body: UOp, r: UOp, found: CutStores) -> int:
    """The first of two unused range ids, for the pieces of `r`."""
    storage = stored_to(body)
    assert storage is not None
    found.next += 2
    found.chosen |= {(storage, found.next - 2), (storage, found.next - 1)}
    return found.next - 2


def set_apart(root: UOp) -> UOp:
    """`root` with the pieces of each loop as separate statements, without a range in common: each is a loop nest of its own."""
    if not any(s.op is Op.Group for n in nodes_of(root) if n.op in _AROUND for s in n.src):
        return root
    id = next_range_id(root)

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal id
        if not any(s.op is Op.Group for s in src):
            return None
        out: list[UOp] = []
        for s in src:
            pieces, id = _with_own_ranges(_pieces(s), id)
            out += pieces
        return node.replace(tuple(out))

    return rebuild(root, _AROUND, visit)


def _pieces(statement: UOp) -> list[UOp]:
    """The statements of nested Groups, in order."""
    return flattened(statement, lambda n: n.op is Op.Group)


def _with_own_ranges(pieces: Sequence[UOp], id: int) -> tuple[list[UOp], int]:
    """(`pieces` without a range in common, next unused id); new ids are from `id` on.

    At each depth the ids rise from piece to piece, in whatever order the loop was cut: optimizations name ranges by their order.
    """
    seen: set[UOp] = set()
    ids: dict[int, list[int]] = {}  # by depth
    for piece in pieces if len(pieces) > 1 else ():
        for depth, r in enumerate(piece.src[1:]):
            ids.setdefault(depth, []).append(id if r in seen else r.arg[0])
            id += r in seen
            seen.add(r)
    rising = {depth: iter(sorted(numbers)) for depth, numbers in ids.items()}
    out: list[UOp] = []
    for piece in pieces:
        numbered = {r: next(rising[depth]) for depth, r in enumerate(piece.src[1:]) if rising}
        fresh = {r: with_id(r, k) for r, k in numbered.items() if k != r.arg[0]}
        out.append(substitute((piece,), fresh)[0] if fresh else piece)
    return out, id
