"""The meaning of an expression for the solver: a value, and the condition that it has one.

The solver's functions are total (x/0 is something); definedness is therefore carried beside every value and never read off it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from morok.dsl.extent import Extent, merged
from morok.prove import smt
from morok.prove.smt import FALSE, TRUE, Expr, Sort
from morok.prove.symbol import Symbol

T = TypeVar("T")


class Unsupported(Exception):
    """This encoding has no translation for something in the rule; another one may have."""


@dataclass(frozen=True, slots=True)
class Term:
    """One lane of a node.

    value     the value, meaningful where `defined` holds and `invalid` does not
    defined   whether the node has a value at all
    invalid   whether the value is Invalid (dtype index only)
    allows    for results that are a set (the bits of a NaN): whether a value belongs to it; None: `value` alone does
    """

    value: Expr
    defined: Expr = TRUE
    invalid: Expr = FALSE
    allows: Callable[[Expr], Expr] | None = None


def is_true(condition: Expr) -> bool:
    """True if it is the constant true itself."""
    return smt.term(condition) is TRUE


def is_false(condition: Expr) -> bool:
    return smt.term(condition) is FALSE


def plain(a: Expr) -> int | None:
    """The Python value of a numeral of integers; None for any other term."""
    return a.data if a.head == "value" and a.sort is smt.IntSort() else None


def truth(value: bool) -> Expr:
    return TRUE if value else FALSE


def both(*conditions: Expr) -> Expr:
    """The conjunction, without the conditions that are plainly true."""
    kept = [c for c in map(smt.term, conditions) if c is not TRUE]
    return TRUE if not kept else kept[0] if len(kept) == 1 else smt.And(*kept)


def either(*conditions: Expr) -> Expr:
    """The disjunction, without the conditions that are plainly false."""
    kept = [c for c in map(smt.term, conditions) if c is not FALSE]
    if any(c is TRUE for c in kept):
        return TRUE
    return FALSE if not kept else kept[0] if len(kept) == 1 else smt.Or(*kept)


def negation(condition: Expr) -> Expr:
    if is_true(condition):
        return FALSE
    return TRUE if is_false(condition) else smt.Not(condition)


def choose(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """`If`, decided at once where the condition is plain."""
    if is_true(condition) or yes is no:
        return yes
    return no if is_false(condition) else smt.If(condition, yes, no)


def strict(value: Expr, *operands: Term, when: Expr = TRUE) -> Term:
    """The result of an op that needs all its operands; `when` is what else it needs of their values, where they have any."""
    invalid = either(*(o.invalid for o in operands))
    return Term(value, both(*(o.defined for o in operands), either(invalid, when)), invalid)


def comparison(value: Expr, *operands: Term) -> Term:
    """The result of an op that is undefined on Invalid operands, and never Invalid itself."""
    return Term(value, both(*(o.defined for o in operands), *(negation(o.invalid) for o in operands)))


class Operators:
    """Arithmetic by the solver's own operators."""

    __slots__ = ()

    def add(self, a: Expr, b: Expr) -> Expr:
        return a + b

    def sub(self, a: Expr, b: Expr) -> Expr:
        return a - b

    def mul(self, a: Expr, b: Expr) -> Expr:
        return a * b

    def neg(self, a: Expr) -> Expr:
        return -a

    def lt(self, a: Expr, b: Expr) -> Expr:
        return a < b

    def le(self, a: Expr, b: Expr) -> Expr:
        return a <= b

    def eq(self, a: Expr, b: Expr) -> Expr:
        return a == b


