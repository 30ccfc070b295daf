"""Graphs that a random rule's pattern matches, small ones and such with up to 64 lanes, or items of a sequence."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.errors import IRError
from morok.ir.dtype import DType
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.prove.encoding.facts import REDUCTIONS
from morok.prove.forms import folds_lanes
from morok.prove.kinds import ANY_FOLD
from morok.prove.trust import large
from morok.prove.trust.differential import of_vector_constants, subject
from morok.prove.trust.graphs import MISMADE, Maker, Unmakeable, numbers
from morok.prove.trust.lane_memory_graphs import LaneMaker
from morok.prove.trust.large import MOST, size
from morok.prove.trust.simt_graphs import LaunchMaker
from morok.prove.trust.structures import ENDS as ENDS_OF_LOOPS
from morok.prove.trust.structures import FOLDS, StructureMaker
from morok.prove.trust.tensor_graphs import TensorMaker
from morok.prove.trust.unrolled import FORMS, UnrolledMaker

ENDS: Final = (-(1 << 15), -(1 << 7), 0, 1 << 7, 1 << 8, 1 << 15, 1 << 16, 1 << 31)  # where narrower dtypes end


class Unbounded(Maker):
    """Indices of which one bound is known, or none, are among its variables."""

    def variable(self, d: DType, maybe_invalid: bool = False) -> UOp:
        if not d.is_index or maybe_invalid or self.rng.random() < 0.55:
            return super().variable(d, maybe_invalid)
        self.count += 1
        v = d.vec(self.lanes)
        free = UOp.var(f"v{self.count}", v)
        end = UOp.const(self.rng.choice((0, 0, 1, 5, 20, -3)), v)
        form = self.rng.randrange(3)
        return free if form == 0 else UOp.new((Op.Max, Op.Min)[form - 1], (free, end))


class NearMisses(Unbounded):
    """Zeros of the other sign are among the constants: patterns that name one do not match it."""

    def const(self, d: DType, v: Any) -> UOp:
        if d.is_float and v == 0 and self.rng.random() < 0.25:
            v = -float(v)
        return super().const(d, v)


class Structures(StructureMaker):
    """Loops whose length may have no value; and floats of any value also where folds are done in any order: what these may be is
    asked of morok.prove.attack.orders.
    """

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.in_any_order = self.in_any_order and rng.random() < 0.2
        mentioned = {v for v in numbers(rule.syntax) if 1 < v <= MOST // 2}
        self.sizes_of_folds = sorted({n for v in mentioned for n in (v, v, 2 * v)})

    def iterations(self, d: DType, least: int, most: int) -> UOp:
        count = super().iterations(d, least, most)
        if not d.is_index or self.rng.random() < 0.75:
            return count
        return UOp.new(Op.Idiv, (count, UOp.var(f"d{self.count}", d, 0, 1)))

    def op_reduce(self, parts: dict[str, Any], p: S.PStruct) -> UOp:
        """Folds of as many lanes as the rule speaks of, where it speaks of some."""
        if not folds_lanes(self.rule) or not self.sizes_of_folds or self.rng.random() < 0.3:
            return super().op_reduce(parts, p)
        ranges = self.loops_of(parts.get("ranges"), AxisType.Reduce)
        source = self.vector(parts["src"], self.rng.choice(self.sizes_of_folds))
        op = self.static(parts.get("op", ANY_FOLD), FOLDS)
        return UOp.new(Op.Reduce, (source, *ranges), op, source.dtype.scalar())


class SmallStructures(Structures):
    """Sequences that may be empty, where they stand beside something."""

    def elements(self, p: Any, lanes: int, most: int = 4) -> list[UOp]:
        if isinstance(p, list) and len(p) > 1 and self.rng.random() < 0.5:
            p = [item for item in p if not isinstance(item, S.PSequence)] or p
        return super().elements(p, lanes, most)


class LargeStructures(large.LargeStructures, Structures):
    """Sequences and vectors of many items; of floats sometimes all of them zeros, of either sign."""

    ends = ENDS_OF_LOOPS

    def variable(self, d: DType, maybe_invalid: bool = False) -> UOp:
        if d.is_float and self.only_zeros:
            return self.const(d, self.rng.choice((0.0, -0.0)))
        return super().variable(d, maybe_invalid)

    @functools.cached_property
    def only_zeros(self) -> bool:
        return self.rng.random() < 0.2


class Wide(UnrolledMaker):
    """Integers near the ends of their dtype, and of narrower ones, are among its leaves."""

    def leaf(self, d: DType, count: int, most: int = 20) -> UOp:
        rng = self.rng
        if not d.is_int or rng.random() < 0.5:
            return super().leaf(d, count, most)
        ends = [e for e in (int(d.min), int(d.max), *ENDS) if d.min <= e <= d.max]
        values = [min(max(rng.choice(ends) + rng.randint(-2, 2), int(d.min)), int(d.max)) for _ in range(count)]
        if rng.random() < 0.3:
            return vconst(d, values)
        self.count += 1
        return UOp.var(f"v{self.count}", d.vec(count), *sorted((values[0], rng.choice((values[0], values[-1])))))

    def axes(self, p: Any) -> tuple[tuple[int, int], ...]:
        """Axes of a name; those of two names are often the same, as guards ask."""
        if isinstance(p, S.EList):
            return ()
        if p.name not in self.fields or p.name.startswith("_"):
            known = [self.fields[n] for n in sorted(self.fields)]
            self.fields[p.name] = self.rng.choice(known) if known and self.rng.random() < 0.6 else self.new_axes()
        found: tuple[tuple[int, int], ...] = self.fields[p.name]
        return found

    def new_axes(self) -> tuple[tuple[int, int], ...]:
        found: tuple[tuple[int, int], ...] = self.rng.choice(FORMS)
        return found

    def op_reduce(self, parts: dict[str, Any], p: Any) -> UOp:
        made = super().op_reduce(parts, p)
        op = parts.get("op")
        return (
            UOp.new(made.op, made.src, Op[op.name], made.dtype)
            if isinstance(op, S.EName) and op.name in REDUCTIONS
            else made
        )


class LargeAxes(Wide):
    """Axes of many iterations, of nodes of many lanes."""

    counts = (1, 2, 5, 8)

    def new_axes(self) -> tuple[tuple[int, int], ...]:
        longer = self.rng.choice((2, 3, 4))
        form = super().new_axes()
        return tuple([(i, n * longer) for i, n in form] if len(form) < 3 else form)

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        x = self.make(parts["vector"])
        return x.gep(*[self.rng.randrange(x.dtype.count) for _ in range(size(self.rng))])


class SmallLanes(LaneMaker, Wide):
    """Vectors of a few lanes, of any integers."""


class LargeLanes(large.LargeLanes, Wide):
    """Vectors and sequences of many lanes, of any integers."""


class SmallTensors(TensorMaker):
    """Tensors of a few axes, and of few of them such as guards ask for: all of one length, nothing cut or added."""

    def shape(self) -> tuple[int, ...]:
        found = super().shape()
        one = self.rng.choice((0, 1, 1, 2, None, None, None))
        return found if one is None else tuple([one] * len(found))

    def size(self, p: Any, wanted: int | None) -> UOp:
        return super().size(p, 0 if wanted is None and self.rng.random() < 0.3 else wanted)


class LargeTensors(large.LargeTensors, SmallTensors):
    """Tensors of five to eight axes, of a few sizes."""


MAKERS: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {  # of small graphs, and of large ones
    "tensors": (SmallTensors, LargeTensors),
    "launches": (LaunchMaker, LaunchMaker),
    "axes": (Wide, LargeAxes),
    "lanes": (SmallLanes, LargeLanes),
    "structures": (SmallStructures, LargeStructures),
}


class Graphs:
    """Graphs for one rule, equal for equal seeds.

    large  graphs made so far that have more than four lanes, or operands
    """

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        self.rule, self.instance, self.rng = rule, instance, rng

    def make(self, large: bool) -> UOp | None:
        """One graph; None where chance made what is none."""
        try:
            made: UOp = self.maker(large).make(self.rule.syntax.pattern)
            return made
        except (Unmakeable, IRError, *MISMADE):
            return None

    def maker(self, large: bool) -> Any:
        rule, instance, rng = self.rule, self.instance, self.rng
        if subject(rule) == "values":
            lanes = size(rng) if large else 3 if of_vector_constants(rule) or rng.random() < 0.1 else 1
            return NearMisses(rule, instance, rng, lanes)
        return MAKERS[subject(rule)][large](rule, instance, rng)

    def first(self, count: int) -> Iterator[tuple[UOp, bool]]:
        """Graphs, and whether each is large: every other one."""
        for k in range(count):
            made = self.make(k % 2 == 1)
            if made is not None:
                yield made, widest(made) >= 5


def widest(graph: UOp) -> int:
    """The most lanes of a node, or operands of a list."""
    return max(max(n.dtype.count if n.dtype.count else 1, len(n.src)) for n in graph.toposort() if n.op is not Op.Sink)
