"""Compile-time expressions at every size: integers as polynomials, sequences as functions of a place."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.parametric import (
    axis_conditions,
    folds,
    kept_axes,
    laws,
    loads_and_stores,
    loops,
    number_ops,
    shared,
    tensors,
    views,
)
from morok.prove.parametric.conditions import axes
from morok.prove.parametric.number_ops import has_value
from morok.prove.parametric.op_functions import dtype_named, function, name_of, one_of, result_dtype, wraps
from morok.prove.parametric.polynomials import INT, Integer, integer, least, within
from morok.prove.parametric.rule_values import (
    AxisList,
    Datum,
    Dtype,
    Items,
    Loops,
    Vector,
    items,
    number,
    place,
    splat,
    vector,
    zero,
)
from morok.prove.parametric.sequences import axis_list_or_none, listed, segments, width
from morok.prove.parametric.setting import same_everywhere
from morok.prove.rule_syntax import only_names
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

LARGEST_FACTOR: Final = 64  # of the numbers in a rule that products are tried with


CONDITIONS: Final = frozenset({"all", "any", "free_of_axes", "free_of", "launched", "counts", "same", "same_shape"})


def value(r: Reading, e: S.Expr) -> Any:
    """The value of an expression; of a condition, where only what follows from it is asked, what does."""
    if not r.premising or _is_condition(e):
        return _value(r, e)
    r.premising = False
    try:
        return _value(r, e)
    finally:
        r.premising = True


def _is_condition(e: S.Expr) -> bool:
    """True if an expression is read as a condition, by `truth`."""
    match e:
        case S.EBinary(op="and" | "or") | S.ECompare() | S.EUnary(op="not"):
            return True
    return isinstance(e, S.ECall) and e.name in CONDITIONS


def _value(r: Reading, e: S.Expr) -> Any:
    match e:
        case S.EName():
            if e.name in r.names:
                return r.names[e.name]
            lanes = [t for t in r.rule.types.values() if t.lanes == e.name]  # `x: i32 x n` names them
            if not lanes:
                raise Unsupported(f"the name {e.name}")
            return r.lanes.of(lanes[0])
        case S.ENumber():
            if isinstance(e.value, bool):
                return smt.BoolVal(e.value)
            if not isinstance(e.value, int):
                raise Unsupported("a number that is no integer")
            if abs(e.value) <= LARGEST_FACTOR:
                r.setting.numbers.add(e.value)
            return integer(e.value)
        case _ if _is_condition(e):
            return r.truth(e)
        case S.EBinary():
            return _arithmetic(r, e)
        case S.EUnary(op="-"):
            return -number(value(r, e.operand))
        case S.ECall():
            return _call(r, e)
        case S.EStruct():
            return r.made(e.op, r.parts(e.op, e), e)
        case S.EIndex(sequence=S.EComprehension(condition=S.Expr()) as found, index=S.ENumber(value=0)) if r.tensors:
            return _first(r, found)
        case S.EIndex(
            sequence=S.EList(items=(S.EComprehension(condition=S.Expr()) as found,)), index=S.ENumber(value=0)
        ) if r.tensors:
            return _first(r, found)
        case S.EIndex():
            return item(r, value(r, e.sequence), number(value(r, e.index)), id(e) in r.sure)
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
    if r.guarding or r.part == "pattern":
        return integer(smt.If(length.term > 0, length.term, 0))
    r.ranged(length)
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
        case "<<" if a.known is not None and b.known is not None and 0 <= b.known <= LARGEST_FACTOR:
            return integer(a.known << b.known)
    raise Unsupported(f"{e.op} at every size")


def item(r: Reading, sequence: Any, k: Integer, sure: bool = False) -> Any:
    """One item of a sequence: at another place it has no value, and the rule does not fire where it is `sure` to be asked."""
    found = items(sequence)
    inside = r.setting.below(k, found.length)
    if sure and r.guarding:
        r.setting.premise(inside)
    r.reached(inside)
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
    if (loops_again := _loops_in_another_order(r, e)) is not None:
        return loops_again
    over = value(r, e.sequence)
    if isinstance(over, Loops) and axis_conditions.without_axes(e):
        return replace(over, open=True)
    if isinstance(over, Loops) and axis_conditions.of_each(e):
        return [AxisList(() if over.open else (loops.axes(r, over),))]
    if isinstance(over, AxisList):
        rest = axis_conditions.difference(e)
        if rest is None:
            raise Unsupported("axes one by one")
        return _difference(r, over, axes(r, rest.without))
    if e.condition is not None:
        raise Unsupported("a filter at every size")
    sequence = items(over)
    outer, guarding, places = dict(r.names), r.guarding, r.places

    def at(k: Integer) -> Any:
        following, r.premising = r.premising, False  # asked of what is said of the item, and not of the item
        one = sequence.at(k)
        r.premising = following
        before, r.names = r.names, {**r.names, **outer, **_named(e.names, one)}
        was, r.guarding = r.guarding, guarding
        there, r.places = r.places, (*places, k.term)
        r.lengths_there[k.term] = sequence.length
        try:
            with r.setting.where(within(k, 0, sequence.length)):
                found = value(r, e.body)
            return number(found) if isinstance(e.body, S.ENumber) and not isinstance(e.body.value, bool) else found
        finally:
            r.names, r.guarding, r.places = before, was, there

    if not r.guarding and not r.probing:
        at(r.setting.probe("anywhere"))  # what it says at any place must be well-formed
    return Items(sequence.length, _quietly(r, at))


def _loops_in_another_order(r: Reading, e: S.EComprehension) -> Loops | None:
    """`[rs[f(k)] for k in 0..len(rs)]`: all loops of a name, each of them once, in which order means nothing."""
    match e:
        case S.EComprehension(
            body=S.EIndex(sequence=S.EName(name=rs), index=at),
            names=(k,),
            sequence=S.ERange(
                start=S.ENumber(value=0), stop=S.ECall(name="len", args=(S.EName(name=same),)), inclusive=False
            ),
            condition=None,
        ) if rs == same and isinstance(found := r.names.get(rs), Loops) and not found.open and not r.guarding:

            def place(named: Integer) -> Integer:
                before, r.names = r.names, {**r.names, k: named}
                try:
                    return number(value(r, at))
                finally:
                    r.names = before

            s = r.setting
            one, other = s.probe("loop"), s.probe("loop")
            with s.where(within(one, 0, found.length), within(other, 0, found.length)):
                r.claim(within(place(one), 0, found.length))
                r.claim(smt.Implies(place(one).term == place(other).term, one.term == other.term))
            return found
    return None


def _first(r: Reading, e: S.EComprehension) -> Any:
    """The value of `[body for x in xs if condition][0]`: of any item that meets the condition. If none does, the rule does not
    fire.
    """
    if r.guarding or e.condition is None:
        raise Unsupported("the first item that meets a condition, in a guard")
    s = r.setting
    sequence, condition = items(value(r, e.sequence)), e.condition
    outer = dict(r.names)

    def named(k: Integer, what: S.Expr, truth: bool) -> Any:
        before = r.names
        r.names = {**before, **outer, **_named(e.names, sequence.at(k))}
        there, r.places = r.places, (*r.places, k.term)
        try:
            return r.truth(what) if truth else value(r, what)
        finally:
            r.names, r.places = before, there

    with s.anywhere() as place:
        asked = named(place, condition, True)
    free = [
        t
        for t in subterms([sequence.length.term, asked])
        if t.head == "const" and t.sort is INT and t is not place.term
    ]
    there = smt.Substitution((t, smt.Int(Symbol("fixed", "free", k))) for k, t in enumerate(free))
    f = s.firsts.setdefault((there(sequence.length.term), there(asked)), s.symbol("first"))
    # seen to depend on these
    first = integer(smt.Function(f, *([INT] * len(free)), INT)(*free) if free else smt.Int(f))
    if not s.trying and (first.term, *s.guard) not in s.said:
        s.said.add((first.term, *s.guard))
        found = smt.And(within(first, 0, sequence.length), named(first, condition, True))
        s.premise_here(found)
    return named(first, e.body, False)


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
        return r.result(e, [value(r, a) for a in e.args])
    if e.name == "identity":
        return _identity(r, *e.args)
    if e.name == "zero" and len(e.args) == 1 and not isinstance(e.args[0], S.EType):
        return _zero(r, e.args[0])
    if e.name == "one" and len(e.args) == 1 and not isinstance(e.args[0], S.EType):
        return _one(r, e.args[0])
    if e.name == "eval":
        return _evaluated(r, e)
    if e.name == "sum" and len(e.args) == 1:
        return _sum(r, e.args[0])
    if e.name == "dtype":
        return _dtype(r, *e.args)
    if e.name in _SIDES:
        return _bound(r, e.name, e.args[0])
    if e.name == "subst":
        return shared.substituted(*(value(r, a) for a in e.args))
    if e.name == "where":
        return _where(r, *e.args)
    if e.name == "inverse":
        return _inverse(r, id(e) in r.sure, value(r, e.args[0]))
    if e.name == "others":
        return _others(r, id(e) in r.sure, *(value(r, a) for a in e.args))
    if e.name == "zip":
        return _zip(r, id(e) in r.sure, *(value(r, a) for a in e.args))
    found = _FUNCTIONS.get(e.name)
    if found is None:
        raise Unsupported(f"the function {e.name}")
    return found(r, *(value(r, a) for a in e.args))


def _where(r: Reading, condition: S.Expr, yes: S.Expr, no: S.Expr) -> Integer:
    """One of two integers, both of which must have a value."""
    chosen = r.truth(condition)
    a, b = number(value(r, yes)), number(value(r, no))
    return a if a.same(b) else integer(smt.If(chosen, a.term, b.term))


def _zero(r: Reading, of: S.Expr) -> Vector:
    """The number 0, of the dtype and lanes of a node."""
    return _as_wide(r, zero(r.element(of)), of)


def _one(r: Reading, of: S.Expr) -> Vector:
    """The number 1, of the dtype and lanes of a node."""
    dtype = r.element(of)
    if not wraps(r, dtype):
        raise Unsupported("the number 1 of another dtype than of integers that wrap")
    return _as_wide(r, splat(one_of(dtype)), of)


def _as_wide(r: Reading, made: Vector, of: S.Expr) -> Vector:
    """A constant in as many lanes as a node has."""
    return Vector(vector(value(r, of)).count, made.at, tensor=tensors.of(made), constant=True)


def _identity(r: Reading, op: S.Expr, of: S.Expr) -> Vector:
    """The value of a fold over no iterations, of the dtype and lanes of a node."""
    made = folds.nothing(r, name_of(op), r.element(of))
    return Vector(vector(value(r, of)).count, lambda e, lane: made, constant=True)


def _evaluated(r: Reading, e: S.ECall) -> Datum:
    """The result of an op on values: the same as on nodes that hold them, unless the op has a tolerance."""
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
    made = function(r, op.name, dtypes, to, "eval")(*(g.term for g in given))
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
    if (total := _first_lane(r, of)) is not None or (total := _counted(r, of)) is not None:
        return total
    found = items(value(r, of))
    one = number(found.at(r.setting.probe("anywhere")))
    if same_everywhere(r.setting, one, lambda k: number(found.at(k))):
        return found.length * one
    if r.guarding:
        return r.setting.unknown("sum")
    raise Unsupported("a sum of different items")


def _first_lane(r: Reading, of: S.Expr) -> Integer | None:
    """`sum(len(xs[q]) for q in 0..k)`: where item k begins of sequences, or of vectors, that are put behind one another."""
    match of:
        case S.EComprehension(
            body=S.ECall(
                name=("len" | "lanes") as what, args=(S.EIndex(sequence=S.EName(name=xs), index=S.EName(name=p)),)
            ),
            names=(q,),
            sequence=S.ERange(start=S.ENumber(value=0), stop=stop, inclusive=False),
            condition=None,
        ) if p == q and q not in (xs, *(n.name for n in S.walk(stop) if isinstance(n, S.EName))):
            of_items, k = items(r.names[xs]), number(value(r, stop))
            r.reached(k.term <= of_items.length.term)
            r.claim(k.term >= 0)  # below 0 there is nothing to add, so that the rule fires
            count = _length if what == "len" else _lanes
            return r.setting.begin_of(k, of_items.length, lambda j: count(r, of_items.at(j)))
    return None


def _counted(r: Reading, of: S.Expr) -> Integer | None:
    """`sum(1 for x in xs if x <= n)`: how many numbers of a sequence are at most n."""
    match of:
        case S.EComprehension(
            body=S.ENumber(value=1),
            names=(x,),
            sequence=sequence,
            condition=S.ECompare(ops=("<=",), operands=(S.EName(name=y), most)),
        ) if x == y and x not in {n.name for n in S.walk(most) if isinstance(n, S.EName)}:
            numbered, n = items(value(r, sequence)), number(value(r, most))
            return r.setting.items_at_most(n, numbered.length, lambda k: number(numbered.at(k)))
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
        if of.open:
            raise Unsupported("how many loops close no axes")
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
    return loads_and_stores.lanes_at(r.setting, place(of))


def _axes(r: Reading, of: Any) -> AxisList:
    if not r.asks:
        raise Unsupported("axes of what is no node")
    return AxisList(vector(of).axes)


def _inside(r: Reading, of: Any) -> Vector:
    found = vector(of)
    return found if found.inside is None else found.inside


def _width(r: Reading, of: Any) -> Integer:
    return width(r.setting, axis_list_or_none(of))


def _zip(r: Reading, sure: bool, *of: Any) -> Items:
    """Sequences of one length, item by item: of others it has no value. `sure`: the rule does not fire where it has none."""
    sequences = [items(o) for o in of]
    for s in sequences[1:]:
        if not s.length.same(sequences[0].length):
            if not sure and not r.surely:
                raise Unsupported("sequences that may not be of one length")
            r.setting.premise(s.length.term == sequences[0].length.term)
    return Items(sequences[0].length, lambda k: tuple(s.at(k) for s in sequences))


def _constant(r: Reading, v: Any, dtype: Any) -> Vector:
    if isinstance(dtype, S.EType):
        return splat(_constant(r, v, Dtype(dtype_named(r, dtype), integer(1))).at(r.setting.zero, integer(0)))
    if not isinstance(dtype, Dtype):
        raise Unsupported("a constant of a dtype that is not read")
    if isinstance(v, Integer) or (isinstance(v, Datum) and v.dtype == "index" != dtype.element):
        made = r.integer_of(number(v), dtype.element)
    elif isinstance(v, Datum) and v.dtype == dtype.element:
        made = v.term
    elif isinstance(v, Expr) and v.sort is laws.BOOL and dtype.element == "bool":
        made = laws.TRUTH(v)
    else:
        raise Unsupported("a constant at another dtype")
    return Vector(dtype.lanes, lambda e, lane: made, tensor=tensors.scalar(made), constant=True)


def _inverse(r: Reading, sure: bool, of: Any) -> Items:
    """The permutation that undoes one: of what is none it has no value. `sure`: the rule does not fire where it has none."""
    axes = items(of)
    if not sure and not r.surely and not views.is_permutation(r.setting, axes):
        raise Unsupported("the inverse of what may be no permutation")
    back = views.inverse(r.setting, axes)
    return Items(axes.length, lambda k: integer(back(k.term)))


def _others(r: Reading, sure: bool, of: Any, rank: Any) -> Items:
    """The axes that are not among some, in order: of what names no axes, each once, it has no value, and the rule does not fire
    where it is `sure` to be asked.
    """
    axes, s = items(of), r.setting
    if kept_axes.known(s, number(rank), axes, [axes]) is None and not sure and (not r.surely or s.supposed):
        raise Unsupported("the others of what may be no axes")
    kept = kept_axes.without(s, number(rank), axes, [axes], smt.TRUE)
    return Items(kept.count, kept.axis)


def _known(r: Reading, of: Any) -> Integer:
    """The number that an index is, where it is a constant: of any other the rule does not fire."""
    return number_ops.number(r.setting, vector(of).at(r.here, integer(0)))


_SIDES: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {"vmin": operator.le, "vmax": operator.ge}


def _bound(r: Reading, which: str, of: S.Expr) -> Integer:
    """A bound of an index: a number on its side of it, where it has a value. Infinity is like a number far away.

    It is one of a node, not of its value: what is asked in two places, or of two items, is a function of its own, or at another
    place; of a name that stands for one node it is one function.
    """
    if not r.tensors:
        return _bound_of_lanes(r, which, of)
    t = vector(value(r, of)).at(r.here, integer(0))
    if isinstance(of, S.EName) and of.name in only_names(r.rule):
        bound = smt.Function(Symbol("function", which, of.name), laws.VALUE, INT)(t)
    else:
        if (id(of), which) not in r.asked:
            r.asked[id(of), which] = r.setting.symbol(which)
        bound = smt.Function(r.asked[id(of), which], laws.VALUE, *[INT] * len(r.places), INT)(t, *r.places)
    there = smt.And(has_value(r.setting, t), number_ops.is_valid(r.setting, t))
    on_its_side = _SIDES[which](bound, number_ops.number(r.setting, t).term)
    r.setting.instance("Bounds of a value are on both sides of it.", smt.Implies(there, on_its_side))
    return integer(bound)


def _bound_of_lanes(r: Reading, which: str, of: S.Expr) -> Integer:
    """A bound of all lanes of a node: of a name that stands for one node it is one number."""
    if not isinstance(of, S.EName) or of.name not in only_names(r.rule):
        raise Unsupported("bounds at every size")
    node = r.names.get(of.name)
    t = node.at(r.here, integer(0)) if isinstance(node, Vector) and r.element(of) == "index" else laws.NONE
    if t.head == "apply" and t.data.name.kind == "variable":
        r.setting.bounded[t.data] = of.name
    return integer(loops.bound(which, of.name))


def _rank(r: Reading, of: Any) -> Integer:
    return tensors.of(vector(of)).rank


def _shape(r: Reading, of: Any) -> Items:
    found = tensors.of(vector(of))
    return Items(found.rank, lambda k: splat(laws.NUMBER(found.size(k).term)))


def _smaller(r: Reading, *of: Any) -> Integer:
    return functools.reduce(least, _several(of))


def _greater(r: Reading, *of: Any) -> Integer:
    return functools.reduce(lambda x, y: -least(-x, -y), _several(of))


def _several(of: Sequence[Any]) -> list[Integer]:
    if len(of) == 1:
        length = items(of[0]).length.known
        if not length:
            raise Unsupported("the least or the greatest of a sequence")
        return [number(of[0].at(integer(k))) for k in range(length)]
    return [number(v) for v in of]


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "len": _length,
    "constant": _known,
    "rank": _rank,
    "shape": _shape,
    "lanes": _lanes,
    "axes": _axes,
    "inside": _inside,
    "width": _width,
    "const": _constant,
    "min": _smaller,
    "max": _greater,
}
