"""Mutants of a rule: every rule that differs from it in one op, constant, comparison, operand order or guard."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from morok.dialect import Dialect, OpInfo
from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.dsl.format import format_file

COMPARISONS: Final = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
}
ARITHMETIC: Final = {
    "+": "-",
    "-": "+",
    "*": "+",
    "//": "%",
    "%": "//",
    "<<": ">>",
    ">>": "<<",
    "and": "or",
    "or": "and",
}
OPPOSITE: Final = {"zero": "one", "one": "zero", "true": "false", "false": "true", "vmin": "vmax", "vmax": "vmin"}
NEIGHBOURS: Final = 2  # other ops tried in place of one
# ops of which solvers know little: a mutant with one teaches nothing
UNDECIDED: Final = frozenset({"Pow", "Threefry"})
NUDGE: Final = 257 / 256  # by what other floats are multiplied: more than a rounding of any dtype but bf16
# of a rule that is measured, which has hundreds of mutants, so many with another number, and so many others: always the same
MEASURED: Final = (8, 4)
STRONGER: Final = {("<", "<="), (">", ">=")}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed rule: what was done to it, and whether that was to its guards."""

    rule: S.Rule
    change: str
    guard: bool


def neighbours(dialect: Dialect, name: str) -> list[str]:
    """Ops that could stand in this one's place: same typing."""
    info = dialect.ops.get(name)
    if info is None or not info.params:
        return []

    def alike(o: OpInfo) -> bool:
        return (
            o.name not in (name, *UNDECIDED) and o.params == info.params and o.result == info.result and bool(o.solver)
        )

    names = [o.name for o in dialect.ops.values() if alike(o)]
    start = sorted([*names, name]).index(name)
    turned = sorted(names)[start:] + sorted(names)[:start]
    return turned[:NEIGHBOURS]


def mutants(rule: S.Rule, dialect: Dialect) -> list[Mutant]:
    """Every mutant of a rule that differs from it in one place; not those whose guard plainly implies the rule's own. Of a rule
    `within N ulp` a fixed draw of them.
    """
    found = list(_named(rule, dialect))
    if rule.within is not None:
        found.sort(key=lambda m: crc32(f"{rule.name} {m.change}".encode()))
        numbers = [m for m in found if _NUMBER.match(m.change)]
        return numbers[: MEASURED[0]] + [m for m in found if m not in numbers][: MEASURED[1]]
    return found


_NUMBER: Final = re.compile(r"[a-z0-9 ]+: -?[0-9]")  # "guard 3: 0.5 to 0.501953125"


def _named(rule: S.Rule, dialect: Dialect) -> Iterator[Mutant]:
    """Mutants whose changes have different names."""
    seen: dict[str, int] = {}
    for m in _mutants(rule, dialect):
        seen[m.change] = count = seen.get(m.change, 0) + 1
        yield m if count == 1 else dataclasses.replace(m, change=f"{m.change} ({count})")


def _mutants(rule: S.Rule, dialect: Dialect) -> Iterator[Mutant]:
    for i, clause in enumerate(rule.clauses):
        if isinstance(clause, S.If):
            rest = (*rule.clauses[:i], *rule.clauses[i + 1 :])
            yield Mutant(dataclasses.replace(rule, clauses=rest), f"guard {i + 1} dropped", True)
        for changed, what in _changes(clause, dialect):
            if isinstance(clause, S.If) and implies(changed.condition, clause.condition):
                continue
            clauses = (*rule.clauses[:i], changed, *rule.clauses[i + 1 :])
            yield Mutant(dataclasses.replace(rule, clauses=clauses), f"guard {i + 1}: {what}", isinstance(clause, S.If))
    for changed, what in _changes(rule.pattern, dialect):
        yield Mutant(dataclasses.replace(rule, pattern=changed), f"pattern: {what}", False)
    for changed, what in _changes(rule.target, dialect):
        yield Mutant(dataclasses.replace(rule, target=changed), f"target: {what}", False)


def implies(a: S.Expr, b: S.Expr) -> bool:
    """True if condition `a` says at least what `b` does, as their forms show: a conjunction with a stricter comparison in it."""
    if a == b:
        return True
    if isinstance(a, S.EBinary) and isinstance(b, S.EBinary) and a.op == b.op == "and":
        return implies(a.left, b.left) and implies(a.right, b.right)
    if isinstance(a, S.ECompare) and isinstance(b, S.ECompare) and len(a.ops) == len(b.ops):
        links = zip(a.ops, b.ops, a.operands, b.operands, a.operands[1:], b.operands[1:], strict=False)
        return all(
            (p == q or (p, q) in STRONGER) and _stricter(q, left_b, left_a) and _stricter(q, right_a, right_b)
            for p, q, left_a, left_b, right_a, right_b in links
        )
    return False


