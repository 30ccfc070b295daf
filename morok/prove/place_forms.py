"""Places that rules make of places, told by their syntax.

A rule fires wherever its pattern is found, also where a load or a store needs a place, or an index needs storage. A node of the
same value is not enough there: it must be the same place, lane by lane. Where the element at an index is the same whatever the
storage holds, it is that of the same place; so what is made of a place must be a place again, and not be chosen by what is stored
there.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from morok.dialect import HasPlaces
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.special_ops import loads
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.forms import root_of


class Place(enum.IntEnum):
    """The certainty of a node of a pattern being a place."""

    NEVER = 0
    PERHAPS = 1
    SURELY = 2


@once_a_rule
def keeps_places(rule: CheckedRule) -> bool:
    """True if a rule makes the same place of a node that may be a place, or a load from it, which no op takes for a place."""
    if not isinstance(rule.dialect, HasPlaces):
        return True
    forms = _Forms(rule, rule.dialect)
    least = forms.of_root(rule.syntax.pattern)
    target = rule.syntax.target
    if least is Place.NEVER or root_of(rule.syntax.pattern) in rule.dialect.storage:
        return True
    made = target.op if isinstance(target, S.EStruct) else target.name if isinstance(target, S.ECall) else ""
    if made in loads(rule.dialect):
        target = next(iter(_first(rule, target)), target)
    return forms.kept(target, least)


def _first(rule: CheckedRule, at: Any) -> list[Any]:
    """The first operand of an op as it is written, or all of them where there may be many; nothing where it is left open."""
    op = at.op if isinstance(at, (S.PStruct, S.EStruct)) else at.ops[0] if isinstance(at, S.POp) else at.name
    operand = rule.dialect.ops[op].operands[0]
    if isinstance(at, S.PStruct):
        found = [S.PVar(f.name) if f.value is None else f.value for f in at.fields if f.name == operand.name]
    elif isinstance(at, S.EStruct):
        found = [dict(at.fields)[operand.name]] if operand.name in dict(at.fields) else []
    else:
        found = [a for a in at.args if not isinstance(a, (S.PType, S.EType))]
        found = found if operand.many else found[:1]
    return [i for f in found for i in (f.items if isinstance(f, (S.PList, S.EList)) else [f])]


class _Forms:
    """One rule's names: the parts of its pattern, and what its clauses make."""

    def __init__(self, rule: CheckedRule, ops: HasPlaces) -> None:
        self.rule = rule
        self.ops = ops
        self.parts: dict[str, S.Syntax] = {}
        for p in S.walk(rule.syntax.pattern):
            if isinstance(p, S.PBind):
                self.parts[p.name] = p.inner
            elif isinstance(p, (S.PVar, S.PSequence)):
                self.parts.setdefault(p.name, p)
            elif isinstance(p, S.PField) and p.value is None:
                self.parts.setdefault(p.name, S.PVar(p.name))
        self.made = {
            n: c.value for c in rule.syntax.clauses if isinstance(c, S.Let) for n in c.names if len(c.names) == 1
        }

    def of_root(self, p: Any) -> Place:
        """The certainty of a match being a place. A bare variable, but for one that is storage, matches no such ops."""
        while isinstance(p, S.PBind):
            p = p.inner
        ty = self.rule.types.get(id(p)) if isinstance(p, S.PVar) else None
        return Place.NEVER if ty is not None and not (ty.pointer or ty.place) else self.of_pattern(p)

    def of_pattern(self, p: Any) -> Place:
        """The certainty of a node that is matched being a place."""
        match p:
            case S.PBind() | S.PSome():
                return self.of_pattern(p.inner)
            case S.PAlternatives():
                return max(map(self.of_pattern, p.options))
            case S.PVar() | S.PSequence():
                ty = self.rule.types.get(id(p))
                if ty is None and p.name in self.rule.bindings:
                    ty = self.rule.bindings[p.name].type
                return Place.NEVER if ty is not None and ty.element == "void" else Place.PERHAPS
            case S.POp() | S.PStruct():
                ops = p.ops if isinstance(p, S.POp) else (p.op,)
                return max(self._of_op(op, p) for op in ops)
            case S.PExpr(value=S.EName(name=name)) if name in self.parts:
                return Place.PERHAPS
        return Place.NEVER

    def _of_op(self, op: str, p: Any) -> Place:
        if op in self.ops.storage:
            return Place.PERHAPS
        below = (
            [self.of_pattern(i) for i in _first(self.rule, p)]
            if op in self.ops.places | self.ops.passing
            else [Place.NEVER]
        )
        if Place.NEVER in below:
            return Place.NEVER
        return Place.SURELY if op in self.ops.places else max(below, default=Place.PERHAPS)

    def kept(self, e: Any, least: Place) -> bool:
        """True if the built node is a place wherever the matched one is."""
        match e:
            case S.EName(name=name):
                if name in self.made:
                    return self.kept(self.made[name], least)
                return name in self.parts and self.of_pattern(self.parts[name]) >= least
            case S.EIndex(sequence=several) | S.ESpread(sequence=several):
                return self.kept(several, least)
            case S.ECall(name="inside", args=(inner,)):
                return self.kept(inner, least)
            case S.EList(items=items):
                return all(self.kept(i, least) for i in items)
            case S.EComprehension():
                return self._each_kept(e, least)
            case S.ECall(name=op) | S.EStruct(op=op) if op in self.ops.places:
                return self._storage(e) not in {self._storage(at) for i in self._indices(e) for at in self._reached(i)}
            case S.ECall(name=op) | S.EStruct(op=op) if op in self.ops.passing:
                return all(self.kept(i, least) for i in _first(self.rule, e))
        return False

    def _each_kept(self, e: S.EComprehension, least: Place) -> bool:
        """True if each item of a comprehension is a place where the items that it iterates over are."""
        was = dict(self.made)
        self.made |= dict.fromkeys(e.names, e.sequence)
        try:
            return self.kept(e.body, least)
        finally:
            self.made = was

    def _storage(self, at: S.Syntax) -> str | None:
        """The name of the storage that a place is in, "" where it has none; None of any other part of a rule."""
        if not any(op in self.ops.places for op in S.ops_at(at)):
            return None
        while (below := self._below(at)) is not None:
            at = below
        return getattr(at, "name", "")

    def _below(self, at: S.Syntax) -> S.Syntax | None:
        """The part that a name is bound to, or the first operand of an op; None for any other part."""
        match at:
            case S.EName(name=name):
                return self.made.get(name, self.parts.get(name))
            case S.PBind():
                return at.inner
        return (
            next(iter(_first(self.rule, at)), None) if any(op in self.rule.dialect.ops for op in S.ops_at(at)) else None
        )

    def _indices(self, e: Any) -> list[S.Syntax]:
        """The operands of a place besides its storage."""
        first = _first(self.rule, e)
        written = dict(e.fields).values() if isinstance(e, S.EStruct) else e.args
        return [i for i in written if not any(i is f for f in first)]

    def _reached(self, e: Any) -> Iterator[S.Syntax]:
        """An expression, and whatever its names stand for."""
        seen: set[str] = set()
        todo = [e]
        while todo:
            for at in S.walk(todo.pop()):
                yield at
                if isinstance(at, S.EName) and at.name not in seen:
                    seen.add(at.name)
                    todo += [x[at.name] for x in (self.made, self.parts) if at.name in x]
