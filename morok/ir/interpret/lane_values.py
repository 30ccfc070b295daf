"""Values of the interpreter: one lane is a Python value, INVALID, a Pointer in place position, or Poison.

Undefinedness is deferred: an operation without a value gives Poison, every operation on Poison gives Poison, and only
the use of a value as an address, a loop's end or a result raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from morok.errors import IRError, Place, UndefinedError
from morok.ir import number, provenance
from morok.ir.dtype import DType
from morok.ir.op import TABLE, Op, Undefined
from morok.ir.uop import UOp
from morok.lane_roles import join, lane, take

if TYPE_CHECKING:
    from morok.ir.interpret.storage import Storage

Lanes = tuple[Any, ...]


# Ops whose value is that of their operand.
SAME: Final = frozenset({Op.Contiguous, Op.ContiguousBackward, Op.Detach, Op.Copy, Op.Noop, Op.Precast})
NOTHING: Final = object()  # a fold that has seen no value and has no identity


class _Invalid:
    """The one Invalid index."""

    def __repr__(self) -> str:
        return "Invalid"


INVALID: Final = _Invalid()


@dataclass(frozen=True, slots=True)
class Poison:
    """The result of an operation without a value, with the reason."""

    why: str
    node: UOp | None = None

    def error(self) -> UndefinedError:
        where = None if self.node is None else provenance.place(self.node.origin)
        text = self.why if self.node is None else f"{self.node.op.name}: {self.why}"
        return UndefinedError(text, place=None if where is None else Place(*where))


@dataclass(frozen=True, slots=True)
class Pointer:
    """One lane of memory."""

    storage: Storage
    offset: int


def known(v: Any) -> Any:
    """`v`, observed: UndefinedError if it is Poison."""
    if v.__class__ is Poison:
        raise v.error()
    return v


def zero(d: DType) -> Any:
    return False if d.is_bool else 0.0 if d.is_float else 0


# The operand that decides a connective of bools alone.
DECIDES: Final = {Op.And: False, Op.Or: True}


def pointwise(node: UOp, operands: list[Lanes]) -> Lanes:
    """The value of a pointwise node, lane by lane; a scalar condition governs all lanes."""
    entry = node.entry
    evaluate = entry.evaluate
    assert evaluate is not None
    result = node.dtype.scalar()
    if result.is_ptr:
        raise IRError(
            f"{node.op.name} of a pointer has no value",
            expected="numbers or bools",
            hint="Load gives the number at a place",
        )
    d = node.src[0].dtype.scalar() if entry.comparison else result
    out = []
    for i in range(node.dtype.count):
        vs = [lane(lanes, i) for lanes in operands]
        if node.op is Op.Where:
            out.append(vs[0] if vs[0].__class__ is Poison else vs[1] if vs[0] else vs[2])
            continue
        if d.is_bool and node.op in DECIDES and any(v is DECIDES[node.op] for v in vs):
            out.append(DECIDES[node.op])  # the other operand need not have a value
            continue
        bad = next((v for v in vs if v.__class__ is Poison), None)
        if bad is not None:
            out.append(bad)
        elif INVALID in vs:
            out.append(INVALID if result.is_index else Poison("an operand is Invalid", node))
        else:
            try:
                out.append(evaluate(d, *vs, node.src[0].dtype.scalar()) if node.op is Op.Cast else evaluate(d, *vs))
            except Undefined as problem:
                out.append(Poison(str(problem), node))
    return tuple(out)


def bitcast(node: UOp, lanes: Lanes) -> Lanes:
    """The bits of all lanes, least significant lane first, read as lanes of the node's dtype."""
    source, target = node.src[0].dtype, node.dtype
    if source is target:
        return lanes
    if source.bits * source.count != target.bits * target.count:
        raise IRError(f"{node.op.name} of {source} to {target}", expected="dtypes of as many bits")
    bad = next((v for v in lanes if v.__class__ is Poison), None)
    if source.count == target.count:
        a, b = source.scalar(), target.scalar()
        return tuple([v if v.__class__ is Poison else number.from_bits(b, number.to_bits(a, v)) for v in lanes])
    if bad is not None:
        return (bad,) * target.count
    word = 0
    for i, v in enumerate(lanes):
        word |= number.to_bits(source.scalar(), v) << (i * source.bits)
    mask = (1 << target.bits) - 1
    return tuple([number.from_bits(target.scalar(), word >> (i * target.bits) & mask) for i in range(target.count)])


def combine(op: Op, d: DType, a: Any, b: Any, node: UOp | None) -> Any:
    """One step of a fold of `op` at scalar dtype `d`; at bool Add and Max are or, Mul and Min are and."""
    for v in (a, b):
        if v.__class__ is Poison:
            return v
    if a is INVALID or b is INVALID:
        return INVALID
    if d.is_bool:
        return (a or b) if op in (Op.Add, Op.Max) else (a and b)
    evaluate = TABLE[op].evaluate
    assert evaluate is not None
    try:
        return evaluate(d, a, b)
    except Undefined as problem:
        return Poison(str(problem), node)


def scalar_value(node: UOp, vs: list[Lanes]) -> Lanes:
    """The value of a node as a function of its operands' values alone; IRError if it depends on more."""
    op = node.op
    if node.entry.pointwise:
        return pointwise(node, vs)
    if op is Op.Vectorize or op is Op.Cat:
        return join(vs)
    if op is Op.Gep:
        return take(vs[0], node.arg)
    if op is Op.Bitcast or (op is Op.Precast and node.dtype is not node.src[0].dtype):
        return bitcast(node, vs[0])
    if op in SAME and vs:
        return vs[0]
    # a layout that defines the product; for any other, only its target does
    if op is Op.Wmma and hasattr(node.arg, "multiply"):
        product: Lanes = node.arg.multiply(vs[0], vs[1], vs[2])
        return product
    raise IRError(f"the interpreter has no value for {op.name}", expected="an op with a value for given operands")


def fold(op: Op, d: Any, start: Any, lanes: Sequence[Any], node: UOp) -> Any:
    for v in lanes:
        start = v if start is NOTHING else combine(op, d, start, v, node)
    return start
