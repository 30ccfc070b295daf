"""The digest of a rule: a name for exactly one meaning, from the rule's tree and from what its ops mean."""

from __future__ import annotations

import dataclasses

from morok.dsl.checked import CheckedRule
from morok.prove import sources
from morok.prove.fingerprints import digest
from morok.prove.measuring import measuring
from morok.prove.rule_syntax import canonical, implied_ops, names_of, ops_of, typing_of


def rule_digest(rule: CheckedRule) -> str:
    """A name for exactly this meaning of a rule."""
    parts = [
        sources.core_digest(),
        sources.dialect_digest(rule.dialect, names_of(rule)),
        rule.dialect.name,
        canonical(dataclasses.replace(rule.syntax, name="")),
        typing_of(rule),
        *(canonical(e) for _, e in sorted(rule.externs.items())),
        *(str(i) for i in rule.instances),
        *(f"{n}={sources.op_digest(rule.dialect.ops[n], rule.dialect)}" for n in ops_of(rule)),
        *(f"{n}={sources.op_digest(rule.dialect.ops[n])}" for n in implied_ops(rule)),
    ]
    if rule.syntax.within is not None:  # what was measured is the code that the rule becomes
        parts += measuring().code_digests(rule)
    return digest("\n".join(parts))
