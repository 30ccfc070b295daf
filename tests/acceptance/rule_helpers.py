"""Helpers that rules of these tests call."""

from __future__ import annotations

from morok import helper


@helper
def half(v: int) -> int | None:
    return v // 2 if v % 2 == 0 else None


@helper
def count_up(context: list[int]) -> int:
    context[0] += 1
    return context[0]
