"""Stage 11: a Reduce becomes accumulators, their initial values, and a loop that adds to them.

A fold may be taken in any order (language.md), which is used twice: lanes of a vectorized reduction axis become independent
accumulators, folded together once after the loop; and reductions over the same ranges share one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from morok.ir.dtype import AddrSpace, DType, dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.passes.lanes import take
from morok.passes.target import Target
from morok.passes.walk import next_range_id

MAX_ACCUMULATORS: Final = 8  # vectors that one scalar result may be spread over: enough to hide an add's latency
MAX_SPREAD: Final = 24  # vectors that several results together may be spread over
_BOOL_OP: Final = {Op.Add: Op.Or, Op.Max: Op.Or, Op.Mul: Op.And, Op.Min: Op.And}


def _combine(op: Op, d: DType) -> Callable[[UOp, UOp], UOp]:
    chosen = _BOOL_OP[op] if d.is_bool else op
    return lambda a, b: UOp.new(chosen, (a, b))


def _fold(parts: Sequence[UOp], f: Callable[[UOp, UOp], UOp]) -> UOp:
    out = parts[0]
    for p in parts[1:]:
        out = f(out, p)
    return out


def _halves(x: UOp, f: Callable[[UOp, UOp], UOp]) -> UOp:
    """All lanes of `x` folded into one, halving the vector at each step."""
    rest: list[UOp] = []
    while (n := x.dtype.count) > 1:
        half = n // 2
        if n % 2:
            rest.append(take(x, (n - 1,)))
        x = f(take(x, tuple(range(half))), take(x, tuple(range(half, 2 * half))))
    return _fold([x, *rest], f)


def _pieces(x: UOp, size: int) -> list[UOp]:
    """The lanes of `x` in runs of at most `size`."""
    n = x.dtype.count
    return [take(x, tuple(range(at, min(at + size, n)))) for at in range(0, n, size)]


@dataclass(slots=True)
class _Fold:
    """One Reduce, taken apart: `terms` are folded into accumulators of the same lanes, `finish` makes the result of those."""

    terms: list[list[UOp]]  # terms[i][c]: the i-th term's c-th piece
    finish: Callable[[list[UOp]], UOp]


def _plan(source: UOp, result: DType, op: Op, native: int) -> _Fold:
    """How to accumulate `source` (the lanes of `result`, times those to fold, which run fastest) in vectors of `native` lanes."""
    n = result.count
    folded = source.dtype.count // n
    f = _combine(op, result)
    keep = 1
    if native > 1 and folded % native == 0 and n * folded <= MAX_SPREAD * native:
        keep = folded
    elif n < native:
        limit = MAX_ACCUMULATORS * native // n
        keep = max(k for k in range(1, folded + 1) if folded % k == 0 and k <= limit)
    steps = folded // keep
    terms = [
        take(source, tuple(o * folded + i * keep + k for o in range(n) for k in range(keep))) if steps > 1 else source
        for i in range(steps)
    ]

    def finish(pieces: list[UOp]) -> UOp:
        if keep == 1:
            return pieces[0] if len(pieces) == 1 else UOp.new(Op.Cat, tuple(pieces))
        if n == 1:
            whole = [p for p in pieces if p.dtype is pieces[0].dtype]
            return _fold([_halves(_fold(whole, f), f), *[_halves(p, f) for p in pieces[len(whole) :]]], f)
        if keep % native == 0:
            each = keep // native
            return UOp.vectorize(*[_halves(_fold(pieces[at : at + each], f), f) for at in range(0, len(pieces), each)])
        joined = pieces[0] if len(pieces) == 1 else UOp.new(Op.Cat, tuple(pieces))
        return _fold([take(joined, tuple(range(k, n * keep, keep))) for k in range(keep)], f)

    return _Fold([_pieces(t, native) for t in terms], finish)


def native_lanes(target: Target, d: DType) -> int:
    """Lanes of an accumulator: a register of the target; narrow types count as 32 bits, which their arithmetic widens to."""
    return max(1, target.vector_bytes // max(4, d.scalar().itemsize))


class _Remover:
    def __init__(self, root: UOp, target: Target) -> None:
        self.target = target
        self.next_range = next_range_id(root)
        nodes = root.toposort()
        self.next_reg = max((n.arg for n in nodes if n.op is Op.DefineReg), default=-1) + 1
        self.used: set[UOp] = set()
        self.done: dict[UOp, UOp] = {}
        # How many reductions are nested below a node: those of one depth cannot depend on each other.
        depth: dict[UOp, int] = {}
        levels: dict[int, list[UOp]] = {}
        for node in nodes:
            d = max((depth[s] for s in node.src), default=0) + (node.op is Op.Reduce)
            depth[node] = d
            levels.setdefault(d, []).append(node)
        for d in sorted(levels):
            self.level(levels[d])

    def level(self, nodes: list[UOp]) -> None:
        loops: dict[tuple[object, ...], list[UOp]] = {}
        for node in nodes:
            if node.op is Op.Reduce:
                loops.setdefault((node.src[1:], node.ranges), []).append(node)
        for group in loops.values():
            self.loop(group)
        for node in nodes:
            if node not in self.done:
                src = tuple([self.done[s] for s in node.src])
                self.done[node] = node if src == node.src else node.replace(src)

    def loop(self, group: list[UOp]) -> None:
        """Lower reductions over the same ranges inside the same loops, none of which depends on another, as one loop."""
        ranges = tuple(self.done[r] for r in group[0].src[1:])
        sources = [self.done[g.src[0]] for g in group]
        taken = {r: self.fresh(r) for r in ranges if r in self.used}
        if taken:  # an earlier loop runs over this range; a second loop is another range
            sources = [substitute_open(s, taken) for s in sources]
            ranges = tuple(taken.get(r, r) for r in ranges)
        self.used.update(ranges)
        outer = tuple(sorted(group[0].ranges, key=lambda r: r.arg[0]))
        outer = tuple(self.done[r] for r in outer)
        stores: list[UOp] = []
        registers: list[list[UOp]] = []
        plans: list[_Fold] = []
        for node, source in zip(group, sources, strict=True):
            op, d = node.arg, node.dtype
            if d.is_index:
                op, d, source = self.narrow(node, source)
            plan = _plan(source, d, op, native_lanes(self.target, d))
            f = _combine(op, d)
            plans.append(plan)
            if not ranges:
                registers.append([_fold([t[c] for t in plan.terms], f) for c in range(len(plan.terms[0]))])
                continue
            made: list[UOp] = []
            for c, piece in enumerate(plan.terms[0]):
                register = self.register(piece.dtype)
                place = register.after(*outer).index(0)
                start = place.store(UOp.const(identity(op, d.scalar()), piece.dtype))
                running = register.after(start, *ranges).index(0)
                stores.append(running.store(_fold([running, *[t[c] for t in plan.terms]], f)))
                made.append(register)
            registers.append(made)
        if ranges:
            body = stores[0] if len(stores) == 1 else UOp.new(Op.Group, tuple(stores))
            end = body.end(*ranges)
            registers = [[r.after(end).index(0) for r in made] for made in registers]
        for node, made, plan in zip(group, registers, plans, strict=True):
            out = plan.finish(made)
            self.done[node] = out if out.dtype is node.dtype else out.cast(node.dtype)

    def narrow(self, node: UOp, source: UOp) -> tuple[Op, DType, UOp]:
        """A fold at index happens in i64: registers need a width, and Max and Min over nothing an identity."""
        d = dtypes.i64 if node.dtype.count == 1 else dtypes.i64.vec(node.dtype.count)
        return node.arg, d, source.cast(dtypes.i64)

    def register(self, d: DType) -> UOp:
        self.next_reg += 1
        base = d.scalar()
        return UOp.new(Op.DefineReg, (), self.next_reg - 1, _vector(base, d.count).ptr(1, AddrSpace.REG))

    def fresh(self, r: UOp) -> UOp:
        self.next_range += 1
        return UOp.new(Op.Range, r.src, (self.next_range - 1, *r.arg[1:]))


def _vector(base: DType, n: int) -> DType:
    return base if n == 1 else base.vec(n)


def substitute_open(root: UOp, mapping: dict[UOp, UOp]) -> UOp:
    """`root` with open ranges replaced; what closes such a range keeps it."""
    done: dict[UOp, UOp] = dict(mapping)
    for node in root.toposort():
        if node in done:
            continue
        if any(r in mapping for r in node.ranges):
            done[node] = node.replace(tuple([done[s] for s in node.src]))
        else:
            done[node] = node
    return done[root]


def remove_reduce(root: UOp, target: Target) -> UOp:
    """`root` with every Reduce replaced by accumulators in registers."""
    return _Remover(root, target).done[root]
