"""Movement ops as maps of index vectors: from an index into a view to the index into its operand.

An index vector has one index for each dimension (0 where the size is 1). Under its gates index k lies in [0, size k); elsewhere
it may have any value, and nothing is read. The maps come from the rules of rules/tensor/movement.rules, applied to Index(view,
indices..) and proved at any rank and size; this module has no rules of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from morok.errors import LoweringError
from morok.ir.conjunctions import clauses
from morok.ir.dtype import STORAGE_FLOATS, dtypes
from morok.ir.graph import substitute
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.remembered import NODE, Remembered
from morok.rewrite import library
from morok.rewrite.engine import InitialSubstitution, fire, rewrite_all
from morok.rewrite.tiers import SYMBOLIC
from morok.rewrite.trace import current

Indices = tuple[UOp, ...]

GROUPS: Final = ("movement", "nested_index")  # the rules that move an index through views
STAGE: Final = "1"
MOST_MAPS: Final = 4096  # most cached maps of views
MOST_AXES: Final = 256  # most cached variables of axes

INDEX: Final = dtypes.index
ZERO: Final = UOp.const(0, INDEX)


def number(value: int | UOp) -> UOp:
    return value if isinstance(value, UOp) else UOp.const(value, INDEX)


def add(a: UOp, b: int | UOp) -> UOp:
    """a + b, with constants folded into one on the right."""
    c = number(b)
    if c.op is not Op.Const:
        return c if a is ZERO else a + c
    if a.op is Op.Const:
        return UOp.const(a.arg + c.arg, INDEX)
    if a.op is Op.Add and a.src[1].op is Op.Const:
        a, c = a.src[0], UOp.const(a.src[1].arg + c.arg, INDEX)
    return a if c.arg == 0 else a + c


def mul(a: UOp, b: int | UOp) -> UOp:
    c = number(b)
    if c.op is Op.Const:
        if c.arg == 1:
            return a
        if c.arg == 0:
            return ZERO
        if a.op is Op.Const:
            return UOp.const(a.arg * c.arg, INDEX)
        if a.op is Op.Mul and a.src[1].op is Op.Const:
            return a.src[0] * UOp.const(a.src[1].arg * c.arg, INDEX)
    return ZERO if a is ZERO else a * c


def flatten(indices: Sequence[UOp], shape: Shape) -> UOp:
    """The row-major position of `indices` in a tensor of this shape."""
    flat, stride = ZERO, number(1)
    for i, n in zip(reversed(indices), reversed(shape), strict=True):
        flat = add(mul(i, stride), flat)
        stride = mul(stride, n)
    return flat


class Map(NamedTuple):
    """A view as a map of index vectors.

    axes     a variable for each index into the view
    indices  the indices into its operand, over these variables
    gates    the conditions under which the view reads its operand
    """

    axes: Indices
    indices: Indices
    gates: Indices


_maps: Final[Remembered[Map]] = Remembered(MOST_MAPS)


def through(node: UOp, indices: Indices) -> tuple[Indices, list[UOp]]:
    """(indices into the operand of the view `node`, conditions under which the view reads it), for `indices` into the view."""
    key = node.op, node.arg, node.src[1:], shape_of(node.src[0])
    found = _maps.get(key)
    if found is None or current() is not None:  # a trace shows every firing
        found = _map_of(node)
        _maps.put(key, found, NODE * sum(map(len, found)))
    given = {axis: i for axis, i in zip(found.axes, indices, strict=True) if axis is not ZERO}
    moved = [given.get(i, i) for i in (*found.indices, *found.gates)]
    pairs = zip((*found.indices, *found.gates), moved, strict=True)
    if order := tuple(dict.fromkeys(i for i, now in pairs if now is i and i.op is not Op.Const)):
        simple = simplified(substitute(order, given))
        done = dict(zip(order, simple, strict=True))
        moved = [done.get(i, i) for i in moved]
    count = len(found.indices)
    return tuple(moved[:count]), [c for g in moved[count:] for c in clauses(g) if c.op is not Op.Const or not c.arg]


def _map_of(node: UOp) -> Map:
    """The map of a view, by firing rules at an index of variables bounded by the view's shape."""
    below, rules = node.src[0], library.groups(*GROUPS)
    if below.dtype in STORAGE_FLOATS:  # rules are about dtypes with arithmetic only, and a view moves any 8 bits alike
        below = below.bitcast(dtypes.u8)
        node = node.replace((below, *node.src[1:]))
    axes = tuple([_axis(k, n) for k, n in enumerate(shape_of(node))])
    place = UOp.new(Op.Index, (node, *axes), False)
    while place.src[0] is not below:
        moved = fire(place, rules, stage=STAGE)
        if moved is None:
            raise LoweringError(
                f"no rule turns an index of this {place.src[0].op.name}, of shape {shape_of(node)}, into one of its operand",
                expected=f"a rule of the groups {', '.join(GROUPS)} for it",
            )
        place = moved
    indices: list[UOp] = []
    gates: list[UOp] = []
    for i in place.src[1:]:
        if i.op is Op.Where and i.src[2].op is Op.Invalid:  # a gated index, in the form of the group lower_gates
            indices.append(i.src[1])
            gates += clauses(i.src[0])
        else:
            indices.append(i)
    plain = {axis for axis in axes if axis.vmin < axis.vmax}  # need no simplification, like constants
    order = [i for i in (*indices, *gates) if i.op is not Op.Const and i not in plain]
    simple = dict(zip(order, simplified(order), strict=True)) if order else {}
    gates = [simple.get(g, g) for g in gates]
    return Map(
        axes, tuple([simple.get(i, i) for i in indices]), tuple([g for g in gates if g.op is not Op.Const or not g.arg])
    )


