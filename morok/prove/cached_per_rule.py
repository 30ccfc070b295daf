"""Answers about one rule, or its syntax, that are asked for many times while it is proved, and found once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule

K = TypeVar("K")
T = TypeVar("T")


def once_a_rule(ask: Callable[[CheckedRule], T]) -> Callable[[CheckedRule], T]:
    """A function of a rule that remembers what it said of the last few. A rule does not change."""
    return _once(ask, 8)


def once_a_tree(ask: Callable[[S.Syntax], T]) -> Callable[[S.Syntax], T]:
    """The same of a syntax tree: of the parts of a few rules."""
    return _once(ask, 128)


def _once(ask: Callable[[K], T], kept: int) -> Callable[[K], T]:
    answered: dict[int, tuple[K, T]] = {}  # with what was asked about, so that nothing else comes to be where it is

    @functools.wraps(ask)
    def asked(of: K) -> T:
        found = answered.get(id(of))
        if found is None:
            for oldest in [*answered][: max(0, len(answered) + 1 - kept)]:
                answered.pop(oldest, None)  # another thread may have been here first
            found = answered[id(of)] = (of, ask(of))
        return found[1]

    return asked
