"""The functions of values that ops are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from morok.prove import smt
from morok.prove.parametric.laws import VALUE
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def type_name(of: Any) -> str:
    """The dtype that a rule writes, or the variable that it is."""
    ty = of.type
    while not hasattr(ty, "name"):
        ty = getattr(ty, "inner", None) or getattr(ty, "element", None)
        if ty is None:
            raise Unsupported("a dtype of no single name")
    return str(ty.name)


def function(r: Reading, op: str, dtypes: Sequence[str], to: str | None = None) -> Applicable:
    """The function of values that an op is, at these dtypes of its operands and, of a conversion, of its result."""
    f = smt.Function(Symbol("op", op, *dtypes, *([] if to is None else ["to", to])), *([VALUE] * len(dtypes)), VALUE)
    if r.rule.dialect.ops[op].commutative and len(set(dtypes)) == 1 and len(dtypes) == 2:
        r.setting.commutative.add(f)
    return f


def result_dtype(r: Reading, op: str, dtypes: Sequence[str]) -> str:
    """The dtype of what an op makes of operands of these."""
    info = r.rule.dialect.ops[op]
    given = dict(zip(info.params, dtypes, strict=True))
    return given.get(info.result, info.result)
