"""The simplification of expressions under a gate, by the bounds that the gate implies.

Helpers of `rules/index/validity.rules`, with the contracts written there. An expression that a clause bounds is replaced by a
variable with those bounds, the symbolic rules simplify, and the expression is substituted back. Only cheaper results are used, so
this terminates.
"""

from __future__ import annotations

from typing import Final

from morok.ir.bounds import Num, plus
from morok.ir.conjunctions import clauses, conjunction
from morok.ir.definedness import defined
from morok.ir.linear_forms import terms
from morok.ir.op import Op
from morok.ir.sums import span
from morok.ir.uop import UOp
from morok.marks import helper
from morok.rewrite.simplify import simplify

Bounds = tuple[Num, Num]

_DIVISIONS: Final = frozenset({Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod})
_LOOPS: Final = frozenset({Op.Range, Op.Special})
_MEMORY: Final = frozenset({Op.Index, Op.Load})
_COMPARISONS: Final = frozenset({Op.Lt, Op.Le, Op.Eq})


@helper
def given(c: UOp, x: UOp) -> UOp | None:
    """A cheaper index that equals `x` wherever `c` is true; None if there is none."""
    return _simplified(c, x)


@helper
def reduced(c: UOp) -> UOp | None:
    """A cheaper condition equal to `c`: each clause simplified under the others. None if none is, or `c` may be undefined."""
    parts = clauses(c)
    if len(parts) < 2 or not defined(c):
        return None
    changed = False
    for i in range(len(parts) - 1, -1, -1):
        others = parts[:i] + parts[i + 1 :]
        simpler = _simplified(conjunction(others), parts[i]) if others else None
        if simpler is not None:
            changed = True
            parts[i : i + 1] = [simpler] if simpler.op is not Op.Const or not simpler.arg else []
    return conjunction(parts) if changed else None


def _simplified(c: UOp, x: UOp) -> UOp | None:
    known = _replacements(c)
    if not known:
        return None
    nodes = x.toposort()
    if not any(n in known for n in nodes) or any(n.op in _MEMORY for n in nodes):
        return None
    # one of another length, if only behind the gate, is another loop
    known = {n: n for n in nodes if n.op in _LOOPS} | known
    back = {new: old for old, new in known.items() if new.op is Op.DefineVar}
    out: UOp = simplify(simplify(x.substitute(known)).substitute(back))
    if not defined(out) or cost(out) >= cost(x):
        return None
    return out


def _replacements(c: UOp) -> dict[UOp, UOp]:
    """The replacements of clauses and expressions in `c`: a constant, or a variable with the bounds that `c` implies."""
    found: dict[UOp, UOp] = {}
    bounds: dict[UOp, Bounds] = {}
    for clause in clauses(c):
        truth = clause.op is not Op.Not
        condition = clause if truth else clause.src[0]
        if condition.op is Op.Const:
            continue
        found[condition] = UOp.const(truth, condition.dtype)
        if truth and clause.op in _COMPARISONS and clause.src[0].dtype.is_index and clause.dtype.count == 1:
            _compare(clause, bounds)
    for number, (e, (low, high)) in enumerate(bounds.items()):
        if low > high:
            return {}  # `c` is never true
        if e.op is Op.Const or (low <= e.vmin and e.vmax <= high):
            continue
        found[e] = e.like(low) if low == high else UOp.var(f"given {number}", e.dtype, low, high)
    return found


def _compare(clause: UOp, bounds: dict[UOp, Bounds]) -> None:
    """Narrow `bounds` of both sides of a comparison, and of the terms of their sums, to those that it implies."""
    a, b = clause.src
    strict = -1 if clause.op is Op.Lt else 0
    _bound(a, b.vmin if clause.op is Op.Eq else a.vmin, plus(b.vmax, strict), bounds)
    _bound(b, plus(a.vmin, -strict), a.vmax if clause.op is Op.Eq else b.vmax, bounds)


def _bound(e: UOp, low: Num, high: Num, bounds: dict[UOp, Bounds]) -> None:
    _narrow(e, low, high, bounds)
    parts, k = terms(e)
    for v, c in parts:
        rest_low, rest_high = span([(w, f) for w, f in parts if w is not v])
        most, least = plus(plus(high, -k), -rest_low), plus(plus(low, -k), -rest_high)
        if c < 0:
            c, most, least = -c, -least, -most
        _narrow(
            v,
            least if isinstance(least, float) else -(-least // c),
            most if isinstance(most, float) else most // c,
            bounds,
        )


def _narrow(e: UOp, low: Num, high: Num, bounds: dict[UOp, Bounds]) -> None:
    known_low, known_high = bounds.get(e, (e.vmin, e.vmax))
    bounds[e] = max(known_low, low), min(known_high, high)


def cost(x: UOp) -> int:
    """The number of distinct nodes that are not leaves, with weight 10 for divisions, 3 for products and 1 for others."""
    return sum(
        10 if n.op in _DIVISIONS else 3 if n.op is Op.Mul else 1 for n in x.toposort() if n.src and n.op is not Op.Range
    )
