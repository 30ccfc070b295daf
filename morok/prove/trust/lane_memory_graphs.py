"""Random graphs for patterns about lanes: vectors of places near one another, gates by lane, vectors wider than registers."""

from __future__ import annotations

from typing import Any, Final

from morok.dsl import syntax as S
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst
from morok.prove.forms import admits_invalid
from morok.prove.trust.unrolled import UnrolledMaker

COUNTS: Final = (1, 2, 2, 3, 4, 5)
WIDE: Final = 7  # lanes of a vector that takes several registers of those that a rule is tried with


class LaneMaker(UnrolledMaker):
    """Makes one graph for one instance of a rule about lanes."""

    counts = COUNTS

    def gates(self, count: int) -> UOp:
        """A gate for every lane: some alike, known ones, or a comparison of vectors."""
        rng = self.rng
        form = rng.randrange(3)
        if form == 0:
            some = [self.leaf(dtypes.bool, 1) for _ in range(2)]
            return UOp.vectorize(*[rng.choice(some) for _ in range(count)])
        if form == 1:
            return vconst(dtypes.bool, [rng.random() < 0.7 for _ in range(count)])
        return self.leaf(dtypes.index, count) < UOp.const(9, dtypes.index.vec(count))

    def indices(self, count: int) -> UOp:
        """An index for every lane: neighbours in any order, some twice, behind one base or two; or any indices."""
        rng = self.rng
        form = rng.randrange(6)
        if form == 0:
            return self.leaf(dtypes.index, count)
        offsets = rng.sample(range(count + rng.randrange(2)), count)
        if form == 1:
            offsets = [rng.choice(offsets) for _ in offsets]
        self.count += 2
        one, other = [UOp.var(f"v{self.count - k}", dtypes.index, 0, 19) for k in range(2)]
        if form == 2:
            return UOp.vectorize(*[rng.choice((one, other)) + k for k in offsets])
        return UOp.vectorize(*[one] * count) + vconst(dtypes.index, offsets)

    def spread(self, d: DType, count: int, most: int = 20) -> UOp:
        """A leaf, or something computed from two."""
        x = super().spread(d, count, most)
        if self.rng.random() < 0.5:
            return x
        return UOp.new(Op.Or if d.is_bool else Op.Add, (x, super().spread(d, count, most)))

    def op_index(self, parts: dict[str, Any], p: Any) -> UOp:
        buffer = self.bound(parts["buffer"], self.storage(self.dtype(self.type(p))))
        first = parts["indices"].items[0]
        count = self.own(self.type(first))
        at = self.indices(count)
        if count > 1 and isinstance(first, S.PVar) and admits_invalid(self.rule, first) and self.rng.random() < 0.5:
            at = self.gates(count).where(at, UOp.invalid_at(at.dtype))
        gate = parts.get("gate")
        if gate is None:
            return buffer.index(at)
        lanes = self.own(self.type(gate))
        return buffer.index(at, gate=self.gates(lanes) if lanes > 1 else self.make(gate))

    def op_load(self, parts: dict[str, Any], p: Any) -> UOp:
        place = self.make(parts["index"])
        if place.dtype.count == 1:
            return place.load(place.dtype.vec(self.rng.choice((1, 3, WIDE))))
        return place.load()

    def op_store(self, parts: dict[str, Any], p: Any) -> UOp:
        place = self.make(parts["index"])
        count = self.rng.choice((1, place.dtype.count) if place.dtype.count > 1 else (1, WIDE))
        return place.store(self.spread(place.dtype.scalar(), count))

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        x = self.make(parts["vector"])
        count = x.dtype.count
        wanted = (
            [self.rng.randrange(count)] * 2
            if self.rng.random() < 0.3
            else [self.rng.randrange(count) for _ in range(WIDE)]
        )
        which = parts["indices"]
        return x.gep(*wanted[: len(which.items) if isinstance(which, S.EList) else self.rng.choice((1, 2, 3, WIDE))])

    def several(self, p: Any, d: DType) -> tuple[UOp, ...]:
        """Parts of the same lanes, or of different ones."""
        items = p if isinstance(p, list) else [p]
        ty = self.type(items[0])
        if ty.lanes == 1 or self.rng.random() < 0.4:
            return super().several(p, d)
        return tuple([self.spread(d, self.rng.choice((1, 2, 3))) for _ in range(self.rng.choice((1, 2, 3)))])

    def op_group(self, parts: dict[str, Any], p: Any) -> UOp:
        return UOp.new(Op.Group, (self.statement(),))