@dataclass(slots=True)
class World:
    """One encoding of one instance of a rule: what it has assumed and introduced so far.

    name      of the encoding, for the record
    exact     whether a model of the encoding is a counterexample; cleared when a function is left uninterpreted
    axioms    what holds of the variables and functions introduced
    extents   what was tried in place of all that there is, by kind and name: the verdict is then `bounded`
    witnesses, one_division  how divisions are said (integers.py)
    apart     the inexact ops of which results are apart that are computed at different stages
    place     where numbers are computed: "" in the rule itself, where the matcher computes them too, or "contracts", "values"
    stage     when what is said now is computed: by `eval`, of constants, or in general at run time
    inexact   the ops of `apart` that were met
    part      of several encodings that one question is about, which one this is: what they introduce is not the same
    cases     values that cover all that a variable can be under the premises: the question may be asked for each
    amounts   the same of amounts of shifts, where each is to be tried (`shifts`): the question is asked for each combination
    holding   premises so far, each part of a conjunction by its identity
    """

    name: str
    exact: bool = True
    axioms: list[Expr] = field(default_factory=list)
    extents: dict[tuple[str, str], Extent] = field(default_factory=dict)
    witnesses: bool = False
    one_division: bool = False
    cases: dict[int, tuple[Expr, tuple[Expr, ...]]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    place: str = ""
    stage: str = "run"
    inexact: set[str] = field(default_factory=set)
    part: str = ""
    introduced: int = 0
    shifts: bool = False
    amounts: dict[int, tuple[Expr, tuple[Expr, ...]]] = field(default_factory=dict)
    holding: set[int] = field(default_factory=set)

    def hold(self, condition: Expr) -> None:
        """Note a premise."""
        todo = [condition]
        while todo:
            at = todo.pop()
            if at.head == "and":
                todo += at.args
            else:
                self.holding.add(id(at))

    def holds(self, condition: Expr) -> bool:
        """True if each part of a conjunction is a premise; False says nothing."""
        return all(id(c) in self.holding for c in (condition.args if condition.head == "and" else (condition,)))

    def assume(self, *facts: Expr) -> None:
        self.axioms.extend(f for f in facts if not is_true(f))

    def tries(self, extent: Extent) -> None:
        """Note that the question is about these values only."""
        merged(self.extents, extent)

    def symbol(self, stem: str) -> Symbol:
        """A new symbol; they are numbered in the order of construction, so that queries repeat exactly."""
        self.introduced += 1
        return (
            Symbol("fresh", stem, self.introduced, self.part) if self.part else Symbol("fresh", stem, self.introduced)
        )

    def fresh(self, stem: str, sort: Sort) -> Expr:
        """A new constant."""
        return smt.Const(self.symbol(stem), sort)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """The result of the first `make` for this key; of terms the same ones count as equal."""
        parts = tuple(("at", k.number) if isinstance(k, Expr) else k for k in key)
        if parts not in self.known:
            self.known[parts] = (make(), key)
        found: T = self.known[parts][0]
        return found

    def choose(self, condition: Expr, yes: Term, no: Term) -> Term:
        """One of two terms."""
        return Term(
            choose(condition, yes.value, no.value),
            choose(condition, yes.defined, no.defined),
            choose(condition, yes.invalid, no.invalid),
        )

    def invalid(self) -> Term:
        """The index that is none."""
        raise Unsupported(f"Invalid, of which {self.name} say nothing")

    def opaque(self, name: str, result: Sort, *arguments: Expr) -> Expr:
        """An uninterpreted function: equal arguments give equal results, and nothing else is known."""
        self.exact = False
        return smt.Function(Symbol("function", name), *(a.sort for a in arguments), result)(*arguments)

    def approximation(self, op: str, at: str, result: Sort, *arguments: Expr) -> Expr:
        """A value within the tolerance of an inexact op: a function of op, dtype and operands, of which nothing else is known.

        `eval` computes by another program than runs in the end, and what is made of constants may be computed by either. All are
        within the tolerance; that they are the same nothing says, so that they are three functions where the rule keeps an
        application of the op.
        """
        if op not in self.apart:
            return self.opaque(f"{op}.{at}", result, *arguments)
        self.inexact.add(op)
        return self.opaque(f"{op}.{at}.{self.stage}", result, *arguments)
