"""The termination of a group of rules: a measure of graphs that every rule makes smaller.

A measure reads a term as a number: an op with operands x, y is `a*x + b*y + w`, where a and b are 1, 2 or 8, w is the op's
weight, and a variable is as much as whatever it stands for. A rule that makes every instance of its pattern smaller, among
rules that make none greater, cannot fire for ever; so for each measure found the rules that it makes smaller are set aside,
and the next is sought for the rest. The weights are the solver's to find. What no measure orders may still end, for a reason
that its file states: `@ends NAME "reason"` below the head of the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort
from morok.dsl.functions import FUNCTIONS
from morok.prove import smt
from morok.prove.lint.cover import variants
from morok.prove.smt.session import Died
from morok.prove.solve import best
from morok.prove.symbol import Symbol

MOST: Final = 16  # the greatest weight tried
_CONST: Final = "a constant"
_LEAF: Final = "a leaf"
_VALUES: Final = {"const", "zero", "one", "identity", "eval"} | {
    n for n, f in FUNCTIONS.items() if f.result in ("int", "bound")
}
_STATIC: Final = (Sort.VALUES, Sort.DTYPE, Sort.OP, Sort.OTHER)


class Unmeasurable(Exception):
    """A part that is not made of ops and names of the rule's own: what a helper returns, a sequence of unknown length."""


class Form:
    """A term as a measure reads it: a sum of weights, each so often, and of names, each so often."""

    __slots__ = ("names", "weights")

    def __init__(self) -> None:
        self.weights: Counter[str] = Counter()
        self.names: Counter[str] = Counter()


# How often an operand of an op counts: (op, its position) -> 1, 2 or 8.
Factors = Callable[[str, int], int]


def read(rule: CheckedRule, root: S.Syntax, factors: Factors) -> Form:
    """A pattern without choices, or a target."""
    form = Form()
    parts = _parts(rule.syntax.pattern)
    made = {n for c in rule.syntax.clauses if isinstance(c, S.Let) for n in c.names}
    todo: list[tuple[Any, int]] = [(root, 1)]
    while todo:
        at, times = todo.pop()
        match at:
            case S.PBind():
                todo.append((at.inner, times))
            case S.PVar() | S.PSequence():
                form.names[f"_ {id(at)}" if at.name.startswith("_") else at.name] += times
            case S.PConst() | S.PLiteral() | S.ENumber() | S.EBinary() | S.EUnary() | S.ECompare():
                form.weights[_CONST] += times
            case S.PType() | S.EType() | S.PNone() | S.ENone() | S.EList():
                pass
            case S.PSome():
                todo.append((at.inner, times))
            case S.PList():
                todo += [(item, times) for item in at.items]
            case S.ESpread():
                todo.append((at.sequence, times))
            case S.EIndex():  # one of several is at most as much as all of them
                todo.append((at.sequence, times))
            case S.POp() | S.ECall() if _constants(rule, at):
                form.weights[_CONST] += times
            case S.POp() | S.ECall() if _op(rule, at) is not None:
                op = str(_op(rule, at))
                form.weights[op] += times
                todo += [(a, times * factors(op, n)) for n, a in enumerate(at.args)]
            case S.PStruct():
                form.weights[at.op] += times
                for f in at.fields:
                    if (n := _position(rule, at.op, f.name)) is not None:
                        todo.append((S.PVar(f.name) if f.value is None else f.value, times * factors(at.op, n)))
            case S.EStruct():
                form.weights[at.op] += times
                for field, value in at.fields:
                    if (n := _position(rule, at.op, field)) is not None:
                        todo.append((value, times * factors(at.op, n)))
            case S.ECall() if at.name in _VALUES:
                form.weights[_CONST] += times
            case S.EName():
                _name(rule, at.name, times, parts, made, form, todo)
            case _:
                raise Unmeasurable(type(at).__name__)
    return form


def _name(
    rule: CheckedRule,
    name: str,
    times: int,
    parts: Mapping[str, S.Pattern],
    made: set[str],
    form: Form,
    todo: list[tuple[Any, int]],
) -> None:
    binding = rule.bindings.get(name)
    if binding is None or binding.sort in _STATIC:
        return
    if binding.sort is Sort.VALUE:
        form.weights[_CONST] += times
    elif name in made:
        raise Unmeasurable(f"{name} comes from a helper")
    elif isinstance(parts.get(name), S.PVar | S.PSequence | None):
        form.names[name] += times
    else:
        todo.append((parts[name], times))  # as much as the part of the pattern that it names


def _op(rule: CheckedRule, at: S.POp | S.ECall) -> str | None:
    name = at.ops[0] if isinstance(at, S.POp) else at.name
    return name if name in rule.dialect.ops else None


def _constants(rule: CheckedRule, at: S.POp | S.ECall) -> bool:
    """True for a vector of constants, which is as much as one."""
    op = _op(rule, at)
    return op is not None and rule.dialect.ops[op].role == "constants"


def _position(rule: CheckedRule, op: str, field: str) -> int | None:
    """The number of the operand that a field is; None if it is static."""
    return next((n for n, o in enumerate(rule.dialect.ops[op].operands) if o.name == field), None)


