"""The agreement of an op's evaluator with its solver function at one choice of dtypes, in one encoding of the theory.

What an encoding knows in full is compared with the evaluator's value. Of what it knows in part (functions that are left
uninterpreted) the evaluator's values must be possible, those of all applications at once: proofs are about all of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from morok.dialect import Dialect, OpInfo
from morok.dsl import evaluation
from morok.dsl.declared import Mistake
from morok.dsl.values import NoValue
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.dialect_values import denial, same_number
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import FALSE, TRUE
from morok.prove.smt.session import Died
from morok.prove.solve import ask
from morok.prove.symbol import Symbol

TOGETHER: Final = 64  # applications that one question is about, where each is known in full


class Wrong(Exception):
    """A mistake that ends what is tried of an op, of no op as yet: `dtypes` and `constants` are those of `Mistake`."""

    def __init__(
        self, field: str, message: str, expected: str = "", dtypes: tuple[str, ...] = (), constants: bool = False
    ) -> None:
        super().__init__(message)
        self.mistake = Mistake("", field, message, expected, dtypes, constants=constants)


class Case(NamedTuple):
    """An application: the operands' values, and the evaluator's; NoValue where it has none."""

    given: tuple[Any, ...]
    value: Any


def said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}"[:300]


def evaluated(dialect: Dialect, info: OpInfo, names: Sequence[str], result: str, values: Sequence[Any]) -> Any:
    """The evaluator's value at dtypes of these names; NoValue where it says that there is none."""
    return evaluation.evaluated(dialect, info, [dialect.dtypes[n] for n in names], dialect.dtypes[result], values)


def shown(values: Sequence[Any]) -> str:
    return f"({', '.join(map(repr, values))})"


