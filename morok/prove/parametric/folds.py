"""Folds over lanes at every size: functions of what is folded, with laws of how lanes may be regrouped.

The order in which a Reduce folds is open (docs/ops.md). So what a Reduce is rewritten to may fold the same lanes in any order and
grouping; a target is such an order where that follows from the laws of commutative semigroups. These hold of the ops of integers
that wrap, and of the greatest and the least of floats, which have a value wherever their operands have one, and so are laws of
what is folded; and of no float op that rounds. Elsewhere they are used for rules alone whose pattern is one Reduce of lanes that
no op computes: then whatever the laws show is an order of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.fold_forms import OF_TRUTHS, one_fold, one_order, ops_matched
from morok.prove.kinds import ANY_FOLD, Parts
from morok.prove.parametric import laws, loops
from morok.prove.parametric.axis_conditions import closes_no_axes
from morok.prove.parametric.op_functions import exact, function, tells_which_nan, wraps, zero_of
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.rule_values import Fold, Lane, Loops, Vector
from morok.prove.parametric.setting import Looped
from morok.prove.parametric.tensor_rules import may_be_invalid
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

REGROUPING: Final = frozenset({"Add", "Mul", "Max", "Min"})
# What may be computed of a fold instead of its items, where every operand but one is the same for all: by the dtypes and the
# fold, the op, and the fold that it is computed of. `tests/prove/test_parametric_folds.py` tries them all.
TAKEN_OUT: Final = {
    "int": {
        "Add": {"Neg": "Add", "Mul": "Add"},
        "Max": {"Not": "Min", "Min": "Max"},
        "Min": {"Not": "Max", "Max": "Min"},
    },
    "index": {
        "Add": {"Neg": "Add", "Mul": "Add"},
        "Max": {"Neg": "Min", "Add": "Max"},
        "Min": {"Neg": "Max", "Add": "Min"},
    },
    "float": {"Max": {"Neg": "Min", "Min": "Max"}, "Min": {"Neg": "Max", "Max": "Min"}},
    "bool": {"Max": {"Not": "Min", "And": "Max"}, "Min": {"Not": "Max", "Or": "Min"}},
}


def reduce(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A fold of so many neighbouring lanes for each lane of the result, over loops or none."""
    part = parts["src"]
    count = _results(r, part, parts, at)
    x = r.one(part)
    if x.uniform:
        raise Unsupported("a fold of a constant of any number of lanes")
    count = x.count if count is None else count
    each = _each(r, x.count, count)
    over = _loops(r, parts.get("ranges"))
    if x.shared is not None:
        if not x.shared.filled or [w.name for w in over] != [x.shared.again.name]:
            raise Unsupported("a fold of what is shared over another loop")
        over, x = [x.shared.loop], x.shared.value
    if not over and each.known == 1:
        return x
    dtype = r.element(part)
    folding = _one_of_two(op_of(r, parts), dtype)
    if not r.closing.isdisjoint(w.name for w in over):
        return Vector(count, _folded_over_axes(r, folding, dtype, over, x, each))
    inner = x.fold
    same = inner is not None and (inner.op, inner.dtype, inner.neighbours.known) == (folding, dtype, 1)
    if inner is not None and same and over and r.part != "pattern" and as_one_fold(r, folding, dtype):
        over, x = loops.around(r, over, inner.loops), inner.source  # one order of the fold over all these loops
    combine = combining(r, folding, dtype)
    alike = inner is not None and (inner.op, inner.dtype) == (folding, dtype) and not over
    if inner is not None and alike and r.part != "pattern" and regroups(r, folding, dtype):
        at = _folded(
            r,
            folding,
            dtype,
            inner.loops,
            inner.source,
            each * inner.neighbours,
            combine,
            table=(each, inner.neighbours),
        )
        return Vector(count, at)
    at = _folded(r, folding, dtype, over, x, each, combine)
    one = x.at if each.known == 1 else _folded(r, folding, dtype, [], x, each, combine)
    fold = Fold(folding, dtype, tuple(over), x, each, count, at, nothing(r, folding, dtype), combine, one)
    return Vector(count, at, fold=fold)


