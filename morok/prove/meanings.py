"""The solver function of an op, whichever way it is spelled.

It may build terms, or expressions of the solver's own Python library, as `examples/foreign.py` does. It is called with terms;
where it cannot take these, with expressions of the library that stand for them, and what it makes is translated.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from morok.dialect import OpInfo
from morok.prove import smt, stand_ins
from morok.prove.semantics.term import Term, Unsupported
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.smt.simplifier import rebuilt
from morok.prove.smt.terms import translating
from morok.prove.symbol import Symbol

Meaning = Callable[..., Term]  # (world, dtype, *lanes) -> lane

asked: Final[set[str]] = set()  # the ops whose meaning the proof at hand has used
_over_library: Final[set[Meaning]] = set()  # functions that do not take terms


def solver_function(info: OpInfo) -> Meaning:
    """The solver semantics that an op's entry names; Unsupported if it names none."""
    module, _, name = info.solver.partition(":")
    if not name:
        raise Unsupported(f"{info.name} has no pointwise solver semantics")
    asked.add(info.name)
    found: Meaning = getattr(importlib.import_module(module), name)
    return found if module.startswith("morok.prove.semantics") else meaning_of(found)


def meaning_of(function: Meaning) -> Meaning:
    """A solver function that takes terms, of one that may be written over expressions of the library."""

    def said(world: Any, dtype: Any, *operands: Any) -> Any:
        if function not in _over_library:
            try:
                return _in_terms(function(world, dtype, *operands))
            except Unsupported:
                raise
            except Exception:  # whatever the library makes of terms; if it is not that, it is raised again here
                found = _of_expressions(function, world, dtype, operands)
                _over_library.add(function)
                return found
        return _of_expressions(function, world, dtype, operands)

    @functools.wraps(function)
    def meaning(world: Any, dtype: Any, *operands: Any) -> Any:
        return stand_ins.asked(world, functools.partial(said, world, dtype), *operands)

    return meaning


def _in_terms(lane: Any) -> Any:
    """A lane in terms; anything else that a function returns is returned."""
    if not isinstance(lane, Term):
        return lane
    return replace(lane, value=smt.term(lane.value), defined=smt.term(lane.defined), invalid=smt.term(lane.invalid))


def _of_expressions(function: Meaning, world: Any, dtype: Any, operands: Sequence[Any]) -> Any:
    """The result of a function of expressions that stand for its operands, with these put in."""
    from morok.prove.smt.z3_expressions import constant, taken, truth  # lazy: loads z3's Python library

    translating(taken)
    stands: dict[int, Expr] = {}

    def standing(operand: Expr) -> Any:
        if operand is TRUE or operand is FALSE:
            return truth(operand is TRUE)
        name = f"operand {operand.number}"
        stands[id(smt.Const(Symbol("library", name), operand.sort))] = operand
        return constant(name, operand.sort)

    def given(o: Any) -> Any:
        if not isinstance(o, Term):
            return o
        return replace(o, value=standing(o.value), defined=standing(o.defined), invalid=standing(o.invalid))

    before = len(world.axioms)
    lane = _in_terms(function(world, dtype, *map(given, operands)))
    world.axioms[before:] = rebuilt([smt.term(a) for a in world.axioms[before:]], stands)
    if not isinstance(lane, Term):
        return lane
    value, defined, invalid = rebuilt([lane.value, lane.defined, lane.invalid], stands)
    return replace(lane, value=value, defined=defined, invalid=invalid)
