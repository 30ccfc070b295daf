"""The value of an op of a dialect: by its evaluator, called as generated code calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from morok.dialect import Dialect, OpInfo
from morok.dsl.values import FAILURES, NoValue

D = TypeVar("D")


def dtypes_given(info: OpInfo, operands: Sequence[D], result: D) -> tuple[D, tuple[D, ...]]:
    """(the dtype that an evaluator is given, those behind its values): the operands', and for a conversion the result's."""
    return (result, (operands[0],)) if info.converts else (operands[info.leading], ())


def evaluated(dialect: Dialect, info: OpInfo, operands: Sequence[Any], result: Any, values: Sequence[Any]) -> Any:
    """The evaluator's value, of operands and a result of these dtypes; NoValue where it says that there is none, as matchers
    understand it.
    """
    assert info.evaluate is not None
    first, behind = dtypes_given(info, operands, result)
    try:
        return info.evaluate(first, *values, *behind)
    except (*FAILURES, getattr(dialect, "undefined", NoValue)):
        raise NoValue from None
