"""What a pattern admits, read off the checked rule as the prover reads it: the reference for what the matcher accepts.

A proof takes for granted that the node at each part of the pattern, and every element of a sequence, has the dtype and the number
of lanes that the rule's types give it at one of the rule's instances, that nodes with one name are one node, and that only what
says so is Invalid. No code of the matcher is used here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.ir.dtype import PtrType
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp


@dataclass(frozen=True)
class Match:
    """One way to read a node as a pattern: what names stand for, and which nodes have which type."""

    names: tuple[tuple[str, Any], ...] = ()
    typed: tuple[tuple[Ty, UOp], ...] = ()

    def named(self, name: str, what: Any) -> Match | None:
        old = dict(self.names)
        if name.startswith("_"):
            return self
        if name not in old:
            return replace(self, names=(*self.names, (name, what)))
        same = old[name] == what if isinstance(what, tuple) else old[name] is what
        return self if same else None


class Admission:
    def __init__(self, rule: CheckedRule) -> None:
        self.rule = rule

    def admits(self, node: UOp) -> bool:
        return any(self.consistent(m) for m in self.read(self.rule.syntax.pattern, node, Match()))

    def consistent(self, m: Match) -> bool:
        lanes: dict[str, int] = {}
        for ty, node in m.typed:
            if ty.place:
                continue
            count = 1 if isinstance(node.dtype, PtrType) else node.dtype.count
            if isinstance(ty.lanes, int):
                if count != ty.lanes:
                    return False
            elif lanes.setdefault(ty.lanes, count) != count:
                return False
        looked_at = [(ty, n.dtype.scalar().name) for ty, n in m.typed if not ty.place and ty.element != "any"]
        return any(all(i.element(ty) == name for ty, name in looked_at) for i in self.rule.instances)

    def typed(self, p: S.Syntax, node: UOp, m: Match, valid: bool = True) -> Match | None:
        """With the type of `p` for `node`, if it is not Invalid where it must not be."""
        ty = self.rule.types.get(id(p))
        name = getattr(p, "name", "")
        if ty is None and name in self.rule.bindings:
            ty = self.rule.bindings[name].type
        if ty is None:
            return m
        if valid and node.invalid and ty.element != "any" and not self.tolerant(p):
            return None
        return replace(m, typed=(*m.typed, (ty, node)))

    def tolerant(self, p: Any) -> bool:
        binding = self.rule.bindings.get(getattr(p, "name", ""))
        return (binding is not None and binding.invalid_ok) or _maybe(p)

    def read(self, p: S.Pattern, node: UOp, m: Match) -> Iterator[Match]:
        checked = self.typed(p, node, m, valid=isinstance(p, S.PVar))
        if checked is None:
            return
        m = checked
        match p:
            case S.PVar(name=name):
                if (found := m.named(name, node)) is not None:
                    yield found
            case S.PBind(name=name, inner=inner):
                for r in self.read(inner, node, m):
                    if (found := r.named(name, node)) is not None:
                        yield found
            case S.PConst(kind=kind):
                special = {"zero": 0, "one": 1, "true": True, "false": False}
                if node.op is Op.Const and (kind == "const" or _is(node.arg, special[kind])):
                    yield m
            case S.PLiteral(value=v):
                if node.op is Op.Const and _is(node.arg, node.like(v).arg):
                    yield m
            case S.PAlternatives(options=options):
                for o in options:
                    yield from self.read(o, node, m)
            case S.POp(ops=ops, args=args, commutative=commutative):
                if node.op.name in ops:
                    args = tuple(a for a in args if not isinstance(a, S.PType))
                    for order in itertools.permutations(args) if commutative else (args,):
                        yield from self.operands(order, node.src, m)
            case S.PStruct(op=op):
                if node.op.name == op:
                    yield from self.struct(p, node, m)

    def operands(self, patterns: Sequence[Any], src: Sequence[UOp], m: Match) -> Iterator[Match]:
        if not patterns:
            if not src:
                yield m
            return
        first, *rest = patterns
        if isinstance(first, S.PSequence):
            for end in range(len(src) + 1):
                found = self.several(first, tuple(src[:end]), m)
                if found is not None:
                    yield from self.operands(rest, src[end:], found)
        elif src:
            for r in self.read(first, src[0], m):
                yield from self.operands(rest, src[1:], r)

    def several(self, p: Any, nodes: tuple[UOp, ...], m: Match | None) -> Match | None:
        m = m and m.named(p.name, nodes)
        for i, n in enumerate(nodes):
            m = m and self.typed(p, n, m)
            if m is not None and m.typed and self.rule.own_lanes((ty := m.typed[-1][0]).lanes):
                m = replace(m, typed=(*m.typed[:-1], (replace(ty, lanes=f"{ty.lanes}#{i}"), n)))
        return m

    def struct(self, p: S.PStruct, node: UOp, m: Match) -> Iterator[Match]:
        entry = TABLE.entries[node.op]
        parts = dict(zip(entry.fields, (node.arg,) if len(entry.fields) == 1 else node.arg or (), strict=False))
        src = list(node.src)
        gated = bool(node.arg) if node.op is Op.Index else len(src) > 1 and node.op is Op.Load
        for o in entry.operands:
            if o.optional:
                parts[o.name] = src.pop() if gated else None
        for o in entry.operands:
            if not o.optional:
                parts[o.name] = tuple(src) if o.many else src.pop(0)
        fields = {f.name: f for f in p.fields}
        if not p.rest and any(parts[o.name] not in (None, ()) for o in entry.operands if o.name not in fields):
            return
        states = [m]
        for name, f in fields.items():
            states = [r for s in states for r in self.part(f, parts[name], s)]
        yield from states

    def part(self, f: S.PField, value: Any, m: Match) -> Iterator[Match]:
        pattern = S.PVar(f.name) if f.value is None else f.value
        if isinstance(pattern, S.PNone):
            if value is None:
                yield m
        elif isinstance(pattern, S.PSome):
            if value is not None:
                yield from self.read(pattern.inner, value, m)
        elif isinstance(pattern, S.PList):
            yield from self.operands(pattern.items, value, m)
        elif isinstance(value, UOp):
            yield from self.read(pattern, value, m)
        elif isinstance(value, tuple) and value and isinstance(value[0], UOp):
            found = self.several(pattern, value, m)
            if found is not None:
                yield found
        elif isinstance(pattern, S.PVar):
            found = m.named(pattern.name, value)
            if found is not None:
                yield found
        elif isinstance(pattern, S.EName):
            if getattr(value, "name", None) == pattern.name:
                yield m
        else:
            raise AssertionError(pattern)


def _maybe(p: Any) -> bool:
    todo = [p.type] if getattr(p, "type", None) is not None else []
    while todo:
        t = todo.pop()
        if isinstance(t, S.TMaybeInvalid):
            return True
        todo += S.children(t)
    return False


def _is(value: Any, wanted: Any) -> bool:
    """Whether a constant is this one: the zeros differ."""
    return value == wanted and (not isinstance(value, float) or math.copysign(1.0, value) == math.copysign(1.0, wanted))
