"""Helpers that the tests' rules call."""

from __future__ import annotations

from typing import Any

from morok import helper
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst


@helper
def next_number() -> int:
    return 3


@helper
def count_up(context: list[int]) -> int:
    context[0] += 1
    return context[0]


@helper
def half(x: int) -> int | None:
    return x // 2 if x % 2 == 0 else None


@helper
def split(x: UOp, d: int) -> tuple[UOp, UOp]:
    """x == d * q + r."""
    return x.idiv(d), x % d


@helper
def wrong_split(x: UOp, d: int) -> Any:
    return x.idiv(d), x


@helper
def reread(n: UOp, c: UOp) -> UOp | None:
    """The Bitcast `n` of the constant `c` as a constant, right for integers alone."""
    values = c.arg if c.op is Op.VConst else (c.arg,)
    return vconst(n.dtype.scalar(), values)


@helper
def same_again(x: UOp) -> UOp:
    return x


@helper
def broken(v: int) -> int:
    raise RuntimeError("a helper with a bug")


@helper
def half_or_nothing(x: int) -> Any:
    return half(x)


@helper
def but_for_nan(x: UOp, y: UOp) -> UOp:
    """y, and one more where x is NaN."""
    return x.ne(x).where(y + 1, y)


@helper
def by_another_lane(x: UOp) -> UOp:
    """x, which asks for the other lane of two."""
    other = x.gep(1, 0)
    return other.eq(other).where(x, x)
