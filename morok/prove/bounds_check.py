"""Is every access of a kernel inside its buffer? Put to the solver under MOROK_CHECK=1, for every place that is read or written.

Loops, variables and GPU indices are numbers within their bounds; a gate, the branch that an instruction stands in, and the
condition of an index that is Invalid elsewhere are premises. What the encoding does not follow (a value from memory, a bit
trick) is any number within the bounds of its node, so that `inside` is never said wrongly; a counterexample is one only if the
interpreter confirms it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from morok.errors import CheckWarning, IRError, OutOfBoundsError, Place, UndefinedError
from morok.ir import provenance
from morok.ir.dtype import PtrType, dtypes
from morok.ir.graph import substitute, toposort
from morok.ir.interpret import INVALID, evaluate
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.lane_roles import join, take
from morok.prove import smt
from morok.prove.answers import Answer
from morok.prove.meanings import solver_function
from morok.prove.semantics.term import Term, negation
from morok.prove.semantics.theory import MorokWorld
from morok.prove.smt.session import Died
from morok.prove.solve import Model, ask
from morok.prove.symbol import Symbol

Lanes = tuple[Term, ...]  # as the solver sees them: integers, and conditions for bool

BUDGET: Final = 3_000_000  # solver resource units a place: about one second
_LEAVES: Final = frozenset({Op.Range, Op.Special, Op.DefineVar})
_MEMORY: Final = frozenset({Op.Load, Op.Index})
_THROUGH: Final = frozenset({Op.After, Op.Barrier})
# Ops whose result may be outside of its dtype, where it wraps, or has no value.
_WRAPPING: Final = frozenset({Op.Add, Op.Sub, Op.Mul, Op.MulAcc, Op.Neg, Op.Idiv, Op.FloorDiv, Op.Cast})
_FOLLOWED: Final = _WRAPPING | {
    Op.Shl, Op.Shr, Op.Mod, Op.FloorMod, Op.Max, Op.Min, Op.And, Op.Or, Op.Xor, Op.Not,
    Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne, Op.Where,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write: `reach` consecutive elements from the place on, where all `premises` hold."""

    place: UOp
    reach: int
    premises: tuple[UOp, ...] = ()

    @property
    def storage(self) -> UOp:
        found = self.place.src[0]
        while found.op in _THROUGH:
            found = found.src[0]
        return found

    @property
    def index(self) -> UOp:
        return self.place.src[1]


def accesses(program: UOp | Sequence[UOp]) -> Iterator[Access]:
    """The accesses of a kernel before the first stage (a Sink), or after the last (its instructions)."""
    if isinstance(program, UOp):
        for node in program.toposort():
            if node.op is Op.Index and len(node.src) - bool(node.arg) == 2:
                yield Access(node, 1, node.src[2:])
        return
    branches: list[UOp] = []
    for node in program:
        if node.op is Op.If:
            branches.append(node.src[0])
        elif node.op is Op.EndIf:
            branches.pop()
        elif node.op in (Op.Load, Op.Store):
            place, value = node.src[0], node if node.op is Op.Load else node.src[1]
            while place.op in _THROUGH:
                place = place.src[0]
            if place.op is Op.Index:
                reach = value.dtype.count // place.dtype.count if place.src[1].dtype.count == 1 else 1
                yield Access(place, reach, (*branches, *place.src[2:]))


def check(program: UOp | Sequence[UOp], kernel: str, budget: int = BUDGET) -> None:
    """OutOfBoundsError if an access of the kernel can be outside of its buffer; CheckWarning for one of which the solver cannot
    tell within `budget` units of its resources."""
    encoder = Encoder()
    for access in dict.fromkeys(accesses(program)):
        d = access.storage.dtype
        if not isinstance(d, PtrType) or d.size < 0 or _by_bounds(access, d.size):
            continue
        found = ask([encoder.outside(access, d.size), *encoder.facts(access)], budget)
        if found.answer is Answer.UNSAT:
            continue
        why = "gave up"
        if found.answer is Answer.SAT:
            with contextlib.suppress(Died):
                values = encoder.assignment(access, found.model)
                _refuse_confirmed(access, kernel, d, values)
                why = "knows too little of the index"
        warnings.warn(
            f"kernel {kernel}: undecided whether {_shown(access.index)} lies in buffer {_name(access.storage)} of {d.size} "
            f"elements: the solver {why} within {budget} resource units",
            CheckWarning,
            stacklevel=2,
        )


