"""Random rules about tensors of any rank: what holds of views, and what nearly does.

Where a template has `this|that|another`, the first makes it true, each of the others perhaps not: of some it is true at some
ranks, or of axes of no element or of one. M is a function of the place i in a list of length L, which may be wrong in long lists
alone.
"""

from __future__ import annotations

import random
import re
from typing import Final

from morok.prove.attack.guards import holding
from morok.prove.attack.random_terms import DOMAINS
from morok.prove.attack.rule_templates import templates
from morok.prove.attack.themes import parts, place

WRONG: Final = 0.45  # the share of rules in which something else than the first is chosen


def tensors(rng: random.Random) -> str:
    """A rule about tensors, with a guard that always holds now and then."""
    domain, _, text = rng.choice(templates()["tensors"]).partition(": ")
    text, _, length = text.partition(" where L = ")
    choices = len(re.findall("`[^`]*`", text))
    wrong = rng.randrange(choices) if choices and rng.random() < WRONG else None
    seen = 0

    def chosen(found: re.Match[str]) -> str:
        nonlocal seen
        first, *others = found[1].split("|")
        seen += 1
        return rng.choice(others) if seen - 1 == wrong and others else first

    text = re.sub("`([^`]*)`", chosen, text)
    text = re.sub(r"\bL\b", length, re.sub(r"\bM\b", place(rng, length), text))
    text = re.sub(r"\bD\b", rng.choice(DOMAINS[domain]), text)
    if rng.random() < 0.75:
        return text
    pattern, rest = parts(text)
    return f"{pattern} {holding(rng)} {rest}"
