"""The findings about a rule so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from morok.dsl.extent import Extent, merged
from morok.prove.answers import Answer
from morok.prove.counterexample import Counterexample
from morok.prove.precondition_models import Witnesses
from morok.prove.solve import Answers, ask, obligation


@dataclass(slots=True)
class Progress:
    """The findings about a rule so far.

    everywhere   the things of which the proof holds for any number
    first_search no graph was searched yet that the rule is false on
    """

    budget: int
    keep: bool
    covered: dict[str, list[str]] = field(default_factory=dict)
    extents: dict[tuple[str, str], Extent] = field(default_factory=dict)
    everywhere: tuple[str, ...] = ()
    excluded: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refuted: Counterexample | None = None
    refusal: str = ""
    resources: int = 0
    obligations: list[tuple[str, str]] = field(default_factory=list)
    final: bool = True
    laws: set[str] = field(default_factory=set)
    favourites: list[Any] = field(default_factory=list)
    answers: Answers = field(default_factory=dict)
    witnesses: Witnesses = field(default_factory=Witnesses)
    first_search: bool = True

    def tried(self, world: Any) -> None:
        """Note the sizes at which something was shown of the rule: that it holds, or that it does not apply."""
        for extent in world.extents.values():
            merged(self.extents, extent)

    def ask(self, name: str, conditions: list[Any], share: float, model: bool = True) -> Any:
        if self.unknown:  # the verdict can still become `refuted`, but no longer a proof: little more is spent on it
            share = min(share, 0.1)
        result = ask(conditions, max(1, int(self.budget * share)), self.answers, model)
        self.resources += result.resources
        if result.timed_out:
            self.final = False
        if self.keep and result.answer is Answer.UNSAT:
            self.obligations.append((name, obligation(conditions)))
        return result
