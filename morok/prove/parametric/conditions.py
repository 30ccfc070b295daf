"""Conditions at every size: comparisons, quantifiers as unknowns, and what is said of axes and loops."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.forms import conjuncts
from morok.prove.parametric import axis_conditions, laws, loops, number_ops, threads
from morok.prove.parametric.axis_forms import plain
from morok.prove.parametric.op_functions import function
from morok.prove.parametric.polynomials import COMPARISONS, Integer, integer, within
from morok.prove.parametric.rule_values import (
    AxisList,
    Datum,
    Items,
    Loops,
    Seen,
    Vector,
    axis_list,
    items,
    number,
    place,
    vector,
)
from morok.prove.parametric.sequences import axis_list_or_none
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def truth(r: Reading, e: S.Expr) -> Expr:
    """The condition that an expression is."""
    guarding, following = r.guarding, r.premising
    r.guarding = True  # an operand need have a value only where those before it leave the condition open
    # what follows from a part of a condition is no value of it, and says nothing of what is made of it
    r.premising = False
    try:
        return _condition(r, e, following)
    finally:
        r.guarding, r.premising = guarding, following


def _condition(r: Reading, e: S.Expr, following: bool) -> Expr:
    """A condition; of one of which only what follows is asked, `following`, perhaps less."""
    part = r.known if following else r.truth
    match e:
        case S.EBinary(op="and"):
            return smt.And(part(e.left), part(e.right))
        case S.EBinary(op="or"):
            left = part(e.left)
            return left if left is smt.TRUE else smt.Or(left, part(e.right))
        case S.EUnary(op="not"):
            return about if (about := about_axes(r, e)) is not None else smt.Not(r.truth(e.operand))
        case S.ECompare():
            if (empty := axis_conditions.all_empty(e)) is not None:
                return _condition(r, empty, following)
            if following and (only := _only_one(r, e)) is not None:
                return only
            operands = [r.value(o) for o in e.operands]
            compared = [_compared(r, op, a, b) for op, a, b in zip(e.ops, operands, operands[1:], strict=False)]
            return compared[0] if len(compared) == 1 else smt.And(*compared)
        case S.ECall(name="all" | "any", args=(over,)):
            if (about := about_axes(r, e)) is not None:
                return about
            if e.name == "all" and isinstance(over, S.EComprehension) and isinstance(several := _over(r, over), Loops):
                return _of_each_loop(r, over, several)
            return _quantified(r, over, e.name == "all", following)
        case S.ECall(name="free_of_axes", args=(x, axes)):
            return _free_of_axes(r, place(r.value(x)), axis_list_or_none(r.value(axes)))
        case S.ECall(name="free_of", args=(x, other)) if isinstance(found := r.value(other), (Vector, Seen)):
            if not following:
                raise Unsupported("a node that is not free of a range")
            return _free_of_range(r, place(r.value(x)), vector(found))
        case S.ECall(name="free_of", args=(x, other)):
            some, others = r.value(x), _loops(r.value(other))
            if isinstance(some, Loops):
                return loops.free(some, others)
            if not following:
                raise Unsupported("a node that is not free of a loop")
            return _free_of_loops(r, vector(some), others)
        case S.ECall(name="counts", args=(index, x, *step)):
            return _counts(r, vector(r.value(index)), vector(r.value(x)), [number(r.value(s)) for s in step])
        case S.ECall(name="same" | "same_shape") if not following:
            raise Unsupported("nodes that are not one, or of other shapes")
        case S.ECall(name="same", args=(x, y)):
            return _one_node(r, vector(r.value(x)), vector(r.value(y)))
        case S.ECall(name="same_shape"):
            return smt.TRUE  # where these are variables, `Shapes` has read it
        case S.ECall(name="launched", args=(x,)):
            return loops.launched(_loops(r.value(x)).name)
    return _as_truth(r, r.value(e))


def _is_truth(found: Any) -> bool:
    return (isinstance(found, Expr) and found.sort is laws.BOOL) or (isinstance(found, Datum) and found.dtype == "bool")


def _as_truth(r: Reading, found: Any) -> Expr:
    """The condition that a value is."""
    found = found.lane(integer(0)) if isinstance(found, Seen) else found
    if isinstance(found, Expr) and found.sort is laws.BOOL:
        return found
    if isinstance(found, Datum) and found.dtype == "bool":
        return number_ops.truth(r.setting, found.term)
    raise Unsupported("a condition at every size")


def about_axes(r: Reading, e: S.Expr) -> Expr | None:
    """The condition on whole lists of axes that a loop over axes is; None of any other condition."""
    if (c := axis_conditions.distinct(e)) is not None:
        parts = axes(r, c).parts
        return smt.And(*map(laws.DISTINCT, parts), *(laws.APART(a, b) for a, b in itertools.permutations(parts, 2)))
    e = plain(e)
    if (found := axis_conditions.apart(e)) is not None:
        lists = [r.value(f) for f in found]
        if any(isinstance(a, AxisList) for a in lists):
            some, others = (axis_list_or_none(a).parts for a in lists)
            return smt.And(*(smt.And(laws.APART(a, b), laws.APART(b, a)) for a in some for b in others))
    if (found := axis_conditions.among(e)) is not None:
        a, b = (axes(r, f) for f in found)
        return among(r, a, b)
    if (found := axis_conditions.all_among(e)) is not None:
        return _all_among(r, r.value(found[0]), axes(r, found[1]))
    if (found := axis_conditions.covered(e)) is not None:
        parts = r.value(found[1])
        if not isinstance(parts, list) or len(parts) != 1:
            raise Unsupported("axes that are of one of several lists")
        return among(r, axes(r, found[0]), axis_list(parts[0]))
    return None


def among(r: Reading, a: AxisList, b: AxisList) -> Expr:
    """Every axis of a is one of b's."""
    if not a.parts:
        return smt.TRUE
    if not b.parts:
        raise Unsupported("axes among none")
    return smt.And(*(laws.AMONG(p, r.setting.together(b.parts)) for p in a.parts))


