"""Rules that are one fold, told by their syntax: a fold of floats may be done in another order, and compared with none."""

from __future__ import annotations

from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove.forms import reduction_of

OF_TRUTHS: Final = {"Max": "Or", "Min": "And", "Add": "Or", "Mul": "And"}  # folds of bools, by the op of their lanes


def regroups(rule: CheckedRule) -> bool:
    """True if a rule makes its one fold, of items that another op computes, in another order of the same loops: one by one, or in
    parts. Of other loops each item is another.
    """
    pattern = reduction_of(rule.syntax.pattern)
    if pattern is None or not one_order(rule) or _folds_by(pattern) in ops_matched(rule):
        return False
    made = [
        at for at in S.walk(rule.syntax.target, *rule.syntax.clauses) if isinstance(at, S.EStruct) and at.op == "Reduce"
    ]
    several = bool(made) and (len(made) > 1 or _loops(made[0]) != _loops(pattern))
    return several and set().union(*map(_loops, made)) <= _loops(pattern)


def _loops(at: S.PStruct | S.EStruct) -> set[str]:
    """The names of the loops that a fold closes; nothing for what has none."""
    fields = {f.name: f.value for f in at.fields} if isinstance(at, S.PStruct) else dict(at.fields)
    found = fields.get("ranges", ())
    found = S.PVar("ranges") if found is None else getattr(found, "value", found)  # the name of the field alone
    items = getattr(found, "items", found if isinstance(found, tuple) else (found,))
    return {str(getattr(getattr(item, "sequence", item), "name", "")) for item in items}


def one_order(rule: CheckedRule) -> bool:
    """True if a rule's pattern is one fold, with none inside, and its target is that fold, in one of the orders that are open:
    of folds, and of what is combined as they do, the rule computes nothing else. Two orders of a fold of floats may be two
    numbers, which a comparison tells apart.
    """
    pattern = rule.syntax.pattern
    found = reduction_of(pattern)
    if found is None or not one_fold(rule):
        return False
    op = _folds_by(found)
    combining = {op, OF_TRUTHS.get(op, op)}
    folds = {pattern.name} if isinstance(pattern, S.PBind) else set()  # names, and what they stand for

    def folded(*parts: Any) -> bool:
        return any(
            not {"Reduce", *combining}.isdisjoint(S.ops_at(at)) or (isinstance(at, S.EName) and at.name in folds)
            for at in S.walk(*parts)
        )

    def computes(at: Any) -> bool:
        if isinstance(at, S.EStruct) and at.op == "Reduce":
            return _folds_by(at) not in combining
        return any(o not in combining and o in rule.dialect.ops and rule.dialect.ops[o].params for o in S.ops_at(at))

    for clause in rule.syntax.clauses:
        if isinstance(clause, S.Let) and folded(clause.value):
            folds.update(clause.names)
    computed = (at for at in S.walk(rule.syntax.target, *rule.syntax.clauses) if computes(at))
    return not any(folded(*S.children(at)) for at in computed)


def one_fold(rule: CheckedRule) -> bool:
    """True if a rule's pattern is one fold, with none inside."""
    return reduction_of(rule.syntax.pattern) is not None and ops_matched(rule).count("Reduce") == 1


def _folds_by(at: S.PStruct | S.EStruct) -> str:
    """The op of a fold, or of the variable that it is, as it is written; nothing for any op."""
    fields = {f.name: f.value for f in at.fields} if isinstance(at, S.PStruct) else dict(at.fields)
    if fields.get("op", "") is None:
        return "op"  # the name of the field alone
    op = getattr(fields.get("op"), "value", fields.get("op"))
    return str(getattr(op, "name", ""))


def ops_matched(rule: CheckedRule) -> list[str]:
    """The ops of a rule's pattern."""
    return [op for p in S.walk(rule.syntax.pattern) for op in S.ops_matched(p)]


__all__ = ["OF_TRUTHS", "one_fold", "one_order", "ops_matched", "regroups"]
