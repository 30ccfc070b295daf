"""The statements of a dialect's theory about values: which are equal, which numbers they are, what bounds say of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from morok.dialect import Dialect
from morok.dsl.declared import Mistake
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.dialect_values import EDGES, WIDTHS, denied, has, same_number
from morok.prove.semantics.term import either, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.smt.session import Died
from morok.prove.solve import ask
from morok.prove.symbol import Symbol

FEW: Final = 7  # values of a dtype that are compared with each other


def theory_mistakes(made: Mapping[str, Sequence[Any]], values: Mapping[str, Sequence[Any]]) -> Iterator[Mistake]:
    """The mistakes of a theory's worlds of each dtype, the first of each part."""
    seen = set()
    for name, some in values.items():
        chosen = [*some[: FEW - 2], *some[-2:]] if len(some) > FEW else some
        for world in made[name]:
            for part, message in _wrong(world, name, chosen):
                if part not in seen:
                    seen.add(part)
                    yield Mistake("", "theory", f"`{part}` {message}", "what is so of the dialect's values")


def _wrong(world: Any, name: str, values: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """(the method, what it says that is not so) at one dtype."""
    for a in values:
        for b in values:
            found = _said(world, functools.partial(_equal, world, name, a, b))
            if found is not None and found != same_number(a, b):
                yield "equal", f"of {a!r} and {b!r} at {name} is {found}"
    for v in values:
        if _said(world, functools.partial(_denied, world, name, v)):
            yield "variable", f"excludes {v!r}, which is a value of {name} in another encoding"
        if isinstance(v, int):
            yield from _of_number(world, name, v)


def _of_number(world: Any, name: str, v: int) -> Iterator[tuple[str, str]]:
    """(the method, what it says that is not so) of a value that is a number, or a truth."""
    n = world.numbers

    def equal(number: Any) -> Expr:
        exists, same = n.compare("==", number, n.const(int(v)))
        return smt.And(exists, same)

    try:
        (value,) = _constants(world, name, v)
    except Exception:  # no such constant in this encoding
        return
    if _said(world, lambda: equal(world.number_of(name, value))) is False:
        yield "number_of", f"of {v!r} at {name} is another number"
    if _said(world, lambda: _same(world, world.constant_of(name, n.const(int(v))), value)) is False:
        yield "constant_of", f"the number {v!r} makes another value of {name}"
    if world.is_int(name) and _said(world, lambda: world.fits(name, n.const(int(v)))) is False:
        yield "fits", f"denies that {v!r} is a value of {name}"
    for least, sign in ((True, "<="), (False, ">=")):
        try:
            bound, known = world.bound(name, Symbol("bound", name), value, least)
            on_its_side, itself = n.compare(sign, bound, n.const(int(v)))[1], n.compare("==", bound, n.const(int(v)))[1]
        except Exception:  # rules that ask for bounds are not proved
            continue
        if _possible(world, known, negation(on_its_side)):
            yield "bound", f"admits that {v!r} of {name} is on the wrong side of a bound"
        if not _possible(world, known, itself):
            yield "bound", f"denies that {v!r} of {name} may be a bound of itself"


def excluded_constants(dialect: Dialect, name: str, made: Sequence[Any]) -> Iterator[Mistake]:
    """The first value that the dialect makes of a number beyond a dtype, and that the theory says is none of the dtype's.

    Ops at the values of the theory need not show it: they may never leave those.
    """
    for v, back in _constants_of(dialect, name, ()):
        if not same_number(back, v) and not any(has(world, name, back) for world in made):
            what = f"`variable` excludes {back!r}, the constant that is made of {v!r} at {name}"
            yield Mistake("", "theory", what, "what is so of the dialect's values")
            return


def other_constants(dialect: Dialect, name: str, values: Sequence[Any], made: Sequence[Any]) -> Iterator[Mistake]:
    """The first number of which the dialect makes another constant than a theory says that it makes."""
    for v, back in _constants_of(dialect, name, values):
        for world in made:
            if _said(world, functools.partial(_makes, world, name, v, back)) is False:
                what = f"`constant_of` makes another value of the number {v!r} at {name} than `const`, whose constant is {back!r}"
                yield Mistake("", "theory", what, "no value of what `const` clips, wraps or refuses", (name,), constants=True)
                return


def _makes(world: Any, name: str, v: int, back: Any) -> Expr:
    """The condition that a number has no constant, or that it is this one."""
    found = world.constant_of(name, world.numbers.const(v))
    return either(negation(found.defined), smt.term(found.value) == smt.term(world.constant(name, back).value))


def _constants_of(dialect: Dialect, name: str, values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """(number, value of the constant that the dialect makes of it): edges, widths, and what is next to values of the dtype."""
    ends = {f(v for v in values if type(v) is int) for f in (min, max)} if any(type(v) is int for v in values) else ()
    near = (v + s for v in ends for s in (-1, 1))
    for v in dict.fromkeys((*EDGES, *(sign * (1 << width) for width in WIDTHS for sign in (1, -1)), *near)):
        try:
            back = dialect.const_value(dialect.const(dialect.dtypes[name], v))
        except Exception:  # no constant of it
            continue
        if isinstance(back, int):
            yield v, back


def _equal(world: Any, name: str, a: Any, b: Any) -> Any:
    return world.equal(name, *_constants(world, name, a, b))


def _denied(world: Any, name: str, v: Any) -> Expr:
    return smt.BoolVal(denied(world, name, v))


def _same(world: Any, a: Any, b: Any) -> Expr:
    return smt.And(a.defined, smt.term(a.value) == smt.term(b.value))


def _constants(world: Any, name: str, *values: Any) -> list[Any]:
    return [world.constant(name, v) for v in values]


def _said(world: Any, make: Callable[[], Any]) -> bool | None:
    """The truth of a condition without unknowns; None where the theory has none, or it cannot be told."""
    try:
        condition = smt.simplify(smt.term(make()))
    except Exception:  # a rule that needs it is not proved
        return None
    if condition is TRUE or condition is FALSE:
        return condition is TRUE
    true, false = _possible(world, condition), _possible(world, negation(condition))
    return None if true == false else true


def _possible(world: Any, *conditions: Expr) -> bool:
    found = ask([*world.axioms, *conditions], DEFAULT_BUDGET)
    if found.timed_out:
        raise Died("no answer")
    return found.answer is not Answer.UNSAT


__all__ = ["excluded_constants", "other_constants", "theory_mistakes"]
