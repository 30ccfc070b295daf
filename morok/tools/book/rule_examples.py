"""Examples of rules firing: a small graph made from a rule's pattern, with its own names, and the rule's result.

Random graphs, the same in every process, are tried; of the first ENOUGH on which the rule fires the most readable is the example.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from morok import config
from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.errors import MorokError
from morok.ir.dtype import BY_NAME, AddrSpace, DType, dtypes
from morok.ir.op import AxisType, Op, Undefined
from morok.ir.uop import UOp, vconst
from morok.prove.rule_syntax import names_in
from morok.prove.trust.differential import Rewriter, graphs_at
from morok.prove.trust.graphs import Unmakeable

TRIES: Final = 600
ENOUGH: Final = 14  # examples to find; the most readable of them is shown
PREFERRED: Final = ("i32", "index", "f32", "bool", "f16", "u32", "i64")
NUMBERS: Final = (4, 2, 3, 8, 6, 12, 1, 5, 7, 16, -1, -3)
FRACTIONS: Final = (2.0, 0.5, 1.0, 3.0, -1.5)
RANGES: Final = ((0, 31), (0, 7), (0, 2), (0, 3), (5, 9), (0, 100), (-9, -1), (-20, 20), (0, 1), (3, 3))


_LANES: Final = frozenset(
    {"Gep", "Vectorize", "VConst", "vconst", "anyconst", "Cat", "PtrCat", "lanes"}
)  # names in rules about vectors


class Example(NamedTuple):
    """A graph, and the rule's result on it, as expression text."""

    before: str
    after: str


class _Unmakeable(Exception):
    """The error for patterns of a form from which no graph is made."""


def example(rule: CheckedRule) -> Example | None:
    """The rule's own `example`, or one found by trying graphs; None if the rule fires on none of them."""
    if rule.syntax.examples:
        own = rule.syntax.examples[0]
        return Example(own.source, own.result)
    apply = Rewriter(rule)
    found: list[Example] = []
    for graph in itertools.chain(_graphs(rule), _odd_graphs(rule)):
        try:
            made = apply(graph)
        except (MorokError, ArithmeticError, LookupError, ValueError, Undefined):  # an impossible graph
            continue
        if made is not None and made is not graph:
            found.append(Example(graph.text(), made.text()))
            if len(found) == ENOUGH:
                break
    return min(found, key=lambda e: (_clutter(e), e)) if found else None


# Unclear parts of an example, with weights: variables with one value, special numbers, uncommon dtypes, unnamed parts.
_DULL: Final = (
    (re.compile(r"\[(-?\d+)\.\.=\1\]"), 30),
    (re.compile(r"\b[01]\b(?!\.\.)"), 6),
    (re.compile(r"\b(?:i8|u8|f16|bf16|f64)"), 5),
    (re.compile(r"-\d"), 4),
    (re.compile(r"[a-z]\d+: "), 3),
)


def _clutter(e: Example) -> int:
    """The cost of reading an example: its length, plus weights for unclear parts."""
    text = f"{e.before} {e.after}"
    return len(text) + sum(weight * len(pattern.findall(text)) for pattern, weight in _DULL)