def _by_bounds(access: Access, size: int) -> bool:
    """True if the bounds of the index, whose transfer functions are themselves proved, are answer enough."""
    return bool(access.index.vmin >= 0 and access.index.vmax + access.reach <= size)


def _refuse_confirmed(access: Access, kernel: str, d: PtrType, values: dict[UOp, Any]) -> None:
    """Raise if the interpreter too finds the access outside where loops, variables and memory have these values."""
    read = {n: UOp.var(f"memory.{k}", n.dtype) for k, n in enumerate(values) if n.op in _MEMORY}
    given = {read.get(n, n): v for n, v in values.items()}
    index, *premises = substitute((access.index, *access.premises), read)
    try:
        gates = [_lanes(evaluate(p, given), access) for p in premises]
        lanes = _lanes(evaluate(index, given), access)
    except (UndefinedError, IRError):
        return
    for k, i in enumerate(lanes):
        if i is INVALID or not all(g[k] for g in gates) or 0 <= i <= d.size - access.reach:
            continue
        which = f"element {i}" if access.reach == 1 else f"elements {i}..{i + access.reach - 1}"
        said = ", ".join(f"{_shown(n)} = {v}" for n, v in values.items()) or "no loop or variable decides it"
        where = provenance.place(access.place.origin)
        raise OutOfBoundsError(
            f"kernel {kernel}: {which} of buffer {_name(access.storage)}, which has {d.size}, at index {_shown(access.index)}, "
            f"where {said}",
            place=None if where is None else Place(*where),
            expected=f"an index in 0..={d.size - access.reach}",
        )


def _lanes(found: Any, access: Access) -> tuple[Any, ...]:
    """Values by lane of the index; one value is that of all lanes."""
    return found if isinstance(found, tuple) else (found,) * access.index.dtype.count


def _name(storage: UOp) -> str:
    return f"{storage.arg} ({storage.op.name.removeprefix('Define').lower()} {storage.dtype})"


def _shown(node: UOp) -> str:
    text = node.text() if len(toposort((node,))) <= 60 else f"{node.op.name}(..)"
    return text if len(text) <= 300 else text[:297] + "..."


class Encoder:
    """The integers and conditions of a kernel as terms of the solver, each node once."""

    def __init__(self) -> None:
        self.world = MorokWorld("accesses", integers=True, builtin=True)
        self.known: dict[UOp, Lanes] = {}
        self.opaque: dict[UOp, Lanes] = {}  # leaves, and what is not followed: unknowns

    def outside(self, access: Access, size: int) -> Any:
        """The condition that some lane of the access is not inside `size` elements."""
        at = self.encode(access.index)
        gates = [self._spread(self.encode(p), len(at)) for p in access.premises]
        inside = [smt.And(lane.value >= 0, lane.value <= size - access.reach) for lane in at]
        return smt.Or(
            *[
                smt.And(negation(lane.invalid), *[g[k].value for g in gates], smt.Not(inside[k]))
                for k, lane in enumerate(at)
            ]
        )

    def facts(self, access: Access) -> list[Any]:
        """The facts about the unknowns in an access: their bounds, and that a loop stays below its end."""
        out: list[Any] = list(self.world.axioms)
        for node in self._unknowns(access):
            for lane in self.opaque[node]:
                if not node.dtype.is_bool:
                    out += [lane.value >= b if low else lane.value <= b for b, low in _ends(node)]
                    if node.op in (Op.Range, Op.Special):
                        out.append(lane.value < self.encode(node.src[0])[0].value)
        return out

    def assignment(self, access: Access, model: Model) -> dict[UOp, Any]:
        """The values of loops, variables, GPU indices and integers from memory in a model."""
        out: dict[UOp, Any] = {}
        for n in self._unknowns(access):
            if n.op in _LEAVES or (n.op in _MEMORY and _integral(n)):
                found = [model.value(lane.value) for lane in self.opaque[n]]
                numbers = tuple([v.data for v in found])
                out[n] = numbers[0] if n.dtype.count == 1 else numbers
        return out

    def _unknowns(self, access: Access) -> list[UOp]:
        return [n for n in _cone((access.index, *access.premises)) if n in self.opaque]

    def encode(self, root: UOp) -> Lanes:
        for node in _cone((root,)):
            if node not in self.known:
                self.known[node] = self._node(node)
        return self.known[root]

    def _node(self, node: UOp) -> Lanes:
        made = _STRUCTURE.get(node.op)
        if made is not None:
            return made(node, [self.known[s] for s in node.src])
        if _followed(node):
            n = node.dtype.count
            columns = [self._spread(self.known[s], n) for s in node.src]
            return tuple([self._pointwise(node, [c[k] for c in columns]) for k in range(n)])
        make = smt.Bool if node.dtype.is_bool else smt.Int
        number = len(self.opaque)
        lanes = tuple([Term(make(Symbol("fresh", "unknown", number, k))) for k in range(node.dtype.count)])
        self.opaque[node] = lanes
        return lanes

    def _pointwise(self, node: UOp, operands: Sequence[Term]) -> Term:
        """One lane of a pointwise node. Where its bounds are less than all of its dtype, nothing wraps, as of an index."""
        d = (node.src[0] if node.entry.comparison else node).dtype.scalar()
        if node.op in _WRAPPING and d.is_int and (node.vmin > d.min or node.vmax < d.max):
            d = dtypes.index
        more = [node.src[0].dtype.scalar()] if node.op is Op.Cast else []
        return solver_function(MOROK.ops[node.op.name])(self.world, d, *operands, *more)

    @staticmethod
    def _spread(lanes: Lanes, n: int) -> Lanes:
        return lanes if len(lanes) == n else lanes * n


