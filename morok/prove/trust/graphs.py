"""Random graphs that a rule's pattern matches: made from the same checked tree as the matcher and the proof."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.ir.dtype import BY_NAME, DType
from morok.ir.number import coerce
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp, vconst
from morok.prove.cached_per_rule import once_a_rule

SMALL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, -1, -2, -3, -4, -8)
FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.25, float("inf"), float("-inf"), float("nan"), 1e-40, 65504.0, 1e30)


LARGE: Final = 1 << 20  # numbers that random graphs never come near


# What a maker may raise that knows the forms of the library's rules, and meets others: there is no graph of those.
MISMADE: Final = (LookupError, ArithmeticError, TypeError, AttributeError, ValueError)


class Unmakeable(Exception):
    """The pattern has a form that no graph is made for."""


class Maker:
    """Makes one graph for one instance of a rule; `lanes` other than 1 makes vectors of everything."""

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random, lanes: int = 1) -> None:
        self.rule, self.instance, self.rng, self.lanes = rule, instance, rng, lanes
        self.nodes: dict[str, UOp] = {}
        self.values: dict[str, Any] = {}  # of constants, by what the pattern calls them
        self.count = 0
        self.factors: list[int] = []
        self.leaves: list[UOp] = []
        self.limits = large_numbers(rule)
        self.mentioned = other_numbers(rule)

    def scalar(self, node: S.Syntax) -> DType:
        name = self.instance.element(self.rule.type_of(node))
        if name not in BY_NAME:
            raise Unmakeable(f"a node of dtype {name}")
        return BY_NAME[name]

    def constants(self, d: DType, count: int) -> list[Any]:
        """The numbers of a vector constant."""
        return [self.constant(d) for _ in range(count)]

    def constant(self, d: DType) -> Any:
        rng = self.rng
        if d.is_bool:
            return rng.random() < 0.5
        if d.is_float:
            return rng.choice(FLOATS)
        if d.is_int and rng.random() < 0.15:
            return rng.choice((int(d.min), int(d.max), int(d.min) + 1, int(d.max) - 1))
        if self.mentioned and rng.random() < 0.25:
            return int(coerce(d, rng.choice(self.mentioned)))
        # constants of one rule are often equal, or products of each other: that is what guards ask
        if self.factors and rng.random() < 0.6:
            a = rng.choice(self.factors)
            v = rng.choice((a, a, -a, a * rng.choice(self.factors), a + 1, a - 1))
        else:
            v = rng.choice(SMALL)
        self.factors.append(v)
        return v

    def const(self, d: DType, v: Any) -> UOp:
        return UOp.const(v, d.vec(self.lanes))

    def variable(self, d: DType, maybe_invalid: bool = False) -> UOp:
        """A variable, a constant, or for indices something made of variables; perhaps Invalid where the rule admits that."""
        self.count += 1
        name = f"v{self.count}"
        rng = self.rng
        if maybe_invalid and d.is_index and rng.random() < 0.3:
            nowhere = UOp.invalid_at(d.vec(self.lanes))
            return rng.choice((nowhere, UOp.var(f"p{self.count}", BY_NAME["bool"]).where(self.variable(d), nowhere)))
        if rng.random() < 0.1:
            return self.const(d, self.constant(d))
        if d.is_bool and rng.random() < 0.3:  # a comparison, often with what another one compares
            if not self.leaves or rng.random() < 0.4:
                self.leaves.append(UOp.var(name, BY_NAME["index"].vec(self.lanes), 0, rng.choice((3, 9, 20))))
            return rng.choice(self.leaves) < rng.choice(SMALL)
        if not d.is_integral:
            return UOp.var(name, d.vec(self.lanes))
        if d.is_int and rng.random() < 0.2:
            return UOp.var(name, d.vec(self.lanes))
        if self.limits and rng.random() < 0.4:
            return UOp.var(name, d.vec(self.lanes), *self.around_limits(d))
        low = rng.choice((0, 0, 0, 0, 1, 2, -6, -20))
        low = max(low, int(d.min) if d.is_int else low)
        leaf = UOp.var(name, d.vec(self.lanes), low, low + rng.choice((0, 1, 1, 3, 5, 9, 20)))
        if d.is_index:
            self.leaves.append(leaf)
            if rng.random() < 0.6:
                return self.compound(leaf)
        return leaf

    def around_limits(self, d: DType) -> tuple[int, int]:
        """Bounds of which one is near a large number that the rule itself mentions."""
        rng = self.rng
        at = rng.choice((1, -1)) * rng.choice(self.limits) + rng.choice((0, 0, -1, -1, 1, -2))
        other = rng.choice((0, at, at - 1, at + 1, -at))
        low, high = sorted((at, other))
        if d.is_int:
            low, high = max(low, int(d.min)), min(high, int(d.max))
        return (low, high) if low <= high else (0, 9)

    def compound(self, leaf: UOp) -> UOp:
        """A sum, multiple, product, or a quotient and a remainder over a leaf and an earlier one."""
        rng = self.rng
        other = rng.choice(self.leaves)
        k = leaf.like(rng.choice((1, 2, 4, 6, 8)))
        form = rng.randrange(6)
        if form == 0:
            return leaf + other * k
        if form == 1:
            return leaf * k
        if form == 2:
            return leaf * k * leaf.like(-1) + leaf.like(rng.choice((0, 40)))
        if form == 3:
            return other * leaf * k
        if form == 4:
            return other + other.like(1)
        n = leaf.like(2)
        return rng.choice((other // n * n + leaf, other % n + leaf, other // n * n, other % n, (other + n) // n * n))

    def make(self, p: S.Pattern) -> UOp:
        match p:
            case S.PVar(name=name):
                found = self.nodes.get(name)
                if found is None:
                    bound = self.rule.bindings.get(name)
                    found = self.variable(self.scalar(p), bound is not None and bound.invalid_ok)
                    if not p.ignored:
                        self.nodes[name] = found
                return found
            case S.PConst(kind=kind):
                d = self.scalar(p)
                if kind in ("vconst", "anyconst"):
                    return vconst(d, self.constants(d, max(self.lanes, 2)))
                special = {"zero": 0, "one": 1, "true": True, "false": False}
                if kind in special:
                    return self.const(d, special[kind])
                value = self.constant(d) if p.bound is None else self.values.setdefault(p.bound, self.constant(d))
                return self.const(d, coerce(d, value))
            case S.PLiteral(value=v):
                return self.const(self.scalar(p), v)
            case S.PBind(inner=inner) if p.ignored:
                return self.make(inner)
            case S.PBind(name=name, inner=inner):
                found = self.nodes.get(name)
                if found is None:
                    found = self.nodes[name] = self.make(inner)
                return found
            case S.PAlternatives(options=options):
                return self.make(self.rng.choice(options))
            case S.POp(ops=ops, args=args):
                op = Op[self.rng.choice(ops)]
                dtype = None
                if args and isinstance(args[-1], S.PType):
                    dtype = self.scalar(p).vec(self.lanes)
                    args = args[:-1]
                made = [self.make(a) for a in args]
                if p.commutative and self.rng.random() < 0.5:
                    made.reverse()
                return UOp.new(op, tuple(made), dtype=dtype)
        raise Unmakeable(type(p).__name__)


def parts_of(p: S.POp | S.PStruct) -> dict[str, Any]:
    """The operands and fields that a pattern gives a node, by their names in the op's entry."""
    if isinstance(p, S.POp):
        return operands(p)
    given = {f.name: S.PVar(f.name) if f.value is None else f.value for f in p.fields}
    return {k: v.inner if isinstance(v, S.PSome) else v for k, v in given.items() if not isinstance(v, S.PNone)}


