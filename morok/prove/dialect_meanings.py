"""The results of a dialect's ops against their solver semantics: at every dtype, on edges, at random, on numbers in code."""

from __future__ import annotations

import importlib
import itertools
import math
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.dsl.values import NoValue
from morok.prove.dialect_agreement import Agreement, Case, Wrong, evaluated, said, shown, together
from morok.prove.dialect_encodings import kind_of, worlds
from morok.prove.dialect_values import candidates, every, few, mentioned, misnumbered, near, same_number
from morok.prove.meanings import meaning_of
from morok.prove.semantics.term import Term, Unsupported

MOST: Final = 240  # applications of one op at one choice of dtypes
LEAST: Final = 24
ALL: Final = 600  # of one op, about
SPECIAL: Final = 2000  # and of one op to numbers that stand in its code
TOGETHER: Final = 3  # of an op at one choice of dtypes, where those of all ops are asked about at once
BESIDE: Final = 4  # other values that such a number is tried with
TWICE: Final = 20  # of these, applications of the evaluator that are made again


def target(place: str) -> Any:
    """The object at an import path. Wrong with the part of it that is missing."""
    module, _, name = place.partition(":")
    try:
        home = importlib.import_module(module)
    except Exception as problem:  # whatever the module does when it is run
        what = (
            "there is no module"
            if isinstance(problem, ModuleNotFoundError) and problem.name == module
            else "cannot import"
        )
        raise Wrong("", f"{what} {module}" + ("" if what.startswith("there") else f": {said(problem)}")) from None
    found = getattr(home, name, None)
    if found is None or not callable(found):
        raise Wrong("", f"{module} has no {name}" if found is None else f"{place} cannot be called")
    return found


def theory_of(dialect: Dialect) -> Any:
    """The dialect's theory; Wrong where it has none that can be used."""
    if not dialect.theory:
        raise Wrong(
            "theory", "it names no theory, so that nothing can be proved", 'an import path, "package.module:Class"'
        )
    try:
        made = target(dialect.theory)()
        attempts = made.attempts
    except Wrong as wrong:
        raise Wrong(
            "theory", str(wrong), "a class that can be imported, as IntegerTheory of morok.prove.semantics.plain"
        ) from None
    except Exception as problem:
        raise Wrong("theory", f"{dialect.theory} cannot be made, or has no `attempts`: {said(problem)}") from None
    if not callable(attempts):
        raise Wrong("theory", f"`attempts` of {dialect.theory} is no method")
    return made


def signatures(info: OpInfo) -> list[tuple[list[str], str]]:
    """(dtypes of the operands, dtype of the result) for each choice of dtypes for an op's letters: rules fire at all."""
    choices = [dict(zip(info.domains, names, strict=True)) for names in itertools.product(*info.domains.values())]
    return [([at.get(p, p) for p in info.params], at.get(info.result, info.result)) for at in choices]


def meaning_mistakes(dialect: Dialect, theory: Any, info: OpInfo) -> Iterator[Mistake]:
    """The mistakes where an op's evaluator and solver function disagree, or cannot be used: the first of each field."""
    fields: set[str] = set()
    function: Callable[..., Term] | None = None
    try:
        if not info.solver:
            raise Wrong(
                "solver", "it names no function, so that no rule over the op can be proved", '"package.module:function"'
            )
        function = meaning_of(target(info.solver))
    except Wrong as wrong:
        fields.add("solver")
        expected = wrong.mistake.expected or "a function (world, dtype, *terms) -> Term"
        yield replace(wrong.mistake, op=info.name, field="solver", expected=expected)
    possible = signatures(info)
    numbers = mentioned(info)
    for names, result in possible:
        for found in _at(dialect, theory, info, function, names, result, numbers, len(possible)):
            if found.field not in fields:
                fields.add(found.field)
                yield found if found.dtypes else replace(found, op=info.name)


