"""Limits of time on proofs: what they end is `unknown`, and never recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from typing import Final

WALL_LIMIT: Final = 900.0  # seconds a rule: a safety net far beyond what the budget allows


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for a rule; and the moment (of the monotonic clock) at which all of them end, so many seconds after the start."""

    rule: float = WALL_LIMIT
    end: float = inf
    all: float = inf

    @staticmethod
    def of(rule: float | None, every: float | None) -> Limits:
        return Limits(rule or WALL_LIMIT, inf if every is None else time.monotonic() + every, every or inf)

    def reached(self, since: float) -> str:
        """The reason that work which began at `since` ends now; "" while it may go on."""
        return self.over() or (f"no answer within {self.rule:g} s" if time.monotonic() - since >= self.rule else "")

    def over(self) -> str:
        """The reason that no more work begins; "" while it may."""
        over = time.monotonic() >= self.end
        return f"no answer when the time of all rules was over, {self.all:g} s (--time-limit)" if over else ""


UNLIMITED: Final = Limits()