def _stricter(op: str, x: S.Expr, y: S.Expr) -> bool:
    """True if x and y are one operand, or numbers of which x is below y (above it where `op` looks the other way)."""
    if x == y:
        return True
    if not isinstance(x, S.ENumber) or not isinstance(y, S.ENumber):
        return False
    return bool(x.value < y.value if op in ("<", "<=") else op in (">", ">=") and x.value > y.value)


def _changes(tree: Any, dialect: Dialect) -> Iterator[tuple[Any, str]]:
    """The tree with one change, for every place and every change."""
    yield from _here(tree, dialect)
    for name in tree.__dataclass_fields__:
        value = getattr(tree, name)
        if isinstance(value, S.Syntax) and not isinstance(value, (S.Span, S.TypeSyntax)):
            for changed, what in _changes(value, dialect):
                yield dataclasses.replace(tree, **{name: changed}), what
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, S.Syntax) and not isinstance(item, (S.Span, S.TypeSyntax)):
                    for changed, what in _changes(item, dialect):
                        yield dataclasses.replace(tree, **{name: (*value[:i], changed, *value[i + 1 :])}), what


def _here(at: Any, dialect: Dialect) -> Iterator[tuple[Any, str]]:
    if isinstance(at, S.POp) and len(at.ops) == 1:
        for other in neighbours(dialect, at.ops[0]):
            if not at.commutative or dialect.ops[other].commutative:
                yield dataclasses.replace(at, ops=(other,)), f"{at.ops[0]} to {other}"
        # an op that says of itself that it is commutative stays what it is when its operands are exchanged
        exchangeable = not at.commutative and not dialect.ops[at.ops[0]].commutative
        if exchangeable and len(at.args) == 2 and at.args[0] != at.args[1] and not isinstance(at.args[1], S.PType):
            yield dataclasses.replace(at, args=at.args[::-1]), f"operands of {at.ops[0]} exchanged"
    elif isinstance(at, S.ECall):
        for other in neighbours(dialect, at.name):
            yield dataclasses.replace(at, name=other), f"{at.name} to {other}"
        if at.name in OPPOSITE:
            yield dataclasses.replace(at, name=OPPOSITE[at.name]), f"{at.name} to {OPPOSITE[at.name]}"
        info = dialect.ops.get(at.name)
        if (
            info is not None
            and not info.commutative
            and len(at.args) == 2
            and at.args[0] != at.args[1]
            and not isinstance(at.args[1], S.EType)
        ):
            yield dataclasses.replace(at, args=at.args[::-1]), f"operands of {at.name} exchanged"
    elif isinstance(at, S.PConst) and at.kind in OPPOSITE:
        yield dataclasses.replace(at, kind=OPPOSITE[at.kind]), f"@{at.kind} to @{OPPOSITE[at.kind]}"
    elif isinstance(at, (S.PLiteral, S.ENumber)):
        if isinstance(at.value, bool):
            yield dataclasses.replace(at, value=not at.value, text=str(not at.value).lower()), f"{at.text} negated"
        elif isinstance(at.value, int):
            for v in (at.value + 1, at.value - 1):
                yield dataclasses.replace(at, value=v, text=str(v)), f"{at.text} to {v}"
        elif math.isfinite(at.value):
            near = at.value * NUDGE if at.value else 1.0
            yield dataclasses.replace(at, value=near, text=repr(near)), f"{at.text} to {near!r}"
    elif isinstance(at, S.ECompare):
        for i, op in enumerate(at.ops):
            for other in COMPARISONS[op]:
                yield dataclasses.replace(at, ops=(*at.ops[:i], other, *at.ops[i + 1 :])), f"{op} to {other}"
    elif isinstance(at, S.EBinary) and at.op in ARITHMETIC:
        yield dataclasses.replace(at, op=ARITHMETIC[at.op]), f"{at.op} to {ARITHMETIC[at.op]}"
    elif isinstance(at, S.EUnary) and at.op in ("not", "-"):
        yield at.operand, f"{at.op} dropped"


def recheck(original: CheckedRule, mutant: S.Rule) -> CheckedRule:
    """The mutant as a rule of its own; RuleError if it makes no sense."""
    group = S.Group("mutant", "", original.context, (dataclasses.replace(mutant, doc="a mutant", examples=()),))
    file = S.File("<mutant>", original.dialect.name, original.helpers, tuple(original.externs.values()), (group,))
    rules: Iterator[CheckedRule] = check_text(format_file(file), "<mutant>").rules()
    return next(rules)
