"""Subjects of measurement: a rule `within N ulp` at one dtype, and the rules that lower its op."""

from __future__ import annotations

import collections
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.check import partly_checked
from morok.dsl.checked import CheckedRule, Instance, Sort
from morok.dsl.functions import FUNCTIONS
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.obligations import lanewise
from morok.rewrite.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Subject:
    """One rule at one dtype, to be measured.

    rules    the rule and its companions, which lower its op
    pattern  the op over operands, or over ops of operands and numbers
    names    the names of the operands
    """

    rule: CheckedRule
    rules: RuleSet
    op: Op
    dtype: DType
    pattern: S.POp
    names: tuple[str, ...]

    @property
    def operands(self) -> int:
        return len(self.names)

    @property
    def numbers(self) -> list[int | float]:
        """The numbers that the rule names, which may be where it does something else than elsewhere."""
        text = self.rule.syntax
        found = S.walk(text.pattern, text.target, *text.clauses)
        return list(
            dict.fromkeys(e.value for e in found if isinstance(e, S.ENumber | S.PLiteral) and e.value == e.value)
        )

    def of(self, operands: Sequence[UOp]) -> UOp:
        """The pattern as a graph over these operands."""
        known = dict(zip(self.names, operands, strict=True))

        def made(p: S.Pattern) -> UOp:
            if isinstance(p, S.POp):
                return UOp.new(Op[p.ops[0]], tuple([made(a) for a in p.args]))
            if isinstance(p, S.PVar):
                return known[p.name]
            assert isinstance(p, S.PLiteral)
            return UOp.const(p.value, self.dtype)

        return made(self.pattern)


_ASKING: Final = frozenset(n for n, f in FUNCTIONS.items() if f.fact and "node" in f.params and n != "dtype") | {
    "axes",
    "inside",
    "subst",
}


class NotMeasurableError(Exception):
    """The error for a rule that a kernel of one op cannot measure."""


def subject(rule: CheckedRule, instance: Instance) -> Subject:
    """The subject of a rule whose pattern is one op over operands of its dtype, or over ops of operands and numbers;
    NotMeasurableError for other rules.
    """
    p = rule.syntax.pattern
    while isinstance(p, S.PBind):
        p = p.inner
    if not built_in(rule.dialect) or not _one_op(p) or rule.context is not None:
        raise NotMeasurableError("only a pattern of one op can be measured")
    if not _same_for_all(rule):
        raise NotMeasurableError(
            "what is made hangs on more than the operands' values: only what is made of any can be measured"
        )
    inner = [a for a in p.args if not isinstance(a, S.PVar)]
    leaves = [x for a in p.args for x in (a.args if _one_op(a) else (a,))]
    names = tuple([x.name for x in leaves if isinstance(x, S.PVar)])
    plain = all(isinstance(x, S.PVar | S.PLiteral) for x in leaves) and all(map(_one_op, inner))
    if not plain or not names or len(set(names)) != len(names):
        raise NotMeasurableError("only an op over operands of any value can be measured: op(x, y), or op(other(x, 1))")
    elements = {instance.element(rule.type_of(a)) for a in (p, *inner, *leaves)}
    if len(elements) != 1:
        raise NotMeasurableError(f"operands and result have different dtypes: {', '.join(sorted(elements))}")
    d: DType = getattr(dtypes, elements.pop())
    if inner and d is dtypes.f64:
        raise NotMeasurableError("at f64 only an op over plain operands can be measured: op(x, y)")
    return Subject(rule, _rules(rule), Op[p.ops[0]], d, p, names)


def _same_for_all(rule: CheckedRule) -> bool:
    """True if a rule makes the same of all operands of a dtype, lane by lane: what it makes asks nothing of them, nor how many
    lanes there are, and no helper. A clause that decides whether the rule fires may ask of them.
    """
    lets = [c for c in rule.syntax.clauses if isinstance(c, S.Let)]
    made = list(S.walk(rule.syntax.target, *lets))
    named = {n for c in lets for n in c.names}
    asks = any(isinstance(e, S.ECall) and e.name in _ASKING and not _which_op(rule.syntax.pattern, e) for e in made)
    kinds = {
        rule.bindings[e.name].sort for e in made if isinstance(e, S.EName) and e.name in rule.bindings.keys() - named
    }
    return lanewise(rule) and not rule.externs and not asks and kinds <= {Sort.NODE, Sort.DTYPE}


def _which_op(p: S.Pattern, e: S.ECall) -> bool:
    """True if `same(n, Op(x, y))` asks of a pattern `n @ op(x, y)` which op it is, whatever the operands are."""
    if not isinstance(p, S.PBind) or not isinstance(p.inner, S.POp) or e.name != "same":
        return False
    whole, other = e.args
    names = [a.name if isinstance(a, S.PVar) else None for a in p.inner.args]
    over = [a.name if isinstance(a, S.EName) else "" for a in other.args] if isinstance(other, S.ECall) else []
    return isinstance(whole, S.EName) and whole.name == p.name and over == names


def _one_op(p: S.Pattern) -> TypeGuard[S.POp]:
    return isinstance(p, S.POp) and len(p.ops) == 1


@functools.lru_cache(maxsize=8)
def _approximations(text: str, file: str) -> tuple[tuple[CheckedRule, RuleSet], ...]:
    """The rules `within N ulp` in a file, each also as a set of its own, whose matcher is compiled once."""
    correct, _mistakes = partly_checked(text, file)
    found = () if correct is None else (r for r in correct.rules() if r.syntax.within is not None)
    return tuple((r, RuleSet.of((r,), unproved=True)) for r in found)


def companions(rule: CheckedRule) -> tuple[CheckedRule, ...]:
    """The rules `within N ulp` in the rule's file, which may lower the ops in its target."""
    return tuple(r for r, _ in _approximations(rule.text, rule.file)) if rule.text else ()


def _rules(rule: CheckedRule) -> RuleSet:
    """The rule and its companions as a rule set, cached."""
    beside = _approximations(rule.text, rule.file) if rule.text else ()
    wanted = (rule, *(r for r, _ in beside if r.own != rule.own))
    for known in _known:
        if len(known) == len(wanted) and all(a is b for a, b in zip(known.rules, wanted, strict=True)):
            return known
    alone = [RuleSet.of((rule,), unproved=True), *(rules for r, rules in beside if r.own != rule.own)]
    _known.append(RuleSet([part for rules in alone for part in rules.parts], alone))
    return _known[-1]


_known: Final[collections.deque[RuleSet]] = collections.deque(maxlen=8)
