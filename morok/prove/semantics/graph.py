"""The solver's terms as graphs, walked and rewritten without a Python object for every node on the way.

Equal terms are one node of the solver, so that an address names a term for as long as some expression holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import z3
from z3 import z3core

from morok.prove.semantics.term import Expr


def constants(conditions: Sequence[Expr]) -> list[Expr]:
    """The uninterpreted constants of these conditions, in the order in which they are met."""
    return unknowns(conditions)[0]


def unknowns(conditions: Sequence[Expr]) -> tuple[list[Expr], list[Any]]:
    """The uninterpreted constants of these conditions and the functions, in the order in which they are met."""
    context = z3.main_ctx()
    ctx = context.ref()
    found: list[Expr] = []
    functions: dict[int, Any] = {}
    todo, seen = [c.as_ast() for c in reversed(conditions)], set()
    while todo:
        at = todo.pop()
        if at.value in seen:
            continue
        seen.add(at.value)
        if n := z3core.Z3_get_app_num_args(ctx, at):
            todo.extend([z3core.Z3_get_app_arg(ctx, at, i) for i in range(n)])
            decl = z3core.Z3_get_app_decl(ctx, at)
            if decl.value not in functions and z3core.Z3_get_decl_kind(ctx, decl) == z3.Z3_OP_UNINTERPRETED:
                functions[decl.value] = z3.FuncDeclRef(decl, context)
        elif z3core.Z3_get_decl_kind(ctx, z3core.Z3_get_app_decl(ctx, at)) == z3.Z3_OP_UNINTERPRETED:
            found.append(z3.ExprRef(at, context))
    return found, list(functions.values())


class Substitution:
    """Values for constants: what conditions become, simplified, where these are what is given."""

    def __init__(self, pairs: Iterable[tuple[Expr, Expr]]) -> None:
        self.pairs = tuple(pairs)  # alive for as long as their addresses are used
        n = len(self.pairs)
        self.old, self.new = (z3.Ast * n)(), (z3.Ast * n)()
        for i, (old, new) in enumerate(self.pairs):
            self.old[i], self.new[i] = old.as_ast(), new.as_ast()

    def __call__(self, condition: Expr) -> Expr:
        context = z3.main_ctx()
        ctx = context.ref()
        there = z3.ExprRef(z3core.Z3_substitute(ctx, condition.as_ast(), len(self.pairs), self.old, self.new), context)
        return z3.BoolRef(z3core.Z3_simplify(ctx, there.as_ast()), context)


def without_arithmetic(conditions: Sequence[Expr], logic: frozenset[int]) -> list[Expr] | None:
    """The conditions with every term of floats, bit vectors and numbers that is computed replaced by an unknown.

    Equal terms become equal unknowns, so that what rests on congruence alone is decided without their meaning; every model of
    the conditions is one of the result. What is built of the ops in `logic` stays. None if nothing is computed.
    """
    context = z3.main_ctx()
    ctx = context.ref()
    done: dict[Any, Expr] = {}
    computed = 0
    todo = [c.as_ast() for c in conditions]
    while todo:
        at = todo[-1]
        if at.value in done:
            todo.pop()
            continue
        n = z3core.Z3_get_app_num_args(ctx, at)
        if n and z3core.Z3_get_decl_kind(ctx, z3core.Z3_get_app_decl(ctx, at)) not in logic:
            there = z3.ExprRef(at, context)
            done[at.value] = z3.Const(f"computed!{computed}", there.sort())
            computed += 1
            todo.pop()
            continue
        operands = [z3core.Z3_get_app_arg(ctx, at, i) for i in range(n)]
        if waiting := [o for o in operands if o.value not in done]:
            todo.extend(waiting)
            continue
        todo.pop()
        if n:
            new = (z3.Ast * n)(*(done[o.value].as_ast() for o in operands))
            done[at.value] = z3.BoolRef(z3core.Z3_update_term(ctx, at, n, new), context)
        else:
            done[at.value] = z3.ExprRef(at, context)
    return [done[c.as_ast().value] for c in conditions] if computed else None
