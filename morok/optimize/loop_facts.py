"""Facts about a kernel's loops and accesses for the heuristics, and the number of lanes for one loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from morok import config
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.affine import Linear, place_sums
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end
from morok.passes.register_tiles import MAX_LANES, widest


@dataclass(frozen=True, slots=True)
class Accesses:
    """The scalar accesses of a kernel: `loads` and `stores` are the linear forms of indices, `places` the Index nodes of the
    loads; `reduces` is True if the kernel has a reduction.
    """

    places: list[UOp]
    loads: list[Linear]
    stores: list[Linear]
    reduces: bool

    @staticmethod
    def of(ast: UOp) -> Accesses:
        nodes = nodes_of(ast)
        stored = {n.src[0] for n in nodes if n.op is Op.Store}
        sums = place_sums(nodes)
        read = [(p, s) for p, s in sums if p not in stored]
        return Accesses(
            [p for p, _ in read],
            [s for _, s in read],
            [s for p, s in sums if p in stored],
            any(n.op is Op.Reduce for n in nodes),
        )

    def inside(self, loops: Collection[UOp]) -> Accesses:
        """These accesses, without loads that depend on none of `loops`; unchanged if no load depends on any."""
        repeated = [
            (p, s)
            for p, s in zip(self.places, self.loads, strict=True)
            if any(not t.ranges.isdisjoint(loops) for t in s.terms)
        ]
        if not repeated:
            return self
        return Accesses([p for p, _ in repeated], [s for _, s in repeated], self.stores, self.reduces)

    def unit(self, r: UOp, stores: bool | None = None) -> int:
        """The number of accesses with stride 1 along `r`, minus those with another stride than 0, or with none, as of gathered
        rows. Stores count double, or not at all in a kernel with reductions, which reads much more than it writes; `stores`
        overrides this.
        """
        score = 0
        for weight, sums in (
            (1, self.loads),
            (2 if stores or (stores is None and not self.reduces) else 0, self.stores),
        ):
            for s in sums:
                strides = [c for t, c in s.terms.items() if r in t.ranges]
                score += weight if strides == [1] and r in s.terms else -weight if strides else 0
        return score


def native(s: Scheduler) -> int:
    """The lanes of a register, for the widest dtype that the kernel computes with; narrow dtypes count as 32 bits. What it reads
    to know a place does not count.
    """
    most, seen, left = 4, {s.ast}, [s.ast]
    while left:
        n = left.pop()
        if n.op in (Op.Reduce, Op.Index):
            most = max(most, n.dtype.scalar().itemsize)
        for operand in n.src[:1] if n.op is Op.Index else n.src:
            if operand not in seen:
                seen.add(operand)
                left.append(operand)
    return max(1, s.target.vector_bytes // most)


def apply(s: Scheduler, op: OptOp, r: UOp, amount: int) -> None:
    among = s.reduced_ranges if op is OptOp.UNROLL else s.ranges
    s.apply(Opt(op, among.index(r), amount))


def along_reductions() -> bool:
    """True if the settings ask for vectors along reduced axes instead of outputs."""
    return config.K_VECTORIZE.value or config.NO_OUTPUT_UPCAST.value


def length_of(r: UOp) -> int:
    return const_end(r) or 0


def upcast(s: Scheduler, r: UOp, lanes: int, vectors: int) -> None:
    vectorize(s, r, widest(length_of(r), lanes, vectors))


def vectorize(s: Scheduler, r: UOp, amount: int) -> None:
    """Apply UPCAST by `amount` to the range, and to its whole remainder, within MAX_LANES; do nothing if the settings forbid
    vectorized outputs.
    """
    rest, lanes = length_of(r) % amount, s.lanes(r)
    if config.NO_OUTPUT_UPCAST.value or amount < 2 or amount * lanes > MAX_LANES:
        return
    before = set(s.ranges)
    apply(s, OptOp.UPCAST, r, amount)
    if rest > 1:
        for x in s.output_ranges:
            if (
                x not in before
                and length_of(x) == rest
                and x.arg[1] is AxisType.Loop
                and s.lanes(x) == lanes  # not the loop over whole vectors, which may be as long
                and rest * lanes <= MAX_LANES
            ):
                apply(s, OptOp.UPCAST, x, rest)
                return


def unroll(s: Scheduler, r: UOp, lanes: int, vectors: int) -> None:
    amount = widest(length_of(r), lanes, vectors)
    if amount * s.lanes(r) <= MAX_LANES:
        apply(s, OptOp.UNROLL, r, amount)
