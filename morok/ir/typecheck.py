"""Type checks of nodes: the number of operands, and the dtype of the result. Errors name the caller's line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from morok.caller import caller
from morok.errors import IRTypeError
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.op import Op, OpDef
from morok.ir.ops import TABLE
from morok.ir.shape import AXES, one_shape, shape_of, shown_shape

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_BOOL: Final = dtypes.bool
_WHERE: Final = Op.Where
_DEFS: Final = TABLE.entries
# The fewest and the most operands of an op.
ARITY: Final = {
    op: (
        sum(1 for o in e.operands if not (o.many or o.optional)),
        sys.maxsize if any(o.many for o in e.operands) else len(e.operands),
    )
    for op, e in _DEFS.items()
}
PARAMS: Final = {op: len(e.signature.params) for op, e in _DEFS.items() if e.signature is not None}
_DOMAINS: Final = {op: frozenset(e.signature.domains["T"]) for op, e in _DEFS.items() if e.signature is not None}


def wrong_arity(entry: OpDef, src: tuple[UOp, ...]) -> Any:
    takes = ", ".join(o.name + (".." if o.many else "?" if o.optional else "") for o in entry.operands)
    whole = ", ".join([takes, *entry.fields] if takes else entry.fields)
    raise IRTypeError(
        f"{entry.name} takes ({takes}), not {len(src)} operands", place=caller(), expected=f"{entry.name}({whole})"
    )


def pointwise_type(entry: OpDef, src: tuple[UOp, ...]) -> DType:
    """The result's dtype of a pointwise op, all its operands of one lane count; a scalar condition governs all lanes."""
    op = entry.op
    if op is _WHERE:
        if len(src) != 3:
            wrong_arity(entry, src)
        c, t, f = src
        if c.dtype.scalar() is not _BOOL or c.dtype.count not in (1, t.dtype.count):
            _mistyped(entry, src, "a bool condition, scalar or with the lanes of the branches")
        if t.dtype is not f.dtype:
            _mistyped(entry, src, "branches of one dtype")
        if t.dtype.is_ptr or t.dtype.kind == "void":
            _mistyped(entry, src, "branches that are values")
        if AXES in c.memo or AXES in t.memo:  # else at most one of them has axes
            check_shapes(entry, src)
        return t.dtype
    if len(src) != PARAMS[op]:
        wrong_arity(entry, src)
    d = src[0].dtype
    for s in src:
        if s.dtype is not d:
            _mistyped(entry, src, "operands of one dtype")
    if d.scalar() not in _DOMAINS[op]:
        _mistyped(entry, src, "one of " + ", ".join(t.name for t in BY_NAME.values() if t in _DOMAINS[op]))
    if len(src) > 1 and (AXES in src[0].memo or AXES in src[1].memo):  # else at most one of them has axes
        check_shapes(entry, src)
    if entry.comparison:
        return _BOOL if d.count == 1 else _BOOL.vec(d.count)
    return d


def check_shapes(entry: OpDef, src: tuple[UOp, ...]) -> None:
    """IRTypeError unless all operands that have axes have the same."""
    if not one_shape(src):
        shapes = ", ".join(shown_shape(shape_of(s)) for s in src)
        raise IRTypeError(
            f"{entry.name} of shapes {shapes}",
            place=caller(),
            expected="operands of one shape, and numbers",
            hint="Expand repeats a tensor along axes of size 1, Reshape adds these",
        )


def check_nodes(entry: OpDef, src: Iterable[Any]) -> None:
    """IRTypeError unless these are a tuple of nodes."""
    if not isinstance(src, tuple):
        raise IRTypeError(
            f"operands of {entry.name} in a {type(src).__name__}", place=caller(), expected="a tuple of nodes"
        )
    for s in src:
        if not isinstance(getattr(s, "src", None), tuple) or not hasattr(s, "serial"):
            hint = (
                "its graph is in its `uop`" if hasattr(s, "uop") else "UOp.const(value, dtype) makes a node of a number"
            )
            raise IRTypeError(
                f"{entry.name} of {type(s).__name__}", place=caller(), expected="nodes as operands", hint=hint
            )


def _mistyped(entry: OpDef, src: tuple[UOp, ...], expected: str) -> None:
    got = ", ".join(s.dtype.name for s in src)
    raise IRTypeError(
        f"{entry.name}({got})", place=caller(), expected=expected, hint="Cast converts a value to another dtype"
    )
