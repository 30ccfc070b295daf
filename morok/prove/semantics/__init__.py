"""Solver semantics of every op (`OpDef.solver` names them), and the theory of Morok's dialect."""

from __future__ import annotations

from typing import Any

from morok.prove.semantics.ops import (
    abs,
    add,
    and_,
    bitcast,
    cast,
    ceil,
    cos,
    eq,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    floordiv,
    floormod,
    ge,
    gt,
    idiv,
    le,
    log,
    log2,
    lt,
    max,
    min,
    mod,
    mul,
    mulacc,
    ne,
    neg,
    not_,
    or_,
    pow,
    reciprocal,
    round,
    rsqrt,
    shl,
    shr,
    sign,
    sin,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    threefry,
    trunc,
    where,
    xor,
)


def __getattr__(name: str) -> Any:
    """Morok's theory knows Morok's dtypes; another dialect's proofs do not load them."""
    if name in ("MorokTheory", "MorokWorld"):
        from morok.prove.semantics import theory

        return getattr(theory, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