def _folded(
    r: Reading,
    folding: str,
    dtype: str,
    over: Sequence[Loops],
    x: Vector,
    each: Integer,
    combine: Applicable,
    table: tuple[Integer, Integer] | None = None,
) -> Lane:
    """Lane by lane the fold of so many neighbours over loops, in whichever order these are named: a function of a sequence. Of a
    fold of folds `table` says how many it folds, and how many neighbours each of these has.
    """
    f = _of_sequence(r, folding, dtype, over)
    if not over and regroups(r, folding, dtype):
        r.setting.regrouped[f] = combine
    if over and r.built_in:
        _looped(r, folding, dtype, over)
    elif r.built_in:
        r.setting.algebra.taken_out[f] = _outward(r, folding, dtype, over)

    def at(e: Expr, lane: Integer) -> Expr:
        begin = integer(0) if each.same(x.count) else lane * each  # of one result there is one lane
        made = f(r.setting.tuple_of(each, lambda k: x.at(e, begin + k)))
        if table is not None and not r.setting.trying:
            r.setting.tables[made] = table
        return made

    return at


def _outward(r: Reading, folding: str, dtype: str, over: Sequence[Loops]) -> dict[Applicable, Applicable]:
    """The functions that may be computed of a fold instead of its items, with that fold."""
    return {
        function(r, op, [dtype] * len(r.rule.dialect.ops[op].operands)): _of_sequence(r, of, dtype, over)
        for op, of in taken_out(r, folding, dtype).items()
    }


def _looped(r: Reading, folding: str, dtype: str, over: Sequence[Loops]) -> None:
    """Note what is known of a fold over loops, and of those that it may be computed of."""
    f = _of_sequence(r, folding, dtype, over)
    if f not in r.setting.looped:
        in_any_order = folding in REGROUPING and (wraps(r, dtype) or compares(r, folding, dtype))
        combine = combining(r, folding, dtype) if in_any_order else None
        r.setting.looped[f] = Looped(tuple(over), combine, _outward(r, folding, dtype, over))
        for of in taken_out(r, folding, dtype).values():
            _looped(r, of, dtype, over)


def _folded_over_axes(r: Reading, folding: str, dtype: str, over: Sequence[Loops], x: Vector, each: Integer) -> Lane:
    """Lane by lane the fold of so many neighbours over all iterations of the axes that loops close, and over the other loops,
    wherever these are at that iteration.
    """
    (loop,) = over
    s, f = r.setting, _of_sequence(r, folding, dtype, over)
    inside = smt.Function(Symbol("op", "inside of loops"), laws.VALUE, laws.VALUE, laws.VALUE)

    def item(there: Expr, lane: Integer) -> Expr:
        return inside(x.at(there, lane), loop.function(there, 0))

    def at(e: Expr, lane: Integer) -> Expr:
        begin = integer(0) if each.same(x.count) else lane * each
        if loop.open:
            return f(s.tuple_of(each, lambda k: item(e, begin + k)))

        def folded(axes: Expr) -> Expr:
            def one(k: Integer) -> Expr:
                block, neighbour = s.divided(k, each)
                return item(laws.moved(axes, block, e), begin + neighbour)

            return f(s.tuple_of(s.count(laws.width(axes) * each), one))

        closed = loops.axes(r, loop)
        if not s.trying:
            s.over_axes.setdefault(closed, {})[e, lane.term] = folded
        return folded(closed)

    return at


def _of_sequence(r: Reading, folding: str, dtype: str, over: Sequence[Loops]) -> Applicable:
    """The fold of a sequence over loops, in whichever order these are named, as a function."""
    return smt.Function(Symbol("op", "fold", folding, dtype, *sorted(x.name for x in over)), laws.VALUE, laws.VALUE)


def nothing(r: Reading, op: str, dtype: str) -> Expr:
    """The value of a fold over no iterations."""
    return smt.Const(Symbol("fixed", "identity", _of_values(op, dtype), dtype), laws.VALUE)


def _results(r: Reading, part: Any, parts: Parts, at: Any) -> Integer | None:
    """The number of lanes of a fold; None for as many as what is folded."""
    if r.part == "pattern":
        count = r.lanes.of(r.rule.type_of(at))
        below = r.type(part)
        if below is not None and r.lanes.is_open(below):
            each = r.setting.unknown("neighbours")
            times = r.lanes.times(below, r.rule.type_of(at))
            each = each if times is None else times * each
            r.setting.premise(each.term > 0)
            r.lanes.let(str(below.lanes), count * each)
        return count
    if "dtype" in parts:
        return r.dtype(parts["dtype"]).lanes
    return r.wanted if at is r.rule.syntax.target else None


def _each(r: Reading, lanes: Integer, count: Integer) -> Integer:
    """The number of lanes that are folded to one."""
    if lanes.same(count):
        return integer(1)
    each, rest = r.setting.divided(lanes, count)
    r.exists(rest.term == 0)
    r.setting.law(laws.sign_of_product, count, each)
    return each


def op_of(r: Reading, parts: Parts) -> str:
    """The name of the op of a fold, or of the variable that it is."""
    op = parts.get("op", ANY_FOLD)
    op = getattr(op, "value", op)
    if op is ANY_FOLD or (isinstance(op, S.PVar) and op.ignored):
        raise Unsupported("a fold by an op without a name")
    return str(op.name)


