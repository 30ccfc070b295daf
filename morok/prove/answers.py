"""Answers of the solver."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_BUDGET: Final = 3_000_000  # solver resource units an obligation: about one second


class Answer(enum.Enum):
    UNSAT = "unsat"
    SAT = "sat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Result:
    """The solver's answer.

    resources   its count of its own work, which does not depend on the machine
    model       for SAT
    timed_out   the wall limit, not the budget, ended it
    """

    answer: Answer
    resources: int = 0
    model: Any = None
    timed_out: bool = False