def _all_among(r: Reading, parts: Any, c: AxisList) -> Expr:
    """Every axis of each of these lists is one of c's."""
    found: list[Expr] = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, AxisList):
            found.append(among(r, part, c))
        elif isinstance(part, Items) and part.length.known is not None:
            found += [among(r, axis_list_or_none(part.at(integer(k))), c) for k in range(part.length.known)]
        else:
            found.append(_each_among(r, items(part), c))
    return smt.And(*found)


def _each_among(r: Reading, lists: Items, c: AxisList) -> Expr:
    """The truth of every axis of each list of a sequence being one of c's: an unknown."""
    so = smt.Bool(r.setting.symbol("among"))
    r.setting.for_all(lists.length, lambda k: among(r, axis_list_or_none(lists.at(k)), c), only_if=so)
    return so


_OF_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _counts(r: Reading, index: Vector, x: Vector, step: list[Integer]) -> Expr:
    """An index of the hardware is the number of a range, or has it for a digit whose iterations are so far apart."""
    told = index.at(r.here, integer(0))
    for k in step:
        end = r.setting.ends.get(x.at)
        if end is None:
            raise Unsupported("a digit of a range without its end")
        quotient, remainder = (function(r, op, ["index", "index"]) for op in ("Idiv", "Mod"))
        told = remainder(quotient(told, laws.NUMBER(k.term)), end.at(r.here, integer(0)))
    return x.at(r.here, integer(0)) == told


def _compared(r: Reading, op: str, a: Any, b: Any) -> Expr:
    a, b = (x.lane(integer(0)) if isinstance(x, Seen) else x for x in (a, b))
    if isinstance(a, Datum) and isinstance(b, Datum) and a.dtype == b.dtype == "index":
        return _compared_constants(r, op, a.term, b.term)
    if isinstance(a, Datum) and isinstance(b, Datum) and a.dtype == b.dtype and op in ("==", "!="):
        truths = a.term.head == b.term.head == "apply" and a.term.data is b.term.data is laws.TRUTH
        return COMPARISONS[op](*((a.term.args[0], b.term.args[0]) if truths else (a.term, b.term)))
    if op in ("==", "!=") and _is_truth(a) and _is_truth(b):
        return COMPARISONS[op](_as_truth(r, a), _as_truth(r, b))
    x, y = number(a), number(b)
    if x.known is not None and y.known is not None:
        return smt.BoolVal(_OF_NUMBERS[op](x.known, y.known))
    r.setting.compared(number(a), number(b))
    return COMPARISONS[op](number(a).term, number(b).term)


