"""Counterexamples: values at which a rule is false, as data and as text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

UNDEFINED = "undefined"
INVALID = "Invalid"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Values at which the rule is false.

    confirmed   evaluating both sides on them, without the solver, showed the difference too
    """

    dtype: str
    bindings: dict[str, Any]
    lhs: Any
    rhs: Any
    confirmed: bool

    def json(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype,
            "bindings": {k: plain(v) for k, v in self.bindings.items()},
            "lhs": plain(self.lhs),
            "rhs": plain(self.rhs),
            "confirmed": self.confirmed,
        }

    def text(self) -> str:
        at = ", ".join(f"{k} = {show(v)}" for k, v in self.bindings.items())
        sure = "" if self.confirmed else " (not confirmed by evaluation)"
        return f"at {self.dtype}, {at}: the pattern is {show(self.lhs)}, the target {show(self.rhs)}{sure}"


def plain(v: Any) -> Any:
    """A value that JSON can say: null for one that is not known, and as text all that is no finite number, truth or sequence of
    such, and -0.0.
    """
    if isinstance(v, (list, tuple)):
        return [plain(i) for i in v]
    number = isinstance(v, int) or (isinstance(v, float) and math.isfinite(v) and (v != 0 or math.copysign(1.0, v) > 0))
    return v if number or v is None else show(v)


def said(v: Any) -> Any:
    """The result of evaluation, None in it said in words: there is no value."""
    return UNDEFINED if v is None else type(v)(map(said, v)) if type(v) in (list, tuple) else v


def show(v: Any) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    return f"[{', '.join(show(i) for i in v)}]" if isinstance(v, (list, tuple)) else str(v)
