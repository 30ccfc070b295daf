"""Operands that a struct pattern leaves open by `..`: each gets a name that says nothing, for whoever reads the rule."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from morok.dialect import OperandInfo, OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Ty
from morok.dsl.structural import relations
from morok.prove.cached_per_rule import once_a_rule


def left_open(info: OpInfo, p: S.PStruct) -> list[OperandInfo]:
    """The operands that a pattern of an op says nothing of, and that what it matches may have.

    Without `..` there are none but those that it names. And `..` ignores no effects: a matcher fires on no node that waits for
    something which the pattern does not name.
    """
    named = {f.name for f in p.fields}
    return [o for o in info.operands if p.rest and o.name not in named and not (o.many and o.position == "order")]


@once_a_rule
def completed(rule: CheckedRule) -> CheckedRule:
    """The rule with a name that says nothing for each operand that its pattern leaves open: it matches the same nodes."""
    names = _Names(rule)
    pattern = names.filled(rule.syntax.pattern)
    if pattern is rule.syntax.pattern:
        return rule
    return replace(rule, syntax=replace(rule.syntax, pattern=pattern), types=names.types)


class _Names:
    """A rule's patterns with their open operands named.

    types  of all nodes of the rule, and of these operands where something says them
    """

    def __init__(self, rule: CheckedRule) -> None:
        self.rule = rule
        self.types = dict(rule.types)
        self.count = 0

    def filled(self, at: Any) -> Any:
        """A part of a pattern with all operands; itself where it leaves none open."""
        if isinstance(at, tuple):
            items = tuple(map(self.filled, at))
            return at if all(a is b for a, b in zip(items, at, strict=True)) else items
        if not isinstance(at, S.Syntax) or isinstance(at, S.Span):
            return at
        parts = {f.name: getattr(at, f.name) for f in fields(at)}
        made = {name: new for name, part in parts.items() if (new := self.filled(part)) is not part}
        if isinstance(at, S.PStruct):
            info = self.rule.dialect.ops[at.op]
            opened = tuple(S.PField(o.name, self._name(info, o, at), span=at.span) for o in left_open(info, at))
            made |= {"fields": (*made.get("fields", at.fields), *opened)} if opened else {}
        if not made:
            return at
        found = replace(at, **made)
        if id(at) in self.types:
            self.types[id(found)] = self.types[id(at)]
        return found

    def _name(self, info: OpInfo, o: OperandInfo, at: S.PStruct) -> S.PVar:
        """A name for an operand. Nothing says that an index is not Invalid, as it does of names that are written."""
        index = S.TMaybeInvalid(S.TName("index", span=at.span), span=at.span)
        name = S.PVar("_", index, span=at.span)
        ty = self._type(info, o, at)
        if ty is not None:
            self.types[id(name)] = ty
        return name

    def _type(self, info: OpInfo, o: OperandInfo, at: S.PStruct) -> Ty | None:
        """The type of an operand, with a number of lanes of its own unless it is that of the result; None if it may be many."""
        if o.position == "binder":
            return Ty("any", fixed=True)
        for of, word, rest in relations(info):
            if word == "=" and {of, *rest} == {o.name, "result"}:
                return self.rule.types.get(id(at))
            if word == "in" and of == o.name and len(rest) == 1 and rest[0] in self.rule.dialect.dtypes:
                self.count += 1
                return Ty(rest[0], fixed=True, lanes=f"${o.name}{self.count}")
        return None