def _at(
    dialect: Dialect,
    theory: Any,
    info: OpInfo,
    function: Callable[..., Term] | None,
    names: Sequence[str],
    result: str,
    numbers: Sequence[float],
    count: int,
) -> Iterator[Mistake]:
    """The mistakes at one choice of dtypes, of so many."""
    where = f"at {', '.join(dict.fromkeys([*names, result]))}"
    try:
        attempts = worlds(theory, dialect, info.name, sorted({*names, result}))
        if not attempts:
            raise Wrong("theory", f"`attempts` has none for {info.name} {where}")
        world = attempts[0].world()
        rng = random.Random(f"{info.name} {where}")
        values = [candidates(world, n, rng) for n in names]
        special = [near(world, n, numbers, values[i]) for i, n in enumerate(names)]
    except Wrong as wrong:
        yield wrong.mistake
        return
    except Exception as problem:
        yield Mistake("", "solver", f"the theory fails {where}: {said(problem)}")
        return
    empty = [n for n, v in zip(names, values, strict=True) if not v]
    if empty:
        yield Mistake(
            "",
            "domains",
            f"the theory has no constants at {empty[0]}: not even 0 and 1 are values of it",
            "limits of each dtype",
        )
        return
    most = min(MOST, max(LEAST, ALL // count))
    tried = _distinct(
        [*_combined(values, most, rng), *_special(values, special, max(LEAST // 3, SPECIAL // count), rng)]
    )
    others = _others(world, names, tried)
    yield from _evaluated(dialect, info, names, result, [*tried, *others])
    if function is None:
        return
    cases = _cases(dialect, info, names, result, tried)
    rest = _cases(dialect, info, names, result, others)
    compared = False
    for attempt in attempts:
        try:
            agreement = Agreement(info, function, attempt, names, result)
            compared |= bool(agreement.of_constants(cases))
            had = agreement.of_constants(rest)
            rest = [case for case in rest if case not in had]  # once is enough
            agreement.of_unknowns(cases, max(LEAST // 3, ALL // count))
        except Wrong as wrong:
            yield wrong.mistake
            return
        except Unsupported:
            continue
    if not compared and info.evaluate is not None:
        yield Mistake("", "solver", f"no encoding of the theory has it {where}")


def _cases(
    dialect: Dialect, info: OpInfo, names: Sequence[str], result: str, tried: Sequence[tuple[Any, ...]]
) -> list[Case]:
    """The applications to these values that the evaluator says something of."""
    found = []
    for v in tried:
        try:
            found.append(Case(v, None if info.evaluate is None else evaluated(dialect, info, names, result, v)))
        except NoValue:
            found.append(Case(v, NoValue))
        except Exception:  # said of the evaluator
            continue
    return found


def shared_mistakes(
    dialect: Dialect, theory: Any, ops: Sequence[OpInfo], values: Mapping[str, Sequence[Any]]
) -> Iterator[Mistake]:
    """The mistake where ops of which the solver is told a part cannot be what their evaluators say at once, in each kind of
    encoding: proofs are about several ops.
    """
    found: dict[Hashable, list[tuple[Agreement, Case]]] = {}
    for info in ops:
        try:
            function = meaning_of(target(info.solver))
        except Wrong:  # said of the op
            continue
        for names, result in signatures(info) if info.evaluate is not None else ():
            if all(values.get(n) for n in (*names, result)):
                tried = itertools.islice(
                    zip(*(itertools.cycle(few(values[n], TOGETHER)) for n in names), strict=False), TOGETHER
                )
                cases = _cases(dialect, info, names, result, list(tried))
                for attempt in worlds(theory, dialect, info.name, sorted({*names, result})):
                    agreement = Agreement(info, function, attempt, names, result)
                    try:
                        if cases and agreement.known_in_part(cases[0]):
                            found.setdefault(kind_of(attempt), []).extend((agreement, case) for case in cases)
                    except Wrong:  # said of the op
                        continue
    for applications in found.values():
        try:
            wrong = together(applications)
        except Wrong:  # said of the op
            continue
        if wrong is not None:
            yield Mistake(wrong[0].name, "evaluate", wrong[1], f"what {wrong[0].solver} says")


def _combined(values: Sequence[Sequence[Any]], most: int, rng: random.Random) -> list[tuple[Any, ...]]:
    """Combinations of values: all where they are few, else the first of each with each other's, and random ones."""
    if math.prod(map(len, values)) <= most:
        return list(itertools.product(*values))
    some = [v[: max(2, int(most ** (1 / len(values)) * 0.7))] for v in values]
    chance = [tuple(rng.choice(v) for v in values) for _ in range(most // 2)]
    return [*itertools.product(*some), *chance]


def _special(
    values: Sequence[Sequence[Any]], special: Sequence[Sequence[Any]], most: int, rng: random.Random
) -> list[tuple[Any, ...]]:
    """So many combinations with numbers that stand in an op's code: these with each other, and each with the first values."""
    pairs: Iterable[tuple[Any, ...]] = ()
    if all(special):
        all_of_them = math.prod(map(len, special)) <= most
        pairs = (
            itertools.product(*special) if all_of_them else (tuple(map(rng.choice, special)) for _ in range(most // 4))
        )
    beside = itertools.product(*(v[:BESIDE] for v in values))
    alone = ((*other[:i], v, *other[i + 1 :]) for other in beside for i, of in enumerate(special) for v in of)
    return [*pairs, *itertools.islice(alone, most)]


def _distinct(tried: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Each combination once; zeros of two signs are two."""
    return list({repr(v): v for v in tried}.values())


def _others(world: Any, names: Sequence[str], tried: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The values of a small dtype that are not among those tried, for an op of one operand: it may read them in a table."""
    if len(names) != 1:
        return []
    known = [v for (v,) in tried]
    return [(v,) for v in every(world, names[0], known) if v not in known]


def _evaluated(
    dialect: Dialect, info: OpInfo, names: Sequence[str], result: str, tried: list[tuple[Any, ...]]
) -> Iterator[Mistake]:
    """The mistakes that the evaluator alone shows: it cannot be called, or does not commute where that is declared."""
    if info.evaluate is None:
        return
    given = f"(dtype, {len(names)} values{', dtype of the operand' if info.converts else ''})"
    commutes = info.commutative
    for i, v in enumerate(tried):
        try:
            one = evaluated(dialect, info, names, result, v)
            if i < TWICE and not same_number(one, again := evaluated(dialect, info, names, result, v)):
                yield Mistake(
                    "",
                    "evaluate",
                    f"of {shown(v)} is {one!r}, and {again!r} the next time",
                    "a function of its arguments",
                )
                return
        except NoValue:
            one = NoValue
        except Exception as problem:
            yield Mistake(
                "", "evaluate", f"called as {given} with {shown(v)} it raises {said(problem)}", f"a function of {given}"
            )
            return
        if one is not NoValue and (wrong := misnumbered(one)):
            yield Mistake(
                "",
                "evaluate",
                f"of {shown(v)} is {wrong}",
                "an int, a float or a bool, or an exception where there is none",
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
                two = f"{info.name}{shown(v)} is {_shown(one)}, {info.name}{shown(v[::-1])} is {_shown(other)}"
                yield Mistake("", "commutative", f"its operands cannot change places: {two}", "commutative=False")
                commutes = False


def _shown(value: Any) -> str:
    return "nothing" if value is NoValue else repr(value)
