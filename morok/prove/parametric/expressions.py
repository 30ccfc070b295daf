"""Compile-time expressions at every size: integers as polynomials, sequences as functions of a place, quantifiers as unknowns."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.parametric import axis_conditions, laws, loops
from morok.prove.parametric.functions import dtype_named, function, result_dtype
from morok.prove.parametric.integers import Integer, integer, within
from morok.prove.parametric.sequences import axis_list_or_none, constant, listed, segments, width
from morok.prove.parametric.setting import occurs
from morok.prove.parametric.values import (
    AxisList,
    Datum,
    Dtype,
    Items,
    Loops,
    Vector,
    axis_list,
    items,
    number,
    splat,
    vector,
    zero,
)
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

LARGEST_FACTOR: Final = 64  # of the numbers in a rule that products are tried with


def value(r: Reading, e: S.Expr) -> Any:
    """The value of an expression."""
    match e:
        case S.EName():
            if e.name in r.names:
                return r.names[e.name]
            raise Unsupported(f"the name {e.name}")
        case S.ENumber():
            if isinstance(e.value, bool) or not isinstance(e.value, int):
                raise Unsupported("a number that is no integer")
            if abs(e.value) <= LARGEST_FACTOR:
                r.setting.numbers.add(e.value)
            return integer(e.value)
        case S.EBinary(op="and" | "or") | S.ECompare() | S.EUnary(op="not"):
            return truth(r, e)
        case S.EBinary():
            return _arithmetic(r, e)
        case S.EUnary(op="-"):
            return -number(value(r, e.operand))
        case S.ECall():
            return _call(r, e)
        case S.EStruct():
            return r.made(e.op, r.parts(e.op, e), e)
        case S.EIndex():
            return item(r, value(r, e.sequence), number(value(r, e.index)))
        case S.ERange():
            start = number(value(r, e.start))
            return Items(_length_of_range(r, number(value(r, e.stop)) - start + int(e.inclusive)), lambda k: start + k)
        case S.EList():
            return _list(r, e)
        case S.EComprehension():
            return comprehension(r, e)
        case S.EType():
            return e
    raise Unsupported(f"{type(e).__name__} at every size")


def _length_of_range(r: Reading, length: Integer) -> Integer:
    """The number of integers from one end to another: none where the ends are turned round, which a target must exclude."""
    if length.known is not None:
        return integer(max(length.known, 0))
    if r.guarding:
        return integer(smt.If(length.term > 0, length.term, 0))
    r.claim(length.term >= 0)
    return r.setting.count(length)


def _arithmetic(r: Reading, e: S.EBinary) -> Integer:
    a, b = number(value(r, e.left)), number(value(r, e.right))
    match e.op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return r.setting.divided(a, b)[0]
        case "%":
            return r.setting.divided(a, b)[1]
    raise Unsupported(f"{e.op} at every size")


def truth(r: Reading, e: S.Expr) -> Expr:
    """The condition that an expression is."""
    was, r.guarding = r.guarding, True  # an operand need have a value only where those before it leave the condition open
    try:
        return _condition(r, e)
    finally:
        r.guarding = was


def _condition(r: Reading, e: S.Expr) -> Expr:
    match e:
        case S.EBinary(op="and"):
            return smt.And(truth(r, e.left), truth(r, e.right))
        case S.EBinary(op="or"):
            left = truth(r, e.left)
            return left if left is smt.TRUE else smt.Or(left, truth(r, e.right))
        case S.EUnary(op="not"):
            return smt.Not(_in_full(r, e.operand))
        case S.ECompare():
            if (found := loops.bounded(e)) is not None:
                return found
            if (only := _only_one(r, e)) is not None:
                return only
            operands = [value(r, o) for o in e.operands]
            compared = [_compared(r, op, a, b) for op, a, b in zip(e.ops, operands, operands[1:], strict=False)]
            return compared[0] if len(compared) == 1 else smt.And(*compared)
        case S.ECall(name="all" | "any", args=(over,)):
            if (about := about_axes(r, e)) is not None:
                return about
            if e.name == "all" and isinstance(over, S.EComprehension) and isinstance(several := _over(r, over), Loops):
                return _of_each_loop(r, over, several)
            return _quantified(r, over, e.name == "all")
        case S.ECall(name="free_of_axes", args=(x, axes)):
            return _free_of_axes(r, vector(value(r, x)), axis_list(value(r, axes)))
        case S.ECall(name="free_of", args=(x, other)):
            return loops.free(_loops(value(r, x)), _loops(value(r, other)))
        case S.ECall(name="counts", args=(index, x, *step)):
            return _counts(r, vector(value(r, index)), vector(value(r, x)), [number(value(r, s)) for s in step])
        case S.ECall(name="launched", args=(x,)):
            return loops.launched(_loops(value(r, x)).name)
    found = value(r, e)
    if isinstance(found, Expr) and found.sort is laws.BOOL:
        return found
    raise Unsupported("a condition at every size")


def about_axes(r: Reading, e: S.Expr) -> Expr | None:
    """The condition on whole lists of axes that a loop over axes is; None of any other condition."""
    if (c := axis_conditions.distinct(e)) is not None:
        return smt.And(*(laws.DISTINCT(a) for a in axes(r, c).parts))
    if (found := axis_conditions.apart(e)) is not None:
        some, others = (axes(r, f).parts for f in found)
        return smt.And(*(smt.And(laws.APART(a, b), laws.APART(b, a)) for a in some for b in others))
    if (found := axis_conditions.among(e)) is not None:
        a, b = (axes(r, f) for f in found)
        return among(r, a, b)
    if (found := axis_conditions.all_among(e)) is not None:
        return _all_among(r, value(r, found[0]), axes(r, found[1]))
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


_COMPARISONS: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: smt.Not(a == b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


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


def _in_full(r: Reading, e: S.Expr) -> Expr:
    """A condition as it is, also where only what follows from another is asked."""
    was, r.premising = r.premising, False
    try:
        return truth(r, e)
    finally:
        r.premising = was


def _compared(r: Reading, op: str, a: Any, b: Any) -> Expr:
    if isinstance(a, Datum) and isinstance(b, Datum) and a.dtype == b.dtype and op in ("==", "!="):
        return _COMPARISONS[op](a.term, b.term)
    x, y = number(a), number(b)
    if x.known is not None and y.known is not None:
        return smt.BoolVal(_OF_NUMBERS[op](x.known, y.known))
    r.setting.compared(number(a), number(b))
    return _COMPARISONS[op](number(a).term, number(b).term)


def _quantified(r: Reading, over: S.Expr, every: bool) -> Expr:
    """An unknown truth: where it is so, the condition holds at every place; where not, there is a place at which it does not.

    Where only what follows is asked, one of these is enough.
    """
    found, known = items(value(r, over)), r.premising

    def holds(k: Integer, so: bool = every) -> Expr:
        was, r.premising = r.premising, known and so == every
        try:
            condition = found.at(k)
        finally:
            r.premising = was
        if not isinstance(condition, Expr) or condition.sort is not laws.BOOL:
            raise Unsupported("a quantifier over no conditions")
        return condition if so else smt.Not(condition)

    if r.setting.trying:
        if not (known and every):
            r.setting.witness("exception")
        return holds(r.setting.unknown("place"))
    there = r.setting.witness("exception")
    if known and not every:
        return smt.And(within(there, 0, found.length), holds(there, True))
    so = smt.Bool(r.setting.symbol("all"))
    r.setting.for_all(found.length, holds, only_if=so)
    if not known:
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
                                        body=S.ENumber(value=1), names=(x,), sequence=S.EName(name=inner), condition=S.Expr() as c
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
        ) if r.premising and inner == xs:
            return _one_of_all(r, items(value(r, outer)), (xs, x), c)
    return None


def _one_of_all(r: Reading, sequences: Items, names: tuple[str, str], condition: S.Expr) -> Expr:
    """A truth from which follows that one item of one of these sequences meets a condition, and no other."""
    before = dict(r.names)

    def meets(k: Integer, j: Integer) -> Expr:
        its = items(sequences.at(k))
        was, r.names = r.names, {**before, names[0]: its, names[1]: its.at(j)}
        known, r.premising = r.premising, False
        try:
            return smt.And(within(k, 0, sequences.length), within(j, 0, its.length), truth(r, condition))
        finally:
            r.names, r.premising = was, known

    k, j = r.setting.witness("the one"), r.setting.witness("the one")
    if r.setting.trying:
        return meets(k, j)
    so = smt.Bool(r.setting.symbol("only one"))
    r.setting.for_all_items(lambda a, b: smt.Implies(meets(a, b), smt.And(a.term == k.term, b.term == j.term)), only_if=so)
    return smt.And(so, meets(k, j))


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
    """A condition on each of several loops: what they are free of."""
    match e:
        case S.EComprehension(
            body=S.ECall(name=("free_of_axes" | "free_of") as which, args=(S.EName(name=one), of)), names=(name,), condition=None
        ) if one == name and one not in {at.name for at in S.walk(of) if isinstance(at, S.EName)}:
            return (
                loops.free(several, _loops(value(r, of))) if which == "free_of" else _loops_free_of_axes(r, several, axes(r, of))
            )
    raise Unsupported("a condition about loops")


def _loops_free_of_axes(r: Reading, several: Loops, moved: AxisList) -> Expr:
    """`all(free_of_axes(r, c) for r in loops)`: where the loops are is the same wherever the axes are moved to."""
    if not moved.parts:
        return smt.TRUE
    so = smt.Bool(r.setting.symbol("free"))
    r.setting.free.append((several.function, r.setting.together(moved.parts), so))
    return so


def item(r: Reading, sequence: Any, k: Integer) -> Any:
    """One item of a sequence: at another place it has no value, and the rule does not fire."""
    found = items(sequence)
    r.reached(r.setting.below(k, found.length))
    return found.at(k)


def _list(r: Reading, e: S.EList) -> Any:
    if not e.items:
        return listed([])
    if len(e.items) == 1 and isinstance(e.items[0], S.EComprehension):
        return comprehension(r, e.items[0])
    if any(isinstance(i, (S.ESpread, S.EComprehension)) for i in e.items):
        parts = [value(r, i.sequence) if isinstance(i, S.ESpread) else value(r, i) for i in e.items]
        if all(isinstance(p, AxisList) for p in parts):
            return AxisList(tuple(a for p in parts for a in p.parts))
        return parts  # what lists of several kinds are is for those who take them to say
    return listed([value(r, i) for i in e.items])


def comprehension(r: Reading, e: S.EComprehension) -> Any:
    """A value for every item of a sequence."""
    over = value(r, e.sequence)
    if isinstance(over, Loops) and axis_conditions.without_axes(e):
        return over
    if isinstance(over, AxisList):
        rest = axis_conditions.difference(e)
        if rest is None:
            raise Unsupported("axes one by one")
        return _difference(r, over, axes(r, rest.without))
    if e.condition is not None:
        raise Unsupported("a filter at every size")
    sequence = items(over)
    outer, guarding = dict(r.names), r.guarding

    def at(k: Integer) -> Any:
        one = sequence.at(k)
        before, r.names = r.names, {**r.names, **outer, **_named(e.names, one)}
        was, r.guarding = r.guarding, guarding
        r.setting.guard.append(within(k, 0, sequence.length))
        try:
            found = value(r, e.body)
            return found if not isinstance(e.body, S.ENumber) else number(found)
        finally:
            r.names, r.guarding = before, was
            r.setting.guard.pop()

    if not r.guarding and not r.probing:
        at(r.setting.probe("anywhere"))  # what it says at any place must be well-formed
    return Items(sequence.length, _quietly(r, at))


def _quietly(r: Reading, at: Callable[[Integer], Any]) -> Callable[[Integer], Any]:
    """The same function, of which nothing is claimed again."""

    def quiet(k: Integer) -> Any:
        r.probing += 1
        try:
            return at(k)
        finally:
            r.probing -= 1

    return quiet


def _named(names: tuple[str, ...], one: Any) -> dict[str, Any]:
    if len(names) == 1:
        return {names[0]: one}
    if not isinstance(one, tuple) or len(one) != len(names):
        raise Unsupported("items of other parts than their names")
    return dict(zip(names, one, strict=True))


def _difference(r: Reading, of: AxisList, without: AxisList) -> AxisList:
    """The axes of one list that are not in another."""
    if not of.parts or not without.parts:
        return of
    a, b = r.setting.together(of.parts), r.setting.together(without.parts)
    rest = smt.Const(r.setting.symbol("rest"), laws.AXES)
    premise = r.setting.premise
    premise(smt.Implies(laws.DISTINCT(a), laws.DISTINCT(rest)))
    premise(laws.AMONG(rest, a))
    premise(smt.And(laws.APART(rest, b), laws.APART(b, rest)))
    premise(laws.AMONG(a, r.setting.together((rest, b))))
    return AxisList((rest,))


# calls


def _call(r: Reading, e: S.ECall) -> Any:
    if e.name in r.rule.dialect.ops:
        return r.made(e.name, r.parts(e.name, e), e)
    if e.name in r.rule.externs:
        return r.result(r.rule.externs[e.name], [value(r, a) for a in e.args])
    if e.name == "zero" and len(e.args) == 1 and not isinstance(e.args[0], S.EType):
        return _zero(r, e.args[0])
    if e.name in ("all", "any", "free_of_axes", "free_of", "launched", "counts"):
        return truth(r, e)
    if e.name == "eval":
        return _evaluated(r, e)
    if e.name == "sum" and len(e.args) == 1:
        return _sum(r, e.args[0])
    if e.name == "dtype":
        return _dtype(r, *e.args)
    found = _FUNCTIONS.get(e.name)
    if found is None:
        raise Unsupported(f"the function {e.name}")
    return found(r, *(value(r, a) for a in e.args))


def _zero(r: Reading, of: S.Expr) -> Vector:
    """The number 0, of the dtype and lanes of a node."""
    return Vector(vector(value(r, of)).count, zero(r.element(of)).at)


def _evaluated(r: Reading, e: S.ECall) -> Datum:
    """The result of an op on values: the same as on nodes that hold them."""
    op, *arguments = e.args
    if not isinstance(op, S.EName):
        raise Unsupported("eval of what is no op")
    to = None
    if arguments and isinstance(arguments[-1], S.EType):
        to = dtype_named(r, arguments[-1])
        arguments.pop()
    given = [value(r, a) for a in arguments]
    if not all(isinstance(g, Datum) for g in given):
        raise Unsupported("eval of what is no value of a constant")
    dtypes = [g.dtype for g in given]
    made = function(r, op.name, dtypes, to)(*(g.term for g in given))
    return Datum(made, to or result_dtype(r, op.name, dtypes))


def _dtype(r: Reading, of: S.Expr, lanes: S.Expr | None = None) -> Dtype:
    """The dtype of a node, with its lanes or as many as are said."""
    return Dtype(r.element(of), vector(value(r, of)).count if lanes is None else number(value(r, lanes)))


def _sum(r: Reading, of: S.Expr) -> Integer:
    """A sum over a sequence: of the digits of a number of blocks, or of what is the same everywhere."""
    if isinstance(of, S.EComprehension) and of.condition is None:
        over = value(r, of.sequence)
        if isinstance(over, Items) and over.length.known == 0:
            return integer(0)
        if isinstance(over, AxisList):
            return _renumbered(r, of, over)
    if (first := _first_lane(r, of)) is not None:
        return first
    found = items(value(r, of))
    place = r.setting.probe("anywhere")
    one = number(found.at(place))
    if not occurs(place, one):
        return found.length * one
    if r.guarding:
        return r.setting.unknown("sum")
    raise Unsupported("a sum of different items")


def _first_lane(r: Reading, of: S.Expr) -> Integer | None:
    """`sum(len(xs[q]) for q in 0..k)`: where item k begins of sequences that are put behind one another."""
    match of:
        case S.EComprehension(
            body=S.ECall(name="len", args=(S.EIndex(sequence=S.EName(name=xs), index=S.EName(name=p)),)),
            names=(q,),
            sequence=S.ERange(start=S.ENumber(value=0), stop=stop, inclusive=False),
            condition=None,
        ) if p == q and q not in (xs, *(n.name for n in S.walk(stop) if isinstance(n, S.EName))):
            sequences = items(r.names[xs])
            parts = r.setting.parts_behind_one_another(sequences.length, lambda k: items(sequences.at(k)).length)
            return integer(parts.first(number(value(r, stop)).term))
    return None


def _renumbered(r: Reading, e: S.EComprehension, source: AxisList) -> Integer:
    """`sum(at(target, i, k) * step(source, i) for i, _n in source)`: the number, among the blocks of `source`, of the iteration
    at which the axes of `target` are in block k, and all others at 0.
    """
    found = axis_conditions.renumbered(e)
    if found is None:
        raise Unsupported("a sum over axes")
    to, block = axes(r, found[0]), number(value(r, found[1]))
    if not source.parts:
        return integer(0)
    if r.guarding:
        raise Unsupported("a number of blocks of axes that may repeat")
    s = r.setting
    r.claim(laws.DISTINCT(s.together(source.parts)))
    there = s.zero
    if to.parts:
        r.claim(laws.DISTINCT(s.together(to.parts)))
        there = laws.moved(s.together(to.parts), block, s.zero)
    total = integer(0)
    for a in source.parts:
        total = total * laws.width(a) + laws.block(a, there)
    return total


def _length(r: Reading, of: Any) -> Integer:
    if isinstance(of, Loops):
        return of.length
    if isinstance(of, AxisList):
        if not of.parts:
            return integer(0)
        return r.setting.number_of_axes(of.parts)
    if isinstance(of, list):
        total = integer(0)
        for part in segments(of):
            total = total + (part.length if isinstance(part, Items) else 1)
        return total
    return items(of).length


def _lanes(r: Reading, of: Any) -> Integer:
    return vector(of).count


def _axes(r: Reading, of: Any) -> AxisList:
    return AxisList(vector(of).axes)


def _inside(r: Reading, of: Any) -> Vector:
    found = vector(of)
    return found if found.inside is None else found.inside


def _width(r: Reading, of: Any) -> Integer:
    return width(r.setting, axis_list_or_none(of))


def axes(r: Reading, e: S.Expr) -> AxisList:
    return axis_list_or_none(value(r, e))


def _zip(r: Reading, *of: Any) -> Items:
    """Sequences of one length, item by item: of others it has no value."""
    sequences = [items(o) for o in of]
    for s in sequences[1:]:
        if not s.length.same(sequences[0].length):
            if r.guarding or r.setting.guard:
                raise Unsupported("sequences that may not be of one length")
            r.setting.premise(s.length.term == sequences[0].length.term)
    return Items(sequences[0].length, lambda k: tuple(s.at(k) for s in sequences))


def _constant(r: Reading, v: Any, dtype: Any) -> Vector:
    if isinstance(dtype, S.EType):
        return splat(_constant(r, v, Dtype(dtype_named(r, dtype), integer(1))).at(r.setting.zero, integer(0)))
    if not isinstance(dtype, Dtype):
        raise Unsupported("a constant of a dtype that is not read")
    if isinstance(v, Integer):
        made = constant(v, dtype.element)
    elif isinstance(v, Datum) and v.dtype == dtype.element:
        made = v.term
    else:
        raise Unsupported("a constant at another dtype")
    return Vector(dtype.lanes, lambda e, lane: made)


def _smaller(r: Reading, *of: Any) -> Integer:
    return functools.reduce(lambda x, y: integer(smt.If(x.term < y.term, x.term, y.term)), _several(of))


def _greater(r: Reading, *of: Any) -> Integer:
    return functools.reduce(lambda x, y: integer(smt.If(x.term > y.term, x.term, y.term)), _several(of))


def _several(of: Sequence[Any]) -> list[Integer]:
    if len(of) == 1:
        raise Unsupported("the least or the greatest of a sequence")
    return [number(v) for v in of]


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "len": _length,
    "lanes": _lanes,
    "axes": _axes,
    "inside": _inside,
    "width": _width,
    "zip": _zip,
    "const": _constant,
    "min": _smaller,
    "max": _greater,
}
