"""Calls of others' code about terms: it is given unknowns that stand for them, and the terms are put into its result.

So its result holds of values: the code cannot see how a term is written, nor say something else of one that no trial has met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from morok.prove import smt
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.simplifier import rebuilt
from morok.prove.symbol import Symbol

_OURS: Final = "morok.prove.semantics"


def asked(world: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function, asked of unknowns in place of the terms that it is given, if it is one of others'."""
    if _is_ours(function):
        return function(*arguments)
    try:
        return _StandIns(world, numerals=False).result(function, arguments)
    except Unsupported:  # as of a shift by what is no number
        return _StandIns(world, numerals=True).result(function, arguments)


def _is_ours(function: Any) -> bool:
    """True for code of the prover, by where it was defined: `__module__` is what a wrapper says of itself."""
    scope = getattr(getattr(function, "__func__", function), "__globals__", {})
    return str(scope.get("__name__", "")).rpartition(".")[0] == _OURS


class _StandIns:
    """The unknowns of one question. Of equal terms they are the same in all questions about a world.

    numerals  True if numbers that are known stay what they are
    """

    def __init__(self, world: Any, numerals: bool) -> None:
        self.world = world
        self.numerals = numerals
        self.known: dict[int, Expr] = {}
        self.kept: list[Expr] = []  # so that no other term gets the identity of an unknown

    def result(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        axioms = self.world.axioms
        before = len(axioms)
        found = function(*map(self.given, arguments))
        axioms[before:] = map(self.put_in, axioms[before:])
        return self.resolved(found)

    def given(self, a: Any) -> Any:
        """An argument with unknowns for its terms."""
        match a:
            case Expr():
                return self.unknown(a)
            case Term():
                allows = a.allows
                within = None if allows is None else lambda v: self.unknown(allows(self.put_in(v)))
                return Term(self.unknown(a.value), self.unknown(a.defined), self.unknown(a.invalid), within)
            case Num():
                return _number(a, self.unknown)
        return a

    def unknown(self, of: Any) -> Expr:
        e: Expr = smt.term(of)
        if self.numerals and e.head == "value":
            return e
        symbol: Symbol = self.world.once(("stands for", e), lambda: self.world.symbol("stands for"))
        made = smt.Const(symbol, e.sort)
        self.known[id(made)] = e
        self.kept.append(made)
        return made

    def put_in(self, e: Any) -> Expr:
        return rebuilt([smt.term(e)], self.known)[0]

    def resolved(self, found: Any) -> Any:
        """A result with the terms put in."""
        match found:
            case tuple():
                return tuple(map(self.resolved, found))
            case Term():
                allows = found.allows
                within = None if allows is None else lambda v: self.put_in(allows(self.unknown(v)))
                return Term(self.plain(found.value), self.plain(found.defined), self.plain(found.invalid), within)
            case Num():
                return _number(found, self.plain)
            case bool() | Expr():
                return self.plain(found)
        return found

    def plain(self, e: Any) -> Expr:
        return smt.simplify(self.put_in(e))


def _number(n: Num, part: Callable[[Any], Expr]) -> Num:
    return Num(part(n.value), part(n.exists), part(n.minus_infinity), part(n.plus_infinity), n.bits)
