"""Constraints that a constant has a given value."""

from __future__ import annotations

import ast
import math
from typing import Any

from morok.dsl.match.clauses import Clauses, Constraint, Path


def special(made: Clauses, kind: str, path: Path, dtypes: frozenset[str]) -> Constraint:
    """The constraint that the constant at `path` is the "zero", the "one", "true" or "false" of one of these dtypes."""
    code, v = made.code, made.value(path)
    if kind in ("true", "false"):
        return _constraint(made, path, code.compare(v, "is", code.constant(kind == "true")))
    if kind == "one":
        return _constraint(made, path, code.compare(v, "==", code.constant(1)))
    zero = code.compare(v, "==", code.constant(0))
    if dtypes.isdisjoint(made.access.dialect.classes.get("float", ())):
        return _constraint(made, path, zero)
    is_float = code.compare(code.attribute(v, "__class__"), "is", code.name("float"))
    negative = code.unary("not", code.all_of((is_float, _signed(made, v, "<"))))
    return _constraint(made, path, zero, negative)


def equal(made: Clauses, value: int | float | bool, path: Path, dtypes: frozenset[str]) -> Constraint:
    """The constraint that the constant at `path` is this number at its dtype, one of `dtypes`. Zeros differ by their signs, and
    all NaNs are equal.
    """
    if isinstance(value, bool):
        return special(made, "true" if value else "false", path, dtypes)
    return _constraint(made, path, *held(made, value, made.value(path), path, dtypes))


def held(
    made: Clauses, value: int | float | bool, v: ast.expr, path: Path, dtypes: frozenset[str]
) -> tuple[ast.expr, ...]:
    """The conditions that a constant's value `v`, at the dtype of the node at `path`, is the one that this number becomes there:
    signs are those of what is made of the number, which may be zero where the number is not.
    """
    code, dialect = made.code, made.access.dialect
    values = {n: dialect.const_value(dialect.const(dialect.dtypes[n], value)) for n in sorted(dtypes)}
    one, *others = {(h.__class__, repr(h)): h for h in values.values()}.values()
    if not others:
        return _is(made, v, one)
    table = made.table("L", code.dict_of({made.access.dtype(n): code.constant(h) for n, h in values.items()}))
    scalar = made.access.scalar(made.node(path))
    expected = code.call(code.attribute(table, "get"), scalar)
    if all(h == h and h != 0 for h in (one, *others)):
        return (code.compare(v, "==", expected),)
    return (code.call("_same_value", v, expected),)


def _is(made: Clauses, v: ast.expr, known: Any) -> tuple[ast.expr, ...]:
    """The conditions that the value of a constant is a known one of its dtype."""
    code = made.code
    if known != known:
        return (code.compare(v, "!=", v),)
    same = code.compare(v, "==", code.constant(known))
    if known == 0 and isinstance(known, float):
        return same, _signed(made, v, "<" if math.copysign(1.0, known) < 0 else ">")
    return (same,)


def _signed(made: Clauses, v: ast.expr, than: str) -> ast.expr:
    """A test of the sign of a number, zeros included."""
    code = made.code
    return code.compare(code.call("_sign", code.constant(1.0), v), than, code.constant(0))


def _constraint(made: Clauses, path: Path, *conditions: ast.expr) -> Constraint:
    return made.constraint(made.code.all_of(conditions), path, values=(path,), shared=False)
