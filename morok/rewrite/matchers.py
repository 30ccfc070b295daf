"""Matchers of rule sets. If all rules of a set come from files that did not change, the matcher comes from the cache on disk."""

from __future__ import annotations

import hashlib
import json
import marshal
from types import CodeType
from typing import TYPE_CHECKING, Any

from morok import config
from morok.dialect import Node
from morok.dsl.compiled import Generated, link
from morok.dsl.extent import Extents
from morok.names import data
from morok.rewrite import gate, store
from morok.rewrite.files import dialect_digest, generator_digest
from morok.rewrite.matcher import Matcher, serial_of

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule
    from morok.rewrite.ruleset import RuleSet


def matcher_for(rules: RuleSet, flags: frozenset[str], checked: bool) -> Matcher:
    """The matcher of those rules that assume no liberty beyond `flags`. UnprovedRuleError if one of `rules` may not fire;
    DialectError if their dialect has changed since they were admitted.

    checked  True if helper calls check their contracts
    """
    meant = dialect_digest(rules.dialect)
    gate.admit(rules, meant)
    key = _key(rules, flags, meant)
    made = None if key is None else _load(key)
    if made is None:
        made = _generate(rules, flags)
        if key is not None:
            _save(key, made)
    # the text is generated again on demand, so the matcher does not keep the syntax trees alive
    made = made._replace(source=lambda: _generate(rules, flags).source())
    wrap = None
    if checked:
        from morok.rewrite.asserted_contracts import asserting  # lazy: under MOROK_CHECK alone

        wrap = asserting(rules.rules)
    found = link(made, rules.dialect, wrap)
    table = {rules.dialect.ops[op].key: f for op, f in found.items() if op}
    return Matcher(
        table, found.get(""), made.names, made.source, serial_of((rules.identity, flags, checked)), rules.unproved
    )


def tried(rules: RuleSet, node: Node, context: Any = None) -> list[str]:
    """The names of the rules that are tried on `node`, in order, until one fires. The other rules are excluded by the op of the
    node and the ops of its operands alone. Each call generates a matcher; this serves tests and inspection.
    """
    gate.admit(rules, dialect_digest(rules.dialect))
    numbers: dict[int, None] = {}
    dialect = rules.dialect
    made = _generate(rules, config.FAST_MATH.value, counting=True)
    found = link(made, dialect, tried=lambda number: numbers.update({number: None}))
    op = next((name for name, info in dialect.ops.items() if info.key == dialect.opkey(node)), "")
    match = found.get(op, found.get(""))
    if match is not None:
        match(node, context)
    return [made.names[n] for n in numbers]


def _load(key: str) -> Generated | None:
    kept = store.load(key)
    if kept is None:
        return None
    size = int.from_bytes(kept[:8], "little")
    names, helpers = json.loads(kept[8 : 8 + size])
    code: CodeType = marshal.loads(kept[8 + size :])  # safe: an intact entry of this user and this Python
    return Generated(code, str, tuple(names), helpers)


def _save(key: str, made: Generated) -> None:
    head = json.dumps((made.names, dict(made.helpers))).encode()
    store.save(key, len(head).to_bytes(8, "little") + head + marshal.dumps(made.code))


def _generate(rules: RuleSet, flags: frozenset[str], counting: bool = False) -> Generated:
    from morok.dsl.compile import compile_rules  # lazy: matchers are kept on disk

    allowed, limits = _allowed(rules, flags)
    return compile_rules(allowed, rules.dialect, counting=counting, limits=limits)


def _allowed(rules: RuleSet, flags: frozenset[str]) -> tuple[list[CheckedRule], dict[int, Extents]]:
    """(the rules that assume no liberty beyond `flags`, their limits by rule number)"""
    allowed: list[CheckedRule] = []
    limits: dict[int, Extents] = {}
    for p in rules.parts:
        for place, rule in enumerate(p.rules()):
            if flags.issuperset(rule.syntax.assuming):
                limits.update({len(allowed): p.limits[place]} if place in p.limits else {})
                allowed.append(rule)
    return allowed, limits


def _key(rules: RuleSet, flags: frozenset[str], meant: str) -> str | None:
    """The cache key of the generated code, of rules of a dialect with this digest; None if some rules come from no file."""
    parts = [p.cache for p in rules.parts]
    if not all(parts):
        return None
    inputs = "\n".join(["matcher", generator_digest(), meant, " ".join(sorted(flags)), *parts])
    return hashlib.sha256(data(inputs)).hexdigest()