def _ends(node: UOp) -> list[tuple[int, bool]]:
    """The finite bounds of a node, and whether each is the lower one."""
    return [(int(b), low) for b, low in ((node.vmin, True), (node.vmax, False)) if not isinstance(b, float)]


def _integral(node: UOp) -> bool:
    d = node.dtype.scalar()
    return d.is_int or d.is_index or d.is_bool


def _followed(node: UOp) -> bool:
    """True if a pointwise node is encoded exactly; else it is any value within its bounds."""
    op = node.op
    if op not in _FOLLOWED or not _integral(node) or not all(map(_integral, node.src)):
        return False
    boolean = node.src[0].dtype.is_bool
    if op in (Op.Shl, Op.Shr):
        return node.src[1].op is Op.Const
    if op is Op.And and not boolean:
        mask = node.src[1]
        return mask.op is Op.Const and mask.arg >= 0 and not mask.arg & (mask.arg + 1)
    if op in (Op.Or, Op.Xor, Op.Not):
        return boolean
    return not boolean or op in (Op.And, Op.Where, Op.Cast, Op.Eq, Op.Ne)


def _cone(roots: Sequence[UOp]) -> list[UOp]:
    """The nodes that the encoding of `roots` needs, operands first: below what is not followed nothing is."""
    out: list[UOp] = []
    done: set[UOp] = set()
    stack = [(r, False) for r in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if node in done:
            continue
        if ready:
            done.add(node)
            out.append(node)
            continue
        stack.append((node, True))
        if node.op in _STRUCTURE or _followed(node):
            stack += [(s, False) for s in reversed(node.src)]
        elif node.op in (Op.Range, Op.Special):
            stack.append((node.src[0], False))
    return out


def _literal(node: UOp, value: Any) -> Term:
    return Term(smt.BoolVal(bool(value)) if node.dtype.is_bool else smt.IntVal(int(value)))


def _constant(node: UOp, operands: Sequence[Lanes]) -> Lanes:
    values = node.arg if node.op is Op.VConst else (node.arg,) * node.dtype.count
    return tuple([_literal(node, v) for v in values])


def _invalid(node: UOp, operands: Sequence[Lanes]) -> Lanes:
    return (Term(smt.IntVal(0), invalid=smt.TRUE),) * node.dtype.count


_STRUCTURE: Final[dict[Op, Callable[[UOp, Sequence[Lanes]], Lanes]]] = {
    Op.Const: _constant,
    Op.VConst: _constant,
    Op.Invalid: _invalid,
    Op.Vectorize: lambda node, operands: join(operands),
    Op.Cat: lambda node, operands: join(operands),
    Op.Gep: lambda node, operands: take(operands[0], node.arg),
}