def _compared_constants(r: Reading, op: str, a: Expr, b: Expr) -> Expr:
    """A comparison of two constants of dtype index, which are numbers."""
    x, y = r.setting.number_of(a), r.setting.number_of(b)
    if op not in ("==", "!="):
        return COMPARISONS[op](x.term, y.term)
    r.setting.instance("Constants of dtype index are one where their numbers are.", (a == b) == (x.term == y.term))
    return COMPARISONS[op](a, b)


def _quantified(r: Reading, over: S.Expr, every: bool, following: bool) -> Expr:
    """An unknown truth: where it is so, the condition holds at every place; where not, there is a place at which it does not.

    Where only what follows is asked, one of these is enough.
    """
    found = items(r.value(over))

    def holds(k: Integer, so: bool = every) -> Expr:
        was, r.premising = r.premising, following and so == every
        try:
            condition = _as_truth(r, found.at(k))
        finally:
            r.premising = was
        return condition if so else smt.Not(condition)

    if r.setting.trying:
        if not (following and every):
            r.setting.witness("exception")
        return holds(r.setting.unknown("place"))
    there = r.setting.witness("exception")
    if following and not every:
        return smt.And(within(there, 0, found.length), holds(there, True))
    so = smt.Bool(r.setting.symbol("all"))
    r.setting.for_all(found.length, holds, only_if=so)
    if not following:
        r.setting.premise(smt.Or(so, smt.And(within(there, 0, found.length), smt.Not(holds(there)))))
    return so if every else smt.Not(so)


def _only_one(r: Reading, e: S.ECompare) -> Expr | None:
    """`sum(sum(1 for x in xs if c) for xs in xss) == 1`, where only what follows is asked: there is one x, and no other."""
    match e:
        case S.ECompare(
            ops=("==",),
            operands=(
                S.ECall(
                    name="sum",
                    args=(
                        S.EComprehension(
                            body=S.ECall(
                                name="sum",
                                args=(
                                    S.EComprehension(
                                        body=S.ENumber(value=1),
                                        names=(x,),
                                        sequence=S.EName(name=inner),
                                        condition=S.Expr() as c,
                                    ),
                                ),
                            ),
                            names=(xs,),
                            sequence=outer,
                            condition=None,
                        ),
                    ),
                ),
                S.ENumber(value=1),
            ),
        ) if inner == xs:
            return _one_of_all(r, items(r.value(outer)), (xs, x), c)
    return None


def _one_of_all(r: Reading, sequences: Items, names: tuple[str, str], condition: S.Expr) -> Expr:
    """A truth from which follows that one item of one of these sequences meets a condition, and no other."""
    before = dict(r.names)

    def meets(k: Integer, j: Integer) -> Expr:
        its = items(sequences.at(k))
        was, r.names = r.names, {**before, names[0]: its, names[1]: its.at(j)}
        there, r.places = r.places, (*r.places, k.term, j.term)
        try:
            return smt.And(within(k, 0, sequences.length), within(j, 0, its.length), r.truth(condition))
        finally:
            r.names, r.places = was, there

    k, j = r.setting.witness("the one"), r.setting.witness("the one")
    if r.setting.trying:
        return meets(k, j)
    so = smt.Bool(r.setting.symbol("only one"))
    r.setting.for_all_items(
        lambda a, b: smt.Implies(meets(a, b), smt.And(a.term == k.term, b.term == j.term)), only_if=so
    )
    return smt.And(so, meets(k, j))


