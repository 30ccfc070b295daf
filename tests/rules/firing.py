"""Rules fired on random graphs that their patterns match, at every dtype that they admit, the interpreter comparing.

What is proved is a rule's tree; what runs is the matcher compiled from it. Here the latter meets graphs, and the value of what it
makes is compared with the value of what it took.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from morok import config
from morok.dsl.checked import CheckedRule, Instance
from morok.prove.obligations import label
from morok.prove.trust import differential
from morok.prove.trust.graphs import Unmakeable

ENOUGH = 5  # graphs at a dtype on which a rule fired


@dataclass(slots=True)
class Fired:
    """The firings of one rule.

    times      how often it fired on a graph that has a value
    missing    dtype variables and dtypes at which it did not ("x: i8"); the whole rule is "never"
    different  a graph and values at which it changed the value
    """

    rule: str
    times: int = 0
    missing: list[str] = field(default_factory=list)
    different: str | None = None


def wanted(rule: CheckedRule, instances: Sequence[Instance]) -> list[tuple[str, str]]:
    """Every dtype of every dtype variable, in these instances."""
    return [(v, d) for v in rule.domains for d in rule.domains[v] if any(i.dtypes.get(v) == d for i in instances)]


def fire(rule: CheckedRule, tries: int, more: int, excluded: Set[str] = frozenset()) -> Fired:
    """Fire a rule at each of its dtypes: up to `tries` graphs for each, then up to `more` where that was not enough.

    excluded  the instances, as the ledger labels them, at which the proof found that the guards never hold
    """
    out = Fired(rule.name)
    instances = tuple(i for i in rule.instances if label(rule, i) not in excluded)
    left = dict.fromkeys(wanted(rule, instances))
    with config.settings(fast_math=frozenset(rule.syntax.assuming)):
        apply = differential.Rewriter(rule)
        for most in (tries, more):
            pairs: list[tuple[str, str] | None] = [*left] or [None]
            for pair in pairs:
                if (pair is None and out.times) or (pair is not None and pair not in left):
                    continue  # reached on the way to another
                at = tuple(i for i in instances if pair is None or i.dtypes.get(pair[0]) == pair[1])
                _fire_at(rule, apply, at, most, left, out)
                if out.different is not None:
                    return out
    out.missing = [f"{v}: {d}" for v, d in left] if out.times else ["never"]
    return out


def _fire_at(
    rule: CheckedRule,
    apply: differential.Rewriter,
    instances: tuple[Instance, ...],
    tries: int,
    left: dict[tuple[str, str], None],
    out: Fired,
) -> None:
    """Graphs at these instances until a few with a value fired."""
    times = 0
    try:
        for before, rng, instance in differential.graphs_at(rule, tries, instances):
            after = apply(before)
            if after is None or not differential.Trial(before, rng).has_value():
                continue
            close = bool(rule.syntax.assuming) or rule.syntax.within is not None
            different = differential.Trial(before, rng).differs(after, close)
            out.different = None if different is None else str(different)
            out.times += 1
            for pair in instance.dtypes.items():
                left.pop(pair, None)
            times += 1
            if out.different is not None or times == ENOUGH:
                return
    except Unmakeable:
        return
