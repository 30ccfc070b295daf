"""Helpers that rules of these tests name, and nobody calls: proving reads this text, and imports nothing."""

from __future__ import annotations

from typing import Any

from morok import helper

raise AssertionError("whoever proves a rule file runs none of its helpers")


@helper
def split(n: Any, d: int) -> Any: ...


@helper
def split_with_rest(n: Any, d: int) -> Any: ...


@helper
def factor(n: Any, d: Any) -> Any: ...


@helper
def negative(n: Any) -> Any: ...


@helper
def lower(n: Any) -> Any: ...


@helper
def holds(c: Any) -> Any: ...


@helper
def impossible(n: Any) -> Any: ...


@helper
def contradiction(n: Any, d: int) -> Any: ...


@helper
def half(x: Any) -> Any: ...


@helper
def f(a: int) -> int: ...


@helper
def first(at: Any) -> int: ...


@helper
def size(x: Any) -> int: ...


@helper
def unused(s: Any) -> int: ...


@helper
def accumulator(n: Any, s: Any) -> Any: ...


@helper
def somewhere(n: Any, s: Any) -> Any: ...


@helper
def first_of(n: Any, c: Any) -> Any: ...


@helper
def value_of(n: Any) -> Any: ...


@helper
def condition_of(n: Any, c: Any) -> Any: ...