def _parts(p: S.Pattern) -> dict[str, S.Pattern]:
    """The part of a pattern that each of its names is bound to."""
    found: dict[str, S.Pattern] = {}
    for at in S.walk(p):
        if isinstance(at, S.PBind):
            found[at.name] = at.inner
        elif isinstance(at, S.PVar | S.PSequence):
            found.setdefault(at.name, at)
    return found


def unordered(rules: Sequence[CheckedRule]) -> list[CheckedRule]:
    """The rules that no measure orders together with the others, in their order. Guards are not looked at."""
    given_up: set[int] = set()
    while True:
        left = _ordered_away([r for r in rules if id(r) not in given_up])
        if not left:
            return [r for r in rules if id(r) in given_up]
        given_up |= _in_the_way(left)


def _ordered_away(rules: list[CheckedRule]) -> list[CheckedRule]:
    """The rules that are left when each measure has taken those that it makes smaller while it makes none greater."""
    left = rules
    progress = True
    while left and progress:
        progress = False
        for factors in _every_factors(left):
            readings = {id(r): _differences(r, factors) for r in left}
            if any(d is None for d in readings.values()):
                continue
            smaller, _ = _measure({n: d for n, d in readings.items() if d is not None}, 0)
            if smaller:
                left = [r for r in left if id(r) not in smaller]
                progress = True
                break
    return left


def _in_the_way(rules: list[CheckedRule]) -> set[int]:
    """The fewest rules found without which a measure makes some of the others smaller; all of them where there is none such."""
    best = {id(r) for r in rules}
    for factors in _every_factors(rules):
        readings = {id(r): _differences(r, factors) for r in rules}
        unread = {n for n, d in readings.items() if d is None}
        if len(unread) >= len(best):
            continue
        smaller, greater = _measure({n: d for n, d in readings.items() if d is not None}, len(best) - len(unread) - 1)
        if smaller:
            best = greater | unread
    return best


def _every_factors(rules: Sequence[CheckedRule]) -> Iterator[Factors]:
    """Operands count once; then those of ops that no rule makes, or of one op, more often; or only its first or second."""
    yield lambda op, n: 1
    matched = [name for r in rules for at in S.walk(r.syntax.pattern) for name in S.ops_matched(at)]
    leaving = set(matched) - S.ops_named(*(r.syntax.target for r in rules))
    yield lambda op, n: 8 if op in leaving else 1
    ops = dict.fromkeys(matched)
    for times in (2, 8):
        for heavy in ops:
            yield partial(_heavier, heavy, times, None)
    for heavy in ops:
        for position in (0, 1):
            yield partial(_heavier, heavy, 2, position)


def _heavier(heavy: str, times: int, position: int | None, op: str, n: int) -> int:
    return times if op == heavy and position in (None, n) else 1


# By how much a form of a pattern outweighs the target, as weights and how often each counts.
Difference = dict[str, int]


def _differences(rule: CheckedRule, factors: Factors) -> list[Difference] | None:
    """For each form of the pattern; None where a name counts more in the target, or where the target cannot be read."""
    chosen = variants(rule.syntax.pattern)
    if not chosen:
        return None
    out = []
    try:
        made = read(rule, rule.syntax.target, factors)
        for form in chosen:
            before = read(rule, form, factors)
            if made.names - before.names:
                return None
            difference = {w: before.weights[w] - made.weights[w] for w in sorted(before.weights | made.weights)}
            # whatever a name stands for is at least a leaf
            difference[_LEAF] = sum((before.names - made.names).values())
            out.append(difference)
    except Unmeasurable:
        return None
    return out


def _measure(rules: Mapping[int, list[Difference]], spared: int) -> tuple[set[int], set[int]]:
    """The rules that some measure makes smaller, and those that it makes greater: as many and as few as possible.

    spared   at most so many may be greater; each counts for more than any that is smaller
    """
    if not rules:
        return set(), set()
    weights = {
        w: smt.Int(Symbol("variable", w)) for w in dict.fromkeys(w for ds in rules.values() for d in ds for w in d)
    }
    weights.setdefault(_LEAF, smt.Int(Symbol("variable", _LEAF)))
    conditions = [smt.And(w >= 0, w <= MOST) for w in weights.values()]
    if _CONST in weights:
        conditions.append(weights[_CONST] >= weights[_LEAF])
    sums = {
        number: [smt.Sum([times * weights[w] for w, times in d.items()]) for d in ds] for number, ds in rules.items()
    }
    not_greater, falls = ([smt.And(*(d >= least for d in ds)) for ds in sums.values()] for least in (0, 1))
    conditions += [smt.Sum([smt.If(c, 0, 1) for c in not_greater]) <= spared] if spared else not_greater
    conditions.append(smt.Or(*falls))  # else it is of no use
    model = best(conditions, [*((c, 2) for c in not_greater if spared), *((c, 1) for c in falls)])
    if model is None:
        return set(), set()

    def all_at_least(differences: list[smt.Expr], least: int) -> bool:
        return all(model.value(d >= least) is smt.TRUE for d in differences)

    try:
        smaller = {n for n, ds in sums.items() if all_at_least(ds, 1)}
        return smaller, {n for n, ds in sums.items() if not all_at_least(ds, 0)}
    except Died:
        return set(), set()