@functools.lru_cache(MOST_AXES)
def _axis(k: int, size: int | UOp) -> UOp:
    """A variable for the index along axis k, in [0, size); the constant 0 for size 1."""
    if size == 1:
        return ZERO
    most = int(size.vmax) if isinstance(size, UOp) else size
    return UOp.var(f"axis {k}", INDEX, 0, max(most - 1, 0))


def simplified(nodes: Sequence[UOp]) -> list[UOp]:
    """Indices and conditions under the symbolic rules. Ranges are kept as they are, even if a length could be simplified."""
    loops = {r: r for n in nodes for r in n.ranges if r.src[0].op is not Op.Const}
    initial = InitialSubstitution(loops, {}, lambda rebuild: rebuild) if loops else None
    return rewrite_all(nodes, library.groups(*SYMBOLIC), stage=STAGE, initial=initial)


@dataclass(frozen=True, slots=True)
class Part:
    """An operand of a Concat: the indices into it, the conditions under which it is read, and its end along the axis."""

    operand: UOp
    indices: Indices
    gates: list[UOp]
    end: UOp


def parts(node: UOp, indices: Indices) -> list[Part]:
    """The operands of a Concat that an index vector may read, in order."""
    axis: int = node.arg
    i = indices[axis]
    out: list[Part] = []
    end = ZERO
    for k, s in enumerate(node.src):
        begin, end = end, add(end, shape_of(s)[axis])
        if i.vmax < begin.vmin or i.vmin >= end.vmax:
            continue
        gates = [i.ge(begin)] if begin is not ZERO and i.vmin < begin.vmax else []
        if k < len(node.src) - 1 and i.vmax >= end.vmin:
            gates.append(i.lt(end))
        out.append(Part(s, (*indices[:axis], add(i, _negative(begin)), *indices[axis + 1 :]), gates, end))
    return out


def _negative(n: UOp) -> UOp:
    return UOp.const(-n.arg, INDEX) if n.op is Op.Const else mul(n, -1)