def _one_of_two(folding: str, dtype: str) -> str:
    """The op of a fold; of truths there are two folds, whether any holds, and whether all do."""
    return {"Add": "Max", "Mul": "Min"}.get(folding, folding) if dtype == "bool" else folding


def combining(r: Reading, folding: str, dtype: str) -> Applicable:
    """The function of two values that a fold combines them by: that of an op, or of whichever op the rule means."""
    name = _of_values(folding, dtype)
    if name in r.rule.dialect.ops and folding in REGROUPING:
        f = function(r, name, [dtype, dtype])
    else:
        f = smt.Function(Symbol("op", "combine by", folding, dtype), laws.VALUE, laws.VALUE, laws.VALUE)
    if tells_which_nan(r, dtype):
        return f
    r.setting.algebra.commutative.add(f)
    if folding in ("Max", "Min"):
        r.setting.algebra.idempotent.add(f)
    elif folding == "Add" and wraps(r, dtype):
        r.setting.algebra.neutral[f] = zero_of(dtype)
        if r.built_in:
            r.setting.algebra.repeated[f] = function(r, "Mul", [dtype, dtype]), dtype
            r.setting.algebra.together[f] = frozenset({f, function(r, "Sub", [dtype, dtype])})
    return f


def _of_values(folding: str, dtype: str) -> str:
    """The op that combines two values of a fold."""
    return OF_TRUTHS.get(folding, folding) if dtype == "bool" else folding


def regroups(r: Reading, op: str, dtype: str) -> bool:
    """True if the order of a fold has no effect on its value, or the pattern leaves it open.

    The greatest and the least of numbers are so in any order. A fold of truths has no value where one of them has none, while And
    and Or may have one: it is no combination of these.
    """
    return (op in REGROUPING and (wraps(r, dtype) or compares(r, op, dtype))) or may_regroup(r)


def as_one_fold(r: Reading, op: str, dtype: str) -> bool:
    """True if what folds as the pattern does, in another order, stands for it: the pattern leaves the order open, or it means
    nothing.
    """
    return one_order(r.rule) or (one_fold(r.rule) and (exact(r, dtype) or compares(r, op, dtype)))


def compares(r: Reading, op: str, dtype: str) -> bool:
    """True if a fold is the greatest, or the least, of numbers; of floats where the bits of a NaN may tell which it is, no fold
    is one in any order.
    """
    numbers = all(d is not None and (d.is_int or d.is_float) for d in _dtypes(r, dtype))
    return op in ("Max", "Min") and numbers and not tells_which_nan(r, dtype)


def taken_out(r: Reading, op: str, dtype: str) -> dict[str, str]:
    """The ops that may be computed of a fold instead of its items, by the fold of which."""
    invalid = dtype == "index" and ("Invalid" in ops_of(r.rule) or may_be_invalid(r.rule))
    if invalid or tells_which_nan(r, dtype):
        return {}
    return TAKEN_OUT.get(_kind(r, dtype), {}).get(op, {})


def _kind(r: Reading, dtype: str) -> str:
    """The kind of numbers, or truths, that all dtypes of a name have."""
    if wraps(r, dtype):
        return "int"
    return "float" if all(d is not None and d.is_float for d in _dtypes(r, dtype)) else dtype


def _dtypes(r: Reading, dtype: str) -> list[Any]:
    """The dtypes that a name stands for."""
    return [r.rule.dialect.dtypes.get(d) for d in r.rule.domains.get(dtype, (dtype,))]


def may_regroup(r: Reading) -> bool:
    """True if a rule's pattern is one fold of lanes that are only taken and joined, of which the target makes one order: no op
    computes the folded elements.
    """
    dialect = r.rule.dialect
    matched = ops_matched(r.rule)
    return one_order(r.rule) and all(op == "Reduce" or dialect.ops[op].role in ("take", "join") for op in matched)


def _loops(r: Reading, part: Any) -> list[Loops]:
    """The loops that are folded over. In a rule about axes some may close these, unless a guard says that they close none: then
    what is matched must be one fold, over one name for all loops.
    """
    found = loops.closed(r, part)
    if found and r.about_axes:
        closing = {x.name for x in found if not closes_no_axes(r.rule.syntax, x.name)}
        if closing and (len(found) > 1 or not may_regroup(r)):
            raise Unsupported("a fold over what may close axes")
        r.closing |= closing
    return found


__all__ = ["as_one_fold", "combining", "may_regroup", "nothing", "op_of", "reduce"]
