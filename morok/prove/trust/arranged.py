"""Lists as rules ask for them: in order, backwards or turned, and perhaps in another way behind the first few."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.functions import BINARY, COMPARISONS, FUNCTIONS, UNARY, Function
from morok.dsl.values import FAILURES
from morok.prove.forms import conjuncts

LARGEST: Final = 64  # of the numbers in a rule that lists are made with


def numbers_in(rule: S.Rule, most: int = LARGEST) -> tuple[int, ...]:
    """The numbers that a rule mentions, those beside them, and products of two: sizes at which something may change."""
    named = {n.value for n in S.walk(rule) if isinstance(n, (S.ENumber, S.PLiteral)) and type(n.value) is int}
    beside = {k + d for k in named for d in (-1, 0, 1, 2)}
    return tuple(sorted(k for k in beside | {a * b for a, b in itertools.combinations(named, 2)} if 1 < k <= most))


def places(rng: random.Random, count: int, below: int, turns: Sequence[int]) -> tuple[int, ...]:
    """So many numbers, each below a number."""
    turn = rng.choice((0, 0, *turns, *(-t for t in turns)))
    forms = (lambda k: k, lambda k: k + turn, lambda k: count - 1 - k, lambda _: turn, lambda k: k * turn)
    form = rng.choice(forms)
    kept = rng.randrange(count + 1) if rng.random() < 0.5 else count
    return tuple([(form(k) if k < kept else rng.randrange(below)) % below for k in range(count)])


def order(rng: random.Random, count: int) -> tuple[int, ...]:
    """All numbers below a number, the last ones in any order."""
    kept = rng.choice((0, rng.randrange(count + 1)))
    return (*range(kept), *rng.sample(range(kept, count), count - kept))


def said(rule: S.Rule, name: str, count: int, lanes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The list of so many numbers that a guard describes: `all(name[k] == .. for k in 0..len(..))`; None where none does.

    lanes  of the nodes that are known by a name; what else has a length has so many items
    """
    lets = {c.names[0]: c.value for c in rule.clauses if isinstance(c, S.Let) and len(c.names) == 1}
    for clause in rule.clauses:
        for c in conjuncts(clause.condition) if isinstance(clause, S.If) else ():
            match c:
                case S.ECall(
                    name="all",
                    args=(
                        S.EComprehension(
                            body=S.ECompare(
                                ops=("==",), operands=(S.EIndex(sequence=S.EName(name=of), index=S.EName(name=at)), e)
                            ),
                            names=(k,),
                        ),
                    ),
                ) if of == name and at == k:
                    try:
                        return tuple([_number(e, {k: i}, lets, count, lanes) for i in range(count)])
                    except (LookupError, *FAILURES):
                        return None
    return None


def _number(
    e: S.Expr, names: Mapping[str, int], lets: Mapping[str, S.Expr], count: int, lanes: Mapping[str, int]
) -> Any:
    """The value of an expression where all lists have so many items; LookupError where that is not known."""

    def of(*parts: S.Expr) -> list[Any]:
        return [_number(part, names, lets, count, lanes) for part in parts]

    match e:
        case S.ENumber(value=v):
            return v
        case S.EName(name=name):
            return names[name] if name in names else _number(lets[name], names, lets, count, lanes)
        case S.EUnary(op=op, operand=x):
            return _value(UNARY[op], of(x))
        case S.EBinary(op=op, left=left, right=right):
            return _value(BINARY[op], of(left, right))
        case S.ECompare(ops=ops, operands=operands):
            found = of(*operands)
            return all(_value(COMPARISONS[op], pair) for op, *pair in zip(ops, found, found[1:], strict=False))
        case S.ECall(name="len" | "lanes", args=(node,)):
            return lanes.get(getattr(node, "name", ""), count)
        case S.ECall(name=name, args=args):
            return _value(FUNCTIONS[name], of(*args))
    raise LookupError("another expression")


def _value(function: Function, operands: Sequence[Any]) -> Any:
    """The value of a function of numbers; LookupError where it is a fact about nodes."""
    if isinstance(function.value, str):
        raise LookupError(function.name)
    return function.value(*operands)
