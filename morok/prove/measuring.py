"""Measuring rules `within N ulp`, as proofs ask for it. It runs compiled code: it stands above the compiler, and is handed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from morok import handed

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule
    from morok.prove.verdict import Verdict


class Measuring(Protocol):
    """Verdicts by measurement, and names for what was measured (morok.accuracy.measurement)."""

    def judge(self, rule: CheckedRule) -> Verdict: ...

    def judge_trial(self, rule: CheckedRule, beside: Sequence[CheckedRule]) -> Verdict:
        """The verdict on a rule that stands in no file, beside the rules that its target may be made of."""

    def code_digests(self, rule: CheckedRule) -> list[str]:
        """A name for the code that the rule becomes at each dtype; none where it cannot be measured."""

    def companions(self, rule: CheckedRule) -> tuple[CheckedRule, ...]:
        """The approximations in the rule's own file: what its target is made of in turn."""


def measuring() -> Measuring:
    found: Measuring = handed.part("measuring")
    return found
