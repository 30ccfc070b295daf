"""Nodes under unrolled axes: functions from iterations of the axes to vectors.

An iteration says for every axis which of its values is meant. `Unroll(x, axes)` is there the block of x's lanes that belongs to
it, the last axis running fastest; `Contract(x, axes)` is x at all iterations of its axes, side by side; what closes axes (Reduce,
Store, End over an Unroll) runs over all of theirs; every other op acts iteration by iteration and lane by lane. Pointwise ops are
functions of values about which nothing is known, so that one proof holds at every dtype: a value may as well be Invalid, or none.
A statement is the set of what it does, over all iterations of the axes that are open in it, as nothing orders lanes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

from morok.dsl.extent import Extent
from morok.prove import smt
from morok.prove.encoding.places import ELEMENT
from morok.prove.encoding.sizes import Tried, numbers
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

Axes = tuple[tuple[int, int], ...]
Iteration = tuple[int, ...]
Term = int

# The axes that there are in a proof: by their ids, with their lengths. A node may be unrolled over any of them, in any order.
AXES: Final[Axes] = ((0, 2), (1, 3))
FORMS: Final[tuple[Axes, ...]] = tuple(p for k in range(len(AXES) + 1) for p in itertools.permutations(AXES, k))
OWN: Final = (1, 2)  # lanes of its own that a node may have
LANES: Final = numbers(*OWN)
MANY: Final = numbers(0, 1, 2)  # operands of a sequence
SOME: Final = numbers(1, 2)  # lanes that a Gep names
ANY_AXES: Final = Tried(FORMS, Extent("axes", "", 0, len(AXES), AXES))
BINDERS: Final = Tried((FORMS[0], *((a,) for a in AXES), AXES), Extent("closed", "", 0, len(AXES), AXES))  # in no order
ONE_AXIS: Final = Tried(AXES, Extent("axes", "", 1, 1, AXES))
ITERATIONS: Final[tuple[Iteration, ...]] = tuple(itertools.product(*(range(n) for _, n in AXES)))
ANYWHERE: Final = ITERATIONS[0]
_PLACE: Final = {i: k for k, (i, _) in enumerate(AXES)}


class IllFormed(Exception):
    """The target builds a node that its operands do not allow."""


def width(axes: Axes) -> int:
    return math.prod(n for _, n in axes)


def linear(axes: Axes, at: Iteration) -> int:
    """Which block of lanes belongs to an iteration: the last axis runs fastest."""
    out = 0
    for i, n in axes:
        out = out * n + at[_PLACE[i]]
    return out


def moved(axes: Axes, block: int, at: Iteration) -> Iteration:
    """`at`, with the iteration of these axes that the block of lanes belongs to."""
    out = list(at)
    for i, n in reversed(axes):
        out[_PLACE[i]] = block % n
        block //= n
    return tuple(out)


def everywhere(ids: Sequence[int], at: Iteration) -> list[Iteration]:
    """`at`, with every iteration of the axes with these ids."""
    chosen = tuple(a for a in AXES if a[0] in ids)
    return [moved(chosen, k, at) for k in range(width(chosen))]


class Vector:
    """A node: so many lanes, each a term for every iteration.

    axes, inside   of an Unroll what it is over, and what is unrolled
    free           of a name the ids of axes that it does not depend on
    any_width      it is the same in every lane, and serves any number of them
    """

    def __init__(self, count: int, at: Callable[[Iteration, int], Term], any_width: bool = False) -> None:
        self.count = count
        self.compute = at
        self.any_width = any_width
        self.axes: Axes = ()
        self.inside: Vector = self
        self.free: set[int] | None = None
        self.known: dict[tuple[Iteration, int], Term] = {}

    def at(self, where: Iteration, lane: int) -> Term:
        if self.any_width:
            lane = 0
        found = self.known.get((where, lane))
        if found is None:
            found = self.known[(where, lane)] = self.compute(where, lane)
        return found


class Statement:
    """The effect of a statement at an iteration."""

    def __init__(self, effects: Callable[[Iteration], list[Term]]) -> None:
        self.effects = effects


class Terms:
    """Terms, each once: one is the number of its entry, and equal terms are equal numbers.

    lasting   so many are there for good; the others are of one reading
    """

    def __init__(self) -> None:
        self.lasting = 0
        self.entries: list[tuple[Symbol, tuple[Term, ...]]] = []
        self.numbers: dict[tuple[Symbol, tuple[Term, ...]], Term] = {}

    def of(self, name: Symbol, arguments: Sequence[Term] = ()) -> Term:
        key = (name, tuple(arguments))
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.entries)
            self.entries.append(key)
        return found

    def always(self, name: str) -> Term:
        """A constant that every reading has."""
        found = self.of(Symbol("fixed", name))
        self.lasting = max(self.lasting, found + 1)
        return found

    def forget(self) -> None:
        """Begin anew: nothing that was read before is used any more."""
        for key in self.entries[self.lasting :]:
            del self.numbers[key]
        del self.entries[self.lasting :]

    def expression(self, t: Term) -> Expr:
        """A term as the solver's: functions and constants about which it knows nothing."""
        name, arguments = self.entries[t]
        if not arguments:
            return smt.Const(name, ELEMENT)
        return smt.Function(name, *([ELEMENT] * len(arguments)), ELEMENT)(*(self.expression(a) for a in arguments))

    def plainly_other(self, s: Term, t: Term) -> bool:
        """True if two terms differ whatever their ops compute: where the same op is done to plainly other operands, or where
        neither is made by an op. Of an op and an operand, or of two ops, somebody may know that they are equal.
        """
        (f, some), (g, others) = self.entries[s], self.entries[t]
        if not some or not others:
            return not some and not others
        if f != g or len(some) != len(others):
            return f.parts[:1] == g.parts[:1]  # one op, at other dtypes or of more operands
        return any(a != b and self.plainly_other(a, b) for a, b in zip(some, others, strict=True))

    def text(self, t: Term) -> str:
        """A term in words."""
        name, arguments = self.entries[t]
        return f"{name.label}({', '.join(map(self.text, arguments))})" if arguments else name.label

    def op(self, t: Term) -> str:
        """The op that a term is made by; of any other none."""
        name, _ = self.entries[t]
        return str(name.parts[0]) if name.kind == "op" else ""

    def integer(self, t: Term) -> int | None:
        """The integer that a term is; None of any other."""
        name, _ = self.entries[t]
        return int(name.parts[0]) if name.kind == "number" else None