def arguments(world: Any, info: OpInfo, names: Sequence[str], result: str, terms: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a solver function behind the world: the dtype, the terms, and of a conversion the operand's dtype."""
    d = world.dtype(names[0] if info.comparison else result)
    return (d, *terms, *((world.dtype(names[0]),) if info.converts else ()))


@dataclass(frozen=True, slots=True)
class Agreement:
    """An op at dtypes of these names, in one encoding.

    function  what the op means to the solver
    attempt   the maker of the encoding's worlds
    kept      the operands: worlds may tell them apart by identity
    denies    what says that a value is none of the result's, once it was asked for
    """

    info: OpInfo
    function: Callable[..., Term]
    attempt: Any
    names: Sequence[str]
    result: str
    kept: list[Any] = field(default_factory=list)
    denies: list[Callable[[Any], bool]] = field(default_factory=list)

    def of_constants(self, cases: Iterable[Case]) -> list[Case]:
        """The cases that the encoding has. Wrong says where it differs from the evaluator."""
        had: list[Case] = []
        asked: dict[bool, list[Case]] = {True: [], False: []}
        for case in cases:
            world = self.attempt.world()
            got = self._of_constants(world, case, 0)
            if got is None:
                continue
            had.append(case)
            self._check_sorts(world, got, case.given)
            if self.info.evaluate is not None and not self._tried(world, got, case):
                asked[bool(world.exact)].append(case)
        self._asked(asked[True], self._of_constants, True)
        self._asked(asked[False], self._of_constants, False)
        return had

    def of_unknowns(self, cases: Sequence[Case], most: int) -> None:
        """Wrong where an application to unknowns, with values for these, differs: a rule is about unknowns, and Python code may
        take them for what they are not. Of the cases about so many are asked about.
        """
        for places in _unknowns(self.names) if self.info.evaluate is not None else ():
            alike = [c for c in cases if _fits(places, c.given, c.given)]
            kept = [c for c in alike if _fits(places, c.given, alike[0].given)]
            kept = kept[:: max(1, len(kept) // most)]
            world = self.attempt.world()
            try:
                unknown, got = self._of_unknowns(world, places, kept[0], 0)
            except Exception:  # there are none, it is said of constants, or a rule that needs it is not proved
                continue
            rest = []
            for case in kept:
                here = self.attempt.world()
                here.exact, here.axioms = world.exact, list(world.axioms)
                if not self._said(here, self._known(here, 0, case, unknown, got), case):
                    rest.append(case)
            self._asked(rest, functools.partial(self._valued, places), bool(world.exact))

    def known_in_part(self, case: Case) -> bool:
        """True if the encoding leaves open what this application is."""
        world = self.attempt.world()
        return self._of_constants(world, case, 0) is not None and not world.exact

    def said_of(self, world: Any, case: Case) -> list[Any]:
        """The conditions, in a world, that an application is what the evaluator says."""
        got = self._of_constants(world, case, 0)
        return [] if got is None else self._conditions(world, got, case)

    def shown(self, case: Case) -> str:
        return f"{self.info.name}{shown(case.given)} " + (
            "has no value" if case.value is NoValue else f"is {case.value!r}"
        )

    def _of_constants(self, world: Any, case: Case, number: int) -> Term | None:
        """The solver function's term for these constants; None where the encoding does not have it."""
        try:
            terms = [world.constant(n, x) for n, x in zip(self.names, case.given, strict=True)]
        except Exception:  # no such constant in this encoding
            return None
        self.kept.append(terms)
        solver = self.info.solver
        try:
            got = self.function(world, *arguments(world, self.info, self.names, self.result, terms))
        except Unsupported:
            return None
        except Exception as problem:
            what = f"{solver} of {shown(case.given)} raises {said(problem)}"
            raise Wrong("solver", what, "(world, dtype, *terms) -> Term") from None
        if not isinstance(got, Term):
            raise Wrong(
                "solver", f"{solver} returns {type(got).__name__}", "a Term: strict(value, *operands) makes one"
            )
        return got

    def _of_unknowns(self, world: Any, places: Sequence[int], case: Case, number: int) -> tuple[list[Term], Term]:
        """Unknowns, of this number among others of their world, and what the solver function gives them and constants."""
        unknown = [world.variable(Symbol("constant", i, number), n) for i, n in enumerate(self.names)]
        terms = [world.constant(self.names[i], case.given[i]) if k < 0 else unknown[k] for i, k in enumerate(places)]
        self.kept.append(terms)
        return unknown, self.function(world, *arguments(world, self.info, self.names, self.result, terms))

    def _valued(self, places: Sequence[int], world: Any, case: Case, number: int) -> Term:
        """The solver function's term for unknowns, where these have values."""
        before = len(world.axioms)
        return self._known(world, before, case, *self._of_unknowns(world, places, case, number))

    def _known(self, world: Any, before: int, case: Case, unknown: Sequence[Term], got: Term) -> Term:
        """A term over unknowns, where these have values; what the world has assumed since is said of the values too."""
        there = smt.Substitution(
            (x.value, smt.term(world.constant(n, c).value))
            for x, n, c in zip(unknown, self.names, case.given, strict=True)
        )
        world.axioms[before:] = [a for a in map(there, world.axioms[before:]) if a is not TRUE]
        return Term(there(got.value), there(got.defined))

    def _check_sorts(self, world: Any, got: Term, given: Sequence[Any]) -> None:
        """Wrong where the parts of a lane are not of the sorts that they should be of."""
        try:
            of = smt.term(world.constant(self.result, 0).value).sort
        except Exception:  # the theory has no such constant, which is said elsewhere
            return
        for part, value, sort in (
            ("value", got.value, of),
            ("defined", got.defined, smt.BoolSort()),
            ("invalid", got.invalid, smt.BoolSort()),
        ):
            if not isinstance(value, smt.Expr) or value.sort is not sort:
                found = value.sort if isinstance(value, smt.Expr) else type(value).__name__
                raise Wrong(
                    "solver", f"{self.info.solver} of {shown(given)}: `{part}` is of {found}", f"a term of {sort}"
                )

    def _tried(self, world: Any, got: Term, case: Case) -> bool:
        """True if a value agrees that is known without a question; Wrong if it does not, or is none."""
        try:
            return self._said(world, got, case)
        except (Wrong, Died):
            raise
        except Exception as problem:
            raise self._unread(case, problem) from None

    def _denied(self, value: Any) -> bool:
        if not self.denies:
            self.denies.append(denial(self.attempt.world(), self.result))
        return self.denies[0](value)

    def _said(self, world: Any, got: Term, case: Case) -> bool:
        """True if a value agrees that is known without a question; Wrong if it does not."""
        if case.value is not NoValue and self._denied(case.value):
            what = f"{self._at(case)} is {case.value!r}, which is no value of {self.result} to the theory"
            raise Wrong("theory", what, "limits that no op leaves", (self.result,))
        defined, value = smt.simplify(got.defined), smt.simplify(got.value)
        if (
            world.axioms
            or not world.exact
            or defined.head != "value"
            or (case.value is not NoValue and value.head != "value")
        ):
            return False
        self._compare(world, defined, value, case)
        return True

    def _compare(self, world: Any, defined: Any, value: Any, case: Case) -> None:
        says, wanted = f"what {self.info.solver} says", case.value
        if wanted is NoValue:
            if defined is TRUE:
                raise Wrong("evaluate", f"{self._at(case)} has no value, and has one to the solver", says)
            return
        if defined is FALSE:
            raise Wrong("evaluate", f"{self._at(case)} is {wanted!r}, and has no value to the solver", says)
        try:
            found = world.read(self.result, value)
        except Exception as problem:
            raise self._unread(case, problem) from None
        if not same_number(found, wanted):
            raise Wrong("evaluate", f"{self._at(case)} is {wanted!r}, and {found!r} to the solver", says)

    def _asked(self, cases: Sequence[Case], make: Callable[[Any, Case, int], Term | None], exact: bool) -> None:
        """Wrong unless the solver agrees to all of these: as many at once as it can answer for."""
        most = TOGETHER if exact else max(1, len(cases))
        todo = [cases[i : i + most] for i in range(0, len(cases), most)]
        while todo:
            some = todo.pop()
            answer = self._answer(some, make, exact)
            if answer is Answer.UNSAT:
                self._impossible(some, make, exact)
            if answer is Answer.UNKNOWN and len(some) > 1:
                todo += [some[: len(some) // 2], some[len(some) // 2 :]]

    def _answer(self, cases: Sequence[Case], make: Callable[[Any, Case, int], Term | None], exact: bool) -> Answer:
        """The answer to whether these can be, in one world. Wrong where an exact world has another value for one of them."""
        world = self.attempt.world()
        made = [(case, got) for i, case in enumerate(cases) if (got := make(world, case, i)) is not None]
        conditions = [] if exact else [c for case, got in made for c in self._conditions(world, got, case)]
        found = ask([*world.axioms, *conditions], DEFAULT_BUDGET)
        if found.timed_out and len(cases) == 1:
            raise Died("no answer")
        if found.answer is Answer.UNKNOWN and exact and len(cases) == 1:
            return Answer.UNSAT  # nobody can say what it is
        for case, got in made if exact and found.model is not None else ():
            defined, value = (e if e.head == "value" else found.model.value(e) for e in (got.defined, got.value))
            self._compare(world, defined, value, case)
        return found.answer

    def _conditions(self, world: Any, got: Term, case: Case) -> list[Any]:
        """The conditions that a term is the evaluator's value."""
        if case.value is NoValue:
            return [smt.Not(got.defined)]
        try:
            return [got.defined, got.value == world.constant(self.result, case.value).value]
        except Exception as problem:
            raise self._unread(case, problem) from None

    def _impossible(self, cases: Sequence[Case], make: Callable[[Any, Case, int], Term | None], exact: bool) -> None:
        """Wrong, with a case that cannot be, and another that excludes it if it is possible alone."""

        def fails(some: Sequence[Case]) -> bool:
            return self._answer(some, make, exact) is Answer.UNSAT

        count = _least(len(cases), lambda n: fails(cases[:n]))
        first, case = cases[:count][::-1][1:], cases[count - 1]
        beside = _least(len(first), lambda n: fails([*first[:n], case])) if first and not fails([case]) else 0
        where = f" where {self.shown(first[beside - 1])}" if beside else ""
        if exact:
            raise self._unread(case, ValueError(f"what the theory assumes cannot be{where}"))
        what = f"{self.shown(case)}, which it cannot be to the solver{where}"
        raise Wrong("evaluate", what, f"what {self.info.solver} says")

    def _unread(self, case: Case, problem: Exception) -> Wrong:
        what = f"{self.info.solver} of {shown(case.given)} is no value of {self.result}: {said(problem)}"
        return Wrong("solver", what)

    def _at(self, case: Case) -> str:
        return f"{self.info.name}{shown(case.given)}"


def together(applications: Sequence[tuple[Agreement, Case]]) -> tuple[OpInfo, str] | None:
    """The op, and what is wrong in words, where applications in one kind of encoding cannot all be; None where they can."""

    def fails(some: Sequence[tuple[Agreement, Case]]) -> bool:
        world = some[0][0].attempt.world()
        conditions = [c for agreement, case in some for c in agreement.said_of(world, case)]
        return ask([*world.axioms, *conditions], DEFAULT_BUDGET).answer is Answer.UNSAT

    if not applications or not fails(applications):
        return None
    count = _least(len(applications), lambda n: fails(applications[:n]))
    last, before = applications[count - 1], applications[: count - 1][::-1]
    beside = _least(len(before), lambda n: fails([*before[:n], last])) if before else 0
    where = "".join(f" where {agreement.shown(case)}" for agreement, case in before[beside - 1 : beside])
    return last[0].info, f"{last[0].shown(last[1])}, which it cannot be to the solver{where}"


def _least(most: int, holds: Callable[[int], bool]) -> int:
    """The least number from 1 on at which a condition holds that holds of the greatest, and of all above where it does."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def _fits(places: Sequence[int], given: Sequence[Any], constants: Sequence[Any]) -> bool:
    """True if values may be those of unknowns and constants at these places."""
    return all(
        same_number(v, constants[i] if k < 0 else given[k]) for i, (k, v) in enumerate(zip(places, given, strict=True))
    )


def _unknowns(names: Sequence[str]) -> list[tuple[int, ...]]:
    """Which operands are which unknown, -1 for a constant: each its own, two the same, one a constant."""
    own = tuple(range(len(names)))
    pairs = [(i, k) for i, k in itertools.combinations(own, 2) if names[i] == names[k]]
    same = [tuple(i if n == k else n for n in own) for i, k in pairs]
    one = [tuple(-1 if n == i else n for n in own) for i in own] if len(own) > 1 else []
    return [own, *same, *one]
