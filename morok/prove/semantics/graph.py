"""The solver's terms as graphs, walked and rewritten without a Python object for every node on the way.

Equal terms are one node of the solver, so that an address names a term for as long as some expression holds it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import z3

from morok.prove import smt
from morok.prove.kept import CTX, Address, Expr, address, adopted, bound, operand_of, operands_of, term
from morok.prove.symbol import Symbol

_declaration = bound("get_app_decl", Address)
_kind = bound("get_decl_kind", Address, result=ctypes.c_int)
_substituted = bound("substitute", Address, ctypes.c_uint, Address, Address)
_of_other_operands = bound("update_term", Address, ctypes.c_uint, Address)


def constants(conditions: Sequence[Expr]) -> list[Expr]:
    """The uninterpreted constants of these conditions, in the order in which they are met."""
    return unknowns(conditions)[0]


def unknowns(conditions: Sequence[Expr]) -> tuple[list[Expr], list[Any]]:
    """The uninterpreted constants of these conditions and the functions, in the order in which they are met."""
    found: list[Expr] = []
    functions: dict[int, Any] = {}
    todo, seen = [address(c) for c in reversed(conditions)], set()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        declaration = _declaration(CTX, at)
        if n := operands_of(CTX, at):
            todo.extend([operand_of(CTX, at, i) for i in range(n)])
            if declaration not in functions and _kind(CTX, declaration) == z3.Z3_OP_UNINTERPRETED:
                functions[declaration] = term(at).decl()
        elif _kind(CTX, declaration) == z3.Z3_OP_UNINTERPRETED:
            found.append(term(at))
    return found, list(functions.values())


class Substitution:
    """Values for constants: what conditions become, simplified, where these are what is given."""

    def __init__(self, pairs: Iterable[tuple[Expr, Expr]]) -> None:
        self.pairs = tuple((adopted(old), adopted(new)) for old, new in pairs)  # alive for as long as their addresses are used
        array = Address * len(self.pairs)
        self.old, self.new = (array(*(pair[side].at for pair in self.pairs)) for side in (0, 1))

    def __call__(self, condition: Expr) -> Expr:
        there = _substituted(CTX, address(condition), len(self.pairs), self.old, self.new)
        return smt.simplify(term(there))


def without_arithmetic(conditions: Sequence[Expr], logic: frozenset[int]) -> list[Expr] | None:
    """The conditions with every term of floats, bit vectors and numbers that is computed replaced by an unknown.

    Equal terms become equal unknowns, so that what rests on congruence alone is decided without their meaning; every model of
    the conditions is one of the result. What is built of the ops in `logic` stays. None if nothing is computed.
    """
    done: dict[int, Expr] = {}
    computed = 0
    todo = [address(c) for c in conditions]
    while todo:
        at = todo[-1]
        if at in done:
            todo.pop()
            continue
        n = operands_of(CTX, at)
        if n and _kind(CTX, _declaration(CTX, at)) not in logic:
            done[at] = smt.Const(Symbol("computed", computed), term(at).sort())
            computed += 1
            todo.pop()
            continue
        operands = [operand_of(CTX, at, i) for i in range(n)]
        if waiting := [o for o in operands if o not in done]:
            todo.extend(waiting)
            continue
        todo.pop()
        done[at] = term(_of_other_operands(CTX, at, n, (Address * n)(*(done[o].at for o in operands)))) if n else term(at)
    return [done[address(c)] for c in conditions] if computed else None