TERMS: Final = Terms()
constant = TERMS.of


def term(op: str, arguments: Sequence[Term] = ()) -> Term:
    return TERMS.of(Symbol("op", op), arguments)


def opaque(name: Symbol, count: int) -> Vector:
    """Any node: other values at every iteration, unless it is said to be free of axes."""

    def at(where: Iteration, lane: int) -> Term:
        free = made.free or ()
        return constant(Symbol("at", name, lane, *("_" if i in free else k for (i, _), k in zip(AXES, where, strict=True))))

    made = Vector(count, at)
    made.free = set()
    return made


def splat(value: Term) -> Vector:
    return Vector(1, lambda where, lane: value, any_width=True)


def number(value: int) -> Term:
    return constant(Symbol("number", value))


def unroll(x: Vector, axes: Axes) -> Vector:
    n = width(axes)
    if x.any_width:
        x = Vector(n, x.compute)
    if x.count % n:
        raise IllFormed(f"{x.count} lanes unrolled over {axes}")
    own = x.count // n
    made = Vector(own, lambda where, lane: x.at(where, linear(axes, where) * own + lane))
    made.axes, made.inside = axes, x
    return made


def contract(x: Vector, axes: Axes) -> Vector:
    return Vector(x.count * width(axes), lambda where, lane: x.at(moved(axes, lane // x.count, where), lane % x.count))


def gep(x: Vector, lanes: Sequence[int]) -> Vector:
    if not lanes or any(not 0 <= i < x.count for i in lanes):
        raise IllFormed(f"lanes {lanes} of {x.count}")
    return Vector(len(lanes), lambda where, lane: x.at(where, lanes[lane]), x.any_width)


def joined(xs: Sequence[Vector], single: bool) -> Vector:
    """The lanes of all, in their order."""
    if not xs or (single and any(x.count != 1 for x in xs)):
        raise IllFormed("elements that are no scalars" if xs else "no operands")
    lanes = [(x, i) for x in xs for i in range(x.count)]
    return Vector(len(lanes), lambda where, lane: lanes[lane][0].at(where, lanes[lane][1]))


def constants(values: Sequence[int]) -> Vector:
    made = Vector(len(values), lambda where, lane: number(values[lane]))
    made.free = set()
    return made


def lanewise(function: Symbol, xs: Sequence[Vector], commutes: bool = False, scalars: Sequence[int] = ()) -> Vector:
    """An op lane by lane; operands at the places `scalars` may be scalar, and serve all lanes."""
    counts = {x.count for k, x in enumerate(xs) if not x.any_width and k not in scalars}
    if len(counts) > 1:
        raise IllFormed(f"{function.label} of {sorted(counts)} lanes")
    count = max(counts, default=max((x.count for x in xs), default=1))
    if any(xs[k].count not in (1, count) for k in scalars):
        raise IllFormed(f"{function.label} with a condition of other lanes")

    def at(where: Iteration, lane: int) -> Term:
        found = [x.at(where, lane if x.count > 1 else 0) for x in xs]
        return TERMS.of(function, sorted(found) if commutes else found)

    return Vector(count, at, bool(xs) and all(x.any_width for x in xs))


def fold(op: Symbol, x: Vector, count: int, closed: Sequence[int], loops: Sequence[Vector]) -> Vector:
    """A fold over loops and closed axes: of what, and over which loops, is all that matters, as its order is not specified."""
    if count < 1 or x.count % count:
        raise IllFormed(f"{x.count} lanes folded to {count}")
    group = x.count // count

    def at(where: Iteration, lane: int) -> Term:
        bag = []
        for there in everywhere(closed, where):
            over = [r.at(there, 0) for r in loops]
            bag += (
                [term("iteration", [x.at(there, lane * group + i), *over]) for i in range(group)]
                if over
                else [x.at(there, lane * group + i) for i in range(group)]
            )
        if len(bag) == 1 and not loops:
            return bag[0]
        return TERMS.of(op, sorted(bag))

    return Vector(count, at)


def closing(body: Callable[[Iteration], list[Term]], closed: Sequence[int], loops: Sequence[Vector]) -> Statement:
    """A statement for all iterations of closed axes and of loops."""

    known: dict[Iteration, list[Term]] = {}

    def effects(where: Iteration) -> list[Term]:
        all_of_them = everywhere(closed, where)
        found = known.get(all_of_them[0])
        if found is None:
            found = known[all_of_them[0]] = []
            for there in all_of_them:
                over = [r.at(there, 0) for r in loops]
                found += [term("loops", [e, *over]) if over else e for e in body(there)]
        return found

    return Statement(effects)


def collected(s: Statement) -> list[Term]:
    """All that a statement does, each once."""
    return list(dict.fromkeys(e for where in ITERATIONS for e in s.effects(where)))
