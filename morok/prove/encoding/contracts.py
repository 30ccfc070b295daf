"""Conditions of contracts where what helpers are given and return is chosen, and nothing is known of the values of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.concrete import compiled
from morok.dsl.values import FAILURES, OutOfBudget, Steps
from morok.prove.asked_of_rules import once_a_tree
from morok.prove.encoding.obligation import OutOfSteps
from morok.prove.encoding.unrolled import Vector
from morok.prove.semantics.term import Unsupported


def holds(e: S.Expr, names: Mapping[str, Any]) -> bool:
    """True if a condition has a value, and it is true."""
    try:
        return bool(value(e, names))
    except OutOfBudget:
        raise OutOfSteps("a contract beyond the budget of steps") from None
    except (*FAILURES, TypeError):  # a sequence where a number is meant, or the reverse
        return False


def value(e: S.Expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression. Unsupported where it hangs on more of a node than how many lanes it has: a helper may then
    return what no choice here is.
    """
    measured, asked = _names(e)
    known: dict[str, Any] = {}
    for name in (measured | asked) & names.keys():
        found = names[name]
        if _is_known(found):
            known[name] = found
        elif name in asked or not isinstance(found, (Vector, tuple, list)):
            raise Unsupported(f"a contract that asks what {name} is")
        else:
            known[name] = range(found.count if isinstance(found, Vector) else len(found))
    try:
        return compiled(e)(known, Steps())
    except AssertionError as unknown:
        raise Unsupported(f"{unknown} in a contract") from None


@once_a_tree
def _names(e: S.Syntax) -> tuple[frozenset[str], frozenset[str]]:
    """The names whose lengths a condition asks for, and those of which it asks anything else."""
    measured, asked = set[str](), set[str]()
    todo = [e]
    while todo:
        match todo.pop():
            case S.ECall(name="len", args=(S.EName(name=name),)):
                measured.add(name)
            case S.EName(name=name):
                asked.add(name)
            case at:
                todo += S.children(at)
    return frozenset(measured), frozenset(asked)


def _is_known(value: Any) -> bool:
    """True of numbers, and of sequences of such."""
    return isinstance(value, (int, float)) or (isinstance(value, (tuple, list, range)) and all(map(_is_known, value)))
