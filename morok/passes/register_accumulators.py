"""Stage 19: accumulators split into vectors of the target's width.

From stage 11 on an accumulator is one vector of all results of a fold, and its addend another: a tile of a matrix product is one
DefineReg and one MulAcc, however wide. Here both are split into parts of one hardware register each. A part is computed from the
same lanes of the operands, and a read of some lanes becomes reads of the parts that contain them. All accesses of an accumulator
must change together, so this is no rule: a rule rewrites one node at a time.
"""

from __future__ import annotations

from typing import Final

from morok.ir.dtype import PtrType
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.places import passed
from morok.ir.typecheck import PARAMS
from morok.ir.uop import UOp, intern
from morok.passes.access_widths import arithmetic_lanes
from morok.passes.accumulators import native_lanes
from morok.passes.lanes import take
from morok.passes.node_order import nodes_of
from morok.passes.rebuilding import own_origins
from morok.passes.target import Target

Lanes = tuple[int, ...]

_CONSTANTS: Final = frozenset({Op.Const, Op.VConst})
_LANEWISE: Final = frozenset({*PARAMS, Op.Bitcast})


def cut_registers(root: UOp, target: Target) -> UOp:
    """`root` with accumulators and their addends split to the width of the target's registers, and without any Gep of a Cat."""
    wide: dict[UOp, int] = {}
    joined = False
    nodes = nodes_of(root)
    for n in nodes:
        if n.op is Op.Cat:
            joined = True
        elif n.op is Op.DefineReg and isinstance(n.dtype, PtrType) and n.dtype.size == 1:
            lanes = native_lanes(target, n.dtype.base)
            if 1 < lanes < n.dtype.base.count:
                wide[n] = lanes
    if not wide and not joined:
        return root
    with own_origins():
        return _Cutter(wide, arithmetic_lanes(target), nodes).cut(root)


