"""Rules about tensors, told by their syntax."""

from __future__ import annotations

from typing import Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove.forms import mentions_maybe_invalid
from morok.prove.parametric.number_ops import LENIENT
from morok.prove.rule_syntax import ops_of

VIEWS: Final = frozenset({"Reshape", "Permute", "Expand", "Pad", "Shrink", "Flip"})
OPS: Final = VIEWS | {"Concat", "Iota", "ReduceAxis"}  # the IR's of_axes, without loading it
MARKS: Final = frozenset({"Detach", "ContiguousBackward", "Contiguous"})  # which change no value


def about_tensors(rule: CheckedRule) -> bool:
    """True if a rule contains views, ops that make tensors, or elements of computed tensors."""
    return built_in(rule.dialect) and (not OPS.isdisjoint(ops_of(rule)) or reads_computed(rule))


def reads_computed(rule: CheckedRule) -> bool:
    """True if a pattern contains an element of a result that an op computes lane by lane."""
    return any("Index" in S.ops_matched(p) and _is_computed(rule, p) for p in S.walk(rule.syntax.pattern))


def _is_computed(rule: CheckedRule, index: S.Syntax) -> bool:
    match index:
        case S.POp(args=(buffer, *_)):
            found: S.Syntax | None = buffer
        case S.PStruct(fields=fields):
            found = next((f.value for f in fields if f.name == "buffer"), None)
        case _:
            return False
    while isinstance(found, S.PBind):
        found = found.inner
    return isinstance(found, S.POp) and all(rule.dialect.ops[op].params for op in found.ops)


def folds_one_element(rule: CheckedRule) -> bool:
    """True if a rule may fold one element: it has folds on one side only, or joined tensors."""
    sides = [any(_is_fold(at) for at in S.walk(side)) for side in (rule.syntax.pattern, rule.syntax.target)]
    return any(sides) and (not all(sides) or "Concat" in ops_of(rule))


def _is_fold(at: S.Syntax) -> bool:
    return getattr(at, "op", "") == "ReduceAxis" or "ReduceAxis" in getattr(at, "ops", ())


def has_one_lane(rule: CheckedRule) -> bool:
    """True if a rule is about tensors only: elements have one lane. Indices, and loaded values, may have more."""
    ops = rule.dialect.ops
    matched = {op for p in S.walk(rule.syntax.pattern) for op in S.ops_matched(p)}
    return all(op in OPS or op in MARKS or op == "Const" or ops[op].params for op in matched)


def may_be_invalid(rule: CheckedRule) -> bool:
    """True if a pattern admits Invalid for a variable."""
    return any(mentions_maybe_invalid(getattr(at, "type", None)) for at in S.walk(rule.syntax.pattern))


def always_read(rule: CheckedRule) -> bool:
    """True if every place in a pattern is read whenever the pattern has a value: as the operand of ops that have none without
    a value of it, or of a Load as the place that it reads.
    """
    ops, todo, reached = rule.dialect.ops, [rule.syntax.pattern], 0
    while todo:
        match todo.pop():
            case S.PBind(inner=inner) | S.PSome(inner=inner):
                todo.append(inner)
            case S.POp(ops=(op,), args=args):
                reached += op == "Index"
                if op == "Load" or op in MARKS or (ops[op].params and op not in LENIENT):
                    todo += [a for a in args[: 1 if op == "Load" else None] if isinstance(a, S.Pattern)]
            case S.PStruct(op=op, fields=fields):
                reached += op == "Index"
                if op == "Load" or op in MARKS:
                    todo += [f.value for f in fields if isinstance(f.value, S.Pattern) and f.name != "alt"]
    return reached == sum("Index" in S.ops_matched(p) for p in S.walk(rule.syntax.pattern))
