"""The outcome of a random rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STATES: Final = ("ill-typed", "never", "refuted", "unknown", "inapplicable", "broken", "error", "usable", "false")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a rule.

    state   one of STATES: "never" fired on a graph that has a value, and was not judged; "false" is usable, and changed a value
    fired   on how many graphs with a value
    large   on how many of them with 5 to 64 lanes, or items
    changed whether the two sides were different graphs
    shown   a graph and values, of a rule that is false
    """

    state: str
    fired: int = 0
    large: int = 0
    changed: bool = False
    shown: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """True if it is one of the rules by which the quality of a run is measured."""
        return self.state in ("usable", "false") and self.changed
