"""Groups and tiers straight from the rule files: these tests are about what the rules do, not about the gate."""

from __future__ import annotations

from functools import lru_cache

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedFile, CheckedRule
from morok.ir.uop import UOp
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.library import rules_dir
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.tiers import TIERS


@lru_cache(maxsize=1)
def checked_files() -> list[CheckedFile]:
    return [check_file(path) for path in sorted(rules_dir().rglob("*.rules"))]


@lru_cache(maxsize=1)
def by_group() -> dict[str, list[CheckedRule]]:
    found: dict[str, list[CheckedRule]] = {}
    for g in (g for file in checked_files() for g in file.groups):
        found.setdefault(g.name, []).extend(g.rules)
    return found


@lru_cache(maxsize=64)
def ruleset(*groups: str) -> RuleSet:
    return RuleSet.of([r for g in groups for r in by_group()[g]], unproved=True)


@lru_cache(maxsize=1)
def symbolic() -> RuleSet:
    return ruleset(*TIERS["symbolic"])


def rw(node: UOp, *groups: str) -> UOp:
    """`node` rewritten by these groups to a fixpoint; by the symbolic tier if none is named."""
    return graph_rewrite(node, ruleset(*groups) if groups else symbolic())


def one(rule: str, node: UOp) -> UOp | None:
    """What one rule makes of `node`, once, at the root."""
    rules = RuleSet.of([r for r in by_group()[rule.partition(".")[0]] if r.name == rule], unproved=True)
    hit = rules.rewrite_node(node)
    return None if hit is None else hit[0]
