"""The statements of a dialect's theory about values: which are equal, which numbers they are, what bounds say of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from morok.dialect import Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.dialect_agreement import arguments
from morok.prove.dialect_meanings import signatures, target
from morok.prove.dialect_values import EDGES, WIDTHS, denial, holder, same_number
from morok.prove.meanings import meaning_of
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import either, is_false, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.smt.session import Died
from morok.prove.solve import ask
from morok.prove.symbol import Symbol

FEW: Final = 7  # values of a dtype that are compared with each other


class Made(NamedTuple):
    """A term of a dtype: its value where unknowns have theirs, and the conditions that they have these."""

    term: Any
    there: Callable[[Expr], Expr]
    given: tuple[Expr, ...]


def theory_mistakes(made: Mapping[str, Sequence[Any]], values: Mapping[str, Sequence[Any]]) -> Iterator[Mistake]:
    """The mistakes of a theory's worlds of each dtype, the first of each part. No op's code is run."""
    seen = set()
    for name, some in values.items():
        chosen = [*some[: FEW - 2], *some[-2:]] if len(some) > FEW else some
        for world in made[name]:
            for part, message in (*_wrong(world, name, chosen), *_unequal(world, name, ())):
                if part not in seen:
                    seen.add(part)
                    yield _mistake(part, message)


def equality_mistakes(made: Mapping[str, Sequence[Any]], ops: Sequence[OpInfo]) -> Iterator[Mistake]:
    """The first mistake of a theory's worlds about the results of ops over unknowns."""
    for name, worlds in made.items():
        functions = [(info, names) for info in ops if (names := _operands(name, info)) is not None]
        for world in worlds:
            for part, message in _unequal(world, name, functions):
                yield _mistake(part, message)
                return


def _mistake(part: str, message: str) -> Mistake:
    return Mistake("", "theory", f"`{part}` {message}", "what is so of the dialect's values")


