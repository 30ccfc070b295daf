"""Constraints that a constant has a given value."""

from __future__ import annotations

import ast

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
    code, v = made.code, made.value(path)
    dialect = made.access.dialect
    if isinstance(value, bool):
        return special(made, "true" if value else "false", path, dtypes)
    if value != value:
        return _constraint(made, path, code.compare(v, "!=", v))
    if value == 0 and isinstance(value, float):
        is_zero = code.compare(v, "==", code.constant(0.0))
        return _constraint(made, path, is_zero, _signed(made, v, "<" if repr(value).startswith("-") else ">"))
    values = {n: dialect.const_value(dialect.const(dialect.dtypes[n], value)) for n in sorted(dtypes)}
    distinct = set(values.values())
    if len(distinct) == 1:
        return _constraint(made, path, code.compare(v, "==", code.constant(distinct.pop())))
    table = made.table("L", code.dict_of({made.access.dtype(n): code.constant(x) for n, x in values.items()}))
    scalar = made.access.scalar(made.node(path))
    return _constraint(made, path, code.compare(v, "==", code.call(code.attribute(table, "get"), scalar)))


def _signed(made: Clauses, v: ast.expr, than: str) -> ast.expr:
    """A test of the sign of a number, zeros included."""
    code = made.code
    return code.compare(code.call("_sign", code.constant(1.0), v), than, code.constant(0))


def _constraint(made: Clauses, path: Path, *conditions: ast.expr) -> Constraint:
    return made.constraint(made.code.all_of(conditions), path, values=(path,), shared=False)


__all__ = ["equal", "special"]
