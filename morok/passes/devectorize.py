"""Stage 14: vectors of any width become vectors that the target has.

Work is driven by what is wanted: a store wants its lanes in runs that are one memory access each, an accumulator wants one
register; each op is then asked for just those lanes, and asks its operands in turn. Four things happen on the way:

1. the places of a vector access are grouped into runs of consecutive elements behind one base and one gate;
2. choosing lanes moves through loads, stores and arithmetic to where the lanes come from;
3. each run becomes one wide load or store;
4. runs and arithmetic are split to the widths of the target. Lanes that are all the same are computed once, then repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from morok import config
from morok.errors import LoweringError
from morok.ir.dtype import AddrSpace, DType, PtrType
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp
from morok.passes.affine import Linear, lane_offsets, linear
from morok.passes.lanes import take
from morok.passes.target import Target

Lanes = tuple[int, ...]
# (node, lanes): these lanes of the node; (node, None): the node itself, a scalar or a statement;
# (node, "runs"): the memory accesses that an Index of many places falls into; (node, "loads"): those of a Load, made.
Key = tuple[UOp, Any]

_LANEWISE: Final = frozenset({Op.Bitcast, Op.Precast})
WIDEST: Final = 1 << 10  # lanes of a vector that is left whole


@dataclass(frozen=True, slots=True)
class Run:
    """One memory access: `lanes` of a vector of places lie consecutively from `place` on."""

    place: UOp
    lanes: Lanes


def full(n: int) -> Lanes:
    return tuple(range(n))


def is_many_places(place: UOp) -> bool:
    return place.op is Op.Index and any(i.dtype.count > 1 for i in place.src[1:])


def _in_registers(place: UOp) -> bool:
    d = place.src[0].dtype
    return isinstance(d, PtrType) and d.space is AddrSpace.REG


def _is_accumulator(x: UOp) -> bool:
    """Whether a vector is what a register holds."""
    return x.op is Op.Load and x.src[0].op is Op.Index and _in_registers(x.src[0])


def access_widths(target: Target, d: DType, whole: bool = False) -> list[int]:
    """The numbers of consecutive elements that one load or store may move, widest first.

    whole  as wide as the program has them, in powers of two: the code generator splits them
    """
    if whole:
        return [1 << k for k in reversed(range(WIDEST.bit_length()))]
    most = max(1, target.memory_bytes // d.scalar().itemsize)
    if target.has_local and d.scalar().itemsize == 2 and not config.ALLOW_HALF8.value:
        most = min(most, 4)
    if target.vector_bytes:  # a wide access feeds arithmetic: no wider than that is
        most = min(most, arithmetic_lanes(target))
    return [1 << k for k in reversed(range(most.bit_length()))]


def arithmetic_lanes(target: Target) -> int:
    """The widest vector in arithmetic: a register of 32-bit lanes. Wider elements take two registers, which LLVM does well."""
    return max(1, target.vector_bytes // 4)


class _Splitter:
    def __init__(self, target: Target, simplify: Callable[[UOp], UOp], mode: int) -> None:
        self.target = target
        self.simplify = simplify
        vectors = target.vector_bytes > 0  # where arithmetic is scalar there is nothing to leave whole
        self.limit = WIDEST if vectors and mode != 1 else arithmetic_lanes(target)
        self.whole = vectors and mode == 2
        self.done: dict[Key, Any] = {}
        self.accumulated: dict[UOp, bool] = {}
        self.whole_operands: set[UOp] = set()  # of arithmetic

    def run(self, root: UOp) -> UOp:
        stack: list[Key] = [(root, None)]
        done = self.done
        for node in root.toposort():
            if TABLE.entries[node.op].pointwise and node.dtype.count > 1:
                self.whole_operands.update(s for s in node.src if s.dtype.count == node.dtype.count)
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            missing = [k for k in self.needs(*key) if k not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            done[key] = self.make(*key)
        result: UOp = done[(root, None)]
        return result

    # What a key is made of.

    def needs(self, node: UOp, what: Any) -> list[Key]:
        op = node.op
        if what == "runs":
            return self.runs_need(node)
        if what == "loads":
            return [(node.src[0], "runs")]
        if what is None:
            if op is Op.Store and self.is_split_store(node):
                return self.store_needs(node)
            if node.dtype.count > 1:
                return [(node, full(node.dtype.count))]
            if op is Op.Gep:
                return [self.chosen(node.src[0], node.arg)]
            if op is Op.Load and is_many_places(node.src[0]):
                return [(node, full(1))]
            return [(s, None) for s in node.src]
        lanes: Lanes = what
        if node.dtype.count == 1:
            return [(node, None)]
        if len(lanes) > 1 and all(i == lanes[0] for i in lanes):
            return [(node, lanes[:1])]
        if op in (Op.Const, Op.VConst, Op.Invalid):
            return []
        if op is Op.Vectorize:
            return [(node.src[i], None) for i in lanes]
        if op is Op.Gep:
            return [self.chosen(node.src[0], tuple([node.arg[i] for i in lanes]))]
        if op is Op.Cat:
            return self.pieces_of_cat(node, lanes)
        if op is Op.Load and is_many_places(node.src[0]):
            return [(node, "loads")]
        if TABLE.entries[op].pointwise or op in _LANEWISE:
            if len(lanes) > self.limit:
                return [(node, lanes[i : i + self.limit]) for i in range(0, len(lanes), self.limit)]
            return [(s, lanes if s.dtype.count > 1 else None) for s in node.src]
        if lanes == full(node.dtype.count):
            return [(s, None) for s in node.src]
        return [(node, full(node.dtype.count))]

    def make(self, node: UOp, what: Any) -> Any:
        op, done = node.op, self.done
        if what == "runs":
            return self.make_runs(node)
        if what == "loads":
            return self.make_loads(node)
        parts = [done[k] for k in self.needs(node, what)]
        if what is None:
            if op is Op.Store and self.is_split_store(node):
                return self.make_stores(node)
            if op is Op.Gep:
                return self.of_chosen(node.src[0], node.arg, parts[0])
            if node.dtype.count > 1 or (op is Op.Load and is_many_places(node.src[0])):
                return parts[0]
            return node if tuple(parts) == node.src else node.replace(tuple(parts))
        lanes: Lanes = what
        if node.dtype.count == 1 or (len(lanes) > 1 and all(i == lanes[0] for i in lanes)):
            return take(parts[0], (0,) * len(lanes))
        if op in (Op.Const, Op.VConst):
            return take(node, lanes)
        if op is Op.Invalid:
            return UOp.invalid_at(node.dtype.scalar() if len(lanes) == 1 else node.dtype.scalar().vec(len(lanes)))
        if op in (Op.Vectorize, Op.Cat):
            return join(parts)
        if op is Op.Gep:
            return self.of_chosen(node.src[0], tuple([node.arg[i] for i in lanes]), parts[0])
        if op is Op.Load and is_many_places(node.src[0]):
            return self.pick(parts[0], lanes)
        if TABLE.entries[op].pointwise or op in _LANEWISE:
            if len(lanes) > self.limit:
                return join(parts)
            spread = parts
            if op is not Op.Where:
                spread = [take(p, (0,) * len(lanes)) if p.dtype.count == 1 and len(lanes) > 1 else p for p in parts]
            scalar = node.dtype.scalar()
            return UOp.new(op, tuple(spread), node.arg, scalar if len(lanes) == 1 else scalar.vec(len(lanes)))
        if lanes == full(node.dtype.count):
            return node if tuple(parts) == node.src else node.replace(tuple(parts))
        return take(parts[0], lanes)

    def chosen(self, node: UOp, lanes: Lanes) -> Key:
        """Where lanes of an operand come from: those lanes of it alone, or the whole of what has other lanes that are wanted as
        well."""
        return (node, full(node.dtype.count)) if self.is_wanted_whole(node) else (node, lanes)

    def of_chosen(self, node: UOp, lanes: Lanes, made: UOp) -> UOp:
        """`lanes` of a node, of which `chosen` asked for `made`."""
        return take(made, lanes) if self.is_wanted_whole(node) else made

    def is_wanted_whole(self, node: UOp) -> bool:
        """Whether a node is arithmetic in one vector, and accumulators were folded into it, or arithmetic needs all of it."""
        one = 1 < node.dtype.count <= self.limit and TABLE.entries[node.op].pointwise
        return one and (node in self.whole_operands or self.is_folded(node))

    def is_folded(self, node: UOp) -> bool:
        """Whether a node is arithmetic on registers and nothing else, in one vector."""
        stack = [node]
        while stack:
            n = stack[-1]
            if n in self.accumulated:
                stack.pop()
                continue
            arithmetic = 1 < n.dtype.count <= self.limit and TABLE.entries[n.op].pointwise
            inner = [s.src[0] if s.op is Op.Gep else s for s in n.src] if arithmetic else []
            below = [s for s in inner if not _is_accumulator(s)]
            missing = [s for s in below if s not in self.accumulated]
            if missing:
                stack += missing
                continue
            self.accumulated[stack.pop()] = arithmetic and all(self.accumulated[s] for s in below)
        return self.accumulated[node]

    def pieces_of_cat(self, node: UOp, lanes: Lanes) -> list[Key]:
        """The lanes of a Cat as runs of lanes of its sources."""
        owner = [(s, i) for s in node.src for i in range(s.dtype.count)]
        pieces: list[tuple[UOp, list[int]]] = []
        for lane in lanes:
            s, i = owner[lane]
            if pieces and pieces[-1][0] is s:
                pieces[-1][1].append(i)
            else:
                pieces.append((s, [i]))
        return [(s, tuple(own)) for s, own in pieces]

    # Places.

    def split_index(self, place: UOp) -> tuple[UOp, list[UOp]]:
        """The index of a place without its `Where(c, i, Invalid)`, and its gates."""
        index, gates = place.src[1], [place.src[-1]] if place.arg else []
        while index.op is Op.Where and index.src[2].op is Op.Invalid:
            gates.append(index.src[0])
            index = index.src[1]
        return index, gates

    def runs_need(self, place: UOp) -> list[Key]:
        index, gates = self.split_index(place)
        need: list[Key] = [(place.src[0], None)]
        for g in gates:
            need += [(g, None)] if g.dtype.count == 1 else [(g, (i,)) for i in range(g.dtype.count)]
        found = lane_offsets(index) if index.dtype.count > 1 else (linear(index), ())
        if found is None:
            need += [(index, (i,)) for i in range(index.dtype.count)]
        else:
            need += [(t, None) for t in found[0].terms]
        return need

    def make_runs(self, place: UOp) -> list[Run]:
        index, gates = self.split_index(place)
        done = self.done
        n = max(index.dtype.count, *[g.dtype.count for g in gates], 1)
        buffer: UOp = done[(place.src[0], None)]
        chosen = [self.gate_of_lane(gates, i) for i in range(n)]
        found = lane_offsets(index) if index.dtype.count > 1 else (linear(index), (linear(index).constant,) * n)
        groups: dict[tuple[Any, ...], tuple[Linear, dict[int, list[int]]]] = {}
        if found is not None:
            total, offsets = found
            total = Linear({done[(t, None)]: c for t, c in total.terms.items()}, 0)
            for lane in range(n):
                groups.setdefault((chosen[lane],), (total, {}))[1].setdefault(offsets[lane], []).append(lane)
        else:
            for lane in range(n):
                total = linear(self.simplify(done[(index, (lane,))]))
                key = (frozenset(total.terms.items()), chosen[lane])
                groups.setdefault(key, (total, {}))[1].setdefault(total.constant, []).append(lane)
        runs: list[Run] = []
        for key, (total, by_offset) in groups.items():
            gate = key[-1]
            for start, size in self.accesses(place.dtype, total, sorted(by_offset)):
                where = Linear(total.terms, start).node(index)
                at = UOp.new(Op.Index, (buffer, where) if gate is None else (buffer, where, gate), gate is not None)
                owners = [by_offset[start + i] for i in range(size)]
                for again in range(max(map(len, owners))):
                    runs.append(Run(at, tuple(o[min(again, len(o) - 1)] for o in owners)))
        return runs

    def gate_of_lane(self, gates: list[UOp], lane: int) -> UOp | None:
        out: UOp | None = None
        for g in gates:
            one: UOp = self.done[(g, None)] if g.dtype.count == 1 else self.done[(g, (lane,))]
            if one.op is Op.Const and one.arg is True:
                continue
            out = one if out is None else out & one
        return out

    def accesses(self, d: DType, total: Linear, offsets: list[int]) -> list[tuple[int, int]]:
        """Sorted offsets as (start, size) of accesses that the target can make."""
        widths = access_widths(self.target, d, self.whole)
        factor = total.factor
        out: list[tuple[int, int]] = []
        i = 0
        while i < len(offsets):
            start = offsets[i]
            run = 1
            while i + run < len(offsets) and offsets[i + run] == start + run:
                run += 1
            while run:
                size = next(w for w in widths if w <= run and self.allowed(w, start, factor))
                out.append((start, size))
                start, run, i = start + size, run - size, i + size
        return out

    def allowed(self, size: int, start: int, factor: int) -> bool:
        """Whether an access of `size` elements may begin there; `factor` divides the base, which tells how it is aligned."""
        return not self.target.aligned or (start % size == 0 and factor % size == 0)

    # Loads and stores.

    def make_loads(self, node: UOp) -> dict[int, tuple[UOp, int]]:
        """For every lane of a Load of many places: the load that reads it, and its lane there."""
        if len(node.src) > 1:
            raise LoweringError(f"a load of many places with an alternative value: {node}")
        where: dict[int, tuple[UOp, int]] = {}
        element = node.dtype.scalar()
        runs: list[Run] = self.done[(node.src[0], "runs")]
        for r in runs:
            load = r.place.load(element.vec(len(r.lanes)) if len(r.lanes) > 1 else element)
            for k, lane in enumerate(r.lanes):
                where[lane] = (load, k)
        return where

    def pick(self, where: dict[int, tuple[UOp, int]], lanes: Lanes) -> UOp:
        pieces: list[tuple[UOp, list[int]]] = []
        for lane in lanes:
            load, i = where[lane]
            if pieces and pieces[-1][0] is load:
                pieces[-1][1].append(i)
            else:
                pieces.append((load, [i]))
        return join([take(load, tuple(own)) for load, own in pieces])

    def is_split_store(self, node: UOp) -> bool:
        place, value = node.src[:2]
        return is_many_places(place) or (value.dtype.count > 1 and place.op is Op.Index and not _in_registers(place))

    def store_needs(self, node: UOp) -> list[Key]:
        place, value = node.src[:2]
        need: list[Key] = [(place, "runs")] if is_many_places(place) else [(place, None)]
        if any(k not in self.done for k in need):
            return need
        need += [(r, None) for r in node.src[2:]]
        if value.dtype.count == 1:
            return [*need, (value, None)]
        return need + [(value, r.lanes) for r in self.store_runs(node)]

    def store_runs(self, node: UOp) -> list[Run]:
        place, value = node.src[:2]
        if is_many_places(place):
            runs: list[Run] = self.done[(place, "runs")]
            return runs
        at: UOp = self.done[(place, None)]
        total = linear(at.src[1])
        out = []
        for start, size in self.accesses(value.dtype, total, [total.constant + i for i in range(value.dtype.count)]):
            first = start - total.constant
            moved = at if first == 0 else at.replace((at.src[0], Linear(total.terms, start).node(at.src[1]), *at.src[2:]))
            out.append(Run(moved, tuple(range(first, first + size))))
        return out

    def make_stores(self, node: UOp) -> UOp:
        value, done = node.src[1], self.done
        ranges = tuple(done[(r, None)] for r in node.src[2:])
        stores: dict[UOp, UOp] = {}
        for r in self.store_runs(node):
            v = take(done[(value, None)], (0,) * len(r.lanes)) if value.dtype.count == 1 else done[(value, r.lanes)]
            stores[r.place] = r.place.store(v, *ranges)  # of lanes that go to one place the last one stays
        made = tuple(stores.values())
        return made[0] if len(made) == 1 else UOp.new(Op.Group, made)


def join(parts: list[UOp]) -> UOp:
    """One vector of the lanes of all parts."""
    if len(parts) == 1:
        return parts[0]
    return UOp.vectorize(*[p if p.dtype.count == 1 else p.gep(i) for p in parts for i in range(p.dtype.count)])


def devectorize(root: UOp, target: Target, simplify: Callable[[UOp], UOp], mode: int = 1) -> UOp:
    """`root` in vectors that `target` has; `simplify` brings the index of a single lane into the form of a sum.

    mode  what is split to the target's widths: 1 arithmetic, loads and stores; 0 loads and stores; 2 nothing
    """
    return _Splitter(target, simplify, mode).run(root)
