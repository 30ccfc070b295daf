"""The results of a dialect's ops against their solver semantics: at every dtype, on edges, at random, on numbers in code."""

from __future__ import annotations

import importlib
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.dsl import evaluation
from morok.dsl.declared import Mistake
from morok.dsl.values import NoValue
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.dialect_encodings import worlds
from morok.prove.dialect_values import candidates, denied, every, mentioned, misnumbered, same_number
from morok.prove.meanings import meaning_of
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import FALSE, TRUE
from morok.prove.smt.session import Died
from morok.prove.solve import ask
from morok.prove.symbol import Symbol

MOST: Final = 240  # applications of one op at one choice of dtypes
LEAST: Final = 24
ALL: Final = 600  # of one op, about
TWICE: Final = 20  # of these, applications of the evaluator that are made again
CHOICES: Final = 40  # of dtypes


class Wrong(Exception):
    """A mistake in a field, in words; of all ops at some dtypes, where these are given."""

    def __init__(self, field: str, message: str, expected: str = "", dtypes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.field, self.message, self.expected, self.dtypes = field, message, expected, dtypes


def target(place: str) -> Any:
    """The object at an import path. Wrong with the part of it that is missing."""
    module, _, name = place.partition(":")
    try:
        home = importlib.import_module(module)
    except Exception as problem:  # whatever the module does when it is run
        what = "there is no module" if isinstance(problem, ModuleNotFoundError) and problem.name == module else "cannot import"
        raise Wrong("", f"{what} {module}" + ("" if what.startswith("there") else f": {said(problem)}")) from None
    found = getattr(home, name, None)
    if found is None or not callable(found):
        raise Wrong("", f"{module} has no {name}" if found is None else f"{place} cannot be called")
    return found


def said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"[:300]


def theory_of(dialect: Dialect) -> Any:
    """The dialect's theory; Wrong where it has none that can be used."""
    if not dialect.theory:
        raise Wrong("theory", "it names no theory, so that nothing can be proved", 'an import path, "package.module:Class"')
    try:
        made = target(dialect.theory)()
        attempts = made.attempts
    except Wrong as wrong:
        raise Wrong(
            "theory", wrong.message, "a class that can be imported, as IntegerTheory of morok.prove.semantics.plain"
        ) from None
    except Exception as problem:
        raise Wrong("theory", f"{dialect.theory} cannot be made, or has no `attempts`: {said(problem)}") from None
    if not callable(attempts):
        raise Wrong("theory", f"`attempts` of {dialect.theory} is no method")
    return made


def choices(dialect: Dialect, info: OpInfo) -> list[dict[str, str]]:
    """The dtypes that the letters of an op may stand for."""
    letters = list(info.domains)
    found = [dict(zip(letters, names, strict=True)) for names in itertools.product(*info.domains.values())]
    if len(found) > CHOICES:
        random.Random(info.name).shuffle(found)
    return found[:CHOICES]


def meaning_mistakes(dialect: Dialect, theory: Any, info: OpInfo) -> Iterator[Mistake]:
    """The mistakes where an op's evaluator and solver function disagree, or cannot be used: the first of each field."""
    fields: set[str] = set()
    function: Callable[..., Term] | None = None
    try:
        if not info.solver:
            raise Wrong("solver", "it names no function, so that no rule over the op can be proved", '"package.module:function"')
        function = meaning_of(target(info.solver))
    except Wrong as wrong:
        fields.add("solver")
        yield Mistake(info.name, "solver", wrong.message, wrong.expected or "a function (world, dtype, *terms) -> Term")
    possible = choices(dialect, info)
    most = min(MOST, max(LEAST, ALL // max(1, len(possible))))
    more = mentioned(info)
    for at in possible:
        for found in _at(dialect, theory, info, function, at, more, most):
            if found.field not in fields:
                fields.add(found.field)
                yield Mistake("" if found.dtypes else info.name, found.field, found.message, found.expected, found.dtypes)


def _at(
    dialect: Dialect,
    theory: Any,
    info: OpInfo,
    function: Callable[..., Term] | None,
    at: dict[str, str],
    more: Sequence[int],
    most: int,
) -> Iterator[Wrong]:
    names = [at.get(p, p) for p in info.params]
    result = at.get(info.result, info.result)
    where = f"at {', '.join(dict.fromkeys([*names, result]))}"
    try:
        attempts = worlds(theory, dialect, info.name, sorted({*names, result}))
        if not attempts:
            raise Wrong("theory", f"`attempts` has none for {info.name} {where}")
        world = attempts[0].world()
        rng = random.Random(f"{info.name} {where}")
        values = [candidates(world, n, more, rng) for n in names]
    except Wrong as wrong:
        yield wrong
        return
    except Exception as problem:
        yield Wrong("solver", f"the theory fails {where}: {said(problem)}")
        return
    empty = [n for n, v in zip(names, values, strict=True) if not v]
    if empty:
        yield Wrong(
            "domains", f"the theory has no constants at {empty[0]}: not even 0 and 1 are values of it", "limits of each dtype"
        )
        return
    tried = _combined(values, most, rng)
    others = _others(world, names, tried)
    yield from _evaluated(dialect, info, names, result, [*tried, *others])
    if function is None:
        return
    compared = False
    for attempt in attempts:
        try:
            for v in tried:
                compared |= _compare(dialect, info, function, attempt, names, result, v)
            others = [v for v in others if not _compare(dialect, info, function, attempt, names, result, v)]  # once is enough
            _over_unknowns(dialect, info, function, attempt, names, result, tried)
        except Wrong as wrong:
            yield wrong
            return
        except Unsupported:
            continue
    if not compared and info.evaluate is not None:
        yield Wrong("solver", f"no encoding of the theory has it {where}")


def _combined(values: Sequence[Sequence[Any]], most: int, rng: random.Random) -> list[tuple[Any, ...]]:
    """Combinations of values: all where they are few, else the first of each with each other's, and random ones."""
    if math.prod(map(len, values)) <= most:
        return list(itertools.product(*values))
    few = [v[: max(2, int(most ** (1 / len(values)) * 0.7))] for v in values]
    chance = [tuple(rng.choice(v) for v in values) for _ in range(most // 2)]
    return list(dict.fromkeys([*itertools.product(*few), *chance]))


def _others(world: Any, names: Sequence[str], tried: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The values of a small dtype that are not among those tried, for an op of one operand: it may read them in a table."""
    if len(names) != 1:
        return []
    known = [v for (v,) in tried]
    return [(v,) for v in every(world, names[0], known) if v not in known]


def evaluated(dialect: Dialect, info: OpInfo, names: Sequence[str], result: str, values: Sequence[Any]) -> Any:
    """The evaluator's value at dtypes of these names; NoValue where it says that there is none."""
    return evaluation.evaluated(dialect, info, [dialect.dtypes[n] for n in names], dialect.dtypes[result], values)


def _evaluated(
    dialect: Dialect, info: OpInfo, names: Sequence[str], result: str, tried: list[tuple[Any, ...]]
) -> Iterator[Wrong]:
    """The mistakes that the evaluator alone shows: it cannot be called, or does not commute where that is declared."""
    if info.evaluate is None:
        return
    given = f"(dtype, {len(names)} values{', dtype of the operand' if info.converts else ''})"
    commutes = info.commutative
    for i, v in enumerate(tried):
        try:
            one = evaluated(dialect, info, names, result, v)
            if i < TWICE and not same_number(one, again := evaluated(dialect, info, names, result, v)):
                yield Wrong("evaluate", f"of {_values(v)} is {one!r}, and {again!r} the next time", "a function of its arguments")
                return
        except NoValue:
            one = NoValue
        except Exception as problem:
            yield Wrong("evaluate", f"called as {given} with {_values(v)} it raises {said(problem)}", f"a function of {given}")
            return
        if one is not NoValue and (wrong := misnumbered(one)):
            yield Wrong(
                "evaluate", f"of {_values(v)} is {wrong}", "an int, a float or a bool, or an exception where there is none"
            )
            return
        if commutes and len(v) == 2:
            try:
                other = evaluated(dialect, info, names, result, (v[1], v[0]))
            except NoValue:
                other = NoValue
            except Exception:
                continue  # its own turn says it
            if one is not other and (NoValue in (one, other) or not same_number(one, other)):
                shown = f"{info.name}{_values(v)} is {_shown(one)}, {info.name}{_values(v[::-1])} is {_shown(other)}"
                yield Wrong("commutative", f"its operands cannot change places: {shown}", "commutative=False")
                commutes = False


def _shown(value: Any) -> str:
    return "nothing" if value is NoValue else repr(value)


def _values(v: Sequence[Any]) -> str:
    return f"({', '.join(map(repr, v))})"


def _compare(
    dialect: Dialect,
    info: OpInfo,
    function: Callable[..., Term],
    attempt: Any,
    names: Sequence[str],
    result: str,
    v: tuple[Any, ...],
) -> bool:
    """Compare one application; False where the encoding does not have it. Wrong says where they differ."""
    world = attempt.world()
    try:
        terms = [world.constant(n, x) for n, x in zip(names, v, strict=True)]
    except Exception:  # no such constant in this encoding
        return False
    try:
        got = function(world, *_dtypes_given(world, info, names, result, terms))
    except Unsupported:
        return False
    except Exception as problem:
        raise Wrong("solver", f"{info.solver} of {_values(v)} raises {said(problem)}", "(world, dtype, *terms) -> Term") from None
    if not isinstance(got, Term):
        raise Wrong("solver", f"{info.solver} returns {type(got).__name__}", "a Term: strict(value, *operands) makes one")
    _check_sorts(world, info, result, got, v)
    if info.evaluate is None:
        return True
    try:
        want = evaluated(dialect, info, names, result, v)
    except NoValue:
        want = NoValue
    except Exception:
        return False  # said already
    try:
        _agree(world, info, result, got, want, v)
    except (Wrong, Died):
        raise
    except Exception as problem:
        raise Wrong("solver", f"{info.solver} of {_values(v)} is no value of {result}: {said(problem)}") from None
    return True


def _over_unknowns(
    dialect: Dialect,
    info: OpInfo,
    function: Callable[..., Term],
    attempt: Any,
    names: Sequence[str],
    result: str,
    tried: Sequence[tuple[Any, ...]],
) -> None:
    """Compare applications to unknowns, with values for these: a rule is about unknowns, and Python code may take them for what
    they are not.
    """
    if info.evaluate is None:
        return
    for places in _unknowns(names):
        fixed = next((v for v in tried if all(same_number(v[i], v[k]) for i, k in enumerate(places) if k >= 0)), None)
        if fixed is None:
            continue
        world = attempt.world()
        try:
            unknown = [world.variable(Symbol("constant", i), n) for i, n in enumerate(names)]
            terms = [
                world.constant(n, fixed[i]) if k < 0 else unknown[k] for i, (k, n) in enumerate(zip(places, names, strict=True))
            ]
            got = function(world, *_dtypes_given(world, info, names, result, terms))
        except Exception:  # said of constants, or a rule that needs it is not proved
            continue
        for v in tried:
            if not all(same_number(v[i], fixed[i] if k < 0 else v[k]) for i, k in enumerate(places)):
                continue
            try:
                want: Any = evaluated(dialect, info, names, result, v)
            except NoValue:
                want = NoValue
            except Exception:
                return  # said already
            there = smt.Substitution(
                (x.value, smt.term(world.constant(n, c).value)) for x, n, c in zip(unknown, names, v, strict=True)
            )
            here = attempt.world()
            here.exact, here.axioms = world.exact, [a for a in map(there, world.axioms) if a is not TRUE]
            _agree(here, info, result, Term(there(got.value), there(got.defined)), want, v)


def _unknowns(names: Sequence[str]) -> list[tuple[int, ...]]:
    """Which operands are which unknown, -1 for a constant: each its own, two the same, one a constant."""
    own = tuple(range(len(names)))
    pairs = [(i, k) for i, k in itertools.combinations(own, 2) if names[i] == names[k]]
    same = [tuple(i if n == k else n for n in own) for i, k in pairs]
    one = [tuple(-1 if n == i else n for n in own) for i in own] if len(own) > 1 else []
    return [own, *same, *one]


def _dtypes_given(world: Any, info: OpInfo, names: Sequence[str], result: str, terms: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a solver function behind the world: the dtype, the terms, and of a conversion the operand's dtype."""
    d = world.dtype(names[0] if info.comparison else result)
    return (d, *terms, *((world.dtype(names[0]),) if info.converts else ()))


def _check_sorts(world: Any, info: OpInfo, result: str, got: Term, v: tuple[Any, ...]) -> None:
    """Wrong where the parts of a lane are not of the sorts that they should be of."""
    try:
        of = smt.term(world.constant(result, 0).value).sort
    except Exception:  # the theory has no such constant, which is said elsewhere
        return
    for part, value, sort in (
        ("value", got.value, of),
        ("defined", got.defined, smt.BoolSort()),
        ("invalid", got.invalid, smt.BoolSort()),
    ):
        if not isinstance(value, smt.Expr) or value.sort is not sort:
            found = value.sort if isinstance(value, smt.Expr) else type(value).__name__
            raise Wrong("solver", f"{info.solver} of {_values(v)}: `{part}` is of {found}", f"a term of {sort}")


def _agree(world: Any, info: OpInfo, result: str, got: Term, want: Any, v: tuple[Any, ...]) -> None:
    there = smt.simplify(got.defined)
    if world.axioms or there.head != "value":
        there = _model(world, got.defined)
    at = f"{info.name}{_values(v)}"
    if want is NoValue:
        if there is TRUE:
            raise Wrong("evaluate", f"{at} has no value, and has one to the solver", f"what {info.solver} says")
        return
    if denied(world, result, want):
        raise Wrong(
            "theory", f"{at} is {want!r}, which is no value of {result} to the theory", "limits that no op leaves", (result,)
        )
    if there is FALSE:
        raise Wrong("evaluate", f"{at} is {want!r}, and has no value to the solver", f"what {info.solver} says")
    if not world.exact:  # some values of it are known alone: the evaluator's must be possible
        if ask([*world.axioms, got.value == world.constant(result, want).value], DEFAULT_BUDGET).answer is Answer.UNSAT:
            raise Wrong("evaluate", f"{at} is {want!r}, which it cannot be to the solver", f"what {info.solver} says")
        return
    value = smt.simplify(got.value)
    if world.axioms or value.head != "value":
        value = _model(world, got.value)
    found = world.read(result, value)
    if not same_number(found, want):
        raise Wrong("evaluate", f"{at} is {want!r}, and {found!r} to the solver", f"what {info.solver} says")


def _model(world: Any, e: Any) -> Any:
    found = ask(world.axioms, DEFAULT_BUDGET)
    if found.timed_out:
        raise Died("no answer")
    if found.model is None:
        raise ValueError("what the theory assumes cannot be")
    return found.model.value(e)
