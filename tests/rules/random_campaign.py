"""Random index expressions, half of them products of sums, simplified by every symbolic tier: how many did not end, or end wrong.

    python tests/rules/random_campaign.py first count

Seed by seed, the depth and the tier go round. What is simplified is simplified again, which must change nothing, and has the
value of what was given at random points, where that has one. Each failure is a line of its own, the last line counts:
{"first": .., "count": .., "points": .., "limit": .., "unstable": .., "wrong": .., "undefined": ..}, of which `undefined` are
expressions without a value at any of the points tried.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Final

from expressions import leaves, value
from random_expressions import random_expression

import morok
from morok.errors import RewriteLimitError
from morok.ir.uop import UOp
from morok.rewrite.library import tier
from morok.rewrite.tiers import TIERS

DEPTHS: Final = (3, 2, 4, 3, 5)
POINTS: Final = 4
FAR: Final = (10, 1000, 10**12)  # how far from 0 a variable without bounds is tried


def point(rng: random.Random, variables: list[UOp]) -> dict[UOp, int]:
    """Values for variables and ranges, half of them on the bounds."""
    found: dict[UOp, int] = {}
    for v in variables:
        far = rng.choice(FAR)
        low, high = int(max(v.vmin, -far)), int(min(v.vmax, far))
        found[v] = rng.choice((low, high)) if rng.random() < 0.5 else rng.randint(low, high)
    return found


def campaign(first: int, count: int) -> dict[str, int]:
    sets = [tier(name) for name in TIERS]
    totals = dict.fromkeys(("points", "limit", "unstable", "wrong", "undefined"), 0)
    for seed in range(first, first + count):
        rules = sets[seed // 2 % len(sets)]
        before = random_expression(seed, DEPTHS[seed // 2 % len(DEPTHS)])
        try:
            after = morok.rewrite(before, rules)
            stable = morok.rewrite(after, rules) is after
        except RewriteLimitError as error:
            totals["limit"] += 1
            print(f"seed {seed}: {before.text()}: {error}", flush=True)
            continue
        if not stable:
            totals["unstable"] += 1
            print(f"seed {seed}: {before.text()} becomes {after.text()}, which changes again", flush=True)
        rng = random.Random(-seed - 1)
        variables, defined = leaves((before,)), 0
        for _ in range(POINTS):
            at = point(rng, variables)
            wanted = value(before, at)
            if wanted is None:
                continue
            defined += 1
            if value(after, at) != wanted:
                totals["wrong"] += 1
                where = {v.text(): n for v, n in at.items()}
                print(f"seed {seed}: {before.text()} is {wanted}, {after.text()} is not, at {where}", flush=True)
                break
        totals["points"] += defined
        totals["undefined"] += not defined
    return {"first": first, "count": count, **totals}


if __name__ == "__main__":
    print(json.dumps(campaign(int(sys.argv[1]), int(sys.argv[2]))))