def _graphs(rule: CheckedRule) -> Iterator[UOp]:
    rng = random.Random(crc32(rule.name.encode()))
    liked = sorted(rule.instances, key=lambda i: [_rank(d) for d in i.dtypes.values()])
    for number in range(TRIES):
        instance = liked[0] if number % 3 else rng.choice(liked[: 4 if number < TRIES // 2 else None])
        try:
            yield _Graph(rule, instance, rng).make(rule.syntax.pattern)
        except (MorokError, _Unmakeable, KeyError, TypeError, ValueError, OverflowError):  # no such node: try the next
            continue


def _odd_graphs(rule: CheckedRule) -> Iterator[UOp]:
    """Graphs of the differential tests, for rules that fire on none of the likely graphs."""
    with contextlib.suppress(Unmakeable):
        for graph, _, _ in graphs_at(rule, TRIES, rule.instances):
            yield graph


def _rank(dtype: str) -> int:
    return PREFERRED.index(dtype) if dtype in PREFERRED else len(PREFERRED)


class _Graph:
    """A maker of one graph. `position` in its methods is the operand's: "value", "place", "binder", "order", or "end"."""

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        self.rule, self.instance, self.rng = rule, instance, rng
        self.names: dict[str, Any] = {}
        self.numbers: list[int] = []
        self.fresh = 0
        self.loops: list[UOp] = []
        self.lanes: dict[Any, int] = {}
        self.vectors = not _LANES.isdisjoint(names_in(rule.syntax))
        self.made: list[UOp] = []
        self.used = set(rule.bindings)
        self.modulus = rng.choice((2, 4, 8))

    def label(self, name: str) -> str:
        plain = name.strip("_") or "u"
        if name.startswith("_") and plain in self.used:
            self.fresh += 1
            plain = f"{plain}{self.fresh}"
        self.used.add(plain)
        return plain

    def dtype(self, node: S.Syntax) -> DType:
        ty = self.rule.types.get(id(node))
        name = "any" if ty is None else self.instance.element(ty)
        found = dtypes.f32 if name == "any" else BY_NAME[name]
        if ty is None or isinstance(ty.lanes, int):
            return found if ty is None or ty.lanes == 1 else found.vec(int(ty.lanes))
        if self.vectors:
            return found.vec(self.lanes.setdefault(ty.lanes, self.rng.choice((1, 2, 4, 4))))
        return found

    def number(self, d: DType) -> Any:
        rng = self.rng
        if d.is_bool:
            return rng.random() < 0.5
        if d.is_float:
            return rng.choice(FRACTIONS)
        if self.numbers and rng.random() < 0.55:
            a = rng.choice(self.numbers)
            v = rng.choice((a, a, a * rng.choice(self.numbers), a + 1, a - 1, a // 2))
        else:
            v = rng.choice(NUMBERS[:8] if rng.random() < 0.7 else NUMBERS)
        self.numbers.append(v)
        return v

    def place(self, d: DType) -> UOp:
        self.fresh += 1
        return UOp.new(Op.DefineGlobal, (), self.fresh - 1, d.scalar().ptr(self.rng.choice((8, 16, 32)), AddrSpace.GLOBAL))

    def loop(self) -> UOp:
        r = UOp.range(self.rng.choice((8, 4, 16)), len(self.loops), AxisType.Loop)
        self.loops.append(r)
        return r

    def variable(self, name: str, d: DType, maybe_invalid: bool, position: str) -> UOp:
        rng = self.rng
        if position == "binder":
            return self.loop()
        if position == "end" and rng.random() < 0.7:
            return UOp.const(rng.choice((1, 0, 8)), d)
        if position == "place":
            return self.place(d).index(UOp.var("at", dtypes.index, 0, 7))
        if maybe_invalid and d.is_index and rng.random() < 0.2:
            return UOp.var("valid", dtypes.bool).where(UOp.var(name, d, 0, 31), UOp.invalid_at(d))
        if d.is_bool and rng.random() < 0.3:  # decided by bounds
            return UOp.var(name, dtypes.index, *rng.choice(RANGES)) < UOp.const(rng.choice((-20, 32, 101)), dtypes.index)
        if d.is_float or d.is_bool:
            return UOp.var(name, d)
        if d.is_index and self.loops and rng.random() < 0.6:
            return rng.choice(self.loops)
        if d.is_int and rng.random() < 0.6:
            return UOp.var(name, d)
        if d is dtypes.index and self.made and rng.random() < 0.25:
            return rng.choice(self.made)
        low, high = rng.choice(RANGES)
        leaf = UOp.var(name, d, max(low, int(d.min)) if d.is_int else low, high)
        if d is not dtypes.index:
            return leaf
        self.made.append(leaf)
        return self.compound(leaf, name) if rng.random() < 0.5 else leaf

    def compound(self, leaf: UOp, name: str) -> UOp:
        """A term of index variables, for rules about sums, quotients and remainders."""
        rng = self.rng
        other = UOp.var(f"{name}2", dtypes.index, 0, rng.choice((1, 3, 7)))
        self.made.append(other)
        first = self.made[0]
        k = leaf.like(self.number(dtypes.index))
        n = leaf.like(self.modulus)
        sums = (
            leaf * k,
            leaf * k + other,
            leaf * k + other * leaf.like(2),
            other * k,
            leaf * k + leaf.like(1),
            leaf * k + other * k,
        )
        digits = (leaf // n, leaf % n, leaf % n + leaf // n * n, first // n * n, first % n)
        return rng.choice((*sums, *digits, leaf * leaf.like(-1) + leaf.like(31), other * leaf + first))

    def make(self, p: Any, position: str = "value") -> Any:
        match p:
            case S.PVar(name=name):
                found = self.names.get(name)
                if found is None:
                    bound = self.rule.bindings.get(name)
                    ty = self.rule.types.get(id(p)) or (bound.type if bound is not None else None)
                    if ty is not None and ty.place:
                        found = self.place(self.dtype(p))
                    else:
                        found = self.variable(self.label(name), self.dtype(p), bound is not None and bound.invalid_ok, position)
                    if not p.ignored:
                        self.names[name] = found
                return found
            case S.PConst(kind=kind, name=name):
                if name is not None and name in self.names:
                    return self.names[name]
                d = self.dtype(p)
                if kind in ("vconst", "anyconst"):
                    found = vconst(d.scalar(), [self.number(d.scalar()) for _ in range(max(d.count, 2))])
                else:
                    special: dict[str, Any] = {"zero": 0, "one": 1, "true": True, "false": False}
                    found = UOp.const(special[kind] if kind in special else self.number(d.scalar()), d)
                if name is not None:
                    self.names[name] = found
                return found
            case S.PLiteral(value=v):
                return UOp.const(v, self.dtype(p))
            case S.PBind(name=name, inner=inner):
                if p.ignored or name not in self.names:
                    self.names[name] = self.make(inner, position)
                return self.names[name]
            case S.PAlternatives(options=options):
                return self.make(self.rng.choice(options), position)
            case S.POp():
                return self.op(p)
            case S.PStruct():
                return self.struct(p)
        raise _Unmakeable(type(p).__name__)

    def op(self, p: S.POp) -> UOp:
        name = self.rng.choice(p.ops)
        info = self.rule.dialect.ops[name]
        args = list(p.args)
        d: DType | None = None
        if args and isinstance(args[-1], S.PType):
            d = self.dtype(p)
            args.pop()
        if name == "Invalid":
            return UOp.invalid_at(self.dtype(p))
        operands: list[UOp] = []
        for n, a in enumerate(args):
            operand = info.operands[min(n, len(info.operands) - 1)]
            operands += self.several(a, "end" if operand.name == "end" else operand.position)
        if p.commutative and self.rng.random() < 0.3:
            operands.reverse()
        fields = {f: self.field(name, f, None, operands) for f in info.fields if f in ("id", "axis", "renumbered")}
        return self.built(info, operands, fields, d)

    def several(self, p: Any, position: str) -> list[UOp]:
        """The operands for one part of a pattern's list: one, or a sequence."""
        if isinstance(p, S.PSequence):
            if p.name not in self.names:
                count = self.rng.choice((2, 1, 3, 2, 4, 0))
                kind = self.rule.bindings.get(p.name)
                d = self.dtype(p)
                made = [
                    self.variable(f"{self.label(p.name)}{i}", d, kind is not None and kind.invalid_ok, position)
                    for i in range(count)
                ]
                if p.name.startswith("_"):
                    return made
                self.names[p.name] = made
            found: list[UOp] = self.names[p.name]
            return found
        if isinstance(p, S.PList):
            return [u for item in p.items for u in self.several(item, position)]
        return [self.make(p, position)]

    def struct(self, p: S.PStruct) -> UOp:
        info = self.rule.dialect.ops[p.op]
        given = {f.name: f.value if f.value is not None else S.PVar(f.name) for f in p.fields}
        operands: list[UOp] = []
        gated = False
        for o in info.operands:
            value = given.get(o.name)
            if isinstance(value, S.PSome):
                value, gated = value.inner, True
            if value is None or isinstance(value, S.PNone):
                if o.optional or (o.many and o.position == "order"):
                    continue
                operands.append(self.missing(o.name, o.position))
            elif o.many and isinstance(value, S.PVar):
                operands += self.several(S.PSequence(value.name), o.position)
            else:
                operands += self.several(value, "end" if o.name == "end" else o.position)
        fields = {f: self.field(p.op, f, given.get(f), operands) for f in info.fields if f != "gated"}
        return self.built(info, operands, {**fields, "gated": True} if gated else fields, None)

    def missing(self, name: str, position: str) -> UOp:
        if position == "binder":
            return self.loop()
        if position == "place":
            return self.place(dtypes.f32)
        return UOp.const(8, dtypes.index) if name == "end" else UOp.var(name, dtypes.index, 0, 7)

    def field(self, op: str, name: str, value: Any, operands: Sequence[UOp]) -> Any:
        """The value of a static field: the pattern's, or a likely one."""
        rng = self.rng
        if isinstance(value, S.EName) and value.name in self.rule.dialect.ops:
            return Op[value.name]
        if isinstance(value, S.EList):
            return tuple(self.item(i) for i in value.items)
        bound = value.name if isinstance(value, S.PVar) else None
        if bound is not None and bound in self.names:
            return self.names[bound]
        lanes = operands[0].dtype.count if operands else 1
        some = tuple(rng.randrange(lanes) for _ in range(rng.choice((1, 1, 2, 2, 4))))
        likely: dict[str, Any] = {
            "indices": some if rng.random() < 0.7 else tuple(range(lanes)),
            "op": rng.choice((Op.Add, Op.Mul, Op.Max)),
            "axis": AxisType.Loop,
            "id": len(self.loops),
            "renumbered": False,
            "axes": (1, 0) if op == "Permute" else (True,),
        }
        found = likely[name]
        if bound is not None and not bound.startswith("_"):
            self.names[bound] = found
        return found

    def item(self, e: S.Expr) -> Any:
        if isinstance(e, S.ENumber):
            return e.value
        if isinstance(e, S.EName):
            return self.names.setdefault(e.name, self.rng.randrange(4))
        raise _Unmakeable("a field of this form")

    def built(self, info: OpInfo, operands: Sequence[UOp], fields: dict[str, Any], d: DType | None) -> UOp:
        made: UOp = self.rule.dialect.build(info.name, operands, fields, d)
        if made.op is Op.Range:
            self.loops.append(made)
        return made


def examples(rules: Sequence[CheckedRule]) -> dict[str, Example]:
    """The examples by rule, for rules that have one, with all fast-math flags allowed."""
    flags = sorted({flag for r in rules for flag in r.syntax.assuming})
    with config.settings(fast_math=",".join(flags)) if flags else config.settings():
        return {r.name: e for r in rules if (e := example(r)) is not None}
