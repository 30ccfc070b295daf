"""Facts about a rule besides its text: the premises and lemmas of its proof, its stages and tiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort
from morok.dsl.lint import in_order
from morok.dsl.syntax_text import expr_text
from morok.passes.pipeline import STAGES
from morok.rewrite.tiers import TIERS

_FACTS: Final = {
    "vmin": "vmin({0}) is at most the value of {0}",
    "vmax": "vmax({0}) is at least the value of {0}",
    "no_overflow": "no_overflow({0}): the exact result fits the dtype",
    "defined": "{0} has a value, which is not Invalid, also where the pattern does not need one",
    "free_of": "{0} does not depend on {1}",
}
_FLAGS: Final = {
    "nnan": "no operand or result is NaN",
    "ninf": "no operand or result is infinite",
    "nsz": "the sign of a zero does not matter",
    "contract": "a product and a sum may be rounded once",
    "arcp": "a division may be a product with the reciprocal",
    "afn": "an op may be as inexact as it says",
    "reassoc": "arithmetic is that of the real numbers",
}


def premises(rule: CheckedRule) -> list[str]:
    """The premises of a rule's proof, in words, in the proof's order; [] for a rule that is measured."""
    if rule.syntax.within is not None:
        return []
    out = ["the pattern has a value"]
    out += [
        f"{b.name} is not Invalid" for b in rule.bindings.values() if _may_be_index(rule, b.name) and not b.invalid_ok
    ]
    for clause in rule.syntax.clauses:
        if isinstance(clause, S.If):
            out.append(expr_text(clause.condition))
        else:
            names = clause.names[0] if len(clause.names) == 1 else f"({', '.join(clause.names)})"
            built = isinstance(clause.value, S.ECall) and clause.value.name in rule.dialect.ops
            out.append(f"{names} {'stands for' if built else 'has a value:'} {expr_text(clause.value)}")
    out += _facts(rule)
    for extern in rule.externs.values():
        results = ", ".join(r.name for r in extern.results)
        for promise in extern.ensures:
            out.append(
                f"{extern.name}({', '.join(p.name for p in extern.params)}) gives {results} with {expr_text(promise)}"
            )
    out += [_FLAGS[flag] for flag in rule.syntax.assuming]
    return out


def _may_be_index(rule: CheckedRule, name: str) -> bool:
    binding = rule.bindings[name]
    if (
        binding.sort is not Sort.NODE
        or binding.type is None
        or binding.constant
        or name not in _variables(rule.syntax.pattern)
    ):
        return False
    ty = binding.type
    return ty.element == "index" if ty.fixed else "index" in rule.domains.get(ty.element, ())


def _variables(pattern: S.Pattern) -> set[str]:
    return {n.name for n in in_order(pattern) if isinstance(n, S.PVar)}


def _facts(rule: CheckedRule) -> Iterator[str]:
    seen: set[str] = set()
    for root in (*rule.syntax.clauses, rule.syntax.target):
        for n in in_order(root):
            if isinstance(n, S.ECall) and n.name in _FACTS:
                fact = _FACTS[n.name].format(*(expr_text(a) for a in n.args))
                if fact not in seen:
                    seen.add(fact)
                    yield fact


def lemmas(rule: CheckedRule) -> list[str]:
    """The lemmas of a rule's proof, besides the claim itself, in words."""
    out = []
    for extern in rule.externs.values():
        out += [f"{extern.name} is called only where {expr_text(r)}" for r in extern.requires]
    ops = dict.fromkeys(
        op for n in in_order(rule.syntax.pattern) if isinstance(n, S.POp) and n.commutative for op in n.ops
    )
    out += [f"{op} does not depend on the order of its operands" for op in ops]
    if any(isinstance(n, S.PStruct) and n.op == "Reduce" for n in in_order(rule.syntax.pattern)):
        out.append("over no iterations too, by induction")
    return out


def stages(group: str) -> list[str]:
    """The stages that run a built-in group, as "number name"."""
    return [f"{s.number} {s.name}" for s in STAGES if group in s.applied]


def tiers(group: str) -> list[str]:
    """The tiers that contain a group: sets of groups that `morok.simplify` and the stages use."""
    return [name for name, groups in TIERS.items() if group in groups]