def _wrong(world: Any, name: str, values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """(the method, what it says that is not so) at one dtype."""
    for a in values:
        for b in values:
            found = _said(world, functools.partial(_equal, world, name, a, b))
            if found is not None and found != same_number(a, b):
                yield "equal", f"of {a!r} and {b!r} at {name} is {found}"
    whole = [v for v in values if isinstance(v, int)]
    for v in values:
        if _said(world, functools.partial(_denied, world, name, v)):
            yield "variable", f"excludes {v!r}, which is a value of {name} in another encoding"
    before = len(world.axioms)
    made = [(v, list(_made(world, name, v, whole[i - 1], i))) for i, v in enumerate(whole)]
    for i, (v, some) in enumerate(made):
        yield from _of_number(world, name, v, some, i)
    for least in (True, False):
        yield from _of_bounds(world, name, [(v, m) for v, some in made for m in some], least)
    del world.axioms[before:]


def _made(world: Any, name: str, v: int, other: int, number: int) -> Iterator[Made]:
    """A value as a constant, as an unknown, and as one of two: nothing if this encoding has no such constant. What is said of
    constants alone need not be so of what rules are about.
    """
    try:
        c, d = _constants(world, name, v, other)
        yield Made(c, lambda e: e, ())
        x, y = (world.variable(Symbol("value", name, number, i), name) for i in range(2))
        flag = smt.Bool(Symbol("computed", "first", name, number))
        chosen = smt.If(flag, x.value, y.value)
    except Exception:  # said where it is asked for
        return
    pairs = [(x.value, smt.term(c.value)), (y.value, smt.term(d.value)), (flag, TRUE)]
    there, given = smt.Substitution(pairs), (*(a == b for a, b in pairs[:2]), flag)
    yield Made(x, there, given)
    yield Made(replace(x, value=chosen), there, given)


def _of_number(world: Any, name: str, v: int, made: Sequence[Made], at: int) -> Iterator[tuple[str, str]]:
    """(the method, what it says that is not so) of a value that is a number, or a truth."""
    n = world.numbers
    wanted = n.const(int(v))

    def equal(term: Any) -> Expr:
        exists, same = n.compare("==", world.number_of(name, term), wanted)
        return smt.And(exists, same)

    for m in made:
        if _said(world, functools.partial(equal, m.term), m) is False:
            yield "number_of", f"of {v!r} at {name} is another number"
    given: list[tuple[Any, Made | None]] = [(wanted, None)]
    try:
        x = n.n.variable(Symbol("number", name, at))
        given.append((Num(x), Made(None, smt.Substitution([(x, wanted.value)]), (x == wanted.value,))))
    except Exception:  # this theory's numbers are others
        pass
    for number, known in given if made else ():
        if _said(world, functools.partial(_makes_value, world, name, number, v), known) is False:
            yield "constant_of", f"the number {v!r} makes another value of {name}"
        if world.is_int(name) and _said(world, functools.partial(world.fits, name, number), known) is False:
            yield "fits", f"denies that {v!r} is a value of {name}"


def _makes_value(world: Any, name: str, number: Any, v: int) -> Expr:
    return _same(world.constant_of(name, number), *_constants(world, name, v))


def _of_bounds(world: Any, name: str, made: Sequence[tuple[int, Made]], least: bool) -> Iterator[tuple[str, str]]:
    """(the method, what it says that is not so) of bounds of values: all are asked about at once, and each if one is wrong."""
    n = world.numbers
    wrong: list[tuple[int, Expr]] = []
    itself: list[tuple[int, Expr]] = []
    for i, (v, m) in enumerate(made):
        try:
            bound, known = world.bound(name, Symbol("bound", name, least, i), m.term, least)
            on_its_side = n.compare("<=" if least else ">=", bound, n.const(int(v)))[1]
            equal = n.compare("==", bound, n.const(int(v)))[1]
        except Exception:  # rules that ask for bounds are not proved
            continue
        wrong.append((v, smt.And(known, *m.given, negation(on_its_side))))
        itself.append((v, smt.And(known, *m.given, equal)))
    if wrong and _possible(world, smt.Or(*(c for _, c in wrong))):
        for v in (v for v, c in wrong if _possible(world, c)):
            yield "bound", f"admits that {v!r} of {name} is on the wrong side of a bound"
    if itself and not _possible(world, *(c for _, c in itself)):
        for v in (v for v, c in itself if not _possible(world, c)):
            yield "bound", f"denies that {v!r} of {name} may be a bound of itself"


def _unequal(world: Any, name: str, ops: Sequence[tuple[OpInfo, Sequence[str]]]) -> Iterator[tuple[str, str]]:
    """(the method, what it says that is not so) where `equal` differs from equality over unknowns and over results of ops,
    whatever values these have: the solver is asked, and nothing is tried.
    """
    before = len(world.axioms)
    asked = []
    for a, b in _pairs(world, name, ops):
        try:
            said, same = smt.term(world.equal(name, a, b)), smt.term(a.value) == smt.term(b.value)
            differ = smt.simplify(smt.And(a.defined, b.defined, negation(said == same)))
        except Exception:  # a rule that needs it is not proved
            continue
        if differ is not FALSE:
            asked.append((a, b, said, differ))
    for a, b, said, differ in asked:
        found = ask([*world.axioms, differ], DEFAULT_BUDGET)
        if found.timed_out:
            raise Died("no answer")
        if found.model is not None:
            x, y = (world.read(name, found.model.value(smt.term(t.value))) for t in (a, b))
            answer = found.model.value(said) is TRUE
            if answer != same_number(x, y):  # else one value is said in two ways
                yield "equal", f"of unknowns that are {x!r} and {y!r} at {name} is {answer}"
    del world.axioms[before:]


def _pairs(world: Any, name: str, ops: Sequence[tuple[OpInfo, Sequence[str]]]) -> Iterator[tuple[Any, Any]]:
    """Terms of a dtype that are compared: unknowns, one of two, and what each op makes of unknowns."""
    try:
        x, y, z = (world.variable(Symbol("computed", "compared", name, i), name) for i in range(3))
        chosen = replace(x, value=smt.If(smt.Bool(Symbol("computed", "first", name)), x.value, y.value))
    except Exception:  # said where it is asked for
        return
    yield from ((x, y), (chosen, z), (z, chosen))
    for k, (info, names) in enumerate(ops):
        try:
            unknown = [world.variable(Symbol("computed", "operand", k, i), n) for i, n in enumerate(names)]
            made = meaning_of(target(info.solver))(world, *arguments(world, info, names, name, unknown))
        except Exception:  # said of the op
            continue
        if made.allows is None and is_false(made.invalid):
            yield from ((made, z), (z, made))


def _operands(name: str, info: OpInfo) -> list[str] | None:
    """The dtypes of an op's operands at the first choice at which it gives this dtype; None where it gives it at none."""
    return next((names for names, result in signatures(info) if result == name), None)


def excluded_constants(dialect: Dialect, name: str, made: Sequence[Any]) -> Iterator[Mistake]:
    """The first value that the dialect makes of a number beyond a dtype, and that the theory says is none of the dtype's.

    Ops at the values of the theory need not show it: they may never leave those.
    """
    for v, back in _constants_of(dialect, name, ()):
        if not same_number(back, v) and not any(holder(world, name)(back) for world in made):
            what = f"`variable` excludes {back!r}, the constant that is made of {v!r} at {name}"
            yield Mistake("", "theory", what, "what is so of the dialect's values")
            return


def other_constants(dialect: Dialect, name: str, values: Sequence[Any], made: Sequence[Any]) -> Iterator[Mistake]:
    """The first number of which the dialect makes another constant than a theory says that it makes."""
    for v, back in _constants_of(dialect, name, values):
        for world in made:
            if _said(world, functools.partial(_makes, world, name, v, back)) is False:
                what = f"`constant_of` makes another value of the number {v!r} at {name} than `const`, whose constant is {back!r}"
                yield Mistake(
                    "", "theory", what, "no value of what `const` clips, wraps or refuses", (name,), constants=True
                )
                return


def _makes(world: Any, name: str, v: int, back: Any) -> Expr:
    """The condition that a number has no constant, or that it is this one."""
    found = world.constant_of(name, world.numbers.const(v))
    return either(negation(found.defined), smt.term(found.value) == smt.term(world.constant(name, back).value))


def _constants_of(dialect: Dialect, name: str, values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """(number, value of the constant that the dialect makes of it)."""
    for v in numbers_around(values):
        try:
            back = dialect.const_value(dialect.const(dialect.dtypes[name], v))
        except Exception:  # no constant of it
            continue
        if isinstance(back, int):
            yield v, back


def numbers_around(values: Sequence[Any]) -> list[int]:
    """Edges, widths, and what is next to values of a dtype: numbers that constants may be made of, in the dtype or beyond."""
    ends = {f(v for v in values if type(v) is int) for f in (min, max)} if any(type(v) is int for v in values) else ()
    near = (v + s for v in ends for s in (-1, 1))
    return list(dict.fromkeys((*EDGES, *(sign * (1 << width) for width in WIDTHS for sign in (1, -1)), *near)))


def _equal(world: Any, name: str, a: Any, b: Any) -> Any:
    return world.equal(name, *_constants(world, name, a, b))


def _denied(world: Any, name: str, v: Any) -> Expr:
    return smt.BoolVal(denial(world, name)(v))


def _same(a: Any, b: Any) -> Expr:
    return smt.And(a.defined, smt.term(a.value) == smt.term(b.value))


def _constants(world: Any, name: str, *values: Any) -> list[Any]:
    return [world.constant(name, v) for v in values]


def _said(world: Any, make: Callable[[], Any], made: Made | None = None) -> bool | None:
    """The truth of a condition whose unknowns have values; None where the theory has none, or it cannot be told."""
    try:
        condition = smt.simplify(smt.term(make()))
        condition = condition if made is None else smt.simplify(made.there(condition))
    except Exception:  # a rule that needs it is not proved
        return None
    if condition is TRUE or condition is FALSE:
        return condition is TRUE
    given = () if made is None else made.given
    true, false = _possible(world, *given, condition), _possible(world, *given, negation(condition))
    return None if true == false else true


def _possible(world: Any, *conditions: Expr) -> bool:
    found = ask([*world.axioms, *conditions], DEFAULT_BUDGET)
    if found.timed_out:
        raise Died("no answer")
    return found.answer is not Answer.UNSAT
