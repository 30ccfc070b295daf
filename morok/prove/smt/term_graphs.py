"""Terms as graphs: their unknowns, their kinds of sorts, and what is left when arithmetic is forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from morok.prove.smt.build import Const, Function
from morok.prove.smt.simplifier import rebuilt, simplify
from morok.prove.smt.sorts import Kind
from morok.prove.smt.terms import Applicable, Expr
from morok.prove.symbol import Symbol

SHIFTS: Final = frozenset({"bvshl", "bvlshr", "bvashr"})
LOGIC: Final = frozenset({"and", "or", "not", "=>", "=", "ite", "xor", "distinct"})


def constants(conditions: Sequence[Expr]) -> list[Expr]:
    """The unknowns of these conditions, in the order in which they are met."""
    return unknowns(conditions)[0]


def unknowns(conditions: Sequence[Expr]) -> tuple[list[Expr], list[Applicable]]:
    """The unknowns of these conditions and the functions, in the order in which they are met."""
    found: list[Expr] = []
    functions: dict[int, Applicable] = {}
    for at in subterms(conditions):
        if at.head == "const":
            found.append(at)
        elif at.head == "apply":
            functions[id(at.data)] = at.data
    return found, list(functions.values())


def kinds(conditions: Sequence[Expr]) -> set[Kind]:
    """The kinds of the sorts of all terms in these conditions."""
    return {at.sort.kind for at in subterms(conditions)}


def subterms(roots: Sequence[Expr], seen: set[int] | None = None) -> Iterator[Expr]:
    """All terms in these, each once, in the order in which they are met; none that was `seen`, which are noted by their ids."""
    todo = list(reversed(roots))
    seen = set() if seen is None else seen
    while todo:
        at = todo.pop()
        if id(at) not in seen:
            seen.add(id(at))
            yield at
            if at.args:
                todo.extend(reversed(at.args))


def without_arithmetic(conditions: Sequence[Expr]) -> list[Expr] | None:
    """The conditions with every term of floats, bit vectors and numbers that is computed replaced by an unknown.

    Equal terms become equal unknowns, so that what rests on congruence alone is decided without their meaning; every model of
    the conditions is one of the result. Truths, choices and equations stay. None if nothing is computed.
    """
    computed: list[Expr] = []

    def unknown(at: Expr) -> Expr | None:
        if not at.args or at.head in LOGIC:
            return None
        computed.append(at)
        return Const(Symbol("computed", len(computed) - 1), at.sort)

    found = rebuilt(conditions, {}, unknown)
    return found if computed else None


def without_shifts(conditions: Sequence[Expr]) -> list[Expr] | None:
    """The conditions, simplified, with shifts by amounts that are no numerals as some function of the bits and the amount.

    Equal amounts are then enough, however wide the bits are; every model of the conditions is one of the result. None if none are
    so shifted.
    """
    found = [simplify(c) for c in conditions]
    moved = [at for at in subterms(found) if at.head in SHIFTS and at.args[1].head != "value"]
    if not moved:
        return None
    known: dict[int, Expr] = {}
    for at in sorted(moved, key=lambda at: at.number):
        some = Function(Symbol("function", at.head), at.sort, at.sort, at.sort)
        known[id(at)] = some(*rebuilt(at.args, known))
    return rebuilt(found, known)
