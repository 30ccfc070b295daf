"""What is asked of one rule many times while it is proved, and answered once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeVar

from morok.dsl.checked import CheckedRule

T = TypeVar("T")
KEPT: Final = 8


def once_a_rule(ask: Callable[[CheckedRule], T]) -> Callable[[CheckedRule], T]:
    """A function of a rule that remembers what it said of the last few. A rule does not change."""
    answered: dict[int, tuple[CheckedRule, T]] = {}  # with the rule, so that nothing else is where it is

    @functools.wraps(ask)
    def asked(rule: CheckedRule) -> T:
        found = answered.get(id(rule))
        if found is None:
            if len(answered) == KEPT:
                del answered[next(iter(answered))]
            found = answered[id(rule)] = (rule, ask(rule))
        return found[1]

    return asked
