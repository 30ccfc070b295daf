"""Helpers that rules of these tests name, and nobody calls: checking reads this text, and imports nothing."""

from __future__ import annotations

from typing import Any

import morok

raise AssertionError("whoever checks a rule file runs none of its helpers")


@morok.helper
def f(x: Any, d: Any = None) -> Any:
    raise NotImplementedError


@morok.helper
def place(x: Any, plan: Any) -> Any:
    raise NotImplementedError


@morok.helper
def split_terms(n: Any, d: int) -> Any:
    raise NotImplementedError