class _Cutter:
    """The new forms of nodes, and of lanes of nodes. A node with an operand in `missing` is tried again after that operand.

    wide   the accumulators to split, and the lanes of each part
    limit  most lanes of other arithmetic
    nodes  the new forms of whole nodes; initially the unchanged nodes: those that depend on no wide accumulator and no Gep
    parts  the new forms of (node, lanes)
    """

    def __init__(self, wide: dict[UOp, int], limit: int, order: list[UOp]) -> None:
        self.wide = wide
        self.limit = limit
        self.nodes: dict[UOp, UOp] = {}
        is_kept = self.nodes.__contains__
        for n in order:
            if n.op is not Op.Gep and n not in wide and all(map(is_kept, n.src)):
                self.nodes[n] = n
        self.parts: dict[tuple[UOp, Lanes], UOp] = {}
        self.owners: dict[tuple[UOp, ...], list[tuple[UOp, int]]] = {}  # operands of a Cat -> `owners_of` it
        self.missing: list[tuple[UOp, Lanes | None]] = []

    def cut(self, root: UOp) -> UOp:
        """The new form of `root`."""
        nodes, parts, missing = self.nodes, self.parts, self.missing
        stack: list[tuple[UOp, Lanes | None]] = [(root, None)]
        while stack:
            node, lanes = wanted = stack[-1]
            if node in nodes if lanes is None else wanted in parts:
                stack.pop()
                continue
            maker.origin = node.origin
            made = self.node(node) if lanes is None else self.part(node, lanes)
            if made is None:
                missing.reverse()
                stack += missing
                missing.clear()
                continue
            stack.pop()
            if lanes is None:
                nodes[node] = made
            else:
                parts[node, lanes] = made
        return nodes[root]

    def all_of(self, wanted: list[tuple[UOp, Lanes | None]]) -> list[UOp] | None:
        """The new forms of these nodes or lanes of nodes; None, with the absent ones in `missing`, if one is absent."""
        out: list[UOp] = []
        for node, lanes in wanted:
            made = self.nodes.get(node) if lanes is None else self.parts.get((node, lanes))
            if made is None:
                self.missing.append((node, lanes))
            else:
                out.append(made)
        return None if self.missing else out

    def whole(self, src: tuple[UOp, ...]) -> tuple[UOp, ...] | None:
        """The new forms of these whole nodes; None, with the absent ones in `missing`, if one is absent."""
        nodes = self.nodes
        for s in src:
            if s not in nodes:
                self.missing += [(s, None) for s in src if s not in nodes]
                return None
        return tuple([nodes[s] for s in src])

    def register(self, node: UOp) -> UOp | None:
        """The wide accumulator that a Load or Store accesses; None for any other memory."""
        place = node.src[0]
        if place.op is not Op.Index or place.dtype.count == 1:
            return None
        kept = passed(place.src[0])
        return kept if kept in self.wide else None

    def node(self, node: UOp) -> UOp | None:
        """The new form of a whole node; None if an operand is missing."""
        op, src = node.op, node.src
        if not src:
            return self.renamed(node) if node in self.wide else node
        if op is Op.Gep:
            return self.lanes_of(src[0], node.arg)
        if (op is Op.Load or op is Op.Store) and (kept := self.register(node)) is not None:
            return (
                self.stored(node, kept) if op is Op.Store else self.loaded(node, kept, tuple(range(node.dtype.count)))
            )
        new = self.whole(src)
        return None if new is None else node if new == src else node.replace(new)

    def renamed(self, register: UOp) -> UOp:
        """A register of as many scalar elements as `register` has lanes: a part is a run of elements."""
        d = register.dtype
        assert isinstance(d, PtrType)
        return UOp.new(Op.DefineReg, (), register.arg, d.base.scalar().ptr(d.base.count, d.space))

    def at(self, place: UOp, pointer: UOp, start: int) -> UOp:
        """The place of element `start`, for the place of the whole accumulator."""
        return intern(Op.Index, place.dtype.scalar(), (pointer, UOp.const(start, place.src[1].dtype)), False)

    def chunks(self, count: int, kept: UOp) -> list[Lanes]:
        size = self.wide[kept]
        return [tuple(range(k, min(k + size, count))) for k in range(0, count, size)]

    def stored(self, store: UOp, kept: UOp) -> UOp | None:
        """A Group of stores, one to each part, for a Store to a wide accumulator; None if an operand is missing."""
        place, value = store.src
        chunks = self.chunks(value.dtype.count, kept)
        made = self.all_of([(place.src[0], None), *[(value, lanes) for lanes in chunks]])
        if made is None:
            return None
        pointer, *parts = made
        void = store.dtype
        steps = [
            intern(Op.Store, void, (self.at(place, pointer, c[0]), p), None) for c, p in zip(chunks, parts, strict=True)
        ]
        return intern(Op.Group, void, tuple(steps), None)

    def loaded(self, load: UOp, kept: UOp, lanes: Lanes) -> UOp | None:
        """Lanes of a Load of a wide accumulator, from loads of the parts that contain them; None if its pointer is missing."""
        place = load.src[0]
        pointer = self.nodes.get(place.src[0])
        if pointer is None:
            self.missing.append((place.src[0], None))
            return None
        size, d = self.wide[kept], load.dtype
        starts = dict.fromkeys([lane - lane % size for lane in lanes])
        parts = {
            k: intern(Op.Load, d.scalar().vec(min(size, d.count - k)), (self.at(place, pointer, k),), None)
            for k in starts
        }
        return _joined([(parts[lane - lane % size], lane % size) for lane in lanes])

    def lanes_of(self, x: UOp, lanes: Lanes) -> UOp | None:
        """Lanes of `x` for a Gep; None if missing. Arithmetic within `limit`, and loads, are made whole, once for all Geps."""
        x, lanes = self.within(x, lanes)
        if (x.op in _LANEWISE and x.dtype.count <= self.limit) or (x.op is Op.Load and self.register(x) is None):
            return self.taken(x, lanes)
        made = self.parts.get((x, lanes))
        if made is None:
            self.missing.append((x, lanes))
        return made

    def within(self, x: UOp, lanes: Lanes) -> tuple[UOp, Lanes]:
        """(vector, lanes) equal to these lanes of `x`, through Geps, and through Cats if the lanes are all from one operand."""
        while True:
            if x.op is Op.Gep:
                inner = x.arg
                x, lanes = x.src[0], tuple([inner[i] for i in lanes])
            elif x.op is Op.Cat:
                owners = self.owners_of(x)
                owner, first = owners[lanes[0]]
                if lanes.count(lanes[0]) == len(lanes):
                    x, lanes = owner, (first,) * len(lanes)
                    continue
                taken = [owners[i] for i in lanes]
                if any(s is not owner for s, _ in taken):
                    return x, lanes
                x, lanes = owner, tuple([i for _, i in taken])
            else:
                return x, lanes

    def owners_of(self, cat: UOp) -> list[tuple[UOp, int]]:
        """For each lane of a Cat the operand that it is from, and its number there."""
        owners = self.owners.get(cat.src)
        if owners is None:
            owners = self.owners[cat.src] = [(s, i) for s in cat.src for i in range(s.dtype.count)]
        return owners

    def taken(self, x: UOp, lanes: Lanes) -> UOp | None:
        """Lanes of the new form of a whole node; None if that is missing."""
        whole = self.nodes.get(x)
        if whole is None:
            self.missing.append((x, None))
            return None
        return take(whole, lanes)

    def part(self, x: UOp, lanes: Lanes) -> UOp | None:
        """The new form of some lanes of a node; None if an operand is missing."""
        op, src, count = x.op, x.src, x.dtype.count
        if op is Op.Gep or op is Op.Cat:
            inner = self.within(x, lanes)
            return self.side_by_side(x, lanes) if inner[0] is x else self.lanes_of(*inner)
        if op in _CONSTANTS:
            return take(x, lanes)
        if op is Op.Vectorize:
            elements = self.whole(tuple([src[i] for i in lanes]))
            return None if elements is None else UOp.vectorize(*elements)
        if op is Op.Load and (kept := self.register(x)) is not None:
            return self.loaded(x, kept, lanes)
        if op in _LANEWISE and len(lanes) < count and all(s.dtype.count == count or s.dtype.count == 1 for s in src):
            if len(lanes) > 1 and lanes.count(lanes[0]) == len(lanes):
                made = self.all_of([(x, lanes[:1])])
                return None if made is None else UOp.vectorize(*made * len(lanes))
            made = self.all_of([(s, lanes if s.dtype.count > 1 else None) for s in src])
            return None if made is None else intern(op, x.dtype.scalar().vec(len(lanes)), tuple(made), x.arg)
        return self.taken(x, lanes)

    def side_by_side(self, cat: UOp, lanes: Lanes) -> UOp | None:
        """Lanes of several operands of a Cat; None if one is missing."""
        owners = self.owners_of(cat)
        taken = [owners[i] for i in lanes]
        if self.whole(tuple(dict.fromkeys([s for s, _ in taken]))) is None:
            return None
        return _joined([(self.nodes[s], i) for s, i in taken])


def _joined(lanes: list[tuple[UOp, int]]) -> UOp:
    """A vector of lanes, each given as (vector, number of the lane)."""
    first = lanes[0][0]
    if all(s is first for s, _ in lanes):
        return take(first, tuple([i for _, i in lanes]))
    one = {(s, i): take(s, (i,)) for s, i in lanes}
    return UOp.vectorize(*[one[s, i] for s, i in lanes])