def _one_node(r: Reading, x: Vector, y: Vector) -> Expr:
    """Two nodes being one: what follows is that they have one value."""
    if x.count.known != 1 or y.count.known != 1:
        raise Unsupported("vectors that are one")
    s, a, b = r.setting, x.at(r.here, integer(0)), y.at(r.here, integer(0))
    numbers_are = number_ops.number(s, a).term == number_ops.number(s, b).term
    return smt.And(a == b, smt.Implies(smt.And(number_ops.is_valid(s, a), number_ops.is_valid(s, b)), numbers_are))


def _free_of_range(r: Reading, x: Vector, of: Vector) -> Expr:
    """A helper's promise about a range that it gives: x is the same at all its iterations."""
    axis = threads.axis_of(r.setting, of)
    if axis is None:
        raise Unsupported("a node that is free of what is no range")
    so = smt.Bool(r.setting.symbol("free"))
    threads.free(r.setting, x, axis, so)
    return so


def _free_of_loops(r: Reading, x: Vector, of: Loops) -> Expr:
    """A node that no name of the rule looks into is the same in all iterations of a loop: an unknown truth."""
    t = x.at(r.here, integer(0))
    if t.head != "apply" or t.data.name.kind != "variable":
        raise Unsupported("free_of of what is no name")
    so = smt.Bool(r.setting.symbol("free"))
    r.setting.invariant.setdefault((t.data, of.name), []).append(so)
    return so


def _free_of_axes(r: Reading, x: Vector, axes: AxisList) -> Expr:
    """x is the same wherever the axes are moved to: an unknown truth, used where x is asked at an iteration so moved."""
    if not axes.parts:
        return smt.TRUE
    moved = r.setting.together(axes.parts)
    so = smt.Bool(r.setting.symbol("free"))
    r.setting.free_of(x, moved, so)
    return so


def _over(r: Reading, e: S.EComprehension) -> Any:
    """The value of a name that is gone over; nothing where no name is."""
    return r.names.get(e.sequence.name) if isinstance(e.sequence, S.EName) else None


def _loops(value: Any) -> Loops:
    if isinstance(value, Loops):
        return value
    raise Unsupported(f"{type(value).__name__} where loops are read")


def _of_each_loop(r: Reading, e: S.EComprehension, several: Loops) -> Expr:
    """A condition on each of several loops: what they are free of, and what is free of them."""
    match e:
        case S.EComprehension(body=S.EBinary(op="and", left=left, right=right), condition=None):
            return smt.And(*(_of_each_loop(r, replace(e, body=part), several) for part in (left, right)))
        case S.EComprehension(
            body=S.ECall(name="free_of_axes", args=(S.EName(name=one), of)), names=(name,), condition=None
        ) if one == name and one not in {at.name for at in S.walk(of) if isinstance(at, S.EName)}:
            return _loops_free_of_axes(r, several, axes(r, of))
        case S.EComprehension(body=S.ECall(name="free_of" | "all") as each, names=(name,), condition=None) if _of_loops(
            r, each, name
        ):
            before, r.names = r.names, {**r.names, name: several}  # a loop stands for all of them
            try:
                return r.truth(each)
            finally:
                r.names = before
    raise Unsupported("a condition about loops")


def _of_loops(r: Reading, e: S.ECall, name: str) -> bool:
    """True if a condition says that loops are free of loops, with this name for one of them, or of all others."""
    match e:
        case S.ECall(name="free_of", args=(S.EName(name=one), S.EName(name=other))):
            return name in (one, other) and one != other
        case S.ECall(
            name="all", args=(S.EComprehension(body=body, names=(_,), sequence=S.EName(name=of), condition=None),)
        ):
            return (
                of != name
                and isinstance(r.names.get(of), Loops)
                and all(isinstance(c, S.ECall) and _of_loops(r, c, name) for c in conjuncts(body))
            )
    return False


def _loops_free_of_axes(r: Reading, several: Loops, moved: AxisList) -> Expr:
    """`all(free_of_axes(r, c) for r in loops)`: where the loops are is the same wherever the axes are moved to."""
    if not moved.parts:
        return smt.TRUE
    so = smt.Bool(r.setting.symbol("free"))
    r.setting.free.append((several.function, r.setting.together(moved.parts), so))
    return so


def axes(r: Reading, e: S.Expr) -> AxisList:
    return axis_list_or_none(r.value(e))
