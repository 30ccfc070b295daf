"""Stage 6: which loops rules/loops/cut.rules cuts, and where; and ranges of their own for the pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.ir.graph import substitute
from morok.ir.independence import independent
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.affine import linear
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end
from morok.passes.rebuilding import next_range_id, rebuild

MAX_PIECES: Final = 4  # a nest of loops is cut into at most so many,
MAX_PARTS: Final = 16  # and one of them alone into so many: as many tensors as one kernel joins, MOST_PARTS of rangeify
_AROUND: Final = frozenset({Op.Sink, Op.Barrier})  # what holds the loops that are cut
_LOOPS: Final = frozenset({Op.Reduce, Op.End})


def stored_to(statement: UOp) -> UOp | None:
    """The storage that a store writes; None for any other statement."""
    return storage(statement.src[0]) if statement.op is Op.Store else None


def cut_points(store: UOp, r: UOp) -> list[int]:
    """The places inside a range's length where a comparison of `r` plus a number with a number changes its result."""
    end = const_end(r)
    if end is None:
        return []
    found: set[int] = set()
    for n in store.toposort():
        if n.op not in (Op.Lt, Op.Ge) or not n.src[0].dtype.is_index:
            continue
        for x, c, beyond in ((n.src[0], n.src[1], 0), (n.src[1], n.src[0], 1)):  # x < c changes at c, c < x behind it
            if c.op is Op.Const and list((total := linear(x)).terms.items()) == [(r, 1)]:
                at = int(c.arg) + beyond - total.constant
                if 0 < at < end:
                    found.add(at)
    return sorted(found)


@dataclass(slots=True)
class CutStores:
    """The loops that are cut, and around which stores.

    next    the first of the numbers that no range has
    wanted  (storage, number of a range): loops to cut, and the pieces of such
    """

    next: int
    wanted: set[tuple[UOp, int]] = field(default_factory=set)

    @classmethod
    def of(cls, root: UOp) -> CutStores:
        """The stores of a graph to cut: its statements, and those that barriers wait for."""
        found = cls(next_range_id(root))
        nodes = nodes_of(root)
        for statement in (root, *(s for n in nodes if n.op in (Op.Sink, Op.Barrier) for s in n.src)):
            if statement.op is Op.End:
                found.plan(statement)
        return found

    def plan(self, end: UOp) -> None:
        """The loops to cut of a nest around a store, while that does not make too many pieces.

        Loops over reductions are left whole: a copy would double the work of compiling them. So are those that fill buffers
        inside: pieces would have these buffers, and the loops that fill them, in common. And so are those whose
        iterations are not independent of one another: pieces have no order.
        """
        storage = stored_to(end.src[0])
        if storage is None or any(n.op in _LOOPS for n in end.src[0].toposort()):
            return
        pieces = 1
        for r in reversed(end.src[1:]):
            points = cut_points(end.src[0], r) if independent(end.src[0], r) else []
            if points and (len(points) + 1) * pieces <= (MAX_PARTS if pieces == 1 else MAX_PIECES):
                pieces *= len(points) + 1
                self.wanted.add((storage, r.arg[0]))


@helper
def cut_point(body: UOp, r: UOp, found: CutStores) -> int | None:
    """The first iteration behind which a condition in the store `body` changes its result; None where `r` stays whole."""
    storage = stored_to(body)
    points = cut_points(body, r) if storage is not None and (storage, r.arg[0]) in found.wanted else []
    return points[0] if points else None


@helper
def piece_ids(body: UOp, r: UOp, found: CutStores) -> int:
    """The first of two numbers that no range has, for the pieces of `r`."""
    storage = stored_to(body)
    assert storage is not None
    found.next += 2
    found.wanted |= {(storage, found.next - 2), (storage, found.next - 1)}
    return found.next - 2


def set_apart(root: UOp) -> UOp:
    """`root` with the pieces of loops side by side, no range in two of them: each is a loop nest of its own."""
    if not any(s.op is Op.Group for n in nodes_of(root) if n.op in _AROUND for s in n.src):
        return root
    id = next_range_id(root)

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal id
        if not any(s.op is Op.Group for s in src):
            return None
        out: list[UOp] = []
        for s in src:
            pieces, id = _apart(_pieces(s), id)
            out += pieces
        return node.replace(tuple(out))

    return rebuild(root, _AROUND, visit)


def _pieces(statement: UOp) -> list[UOp]:
    """The statements that Groups hold, in order."""
    out: list[UOp] = []
    stack = [statement]
    while stack:
        at = stack.pop()
        if at.op is Op.Group:
            stack += reversed(at.src)
        else:
            out.append(at)
    return out


def _apart(pieces: Sequence[UOp], id: int) -> tuple[list[UOp], int]:
    """`pieces` with no range in common; new ranges take numbers from `id` on, and the next one is returned."""
    seen: set[UOp] = set()
    out: list[UOp] = []
    for piece in pieces:
        fresh: dict[UOp, UOp] = {}
        for r in piece.src[1:] if len(pieces) > 1 else ():
            if r in seen:
                fresh[r] = UOp.new(Op.Range, r.src, (id, *r.arg[1:]))
                id += 1
            seen.add(r)
        out.append(substitute((piece,), fresh)[0] if fresh else piece)
    return out, id
