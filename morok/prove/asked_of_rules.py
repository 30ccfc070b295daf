"""What is asked of one rule many times while it is proved, and answered once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from morok.dsl.checked import CheckedRule

T = TypeVar("T")


class _Same:
    """A rule as a key: this one, and no other that is like it."""

    __slots__ = ("rule",)

    def __init__(self, rule: CheckedRule) -> None:
        self.rule = rule

    def __hash__(self) -> int:
        return id(self.rule)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.rule is other.rule


def once_a_rule(ask: Callable[[CheckedRule], T]) -> Callable[[CheckedRule], T]:
    """A function of a rule that remembers what it said of the last few. A rule does not change."""

    @functools.lru_cache(maxsize=8)
    def answered(same: _Same) -> T:
        return ask(same.rule)

    @functools.wraps(ask)
    def asked(rule: CheckedRule) -> T:
        return answered(_Same(rule))

    return asked
