"""Guards about tensors as a whole: the variables that are of one shape, and the expressions that are evaluated in any case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from morok.dsl import syntax as S
from morok.prove.symbol import Part


class Shapes:
    """Variables of one rank, and of one shape, each by the first of them. What has no name in the rule is like no other."""

    def __init__(self, conditions: Iterable[S.Expr]) -> None:
        self._ranks: dict[Part, Part] = {}
        self._shapes: dict[Part, Part] = {}
        written: dict[str, int] = {}
        for condition in conditions:
            match condition:
                case S.ECall(name="same_shape", args=(S.EName(name=x), S.EName(name=y))):
                    _join(self._shapes, x, y)
                    _join(self._ranks, x, y)
                case S.ECompare(
                    ops=("==",),
                    operands=(
                        S.ECall(name="rank", args=(S.EName(name=x),)),
                        S.ECall(name="rank", args=(S.EName(name=y),)),
                    ),
                ):
                    _join(self._ranks, x, y)
                case S.ECompare(
                    ops=("==",), operands=(S.ECall(name="rank", args=(S.EName(name=x),)), S.ENumber(value=int(n)))
                ) if n > 0:
                    written[x] = n
        self._known = {self.of_rank(x): n for x, n in written.items()}

    def known(self, name: Part) -> int | None:
        """The rank of a variable with axes, where a guard writes it."""
        return self._known.get(self.of_rank(name))

    def of_rank(self, name: Part) -> Part:
        """The variable that stands for all of the same rank."""
        return _first(self._ranks, name)

    def of_shape(self, name: Part) -> Part:
        """The variable that stands for all of the same shape."""
        return _first(self._shapes, name)


def _first(of: dict[Part, Part], name: Part) -> Part:
    while name in of:
        name = of[name]
    return name


def _join(of: dict[Part, Part], x: str, y: str) -> None:
    one, other = _first(of, x), _first(of, y)
    if one != other:
        of[other] = one


def evaluated(condition: S.Expr) -> Iterator[S.Expr]:
    """The expressions that a condition evaluates whatever they are: not the bodies of loops, nor what follows in an `or`."""
    yield condition
    match condition:
        case S.EBinary(op="and" | "or", left=left):
            yield from evaluated(left)
        case S.EUnary(operand=operand):
            yield from evaluated(operand)
        case S.EBinary(left=left, right=right):
            yield from evaluated(left)
            yield from evaluated(right)
        case S.ECompare(operands=(first, second, *_)):
            yield from evaluated(first)
            yield from evaluated(second)
        case S.ECall(args=args):
            for a in args:
                yield from evaluated(a)
        case S.EIndex(sequence=sequence, index=index):
            yield from evaluated(sequence)
            yield from evaluated(index)
        case S.EComprehension(sequence=sequence):
            yield from evaluated(sequence)
        case S.EList(items=items):
            for i in items:
                yield from evaluated(i)
