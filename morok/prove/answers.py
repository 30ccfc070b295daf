"""Answers of the solver, and the questions that they are to: one that differs in names alone is the same question.

A rule often asks the same about its second operand as about its first, or at one dtype as at another. The solver is asked about
unknowns without names, so that an answer, and what it costs, does not depend on which of the two came first.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_BUDGET: Final = 3_000_000  # solver resource units an obligation: about one second
DECLARED: Final = re.compile(r"\(declare-fun (\|[^|]*\||[^\s()|]+) \(\) ")
SYMBOL: Final = re.compile(r"\|[^|]*\||[^\s()|]+")


class Answer(enum.Enum):
    UNSAT = "unsat"
    SAT = "sat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Result:
    """What the solver said.

    resources   its count of its own work, which does not depend on the machine
    model       for SAT
    timed_out   the wall limit, not the budget, ended it
    """

    answer: Answer
    resources: int = 0
    model: Any = None
    timed_out: bool = False


Names = Mapping[str, str]


def unnamed(question: str) -> tuple[str, Names]:
    """The question with its unknowns numbered in the order in which it declares them, and which number each has got.

    The solver writes them in an order that rests on the conditions' form and on no name. Nothing else is called `%0`, so that
    nothing else is meant by it.
    """
    names = {symbol: f"%{i}" for i, symbol in enumerate(dict.fromkeys(DECLARED.findall(question)))}
    text = SYMBOL.sub(lambda found: names.get(found[0], found[0]), question)
    return text, {symbol.strip("|"): number for symbol, number in names.items()}
