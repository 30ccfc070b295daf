"""From a rule set to its compiled matcher: through the cache on disk where its rules come from files that did not change."""

from __future__ import annotations

from morok.dsl.compile import compile_rules, link, to_code
from morok.rewrite.ruleset import Matcher, RuleSet


def matcher_for(rules: RuleSet, checked: bool) -> Matcher:
    checked_rules = rules.rules
    generated = compile_rules(checked_rules)
    found = link(to_code(generated, "rules"), generated, rules.dialect)
    table = {rules.dialect.ops[op].key: f for op, f in found.items() if op}
    return Matcher(table, found.get(""), generated.names, generated.source)
