"""The forms of rules, told by their syntax: what they are about says how they are read, and which graphs they are tried on."""

from __future__ import annotations

from typing import Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.rule_syntax import names_in, ops_of

OF_AXES: Final = frozenset({"Unroll", "Contract"})
OF_LANES: Final = frozenset({"Gep", "Cat", "Index", "Load", "Store"})  # at the root of a pattern
OF_LAUNCHES: Final = frozenset({"launched", "counts", "told_apart", "renames"})
STATEMENTS: Final = frozenset({"Store", "End"})
VECTOR_AXES: Final = ("Upcast", "Unroll")  # the kinds of ranges that are vectorized


def conjuncts(e: S.Expr) -> list[S.Expr]:
    """The conditions that a conjunction is made of."""
    found: list[S.Expr] = []
    todo = [e]
    while todo:
        at = todo.pop()
        if isinstance(at, S.EBinary) and at.op == "and":
            todo += [at.right, at.left]
        else:
            found.append(at)
    return found


def mentions_maybe_invalid(t: S.TypeSyntax | None) -> bool:
    """True if a constraint says `index?`: only then does a variable match nodes that may be Invalid."""
    if isinstance(t, S.TMaybeInvalid):
        return True
    return t is not None and any(mentions_maybe_invalid(c) for c in S.children(t))


def admits_invalid(rule: CheckedRule, p: S.PVar | S.PSequence) -> bool:
    """True if a variable of a pattern matches nodes that may be Invalid: it does wherever it stands, if it says so anywhere."""
    binding = rule.bindings.get(p.name)
    return mentions_maybe_invalid(p.type) if binding is None else binding.invalid_ok


def asks_for_axes(rule: S.Rule) -> bool:
    """True if a rule asks of nodes whether they are unrolled."""
    return any(isinstance(at, S.ECall) and at.name in ("axes", "inside") for at in S.walk(rule.target, *rule.clauses))


@once_a_rule
def about_axes(rule: CheckedRule) -> bool:
    """True if a rule is about unrolled axes. Then it looks at no dtype."""
    return built_in(rule.dialect) and (not OF_AXES.isdisjoint(ops_of(rule)) or asks_for_axes(rule.syntax))


def about_lanes(rule: CheckedRule) -> bool:
    """True if a rule takes lanes apart or joins them, looking at no value and no dtype."""
    if not built_in(rule.dialect) or about_axes(rule) or root_of(rule.syntax.pattern) not in OF_LANES:
        return False
    types = (getattr(at, "type", None) for at in S.walk(rule.syntax.pattern))
    return bool(rule.externs) or any(isinstance(t, S.TUnion) and mentions_maybe_invalid(t) for t in types)


def root_of(p: S.Pattern) -> str:
    """The op at the root of a pattern; nothing where it is none."""
    while isinstance(p, S.PBind):
        p = p.inner
    return p.op if isinstance(p, S.PStruct) else p.ops[0] if isinstance(p, S.POp) else ""


@once_a_rule
def keeps_statements(rule: CheckedRule) -> bool:
    """True if a rule makes no store, and no loop around a statement, beside one of its pattern that may be done anyway: for
    what is below the root other nodes of the graph may wait, too, and nothing orders it and another one. What is made in place of
    a store that is the root, and goes away with it, is ordered as that was.
    """
    if not built_in(rule.dialect):
        return True
    pattern, target = rule.syntax.pattern, rule.syntax.target
    at_root = root_of(pattern)
    done = {op: [p for p in S.walk(pattern) if op in S.ops_matched(p)] for op in STATEMENTS}
    below = any(len(found) > (at_root == op) for op, found in done.items())
    made = [e for e in S.walk(target, *rule.syntax.clauses) if not STATEMENTS.isdisjoint(S.ops_at(e))]
    in_its_place = at_root == "Store" and len(made) == 1 and made[0] is target and "Store" in S.ops_at(target)
    return not made or in_its_place or not below


@once_a_rule
def about_launches(rule: CheckedRule) -> bool:
    """True if a rule asks what the hardware runs, itself or in its helpers' contracts. Then it looks at no dtype."""
    asked = [*rule.syntax.clauses, *(c for e in rule.externs.values() for c in e.ensures)]
    return built_in(rule.dialect) and any(not OF_LAUNCHES.isdisjoint(names_in(c)) for c in asked)


@once_a_rule
def folds_lanes(rule: CheckedRule) -> bool:
    """True if a rule is about a Reduce that may have other lanes than its source, and its clauses ask for lanes."""
    found = reduction_of(rule.syntax.pattern)
    if found is None or not any("lanes" in names_in(c) for c in rule.syntax.clauses):
        return False
    source = next((f.value for f in found.fields if f.name == "src"), None)
    name = source.name if isinstance(source, S.PVar) else "src"
    there = rule.types.get(id(source)) or (rule.bindings[name].type if name in rule.bindings else None)
    own = rule.types.get(id(found))
    return own is None or there is None or own.lanes != there.lanes


def reduction_of(p: S.Pattern) -> S.PStruct | None:
    """The fold that a pattern is, if it is one."""
    while isinstance(p, S.PBind):
        p = p.inner
    return p if isinstance(p, S.PStruct) and p.op == "Reduce" else None


@once_a_rule
def pointers(rule: CheckedRule) -> frozenset[str]:
    """The names that the pattern says, wherever they occur, to be pointers; what one of several alternatives says is left out."""
    found: set[str] = set()
    todo: list[S.Syntax] = [rule.syntax.pattern]
    while todo:
        at = todo.pop()
        ty = rule.types.get(id(at))
        if isinstance(at, S.PVar) and ty is not None and ty.pointer:
            found.add(at.name)
        if not isinstance(at, S.PAlternatives):
            todo += S.children(at)
    return frozenset(found)
