"""The functions of values that ops are."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.encoder_state import kept_ops
from morok.prove.parametric.laws import VALUE
from morok.prove.parametric.polynomials import INT, Integer, integer
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def dtype_named(r: Reading, e: S.EType) -> str:
    """The dtype that an expression writes, or the variable of the rule that it is; a class of dtypes is neither."""
    name = getattr(e.type, "name", None)
    if name in r.rule.domains or any(name in names for names in r.rule.domains.values()) or name in r.fixed:
        return str(name)
    raise Unsupported("a dtype of no single name")


def name_of(part: Any) -> str:
    """The name that a rule gives an operand, or several of them; nothing for what has no name."""
    match part:
        case S.PVar(name=name) | S.PSequence(name=name) | S.EName(name=name) | S.ESpread(sequence=S.EName(name=name)):
            return name
    return ""


def function(r: Reading, op: str, dtypes: Sequence[str], to: str | None = None, stage: str = "run") -> Applicable:
    """The function of values that an op is, at these dtypes of its operands and, of a conversion, of its result.

    `stage`: by which program it is computed, "eval", of "constant" operands, or in general in a "run". Of an op with a tolerance
    these are three functions, of which nothing says that they are one, where the rule keeps an application of the op.
    """
    staged = stage != "run" and r.built_in and op in _inexact() and op in kept_ops(r.rule)
    named = [*dtypes, *([] if to is None else ["to", to]), *(["by", stage] if staged else [])]
    f = smt.Function(Symbol("op" if r.built_in else "foreign", op, *named), *([VALUE] * len(dtypes)), VALUE)
    if r.rule.dialect.ops[op].params and not staged:
        r.setting.elements.ops[f] = op, tuple(dtypes), to
    commutes = r.rule.dialect.ops[op].commutative and len(set(dtypes)) == 1 and len(dtypes) == 2
    if commutes and not tells_which_nan(r, dtypes[0]):
        r.setting.algebra.commutative.add(f)
    if r.built_in and op in ("Neg", "Not"):
        r.setting.algebra.involutions.add(f)
    return f


@functools.cache
def _inexact() -> frozenset[str]:
    """The ops of which any value within a tolerance will do."""
    from morok.ir.ops.transcendental import TOLERANCE  # lazy: another dialect's proofs load none of the IR

    return frozenset(op.name for op in TOLERANCE)


def exact(r: Reading, dtype: str) -> bool:
    """True if the values of a dtype are integers that wrap, or bools."""
    return all(d == "bool" or (d[0] in "iu" and d[1:].isdigit()) for d in r.rule.domains.get(dtype, (dtype,)))


def tells_which_nan(r: Reading, dtype: str) -> bool:
    """True if a rule looks at the bits of floats: any NaN may come of one, and the same from one node alone."""
    return r.built_in and "Bitcast" in ops_of(r.rule) and not (exact(r, dtype) or dtype == "index")


def wraps(r: Reading, dtype: str) -> bool:
    """True if the values of a dtype are integers that wrap."""
    return exact(r, dtype) and "bool" not in r.rule.domains.get(dtype, (dtype,))


def zero_of(dtype: str) -> Expr:
    """The number 0 of a dtype."""
    return smt.Const(Symbol("fixed", "zero", dtype), VALUE)


def one_of(dtype: str) -> Expr:
    """The number 1 of a dtype of integers."""
    return whole_number(integer(1), dtype)


def whole_number(n: Integer, dtype: str) -> Expr:
    """An integer of a dtype that wraps, which holds it."""
    if n.known == 0:
        return zero_of(dtype)
    if n.known is not None:
        return smt.Const(Symbol("fixed", "literal", str(n.known), dtype), VALUE)
    return _integer_as(dtype)(n.term)


def constant_number(t: Expr, dtype: str) -> Integer | None:
    """The integer other than 0 that a constant of a dtype, made by `whole_number`, is; None of any other value."""
    if t.head == "const" and t.data.kind == "fixed" and t.data.parts[0] == "literal" and t.data.parts[-1] == dtype:
        return integer(int(str(t.data.parts[1])))
    if t.head == "apply" and t.data is _integer_as(dtype):
        return integer(t.args[0])
    return None


def _integer_as(dtype: str) -> Applicable:
    """The function from integers to the constants of a dtype."""
    return smt.Function(Symbol("function", "integer", dtype), INT, VALUE)


def ring(r: Reading, dtype: str) -> tuple[Applicable, Expr] | None:
    """The product of a dtype, which distributes over its sum, and the zero of both; None where there is no such."""
    if not wraps(r, dtype):
        return None
    plus, times = (function(r, op, [dtype, dtype]) for op in ("Add", "Mul"))
    nothing = zero_of(dtype)
    r.setting.algebra.rings[times] = r.setting.algebra.sums[plus] = nothing
    return times, nothing


def result_dtype(r: Reading, op: str, dtypes: Sequence[str]) -> str:
    """The dtype of what an op makes of operands of these."""
    info = r.rule.dialect.ops[op]
    given = dict(zip(info.params, dtypes, strict=True))
    return given.get(info.result, info.result)
