"""Helpers that the tests' rules call."""

from __future__ import annotations

from typing import Any

from morok.ir.uop import UOp


def next_number() -> int:
    return 3


def count_up(context: list[int]) -> int:
    context[0] += 1
    return context[0]


def half(x: int) -> int | None:
    return x // 2 if x % 2 == 0 else None


def split(x: UOp, d: int) -> tuple[UOp, UOp]:
    """x == d * q + r."""
    return x.idiv(d), x % d


def wrong_split(x: UOp, d: int) -> Any:
    return x.idiv(d), x


def broken(v: int) -> int:
    raise RuntimeError("a helper with a bug")
