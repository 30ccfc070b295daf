"""What the tests of this folder share."""

from __future__ import annotations

from morok.dsl.check import check_text
from morok.marks import trust
from morok.rewrite.ruleset import RuleSet

trust("rewrite_helpers")


def rules(text: str, head: str = "") -> RuleSet:
    """A rule set of rules in text, unproved: the tests are about matching, not about truth."""
    checked = check_text(f'{head}\ngroup t "test"\n\n{text}\n')
    return RuleSet.of([r for g in checked.groups for r in g.rules], unproved=True)