def operands(p: S.POp) -> dict[str, Any]:
    """The operands that a pattern gives an op one after the other, by the names of the op's operands."""
    found: dict[str, Any] = {}
    rest = [a for a in p.args if not isinstance(a, S.PType)]
    for o in TABLE[Op[p.ops[0]]].operands:
        if o.many:
            found[o.name], rest = rest, []
        elif rest:
            found[o.name] = rest.pop(0)
    return found


@once_a_rule
def large_numbers(rule: CheckedRule) -> list[int]:
    """The numbers that a rule mentions and that no random graph comes near by itself, in order."""
    return sorted({v for v in numbers(rule.syntax) if abs(v) >= LARGE})


@once_a_rule
def other_numbers(rule: CheckedRule) -> list[int]:
    """The numbers that a rule mentions and that no constant of a random graph is by itself, in order."""
    return sorted({v for v in numbers(rule.syntax) if v not in SMALL})


def numbers(tree: S.Syntax) -> Iterator[int]:
    """The whole numbers that a rule mentions; `a << b` is one."""
    todo: list[Any] = [tree]
    while todo:
        at = todo.pop()
        match at:
            case S.EBinary(op="<<", left=S.ENumber(value=int(a)), right=S.ENumber(value=int(b))) if 0 <= b < 256:
                yield a << b
            case S.ENumber(value=int(v)) | S.PLiteral(value=int(v)):
                yield v
            case S.Span():
                pass
            case S.Syntax():
                todo.extend(getattr(at, n) for n in at.__dataclass_fields__)
            case tuple():
                todo.extend(at)


def environment(node: UOp, rng: random.Random) -> dict[UOp, Any]:
    """Values for the variables below `node`, within their bounds; ends of the bounds and of the dtype more often."""
    values: dict[UOp, Any] = {}
    for n in node.toposort():
        if n.op is not Op.DefineVar:
            continue
        d = n.dtype.scalar()
        lanes: list[Any] = []
        for _ in range(n.dtype.count):
            if d.is_bool:
                lanes.append(rng.random() < 0.5)
            elif d.is_float:
                lanes.append(UOp.const(rng.choice((*FLOATS, rng.uniform(-9, 9))), d).arg)
            else:
                lanes.append(between(n, rng))
        values[n] = lanes[0] if n.dtype.count == 1 else tuple(lanes)
    return values


def between(n: UOp, rng: random.Random) -> int:
    """A value of an integer variable: an end of its bounds, or near 0 where they are wide; far from 0 only where they begin or
    end there and are narrower than the dtype's.
    """
    low, high = int(max(n.vmin, -1000)), int(min(n.vmax, 1000))
    if low <= high:
        d = n.dtype.scalar()
        far = [int(v) for v in (n.vmin, n.vmax) if LARGE <= abs(v) < math.inf and v not in (d.min, d.max)]
        return rng.choice((low, high, rng.randint(low, high), rng.choice(far) if far else rng.randint(low, high)))
    return int(rng.choice((n.vmin, n.vmax)))  # all of it is far away
